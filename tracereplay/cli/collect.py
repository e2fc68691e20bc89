"""``tracereplay collect``: start a real training job on this machine and record it; torch is needed here only."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tracereplay import __version__
from tracereplay.collectors.job import DlrmConfig, DlrmJob, SlowPeer
from tracereplay.collectors.launch import CollectRequest, Recording, collect_dlrm
from tracereplay.collectors.protocol import Kind, Message
from tracereplay.errors import UsageError
from tracereplay.manifest import FILE_NAME
from tracereplay.units import format_ns

SCHEMA = "tracereplay/collect/1"

app = typer.Typer(no_args_is_help=True, help="Record real training runs on this machine.")


@app.callback()
def collect() -> None:
    """Record real training runs on this machine."""  # a callback keeps the verb's name where there is one command


@app.command()
def dlrm(  # noqa: PLR0913, PLR0917 - typer reads a command's options from its parameters
    out: Annotated[Path, typer.Option(help="Folder for the traces and the manifest.")],
    ranks: Annotated[int, typer.Option(help="Processes; each is one rank.")] = 2,
    steps: Annotated[int, typer.Option(help="Steps to record.")] = 6,
    warmup: Annotated[int, typer.Option(help="Steps to run before the recording.")] = 3,
    batch: Annotated[int, typer.Option(help="Samples per rank and step.")] = 256,
    tables: Annotated[int, typer.Option(help="Embedding tables, spread over the ranks in blocks.")] = 8,
    rows: Annotated[str, typer.Option(help="Rows of each table: one number, or one per table (9-7-5).")] = "50000",
    dim: Annotated[int, typer.Option(help="Embedding dimension.")] = 64,
    pooling: Annotated[str, typer.Option(help="Lookups per sample and table: one number, or one per table.")] = "10",
    bottom: Annotated[str, typer.Option(help="Bottom MLP: dense features, then layers; ends with --dim.")] = (
        "13-512-256-64"
    ),
    top: Annotated[str, typer.Option(help="Top MLP's layers after the interaction; ends with 1.")] = "512-256-1",
    seed: Annotated[int, typer.Option(help="Seed of weights and inputs.")] = 1,
    slow_rank: Annotated[int | None, typer.Option(help="A rank whose host sleeps in each step.")] = None,
    slow_ms: Annotated[float | None, typer.Option(help="How long --slow-rank sleeps before each forward pass.")] = None,
    host_name: Annotated[str | None, typer.Option(help="Record the host under this name, not its own.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier recording in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Train a DLRM with sharded embedding tables and record every rank with the torch profiler."""
    config = DlrmConfig(
        bottom=_parse_widths("--bottom", bottom),
        top=_parse_widths("--top", top),
        dim=dim,
        table_rows=_per_table("--rows", rows, tables),
        poolings=_per_table("--pooling", pooling, tables),
    )
    job = DlrmJob(config, ranks, batch, warmup, steps, seed, slow_peer=_slow_peer(slow_rank, slow_ms))
    with _progress(job) as on_message:
        recording = collect_dlrm(CollectRequest(job, out, host_name, force), on_message)
    if as_json:
        typer.echo(json.dumps(_envelope(recording), allow_nan=False, indent=2))
        return
    _show(recording)


def _parse_widths(option: str, text: str) -> tuple[int, ...]:
    """The numbers of ``13-512-64``."""
    parts = text.split("-")
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise UsageError(f"{option} is {text!r}", hint="write whole numbers joined by dashes, such as 13-512-256-64")
    return tuple(int(part) for part in parts)


def _per_table(option: str, text: str, tables: int) -> tuple[int, ...]:
    """One number for each table, from one for all or from as many as there are tables."""
    if tables < 1:
        raise UsageError(f"--tables is {tables}", hint="it must be at least 1")
    values = _parse_widths(option, text)
    if len(values) == 1:
        return values * tables
    if len(values) != tables:
        raise UsageError(f"{option} has {len(values)} numbers for {tables} tables", hint="give one, or one per table")
    return values


def _slow_peer(rank: int | None, delay_ms: float | None) -> SlowPeer | None:
    if rank is None and delay_ms is None:
        return None
    if rank is None or delay_ms is None:
        raise UsageError("--slow-rank and --slow-ms belong together", hint="give both or neither")
    return SlowPeer(rank, delay_ms)


@contextmanager
def _progress(job: DlrmJob) -> Iterator[Callable[[Message], None]]:
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


def _envelope(recording: Recording) -> dict[str, object]:
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
    return {
        "schema": SCHEMA,
        "version": __version__,
        "inputs": [],
        "warnings": list(recording.warnings),
        "result": result,
    }


def _count(recording: Recording) -> str:
    size = recording.manifest.world_size
    return "1 rank" if size == 1 else f"{size} ranks"


def _show(recording: Recording) -> None:
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
