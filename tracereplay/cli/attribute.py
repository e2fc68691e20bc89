"""``tracereplay attribute``: where the step's time goes and who makes whom wait."""

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


def attribute(  # noqa: PLR0913, PLR0917 - typer reads a command's options from its parameters
    paths: Paths,
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
    """Say where the longest step's time goes, over all ranks, and who made whom wait."""
    from tracereplay.analyzers import attribution  # noqa: PLC0415 - heavy imports only when a verb runs
    from tracereplay.cli.load import load_graph, note, write  # noqa: PLC0415
    from tracereplay.report import jsonout, text  # noqa: PLC0415

    wanted = request(paths, ranks, steps, Beside(manifest, execution_traces, rules, strict, no_cache), output=output)
    job, graph = load_graph(wanted)
    answer = attribution.attribute(graph)
    warnings = list(graph.warnings)
    if as_json:
        write(jsonout.envelope("attribute", job.files, warnings, jsonout.attribution_result(answer)), output)
    else:
        write(text.attribution_text(answer), output)
        note(warnings)
