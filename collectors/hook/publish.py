"""A trace file in its place, whole or not at all and over nobody else's: in, what torch exported; out, ``rankN.json.gz``."""

import errno
import gzip
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracereplay.errors import CollectError

# Kineto writes the path it exports to and the machine's name into the file. The path is nobody's business, and the
# name has to be the one that the manifest gives the host.
_JSON_STRING = rb'"(?:[^"\\]|\\.)*"'
_TRACE_NAME = re.compile(rb'("traceName":\s*)' + _JSON_STRING)
_HOST_NAME = re.compile(rb'("host_name":\s*)' + _JSON_STRING)
_MARK = re.compile(rb'"ProfilerStep#(\d+)"')

_CHUNK = 8 * 2**20
_TAIL = 4096  # Kineto's last lines hold the trace's name: a file without it was cut while it was written
_LEVEL = 4  # of gzip: half the time of the default 9 on traces, 7 % more bytes
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS}


@contextmanager
def scratch_in(folder: Path) -> Iterator[Path]:
    """A folder in ``folder``, so that what is written there gets into its place by renaming; it goes with all that it holds."""
    place = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def publish_trace(raw: Path, trace: Path, host: str, last_step: int | None = None) -> int:
    """Compress the exported file ``raw`` into ``trace`` under the name of ``host``; its size in bytes.

    Marks of steps after ``last_step`` (None: none is) were cut, and are given another name than a step's.

    Raises:
        CollectError: ``raw`` is cut, as on a full disk; or ``trace`` is there already.
        OSError: the file system refuses; nothing is left at ``trace``.
    """
    if not _is_whole(raw):
        raise CollectError("the trace could not be written whole", where=str(trace.parent), hint="is the disk full?")
    names = ((_TRACE_NAME, trace.name), (_HOST_NAME, host))
    packed = raw.with_name(f"{trace.name}.packed")
    with raw.open("rb") as source, packed.open("wb") as file, gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as target:
        while chunk := source.read(_CHUNK) + source.readline():
            for pattern, name in names:
                quoted = json.dumps(name).encode()
                chunk = pattern.sub(lambda match, quoted=quoted: match[1] + quoted, chunk)  # type: ignore[misc]
            target.write(chunk if last_step is None else _MARK.sub(lambda mark: _renamed(mark, last_step), chunk))
    size = packed.stat().st_size
    put(packed, trace)
    return size


def put(draft: Path, place: Path) -> None:
    """Move a file to its place unless there is another.

    Raises:
        CollectError: there is another.
    """
    try:
        os.link(draft, place)  # fails where there is a file, in one step: a rename would replace it
        draft.unlink()
    except FileExistsError as error:
        raise CollectError("is there already and stays", where=str(place), hint="choose another folder") from error
    except OSError as error:
        if error.errno not in _NO_LINKS or place.exists():
            raise
        draft.replace(place)


def write_json(fields: object, path: Path) -> None:
    """Write JSON so that ``path`` is as before, or whole."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(fields, indent=2) + "\n")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _is_whole(raw: Path) -> bool:
    """Whether Kineto came to its end: it does not say when the disk is full, and may then leave no file at all."""
    if not raw.exists():
        return False
    with raw.open("rb") as file:
        file.seek(max(raw.stat().st_size - _TAIL, 0))
        tail = file.read().rstrip()
    return tail.endswith(b"}") and _TRACE_NAME.search(tail) is not None


def _renamed(mark: "re.Match[bytes]", last_step: int) -> bytes:
    return mark[0] if int(mark[1]) <= last_step else b'"unfinished step %d"' % int(mark[1])
