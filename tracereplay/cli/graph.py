"""``tracereplay graph``: the dependency edges between events as a table."""

from pathlib import Path
from typing import Annotated

import typer

from tracereplay.cli.options import (
    AsJson,
    Beside,
    Debug,
    ExecutionTraces,
    ManifestFile,
    NoCache,
    Paths,
    Ranks,
    Rules,
    Steps,
    Strict,
    request,
)
from tracereplay.errors import UsageError

EdgeFile = Annotated[Path | None, typer.Option("--output", help="Parquet file to write, such as edges.parquet.")]


def graph(  # noqa: PLR0913, PLR0917 - typer reads a command's options from its parameters
    paths: Paths,
    output: EdgeFile = None,
    ranks: Ranks = None,
    steps: Steps = None,
    manifest: ManifestFile = None,
    execution_traces: ExecutionTraces = None,
    rules: Rules = None,
    strict: Strict = False,
    no_cache: NoCache = False,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001 - read by main.run
) -> None:
    """Write which event waits for which, why, and how that is known: one row an edge, as parquet."""
    if output is None or output.suffix != ".parquet":
        raise UsageError("the edges need a file", hint="give --output FILE.parquet")
    from pyarrow import parquet  # noqa: PLC0415 - heavy imports only when a verb runs

    from tracereplay.cli.files import write_file  # noqa: PLC0415
    from tracereplay.cli.load import load_graph, note, write  # noqa: PLC0415
    from tracereplay.graph.event_edges import event_edges  # noqa: PLC0415
    from tracereplay.report import jsonout, text  # noqa: PLC0415

    wanted = request(paths, ranks, steps, Beside(manifest, execution_traces, rules, strict, no_cache), output=output)
    job, built = load_graph(wanted)
    edges = event_edges(built)
    write_file(output, lambda draft: parquet.write_table(edges.table, draft, compression="zstd"))
    warnings = list(built.warnings)
    if as_json:
        write(jsonout.envelope("graph", job.files, warnings, jsonout.edges_result(edges, str(output))), None)
    else:
        write(text.edges_text(edges, str(output)), None)
        note(warnings)
