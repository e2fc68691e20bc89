"""Read and build for a verb: in, a request; out, a job or its graph."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from tracereplay.cli.files import files_read, refuse_overwriting, write_file
from tracereplay.cli.options import Request
from tracereplay.errors import TraceError, UsageError
from tracereplay.graph.build import build_graph
from tracereplay.graph.model import DependencyGraph
from tracereplay.trace.job import Extras, Job, refuse_conflicts, survey_job

# Counts of a file's quality that are no repairs: what they count is kept as recorded.
_NO_REPAIRS = ("complete", "damage", "end_lost", "clock_violations")


def load_survey(wanted: Request) -> Job:
    """The job of a request with files in conflict among its ranks, for ``info``, which lists them."""
    return _checked(_survey(wanted, clocks=True), wanted)


def load_job(wanted: Request) -> Job:
    """The job of a request.

    Raises:
        TraceError: unreadable input or, with ``--strict``, input that needed a repair.
    """
    job = _survey(wanted, clocks=True)
    refuse_conflicts(job)
    return _checked(job, wanted)


def _survey(wanted: Request, *, clocks: bool) -> Job:
    """Read, with a bar on stderr where somebody looks at it and it takes more than a moment.

    Raises:
        UsageError: the answer would be written over what is read.
    """
    if wanted.output is not None:  # before anything is written
        refuse_overwriting(files_read(wanted), [wanted.output])
    with progress("reading") as on_file:
        extras = Extras(wanted.manifest, wanted.execution_traces, wanted.rules, wanted.cache, on_file)
        return survey_job(wanted.paths, ranks=wanted.ranks, extras=extras, clocks=clocks)


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar over files on stderr, shown from the second second on, to a terminal only."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console  # noqa: PLC0415 - only where there is a terminal
    from rich.progress import Progress  # noqa: PLC0415

    started = time.monotonic()
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, visible=False)

        def on_file(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, visible=time.monotonic() - started > 1)

        yield on_file


def _checked(job: Job, wanted: Request) -> Job:
    """The job, unless repairs are refused and it needed one."""
    for trace in job.ranks if wanted.strict else ():
        quality = trace.table.quality
        if quality.damage is not None:
            raise TraceError(quality.damage, where=trace.table.path, hint="record it again, or read it without --strict")
        repairs = {k: v for k, v in asdict(quality).items() if k not in _NO_REPAIRS and v}
        if repairs:
            counted = ", ".join(f"{count} {name}" for name, count in repairs.items())
            raise TraceError(f"needs repairs: {counted}", where=trace.table.path, hint="read it without --strict")
    return job


def load_unaligned(wanted: Request) -> Job:
    """The job of a request with times as each rank recorded them, for keeping."""
    job = _survey(wanted, clocks=False)
    refuse_conflicts(job)
    return _checked(job, wanted)


def load_graph(wanted: Request) -> tuple[Job, DependencyGraph]:
    """The job of a request and its dependency graph."""
    job = load_job(wanted)
    return job, build_graph(job, steps=wanted.steps)


def note(warnings: Sequence[str]) -> None:
    """Say on stderr what a reader must know beside the result."""
    for warning in warnings:
        sys.stderr.write(f"note: {warning}\n")


def complain(lines: Sequence[str]) -> None:
    """Say on stderr what is wrong, a line each, where a verb finds several faults at once."""
    for line in lines:
        sys.stderr.write(f"tracereplay: {line}\n")


def _print(text: str) -> None:
    if sys.stdout is None:
        raise UsageError("standard output is closed", hint="give --output a file")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # Nothing may be flushed there any more, at exit neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return  # the reader of our output has gone (head, less): nothing is wrong
        raise UsageError(f"cannot write to standard output ({error.strerror})", hint="give --output a file") from error


def write(text: str, output: Path | None) -> None:
    """Print a result, or write it to a file.

    Raises:
        UsageError: the file cannot be written.
    """
    if output is None:
        _print(text)
        return
    write_file(output, lambda draft: draft.write_text(text, encoding="utf-8"))
