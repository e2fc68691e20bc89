"""``tracereplay synth dlrm``: a step of a DLRM built from its architecture, with no recorded trace, and replayed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracereplay.cli.options import AsJson, Debug, Output
from tracereplay.errors import UsageError

if TYPE_CHECKING:
    from tracereplay.hardware.memory.placement import Tier
    from tracereplay.synth.architecture import Architecture
    from tracereplay.synth.assemble import Wish
    from tracereplay.synth.presets import Preset
    from tracereplay.synth.sharding import Plan
    from tracereplay.synth.software import Software

app = typer.Typer(no_args_is_help=True, help="Build a step from an architecture, with no recorded trace, and replay it.")

PresetName = Annotated[
    str | None, typer.Option("--preset", help="An architecture by name, such as rm1, mlperf-v1 or param-v100x8.")
]
Arch = Annotated[
    str | None, typer.Option("--arch", help="Another one: BOTTOM/TOP/TABLES, such as 13-512-128/1024-1/26x1000000:10.")
]
RankCount = Annotated[int, typer.Option("--ranks", help="How many ranks.", show_default=False)]
Batch = Annotated[int, typer.Option("--batch", help="Samples of all ranks together.", show_default=False)]
Hardware = Annotated[str, typer.Option("--hardware", help="A platform of the catalogue, or a TOML file.", show_default=False)]
Nodes = Annotated[int | None, typer.Option("--nodes", help="Nodes to spread the ranks over; the fewest that hold them.")]
SoftwareName = Annotated[
    str, typer.Option("--software", help="Training stack: torchrec, torchrec-tf32, nvidia-amp, nvidia-fp32, hugectr-2, ...")
]
ShardingName = Annotated[
    str | None, typer.Option("--sharding", help="recorded (of a preset that says so), balanced, row-wise or hybrid.")
]
PlacementName = Annotated[
    str, typer.Option("--placement", help="hbm, auto, host, cached, ssd, or a TOML file of sharding and tiers by table.")
]
Replicate = Annotated[int, typer.Option("--replicate-rows", help="Tables of at most so many rows are data-parallel.")]
Skew = Annotated[float, typer.Option("--skew", help="Zipf exponent by which rows are asked for; 0 is without skew.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="KEY=VALUE changes the hardware, such as accelerator.hbm.capacity=2x. May be repeated."),
]
RecordedPlacement = Annotated[
    list[Path] | None,
    typer.Option("--execution-traces", help="Place tables as the FBGEMM lookups of these ranks' traces have them."),
]
_PLACEMENTS = ("hbm", "auto", "host", "cached", "ssd")
_SHARDINGS = ("recorded", "balanced", "row-wise", "hybrid")


@app.command()
def dlrm(  # noqa: PLR0913, PLR0917 - typer reads a command's options from its parameters
    ranks: RankCount,
    batch: Batch,
    hardware: Hardware,
    preset: PresetName = None,
    arch: Arch = None,
    nodes: Nodes = None,
    software: SoftwareName = "torchrec",
    sharding: ShardingName = None,
    placement: PlacementName = "hbm",
    replicate_rows: Replicate = 0,
    skew: Skew = 0.0,
    set_: Settings = None,
    execution_traces: RecordedPlacement = None,
    as_json: AsJson = False,
    output: Output = None,
    debug: Debug = False,  # noqa: ARG001 - read by main.run
) -> None:
    """Build a DLRM's training step from its architecture and say what it would take: a calibrated analytic replay."""
    from tracereplay.analyzers.attribution import attribute  # noqa: PLC0415 - heavy imports only when a verb runs
    from tracereplay.analyzers.synthesis import INTERVAL, synthesise  # noqa: PLC0415
    from tracereplay.cli.load import write  # noqa: PLC0415
    from tracereplay.hardware.knobs import HOST_SPEED, parse_setting  # noqa: PLC0415
    from tracereplay.hardware.load import load_platform  # noqa: PLC0415
    from tracereplay.replay.site import Goal  # noqa: PLC0415
    from tracereplay.replay.uncertainty import SAMPLES  # noqa: PLC0415
    from tracereplay.report import jsonout  # noqa: PLC0415
    from tracereplay.report.synth import Answer, synth_result, synth_text  # noqa: PLC0415
    from tracereplay.synth.assemble import assemble, spread_over  # noqa: PLC0415
    from tracereplay.synth.pricing import AS_MODELLED, PlatformPricer  # noqa: PLC0415
    from tracereplay.synth.software import software_named  # noqa: PLC0415

    stack = software_named(software)
    known, model = _architecture(preset, arch, skew, stack)
    settings = [setting for text in set_ or [] for setting in parse_setting(text)]
    if any(setting.name == HOST_SPEED for setting in settings):
        raise UsageError(f"--set {HOST_SPEED}: a step built from an architecture has no host time", hint="leave it out")
    site = Goal(load_platform(hardware), same_host=False).under(settings)
    platform = site.platform
    spread = spread_over(ranks, nodes, platform)
    plan = _plan(model, known, ranks, sharding or _default_sharding(known, ranks, stack), replicate_rows)
    plan, wish = _placed(model, plan, placement, execution_traces or [], batch, stack)
    job = assemble(wish, plan, spread, platform)
    pricer = PlatformPricer(platform, spread)
    found = synthesise(job, pricer, SAMPLES, site.alternatives)
    answer = Answer(platform.description.name, spread.nodes, job, AS_MODELLED, found, attribute(found.graph))
    if as_json:
        notes = ["a calibrated analytic replay: no trace was recorded", f"interval: {INTERVAL}"]
        write(jsonout.envelope("synth", [], notes, synth_result(answer)), output)
    else:
        write(synth_text(answer), output)


