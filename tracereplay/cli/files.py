"""Results in files: in, what fills each file; out, all of them in their places whole, or none, and never over what was read."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tracereplay.cli.options import Request
from tracereplay.errors import UsageError
from tracereplay.signals import held_back, terminate_as_exit
from tracereplay.trace.job import MANIFEST, find_trace_files
from tracereplay.trace.store import is_job_directory

Fill = Callable[[Path], object]


def write_file(output: Path, fill: Fill) -> None:
    """Let ``fill`` write a file and put it in its place whole or not at all; a link stays and leads to it.

    Raises:
        UsageError: the file cannot be written, or there is something else than a file, which would be lost.
    """
    write_files([output], [fill])


def write_files(outputs: Sequence[Path], fills: Iterable[Fill]) -> None:
    """Let each of ``fills`` write one of ``outputs``. All are written beside their places first, then all are put there: what
    fails or is stopped before leaves every place as it was, and no scratch file.

    Raises:
        UsageError: a file cannot be written, or there is something else than a file, which would be lost.
    """
    with terminate_as_exit(), ExitStack() as scratch:
        places = [_place(output) for output in outputs]
        drafts: list[Path] = []
        for output, place, fill in zip(outputs, places, fills, strict=True):
            with _named(output):
                folder = scratch.enter_context(tempfile.TemporaryDirectory(prefix=".partial-", dir=place.parent))
                drafts.append(Path(folder) / "draft")
                fill(drafts[-1])
        with held_back():
            for output, place, draft in zip(outputs, places, drafts, strict=True):
                with _named(output):
                    draft.replace(place)


@contextmanager
def _named(output: Path) -> Iterator[None]:
    """Say of what the operating system refuses which file it was about."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write ({error.strerror})", where=str(output), hint="name another place") from error


def _place(output: Path) -> Path:
    """Where a file really goes: links are followed."""
    with _named(output):
        place = output.resolve()
        other = place.exists() and not place.is_file()
    if not output.name or other:
        raise UsageError("is no file", where=str(output), hint="name a file, or leave the option out for standard output")
    return place


def files_read(wanted: Request) -> frozenset[Path]:
    """Every file that a request names or finds beside its traces, and the job directories, links followed. Those of ranks that
    it leaves out count too.
    """
    found = [wanted.manifest, wanted.rules]
    for path in map(Path, wanted.paths):
        if is_job_directory(path):
            found += [path, *path.iterdir()]
            continue
        traces = find_trace_files([str(path)])
        found += [*traces, traces[0].parent / MANIFEST]
    found += find_trace_files(wanted.execution_traces)
    return frozenset(file.resolve() for file in found if file is not None)


def refuse_overwriting(read: frozenset[Path], outputs: Iterable[Path | None]) -> None:
    """Refuse to write over what was read.

    Raises:
        UsageError: one of ``outputs`` is among the files ``read``.
    """
    for output in outputs:
        if output is not None and output.resolve() in read:
            raise UsageError("is one of the files that are read", where=str(output), hint="name another place")
