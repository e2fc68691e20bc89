"""``--trace-out``: in, a graph and a schedule; out, one trace file a rank, and what a reader must know of them."""

from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracereplay.errors import UsageError

if TYPE_CHECKING:
    from tracereplay.cli.options import Request
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


def write_traces(graph: "DependencyGraph", schedule: "Schedule", out: Path, wanted: "Request") -> list[str]:
    """Write the files of all ranks, or none of them, and return what they leave out.

    Raises:
        UsageError: several ranks and no ``{rank}`` in the name, a file that was read or takes the answer too, or a file that
            cannot be written.
    """
    from tracereplay.cli.files import files_read, refuse_overwriting, write_files  # noqa: PLC0415 - heavy imports only when used
    from tracereplay.replay.retime import retime  # noqa: PLC0415
    from tracereplay.report.trace_file import trace_files  # noqa: PLC0415

    if len(graph.tables) > 1 and _RANK not in out.name:
        raise UsageError(f"--trace-out {out} is one name for {len(graph.tables)} ranks", hint="write {rank} in the file's name")
    if not out.name:
        raise UsageError(f"--trace-out {str(out)!r} names no file", hint="give the name of a file")
    places = [out.with_name(out.name.replace(_RANK, str(number))) for number in _numbers(graph.rank_numbers)]
    refuse_overwriting(files_read(wanted), places)
    if wanted.output is not None and wanted.output.resolve() in {place.resolve() for place in places}:
        raise UsageError("is given to --trace-out and to --output", where=str(wanted.output), hint="name two files")
    events = retime(graph, schedule)
    documents = trace_files(graph, events, compress=out.suffix == ".gz")
    write_files(places, (partial(_fill, document) for document in documents))
    return [
        f"{place.name} leaves out {sum(own.left_out.values()):,} events: "
        + ", ".join(f"{number:,} {why}" for why, number in own.left_out.items())
        for place, own in zip(places, events, strict=True)
        if own.left_out
    ]


def _numbers(ranks: tuple[int | None, ...]) -> list[int]:
    """The number in each rank's file name: its own, for a rank without one the first from its place on that is free."""
    taken = {rank for rank in ranks if rank is not None}
    numbers = []
    for place, rank in enumerate(ranks):
        number = next(free for free in count(place) if free not in taken) if rank is None else rank
        taken.add(number)
        numbers.append(number)
    return numbers


def _fill(document: bytes, draft: Path) -> None:
    draft.write_bytes(document)
