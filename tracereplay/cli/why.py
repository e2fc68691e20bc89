"""``tracereplay why``: the chain of causes of one event."""

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
from tracereplay.errors import UsageError

Rank = Annotated[int | None, typer.Option("--rank", help="The rank of the event.")]
EventIndex = Annotated[int | None, typer.Option("--event", help="Index of the event in the traceEvents of that rank's file.")]
Name = Annotated[str | None, typer.Option("--name", help="Name of the event, such as '*all_to_all*'; the first one that fits.")]
Step = Annotated[int | None, typer.Option("--step", help="With --name: the number of the step to look in.")]


def why(  # noqa: PLR0913, PLR0917 - typer reads a command's options from its parameters
    paths: Paths,
    rank: Rank = None,
    event: EventIndex = None,
    name: Name = None,
    step: Step = None,
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
    """Say why an event began when it began: what it waited for, what that waited for, back to the start of its step."""
    if (event is None) == (name is None):
        raise UsageError("which event?", hint="give --rank R --event N, or --name GLOB --step N")
    if event is not None and step is not None:
        raise UsageError("--step goes with --name", hint="an event's index says enough")
    from tracereplay.analyzers import causes  # noqa: PLC0415 - heavy imports only when a verb runs
    from tracereplay.cli.load import load_graph, note, write  # noqa: PLC0415
    from tracereplay.report import jsonout, text  # noqa: PLC0415

    wanted = request(paths, ranks, steps, Beside(manifest, execution_traces, rules, strict, no_cache), output=output)
    job, graph = load_graph(wanted)
    if name is not None:
        target = causes.target_of_name(graph, name, step, rank)
    elif event is not None:
        target = causes.target_of_event(graph, rank, event)
    answer = causes.explain(graph, target)
    warnings = list(graph.warnings)
    if as_json:
        write(jsonout.envelope("why", job.files, warnings, jsonout.causes_result(answer)), output)
    else:
        write(text.causes_text(answer), output)
        note(warnings)
