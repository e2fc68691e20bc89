"""Read and build for a verb: in, a request; out, a job or its graph."""

import sys
from dataclasses import asdict
from pathlib import Path

from tracereplay.cli.options import Request
from tracereplay.errors import TraceError, UsageError
from tracereplay.graph.build import build_graph
from tracereplay.graph.model import DependencyGraph
from tracereplay.trace.job import Job, read_job


def load_job(wanted: Request) -> Job:
    """The job of a request.

    Raises:
        TraceError: unreadable input or, with ``--strict``, input that needed a repair.
    """
    job = read_job(wanted.paths, manifest=wanted.manifest, ranks=wanted.ranks)
    if wanted.strict:
        for trace in job.ranks:
            repairs = {k: v for k, v in asdict(trace.table.quality).items() if k != "complete" and v}
            if repairs or not trace.table.quality.complete:
                raise TraceError(f"needs repairs: {repairs}", where=trace.table.path, hint="read it without --strict")
    return job


def load_graph(wanted: Request) -> tuple[Job, DependencyGraph]:
    """The job of a request and its dependency graph."""
    job = load_job(wanted)
    return job, build_graph(job, steps=wanted.steps)


def write(text: str, output: Path | None) -> None:
    """Print a result, or write it to a file.

    Raises:
        UsageError: the file cannot be written.
    """
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write ({error.strerror})", where=str(output), hint="give --output another place") from error
