"""``tracereplay collect lab``: a preset on hosts of a laboratory, joined by a link that is really as fast as asked."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracereplay.errors import UsageError

if TYPE_CHECKING:
    from tracereplay.collectors.job import DlrmConfig

# Per preset the samples a rank and step: those of its source's scripts, or as many as two cores train in a second.
_BATCHES = {"kaggle": 128, "bench": 64, "mlperf-small": 256, "rm1": 64, "rm2": 64, "rm3": 64}


def config_of(preset: str) -> "DlrmConfig":
    """The model that a preset of ``synth`` names, as a collector trains it.

    Raises:
        UsageError: there is no such preset.
    """
    from tracereplay.collectors.job import DlrmConfig  # noqa: PLC0415 - only a recording needs these
    from tracereplay.synth.presets import architecture_of, preset_named  # noqa: PLC0415

    model = architecture_of(preset_named(preset))
    return DlrmConfig(
        bottom=model.bottom,
        top=model.top,
        dim=model.dim,
        table_rows=tuple(table.rows for table in model.tables),
        poolings=tuple(table.pooling for table in model.tables),
        interaction="cat" if model.interaction == "cat" else "dot",
    )


def lab(  # noqa: PLR0913, PLR0917 - typer reads a command's options from its parameters
    out: Annotated[Path, typer.Option(help="Folder for the traces, the manifest and the hosts' hardware file.")],
    link: Annotated[str, typer.Option(help="What each host's link carries: 1gbit, 200mbit, or unshaped.")],
    delay: Annotated[str | None, typer.Option(help="How long a frame is on its way, such as 50us (needs netem).")] = None,
    preset: Annotated[str, typer.Option(help=f"The model: {', '.join(_BATCHES)}.")] = "kaggle",
    ranks: Annotated[int, typer.Option(help="Hosts; each is one rank.")] = 2,
    batch: Annotated[int | None, typer.Option(help="Samples per rank and step; by default the preset's.")] = None,
    steps: Annotated[int, typer.Option(help="Steps to record.")] = 6,
    warmup: Annotated[int, typer.Option(help="Steps to run before the recording.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of weights and inputs.")] = 1,
    host_name: Annotated[str | None, typer.Option(help="Record the hosts under this name, not the machine's.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier recording in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Train a DLRM over a shaped link between hosts in network namespaces (Linux, root), and record every rank."""
    from tracereplay.cli import recording as view  # noqa: PLC0415 - only a recording needs these
    from tracereplay.cli.load import write  # noqa: PLC0415
    from tracereplay.collectors.job import DlrmJob  # noqa: PLC0415
    from tracereplay.collectors.launch import CollectRequest, collect_dlrm  # noqa: PLC0415
    from tracereplay.collectors.link import parse_link  # noqa: PLC0415

    if preset not in _BATCHES:
        raise UsageError(f"--preset {preset!r} is none that a machine trains", hint=f"there is {', '.join(_BATCHES)}")
    config = config_of(preset)
    job = DlrmJob(config, ranks, batch or _BATCHES[preset], warmup, steps, seed)
    request = CollectRequest(job, out, host_name, force, parse_link(link, delay))
    with view.progress(job) as on_message:
        made = collect_dlrm(request, on_message)
    if as_json:
        write(view.envelope(made), None)
        return
    view.show(made)
