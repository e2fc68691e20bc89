"""``tracereplay replay``: re-time the job on the hardware it ran on."""

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


def replay(  # noqa: PLR0913, PLR0917 - typer reads a command's options from its parameters
    paths: Paths,
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
    """Re-time the job on the hardware it ran on, and say how far that is from the recording."""
    from tracereplay.analyzers.accuracy import assess  # noqa: PLC0415 - heavy imports only when a verb runs
    from tracereplay.cli.load import load_graph, note, write  # noqa: PLC0415
    from tracereplay.replay.engine import replay as scheduled  # noqa: PLC0415
    from tracereplay.report import jsonout, text  # noqa: PLC0415

    wanted = request(paths, ranks, steps, Beside(manifest, execution_traces, rules, strict, no_cache), output=output)
    job, graph = load_graph(wanted)
    accuracy = assess(graph)
    warnings = list(graph.warnings)
    if trace_out is not None:
        warnings += write_traces(graph, scheduled(graph), trace_out, wanted)
    if as_json:
        result = jsonout.accuracy_result(accuracy, graph.coverage, list(job.ranks_missing))
        write(jsonout.envelope("replay", job.files, warnings, result), output)
    else:
        write(text.accuracy_text(accuracy, graph.coverage), output)
        note(warnings)
