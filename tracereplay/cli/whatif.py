"""``tracereplay whatif``: re-time the job under changes."""

from typing import Annotated

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
from tracereplay.cli.trace_out import TraceOut, write_traces
from tracereplay.errors import UsageError

Scales = Annotated[
    list[str] | None,
    typer.Option(
        "--scale",
        help="SELECTOR=FACTORx multiplies durations: kernel:GLOB, op:GLOB, class:NAME, collective:NAME, host, launch; "
        "@rank=R for one rank. May be repeated.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="KNOB=RATIOx changes the hardware, such as 'fabric.*.bandwidth=2x'. May be repeated."),
]
Ideal = Annotated[
    str | None,
    typer.Option(
        "--ideal",
        help="stragglers: every rank takes the median over the ranks for the same work. --scale and --set come after it.",
    ),
]
_IDEALS = ("stragglers",)


def whatif(  # noqa: PLR0913, PLR0917 - typer reads a command's options from its parameters
    paths: Paths,
    scale: Scales = None,
    set_: Settings = None,
    ideal: Ideal = None,
    trace_out: TraceOut = None,
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
    """Re-time the job under changes, and say what the step would take."""
    if not scale and not set_ and ideal is None:
        raise UsageError("nothing to change", hint="give --scale SELECTOR=FACTORx, --set KNOB=RATIOx or --ideal stragglers")
    if ideal is not None and ideal not in _IDEALS:
        raise UsageError(f"--ideal {ideal!r}: no such ideal", hint=f"ideals are {', '.join(_IDEALS)}")
    from tracereplay.analyzers.prediction import notes, predict_in_full  # noqa: PLC0415 - heavy imports only when a verb runs
    from tracereplay.cli.load import load_graph, note, write  # noqa: PLC0415
    from tracereplay.hardware.knobs import parse_setting  # noqa: PLC0415
    from tracereplay.replay.whatif import parse_scale, setting_change  # noqa: PLC0415
    from tracereplay.report import jsonout, text  # noqa: PLC0415

    changes = [parse_scale(one) for one in scale or []]
    changes += [setting_change(setting) for one in set_ or [] for setting in parse_setting(one)]
    wanted = request(paths, ranks, steps, Beside(manifest, execution_traces, rules, strict, no_cache), output=output)
    job, graph = load_graph(wanted)
    prediction, schedule = predict_in_full(graph, changes, stragglers=ideal is None)
    warnings = [*graph.warnings, *notes(prediction)]
    if trace_out is not None and prediction.interval is not None:
        raise UsageError("an interval has no one trace for --trace-out", hint="add the ranks that are missing")
    if trace_out is not None:
        warnings += write_traces(graph, schedule, trace_out, wanted)
    if as_json:
        write(jsonout.envelope("whatif", job.files, warnings, jsonout.prediction_result(prediction)), output)
    else:
        question = [*([f"ideal {ideal}"] if ideal else []), *(scale or []), *(set_ or [])]
        write(text.prediction_text(prediction, ", ".join(question)), output)
        note(warnings)