def _architecture(preset: str | None, arch: str | None, skew: float, stack: "Software") -> "tuple[Preset | None, Architecture]":
    """The architecture that is asked for, in the number format of the stack's tables, and the preset that it is."""
    from tracereplay.synth.architecture import parse_architecture  # noqa: PLC0415 - as above
    from tracereplay.synth.presets import architecture_of, preset_named  # noqa: PLC0415
    from tracereplay.synth.software import BYTES_OF  # noqa: PLC0415

    if (preset is None) == (arch is None):
        raise UsageError("no architecture, or two", hint="give --preset NAME or --arch BOTTOM/TOP/TABLES")
    known = None if preset is None else preset_named(preset)
    model = architecture_of(known) if known is not None else parse_architecture(arch or "")
    return known, model.with_tables(BYTES_OF[stack.tables], skew)


def _default_sharding(known: "Preset | None", ranks: int, stack: "Software") -> str:
    if known is not None and known.ranks is not None and ranks == _ranks_of(known):
        return "recorded"
    return "hybrid" if stack.hybrid else "balanced"


def _ranks_of(preset: "Preset") -> int:
    return 1 + max((rank for rank in preset.ranks or () if rank is not None), default=-1)


def _plan(model: "Architecture", known: "Preset | None", ranks: int, sharding: str, replicate_rows: int) -> "Plan":
    from tracereplay.synth.sharding import balanced, hybrid, plan_on, row_wise  # noqa: PLC0415 - as above

    if sharding not in _SHARDINGS:
        raise UsageError(f"--sharding {sharding!r}: no such sharding", hint=f"shardings are {', '.join(_SHARDINGS)}")
    if sharding == "recorded":
        if known is None or known.ranks is None or _ranks_of(known) != ranks:
            raise UsageError("no recorded sharding for these ranks", hint="choose --sharding balanced")
        return plan_on(model, ranks, known.ranks)
    if sharding == "hybrid":
        return hybrid(model, ranks)
    return (balanced if sharding == "balanced" else row_wise)(model, ranks, replicate_rows)


def _placed(  # noqa: PLR0913, PLR0917 - what of a command line decides where tables stand
    model: "Architecture", plan: "Plan", placement: str, traces: list[Path], batch: int, stack: "Software"
) -> "tuple[Plan, Wish]":
    """The plan, and the wish with the tiers, that a placement gives: a word, a file, or execution traces."""
    from tracereplay.hardware.memory.placement import Tier  # noqa: PLC0415 - as above
    from tracereplay.synth.assemble import Wish  # noqa: PLC0415
    from tracereplay.synth.placement_file import read_placement  # noqa: PLC0415

    if traces:
        return plan, Wish(model, batch, stack, _recorded(plan, traces))
    if placement.endswith(".toml") or "/" in placement:
        chosen = read_placement(Path(placement), model, plan)
        return chosen.plan, Wish(model, batch, stack, chosen.tiers, chosen.load_factor)
    if placement not in _PLACEMENTS:
        hint = f"placements are {', '.join(_PLACEMENTS)}, or the path of a TOML file"
        raise UsageError(f"--placement {placement!r}: no such placement", hint=hint)
    return plan, Wish(model, batch, stack, None if placement == "auto" else Tier(placement))


def _recorded(plan: "Plan", paths: list[Path]) -> "dict[str, Tier]":
    from tracereplay.synth.recorded import recorded_tiers  # noqa: PLC0415 - as above
    from tracereplay.trace.execution import read_execution_trace  # noqa: PLC0415

    files = [file for path in paths for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
    found = [read_execution_trace(file) for file in files]
    return recorded_tiers(plan, {trace.rank: trace.lookups for trace in found if trace.rank is not None})
