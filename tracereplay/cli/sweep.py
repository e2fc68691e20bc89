"""``tracereplay sweep``: re-time the job over the values of one or two knobs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracereplay.cli.options import (
    AsJson,
    Beside,
    Debug,
    ExecutionTraces,
    ManifestFile,
    NoCache,
    Output,
    Paths,
    Ranks,
    Rules,
    Steps,
    Strict,
    request,
)
from tracereplay.cli.whatif import From, Hardware, Placements, Scales
from tracereplay.errors import UsageError

if TYPE_CHECKING:
    from tracereplay.hardware.ranges import Axis

Swept = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="KNOB=1x,2x,4x, KNOB=FIRST:LAST:COUNT or KNOB=FIRST:LAST:COUNT:log sweeps a knob, one or two of them; "
        "KNOB=VALUE is the same at each point.",
    ),
]
Chart = Annotated[Path | None, typer.Option("--chart", help="Draw the sweep in this SVG file too.")]
_MOST_AXES = 2
_MOST_POINTS = 1_000


def sweep(  # noqa: PLR0913, PLR0917 - typer reads a command's options from its parameters
    paths: Paths,
    set_: Swept = None,
    scale: Scales = None,
    hardware: Hardware = None,
    from_: From = None,
    placement: Placements = None,
    chart: Chart = None,
    ranks: Ranks = None,
    steps: Steps = None,
    manifest: ManifestFile = None,
    execution_traces: ExecutionTraces = None,
    rules: Rules = None,
    strict: Strict = False,
    no_cache: NoCache = False,
    as_json: AsJson = False,
    output: Output = None,
    debug: Debug = False,  # noqa: ARG001 - read by main.run
) -> None:
    """Re-time the job over the values of one or two knobs: the step at each, what binds, where that changes."""
    from tracereplay.analyzers import sweep as sweeps  # noqa: PLC0415 - heavy imports only when a verb runs
    from tracereplay.cli.files import files_read, refuse_overwriting, write_file  # noqa: PLC0415
    from tracereplay.cli.load import load_graph, note, write  # noqa: PLC0415
    from tracereplay.cli.moved import recorded_on, table_wish  # noqa: PLC0415
    from tracereplay.hardware.knobs import parse_setting  # noqa: PLC0415
    from tracereplay.hardware.ranges import is_swept  # noqa: PLC0415
    from tracereplay.replay.move import Mover  # noqa: PLC0415
    from tracereplay.replay.site import goal_of, source_of  # noqa: PLC0415
    from tracereplay.replay.whatif import parse_scale  # noqa: PLC0415
    from tracereplay.report import jsonout  # noqa: PLC0415
    from tracereplay.report.sweep import sweep_text  # noqa: PLC0415
    from tracereplay.report.sweep_svg import sweep_svg  # noqa: PLC0415

    axes = _axes(set_ or [])
    fixed = tuple(setting for text in set_ or [] if not is_swept(text) for setting in parse_setting(text))
    changes = tuple(parse_scale(one) for one in scale or [])
    wanted = request(paths, ranks, steps, Beside(manifest, execution_traces, rules, strict, no_cache), output=output)
    if chart is not None:
        refuse_overwriting(files_read(wanted) | ({output.resolve()} if output is not None else set()), [chart])
    job, graph = load_graph(wanted)
    setup = sweeps.Setup(changes, fixed)
    wish = table_wish(placement or [], platform=hardware is not None or from_ is not None)
    if hardware is not None or from_ is not None:
        source = source_of(graph, recorded_on(job, from_), fixed, is_target=hardware is None)
        fixed = tuple(setting for setting in fixed if not setting.of_source)
        setup = sweeps.Setup(changes, fixed, Mover.of(graph, source, wish), goal_of(source, hardware))
    found = sweeps.sweep(graph, axes, setup)
    asked = [*([hardware] if hardware else []), *(t for t in set_ or [] if not is_swept(t)), *(scale or [])]
    warnings = [*graph.warnings, *sweeps.notes(found)]
    if chart is not None:
        drawing = sweep_svg(found, axes, asked)
        write_file(chart, lambda draft: draft.write_text(drawing, encoding="utf-8"))
    if as_json:
        write(jsonout.envelope("sweep", job.files, warnings, jsonout.sweep_result(found)), output)
    else:
        write(sweep_text(found, axes, asked), output)
        note(warnings)


def _axes(settings: list[str]) -> "list[Axis]":
    """The knobs that are swept, one or two."""
    from tracereplay.hardware.ranges import is_swept, parse_axis  # noqa: PLC0415 - as in sweep

    axes = [parse_axis(text) for text in settings if is_swept(text)]
    if len({axis.knob for axis in axes}) < len(axes):
        raise UsageError(f"{axes[0].knob} is swept twice", hint="give all of its values in one --set")
    points = 1
    for axis in axes:
        points *= len(axis)
    if not 1 <= len(axes) <= _MOST_AXES or points > _MOST_POINTS:
        raise UsageError(
            f"{len(axes)} knobs with several values, {points:,} points",
            hint=f"sweep one or two knobs, such as --set host.speed=1x,2x,4x, and at most {_MOST_POINTS:,} points",
        )
    return axes
