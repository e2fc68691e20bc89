"""Event tables in parquet: a job directory that a user keeps, and a cache that keeps itself.

A table becomes ``NAME.parquet`` (all columns, zstd; the events' own texts in row groups that are read only when asked for)
with its header and quality as JSON in the file's own metadata. A job directory is ``job.json`` (schema number, one entry a
rank with the hash of its source) beside one such file a rank. Everything is written under a name of its own and renamed
when whole: a reader never sees half of it, and of two writers the last one wins.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tracereplay.errors import TraceError, UsageError
from tracereplay.trace.schema import SCHEMA, SCHEMA_NUMBER
from tracereplay.trace.table import Device, EventTable, Group, Header, Quality

JOB_FILE = "job.json"
JOB_SCHEMA = "tracereplay/job"
_LOCK_FILE = ".lock"
# Names that writers give: ranks, and the scratch files that become ranks or the index.
_OURS = re.compile(r"^(\.?(rank\d+|unranked\d+)-[0-9a-f]{8}\.parquet.*|\.job\.json\..*)$")
_ABANDONED_S = 3600
_META_KEY = b"tracereplay"
_HASH_BLOCK = 1 << 20
_COLUMNS = [name for name in SCHEMA.names if name != "text"]


@dataclass(frozen=True, slots=True)
class StoredText:
    """The events' own texts in a parquet file, read when first asked for."""

    path: Path

    def load(self) -> pa.ChunkedArray:
        """The text column."""
        try:
            return pq.read_table(self.path, columns=["text"]).column("text")
        except (OSError, pa.ArrowException) as error:
            what = "the stored trace was replaced or removed while it was read"
            raise TraceError(what, where=str(self.path), hint="run the command again") from error


def content_hash(path: Path) -> str:
    """BLAKE2b of a file's bytes as they lie on disk, 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(_HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def write_table(table: EventTable, path: Path) -> None:
    """Write one table; whole or not at all."""
    meta = {
        "schema": SCHEMA_NUMBER,
        "path": table.path,
        "recorded_events": table.recorded_events,
        "header": asdict(table.header),
        "quality": asdict(table.quality),
    }
    whole = table.with_text().replace_schema_metadata({_META_KEY: json.dumps(meta).encode()})
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as scratch:
        name = Path(scratch.name)
        try:
            pq.write_table(
                whole, scratch, compression="zstd", compression_level=1, use_dictionary=False, write_statistics=False
            )
            scratch.flush()
            os.fsync(scratch.fileno())
        except BaseException:
            name.unlink(missing_ok=True)
            raise
    name.replace(path)


def read_table(path: Path, *, source: str | None = None) -> EventTable:
    """The table at ``path``; ``source`` is the trace it is called after.

    Raises:
        TraceError: not a table of ours, damaged, or of another schema number.
    """
    try:
        file = pq.ParquetFile(path)
        meta = json.loads((file.schema_arrow.metadata or {}).get(_META_KEY, b"null"))
        found = meta.get("schema") if isinstance(meta, dict) else None
        if found != SCHEMA_NUMBER:
            what = f"written with schema {found}, this version reads {SCHEMA_NUMBER}"
            raise TraceError(what, where=str(path), hint="convert the trace again")
        columns = file.read(columns=_COLUMNS).replace_schema_metadata(None)
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException, ValueError) as error:
        raise TraceError(f"a damaged parquet file ({error})", where=str(path), hint="convert the trace again") from error
    return EventTable(
        source or str(meta["path"]),
        columns,
        _header(meta["header"]),
        Quality(**meta["quality"]),
        meta["recorded_events"],
        StoredText(path),
    )


def write_job(
    tables: Sequence[tuple[EventTable, int | None]], target: Path, *, force: bool, manifest: dict[str, Any] | None = None
) -> None:
    """Write a job directory. Ranks go to files of fresh names; ``job.json``, which names them and holds the recording's
    manifest, is replaced last, so that a reader finds the old job or the new one. Of two writers at once the last one wins.

    Raises:
        UsageError: the target exists and ``force`` is not given, or it cannot be written.
    """
    if target.exists() and not force:
        raise UsageError("exists already", where=str(target), hint="choose another --output or pass --force")
    written: list[Path] = []
    fresh = not target.exists()
    try:
        target.mkdir(parents=True, exist_ok=True)
        index = _fill(target, tables, written)
        _publish(target, json.dumps(index | {"manifest": manifest}, indent=2) + "\n")
    except (OSError, TraceError) as error:
        for file in written:
            file.unlink(missing_ok=True)
        if fresh:
            _remove_if_empty(target)
        if isinstance(error, TraceError):
            raise
        what = f"cannot write ({error.strerror or type(error).__name__})"
        raise UsageError(what, where=str(target), hint="free space or choose another --output") from error


def is_job_directory(folder: Path) -> bool:
    """True where a folder holds a job that ``write_job`` wrote."""
    return (folder / JOB_FILE).is_file()


def read_job_directory(folder: Path) -> list[EventTable] | None:
    """The tables of a job directory in their order; None where the folder is none.

    Raises:
        TraceError: a job directory of another schema number, or damaged.
    """
    if not is_job_directory(folder):
        return None
    index = folder / JOB_FILE
    try:
        return _read_ranks(index)
    except FileNotFoundError:
        pass  # a writer may have replaced the job between the reading of its index and of its files
    try:
        return _read_ranks(index)
    except FileNotFoundError as error:
        what = f"a damaged job directory: {error.filename or 'a file that it names'} is missing"
        raise TraceError(what, where=str(index), hint="convert the traces again") from error


def read_job_manifest(folder: Path) -> dict[str, Any] | None:
    """The recording's manifest in a job directory; None where there is none."""
    try:
        manifest = json.loads((folder / JOB_FILE).read_bytes()).get("manifest")
    except (OSError, ValueError, AttributeError):
        return None
    return manifest if isinstance(manifest, dict) else None


