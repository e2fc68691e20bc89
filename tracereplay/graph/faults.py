"""What a recording says that cannot have been: in, drafts, edges and recorded times; out, counts and a line for each fault.

A replay goes on with such a recording, but what it answers hangs on how the fault was mended. So each is counted, and named
with its file.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tracereplay.graph.draft import RankDraft
from tracereplay.graph.edges import Edges
from tracereplay.graph.kinds import EdgeKind
from tracereplay.graph.model import Nodes
from tracereplay.trace.times import Int64s
from tracereplay.units import format_ns


@dataclass(frozen=True, slots=True)
class EdgeFaults:
    """Edges against which the recording runs, and by how many ns each; edges dropped because they closed a circle."""

    violated: Edges
    early_ns: Int64s
    dropped: Edges


def edge_faults(edges: Edges, dropped: Edges, start_ns: Int64s, end_ns: Int64s) -> EdgeFaults:
    """The edges whose destination is recorded before what it waits for, beside the ``dropped`` ones."""
    bound = np.where(edges.from_start, start_ns[edges.src], end_ns[edges.src])
    early_ns = bound - start_ns[edges.dst]
    violated = early_ns > 0
    return EdgeFaults(edges.where(violated), early_ns[violated], dropped)


def fault_warnings(drafts: list[RankDraft], nodes: Nodes, faults: EdgeFaults) -> list[str]:
    """A line a file and kind of fault; none where nothing is wrong."""
    lines = []
    early, dropped = _rank_of(faults.violated, nodes), _rank_of(faults.dropped, nodes)
    for draft in drafts:
        mine = early == draft.index
        if mine.any():
            counts = _kinds(faults.violated.where(mine))
            lines.append(
                f"{_file(draft)}: {np.count_nonzero(mine)} clock violations, tasks recorded up to "
                f"{format_ns(int(faults.early_ns[mine].max()))} before what they wait for ({counts}): they are replayed later "
                "than recorded"
            )
        mine = dropped == draft.index
        if mine.any():
            lines.append(
                f"{_file(draft)}: {np.count_nonzero(mine)} dependencies run in a circle and were dropped "
                f"({_kinds(faults.dropped.where(mine))}): these tasks no longer wait for each other"
            )
    lines += _counted(drafts, _overlaps, "host events outlast the event around them, which is taken to last as long")
    return lines


def _counted(drafts: list[RankDraft], count: Callable[[RankDraft], int], what: str) -> Iterable[str]:
    return [f"{_file(draft)}: {number} {what}" for draft in drafts if (number := count(draft))]


def _overlaps(draft: RankDraft) -> int:
    return sum(thread.tiling.overlaps for thread in draft.threads)


def _rank_of(edges: Edges, nodes: Nodes) -> Int64s:
    """The rank of each edge's destination; of its source where that is a rendezvous, which belongs to no rank."""
    rank = nodes.rank[edges.dst]
    return np.where(rank >= 0, rank, nodes.rank[edges.src])


def _kinds(edges: Edges) -> str:
    kinds, counts = np.unique(edges.kind, return_counts=True)
    return ", ".join(f"{EdgeKind(kind).name.lower()} {count}" for kind, count in zip(kinds, counts.tolist(), strict=True))


def _file(draft: RankDraft) -> str:
    return Path(draft.table.path).name
