"""``tracereplay info``: what is in the traces."""

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


def info(  # noqa: PLR0913, PLR0917 - typer reads a command's options from its parameters
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
    """Say what the traces hold: ranks, steps, events, device time, and what was wrong with them."""
    from tracereplay.analyzers.overview import notes, survey  # noqa: PLC0415 - heavy imports only when a verb runs
    from tracereplay.cli.load import load_survey, note, write  # noqa: PLC0415
    from tracereplay.report import jsonout, text  # noqa: PLC0415
    from tracereplay.trace.job import refuse_conflicts  # noqa: PLC0415

    wanted = request(paths, ranks, steps, Beside(manifest, execution_traces, rules, strict, no_cache), output=output)
    job = load_survey(wanted)
    overview = survey(job, wanted.steps)
    warnings = [*job.warnings, *notes(overview)]
    if as_json:
        write(jsonout.envelope("info", job.files, warnings, jsonout.overview_result(overview)), output)
    else:
        write(text.overview_text(overview), output)
        note(warnings)
    refuse_conflicts(job)
