"""What a recording says that cannot have been: in, drafts, edges and recorded times; out, counts and a line for each fault.

A replay goes on with such a recording, but what it answers hangs on how the fault was mended. So each is counted, and named
with its file.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tracereplay.graph.draft import RankDraft
from tracereplay.graph.edges import Edges
from tracereplay.graph.kinds import EdgeKind, Why
from tracereplay.graph.model import Nodes
from tracereplay.graph.queues import named_by
from tracereplay.trace.schema import DEVICE_ROLES, Role
from tracereplay.trace.sync_rows import STREAM_WAIT, sync_rows
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
    # Work may start while the last blocks of the kernel run that had filled the device.
    violated = (early_ns > 0) & (edges.why != Why.FULL_DEVICE)
    return EdgeFaults(edges.where(violated), early_ns[violated], dropped)


def fault_warnings(drafts: list[RankDraft], counts: list[dict[str, int]], nodes: Nodes, faults: EdgeFaults) -> list[str]:
    """A line a file and kind of fault; none where nothing is wrong. ``counts`` are the ``fault_counts`` of each rank."""
    lines = []
    early, dropped = _rank_of(faults.violated, nodes), _rank_of(faults.dropped, nodes)
    for draft, own in zip(drafts, counts, strict=True):
        mine = early == draft.index
        if mine.any():
            kinds = _kinds(faults.violated.where(mine))
            lines.append(
                f"{_file(draft)}: {np.count_nonzero(mine)} clock violations, tasks recorded up to "
                f"{format_ns(int(faults.early_ns[mine].max()))} before what they wait for ({kinds}): they are replayed later "
                "than recorded"
            )
        mine = dropped == draft.index
        if mine.any():
            lines.append(
                f"{_file(draft)}: {np.count_nonzero(mine)} dependencies run in a circle and were dropped "
                f"({_kinds(faults.dropped.where(mine))}): these tasks no longer wait for each other"
            )
        lines += [f"{_file(draft)}: {own[fault.name]} {fault.what}" for fault in FAULTS if own[fault.name]]
    return lines


def fault_counts(draft: RankDraft) -> dict[str, int]:
    """How often each of ``FAULTS`` occurs on a rank."""
    return {fault.name: fault.count(draft) for fault in FAULTS}


def _overlaps(draft: RankDraft) -> int:
    return sum(thread.tiling.overlaps for thread in draft.threads)


def _repeated_steps(draft: RankDraft) -> int:
    return sum(count > 1 for count in Counter(step.number for step in draft.marks.whole).values())


def _repeated_ids(draft: RankDraft) -> int:
    """Correlation ids that several calls and some work carry."""
    table = draft.table
    correlation = table.column("correlation")
    ids, counts = np.unique(correlation[table.rows_of(Role.RUNTIME)], return_counts=True)
    repeated = ids[(counts > 1) & (ids > 0)]
    return int(np.count_nonzero(np.isin(repeated, correlation[table.rows_of(*DEVICE_ROLES)])))


def _rows_without_call(draft: RankDraft) -> int:
    return int(draft.table.rows_of(Role.CUDA_SYNC).size) - len(sync_rows(draft.table))


def _waits_for_later(draft: RankDraft) -> int:
    """Rows whose event is recorded by their own call or a later one."""
    began = draft.table.column("ts_ns")
    rows = sync_rows(draft.table)
    return sum(row.recorded_ns is not None and row.recorded_ns >= int(began[row.call_row]) for row in rows)


def _returned_early(draft: RankDraft) -> int:
    """Blocking calls that ended before work which their row says they waited for."""
    table, ended = draft.table, draft.work.end_ns
    count = 0
    for row in (row for row in sync_rows(table) if row.kind != STREAM_WAIT):
        returned_ns = int(table.column("ts_ns")[row.call_row] + table.column("dur_ns")[row.call_row])
        count += any(int(ended[work]) > returned_ns for work in named_by(draft, row) or ())
    return count


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that cannot have been: its name in ``coverage.faults``, how a reader is told, how often a rank shows it."""

    name: str
    what: str
    count: Callable[[RankDraft], int]


FAULTS = (
    Fault("overlapping_events", "host events outlast the event around them, which is taken to last as long", _overlaps),
    Fault("repeated_steps", "step numbers are marked more than once: the longest mark of each counts", _repeated_steps),
    Fault("repeated_ids", "correlation ids are used by several calls: work was paired with them in time order", _repeated_ids),
    Fault("sync_rows_without_call", "cuda_sync rows belong to no recorded call: they are not followed", _rows_without_call),
    Fault("waits_for_later", "cuda_sync rows wait for an event that only their own or a later call records", _waits_for_later),
    Fault("returned_early", "blocking calls returned before the work ended that they are said to wait for", _returned_early),
)


def _rank_of(edges: Edges, nodes: Nodes) -> Int64s:
    """The rank of each edge's destination; of its source where that is a rendezvous, which belongs to no rank."""
    rank = nodes.rank[edges.dst]
    return np.where(rank >= 0, rank, nodes.rank[edges.src])


def _kinds(edges: Edges) -> str:
    kinds, counts = np.unique(edges.kind, return_counts=True)
    return ", ".join(f"{EdgeKind(kind).name.lower()} {count}" for kind, count in zip(kinds, counts.tolist(), strict=True))


def _file(draft: RankDraft) -> str:
    return Path(draft.table.path).name
