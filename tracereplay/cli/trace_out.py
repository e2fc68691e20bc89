"""``--trace-out``: in, a graph and a schedule; out, one trace file a rank, and what a reader must know of them."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracereplay.errors import UsageError

if TYPE_CHECKING:
    from tracereplay.graph.model import DependencyGraph
    from tracereplay.replay.schedule import Schedule

_RANK = "{rank}"

TraceOut = Annotated[
    Path | None,
    typer.Option(
        "--trace-out",
        help="Write the re-timed job as Kineto JSON, gzip where the name ends in .gz; of several ranks the name holds {rank}.",
    ),
]


def write_traces(graph: "DependencyGraph", schedule: "Schedule", out: Path) -> list[str]:
    """Write every rank's file and return what they leave out.

    Raises:
        UsageError: several ranks and no ``{rank}`` in the name, or a file that cannot be written.
    """
    from tracereplay.cli.load import write_file  # noqa: PLC0415 - heavy imports only when a verb runs
    from tracereplay.replay.retime import retime  # noqa: PLC0415
    from tracereplay.report.trace_file import trace_files  # noqa: PLC0415

    if len(graph.tables) > 1 and _RANK not in out.name:
        raise UsageError(f"--trace-out {out} is one name for {len(graph.tables)} ranks", hint="write {rank} in the file's name")
    if not out.name:
        raise UsageError(f"--trace-out {str(out)!r} names no file", hint="give the name of a file")
    read = {Path(table.path).resolve() for table in graph.tables}
    events = retime(graph, schedule)
    notes = []
    documents = trace_files(graph, events, compress=out.suffix == ".gz")
    for position, (number, document) in enumerate(zip(graph.rank_numbers, documents, strict=True)):
        path = out.with_name(out.name.replace(_RANK, str(position if number is None else number)))
        if path.resolve() in read:
            raise UsageError("is one of the traces that were read", where=str(path), hint="name another place")
        write_file(path, partial(_fill, document))
        left_out = events[position].left_out
        if left_out:
            counts = ", ".join(f"{count:,} {why}" for why, count in left_out.items())
            notes.append(f"{path.name} leaves out {sum(left_out.values()):,} events: {counts}")
    return notes


def _fill(document: bytes, draft: Path) -> None:
    draft.write_bytes(document)
