"""What ``collect`` shows: a bar while ranks run, a table or a JSON document when they have finished."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tracereplay.collectors.job import DlrmJob
from tracereplay.collectors.launch import Recording
from tracereplay.collectors.protocol import Kind, Message
from tracereplay.manifest import FILE_NAME
from tracereplay.report import jsonout
from tracereplay.units import format_ns


@contextmanager
def progress(job: DlrmJob) -> Iterator[Callable[[Message], None]]:
    """A bar on stderr over all ranks' steps."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=job.ranks * (job.warmup_steps + job.steps))

        def on_message(message: Message) -> None:
            if message.kind is Kind.STEP and message.step is not None:
                phase = "warm-up" if message.step < job.warmup_steps else "recording"
                bar.update(task, advance=1, description=f"{phase}, step {message.step}")

        yield on_message


def _mean_step_ns(recording: Recording, rank: int) -> int:
    walls = [row.wall_ns for row in recording.steps if row.rank == rank and row.wall_ns is not None]
    return sum(walls) // len(walls)


def envelope(recording: Recording) -> str:
    """The recording as ``collect``'s JSON document."""
    ranks = [
        {
            "rank": row.rank,
            "trace": row.trace,
            "size_bytes": recording.trace_bytes[row.rank],
            "steps": list(row.steps),
            "mean_step_ns": _mean_step_ns(recording, row.rank),
        }
        for row in recording.manifest.ranks
    ]
    result = {
        "folder": str(recording.folder),
        "manifest": FILE_NAME,
        "world_size": recording.manifest.world_size,
        "ranks": ranks,
    }
    return jsonout.envelope("collect", [], list(recording.warnings), result)


def _count(recording: Recording) -> str:
    size = recording.manifest.world_size
    return "1 rank" if size == 1 else f"{size} ranks"


def show(recording: Recording) -> None:
    """Print a finished recording as a table, its warnings on stderr."""
    notes = Console(stderr=True, highlight=False)
    for line in recording.warnings:
        notes.print(f"warning: {line}", markup=False)
    table = Table("rank", "trace", "size", "steps", "mean step", box=None)
    for row in recording.manifest.ranks:
        size = f"{recording.trace_bytes[row.rank] / 1024:,.0f} KiB"
        numbers = f"{row.steps[0]} to {row.steps[-1]}"
        table.add_row(str(row.rank), row.trace, size, numbers, format_ns(_mean_step_ns(recording, row.rank)))
    screen = Console(highlight=False)
    screen.print(f"Recorded {_count(recording)} in {recording.folder}", markup=False, soft_wrap=True)
    screen.print(table)
    screen.print(f"Next: tracereplay replay {recording.folder}", markup=False, soft_wrap=True)
