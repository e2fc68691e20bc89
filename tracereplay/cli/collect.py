"""``tracereplay collect``: start a real training job on this machine and record it; torch is needed here only."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracereplay.cli import collect_lab, collect_run
from tracereplay.errors import UsageError

if TYPE_CHECKING:
    from tracereplay.collectors.job import SlowPeer

app = typer.Typer(no_args_is_help=True, help="Record real training runs on this machine.")


@app.callback()
def collect() -> None:
    """Record real training runs on this machine."""  # a callback keeps the verb's name where there is one command


app.command()(collect_lab.lab)
app.command(context_settings={"allow_interspersed_args": False})(collect_run.run)
app.command()(collect_run.trigger)


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
    bottom: Annotated[str, typer.Option(help="Bottom MLP: dense features, then layers; ends with --dim.")] = ("13-512-256-64"),
    top: Annotated[str, typer.Option(help="Top MLP's layers after the interaction; ends with 1.")] = "512-256-1",
    seed: Annotated[int, typer.Option(help="Seed of weights and inputs.")] = 1,
    slow_rank: Annotated[int | None, typer.Option(help="A rank whose host sleeps in each step.")] = None,
    slow_ms: Annotated[float | None, typer.Option(help="How long --slow-rank sleeps before each forward pass.")] = None,
    host_name: Annotated[str | None, typer.Option(help="Record the host under this name, not its own.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier recording in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Train a DLRM with sharded embedding tables and record every rank with the torch profiler."""
    # Imported here so that the other verbs start without what only a recording needs.
    from tracereplay.cli import recording as view  # noqa: PLC0415
    from tracereplay.cli.load import write  # noqa: PLC0415
    from tracereplay.collectors.job import DlrmConfig, DlrmJob  # noqa: PLC0415
    from tracereplay.collectors.launch import CollectRequest, collect_dlrm  # noqa: PLC0415

    config = DlrmConfig(
        bottom=_parse_widths("--bottom", bottom),
        top=_parse_widths("--top", top),
        dim=dim,
        table_rows=_per_table("--rows", rows, tables),
        poolings=_per_table("--pooling", pooling, tables),
    )
    job = DlrmJob(config, ranks, batch, warmup, steps, seed, slow_peer=_slow_peer(slow_rank, slow_ms))
    with view.progress(job) as on_message:
        recording = collect_dlrm(CollectRequest(job, out, host_name, force), on_message)
    if as_json:
        write(view.envelope(recording), None)
        return
    view.show(recording)


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


def _slow_peer(rank: int | None, delay_ms: float | None) -> "SlowPeer | None":
    if rank is None and delay_ms is None:
        return None
    if rank is None or delay_ms is None:
        raise UsageError("--slow-rank and --slow-ms belong together", hint="give both or neither")
    from tracereplay.collectors.job import SlowPeer  # noqa: PLC0415

    return SlowPeer(rank, delay_ms)