def _read_ranks(index: Path) -> list[EventTable]:
    try:
        entry: Any = json.loads(index.read_bytes())
    except (OSError, ValueError) as error:
        raise TraceError(f"not a job directory ({error})", where=str(index), hint="convert the traces again") from error
    if not isinstance(entry, dict) or entry.get("schema") != f"{JOB_SCHEMA}/{SCHEMA_NUMBER}":
        found = entry.get("schema") if isinstance(entry, dict) else None
        raise TraceError(
            f"job directory of schema {found!r}, this version reads {JOB_SCHEMA}/{SCHEMA_NUMBER}",
            where=str(index),
            hint="convert the traces again",
        )
    return [read_table(index.parent / row["file"], source=row["source"]) for row in entry["ranks"]]


def stored_bytes(folder: Path) -> list[int]:
    """Size of each rank's file in a job directory, in the directory's order."""
    entry = json.loads((folder / JOB_FILE).read_bytes())
    return [(folder / row["file"]).stat().st_size for row in entry["ranks"]]


def _fill(folder: Path, tables: Sequence[tuple[EventTable, int | None]], written: list[Path]) -> dict[str, Any]:
    """Write every rank's file and return the index that names them; ``written`` is told of each file."""
    mark = secrets.token_hex(4)
    rows = []
    for number, (table, rank) in enumerate(tables):
        file = folder / (f"rank{rank}-{mark}.parquet" if rank is not None else f"unranked{number}-{mark}.parquet")
        written.append(file)
        write_table(table, file)
        source = Path(table.path)
        digest = content_hash(source) if source.is_file() else None
        rows.append({"file": file.name, "rank": rank, "source": source.name, "hash": digest, "events": len(table)})
    return {"schema": f"{JOB_SCHEMA}/{SCHEMA_NUMBER}", "ranks": rows}


def _publish(folder: Path, index: str) -> None:
    """Make an index the folder's; then remove the files of the one before and what killed writers left long ago."""
    with (folder / _LOCK_FILE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the kernel releases it when a writer dies
        before = _named_by(folder / JOB_FILE)
        scratch = folder / f".{JOB_FILE}.{secrets.token_hex(4)}"
        scratch.write_text(index, encoding="utf-8")
        scratch.replace(folder / JOB_FILE)
        now = _named_by(folder / JOB_FILE)
        for file in list(folder.iterdir()):
            if file.name in before - now or (_OURS.match(file.name) and file.name not in now and _is_abandoned(file)):
                # The job is whole already: what cannot be removed stays.
                with contextlib.suppress(OSError):
                    file.unlink()


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        (folder / _LOCK_FILE).unlink(missing_ok=True)
        folder.rmdir()


def _named_by(index: Path) -> set[str]:
    try:
        return {str(row["file"]) for row in json.loads(index.read_bytes())["ranks"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _is_abandoned(file: Path) -> bool:
    try:
        return file.stat().st_mtime < time.time() - _ABANDONED_S
    except OSError:
        return False  # its writer has just renamed or removed it


def _header(fields: dict[str, Any]) -> Header:
    groups = tuple(Group(**{**row, "ranks": None if row["ranks"] is None else tuple(row["ranks"])}) for row in fields["groups"])
    return Header(**{**fields, "devices": tuple(Device(**row) for row in fields["devices"]), "groups": groups})
