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
    typer.Option(
        "--set",
        help="KNOB=VALUE changes the hardware: a ratio such as 'fabric.*.bandwidth=2x' or, with --from or --hardware, a value "
        "with its unit; from.KEY=VALUE is a fact about what the job ran on. May be repeated.",
    ),
]
Hardware = Annotated[
    str | None, typer.Option("--hardware", help="Move the job to this platform or accelerator: a catalogue name or a file.")
]
From = Annotated[
    str | None, typer.Option("--from", help="The platform that the job ran on, where traces and manifest do not say.")
]
Ideal = Annotated[
    str | None,
    typer.Option(
        "--ideal",
        help="stragglers: every rank takes the median over the ranks for the same work. --scale and --set come after it.",
    ),
]
Placements = Annotated[
    list[str] | None,
    typer.Option(
        "--placement",
        help="Where embedding tables stood: a TOML file, for lookups of which the trace does not say it. 'auto': tables that "
        "do not fit leave HBM, the coldest first. May be repeated.",
    ),
]
_IDEALS = ("stragglers",)


def whatif(  # noqa: PLR0913, PLR0917 - typer reads a command's options from its parameters
    paths: Paths,
    scale: Scales = None,
    set_: Settings = None,
    hardware: Hardware = None,
    from_: From = None,
    ideal: Ideal = None,
    placement: Placements = None,
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
    if not (scale or set_ or hardware) and ideal is None:
        raise UsageError(
            "nothing to change", hint="give --scale SELECTOR=FACTORx, --set KNOB=VALUE, --hardware NAME or --ideal stragglers"
        )
    if ideal is not None and ideal not in _IDEALS:
        raise UsageError(f"--ideal {ideal!r}: no such ideal", hint=f"ideals are {', '.join(_IDEALS)}")
    from tracereplay.analyzers.prediction import OtherHardware, notes, predict_in_full  # noqa: PLC0415 - heavy imports only when a verb runs
    from tracereplay.cli.load import load_graph, note, write  # noqa: PLC0415
    from tracereplay.cli.moved import hardware_question, moved_page, recorded_on  # noqa: PLC0415
    from tracereplay.replay.whatif import parse_scale  # noqa: PLC0415
    from tracereplay.report import jsonout, text  # noqa: PLC0415

    changes = [parse_scale(one) for one in scale or []]
    wanted = request(paths, ranks, steps, Beside(manifest, execution_traces, rules, strict, no_cache), output=output)
    job, graph = load_graph(wanted)
    source = recorded_on(job, from_) if hardware is not None else from_
    question = hardware_question(graph, hardware, source, set_ or [], placement or [])
    other = None if question.move is None else OtherHardware(question.move, question.unmoved)
    full = predict_in_full(graph, [*changes, *question.changes], stragglers=ideal is None, hardware=other, why=question.why)
    prediction = full.prediction
    warnings = [*graph.warnings, *notes(prediction)]
    if trace_out is not None and prediction.predicted_ns is None:
        raise UsageError("an interval has no one trace for --trace-out", hint="add the ranks that are missing")
    if trace_out is not None:
        warnings += write_traces(graph, full.schedule, trace_out, wanted)
    page = moved_page(graph, question, full.timing)
    if as_json:
        write(jsonout.envelope("whatif", job.files, warnings, jsonout.prediction_result(prediction, page)), output)
    else:
        asked = [*([f"ideal {ideal}"] if ideal else []), *(scale or []), *question.words]
        write(text.prediction_text(prediction, ", ".join(asked), page), output)
        note(warnings)
