"""The graph's edges between events: in, a DependencyGraph; out, an Arrow table of event pairs, as the contract's ``graph``.

The graph's tasks are finer than events: self times, gaps, arrivals, rendezvous. Here

- ``thread_order`` joins consecutive events of a thread under one parent; what lies between them is its lag;
- work stands for its event, the two tasks of a collective for one;
- ``sync`` leads to the call that waits;
- a host task at which something is handed over stands for the event that ended last by then, one at which something is
  received for the event that begins next; the host time between counts to the lag;
- ``collective`` leads from the participant that arrived last to each of the others: there is no event for the rendezvous.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracereplay.graph.kinds import Basis, EdgeKind, NodeKind
from tracereplay.graph.model import Collective, DependencyGraph
from tracereplay.graph.threads import HostThreads
from tracereplay.trace.schema import HOST_ROLES, Role
from tracereplay.trace.table import EventTable
from tracereplay.trace.times import Int64s

SCHEMA = pa.schema(
    [
        ("src_rank", pa.int64()),
        ("src_event", pa.int64()),
        ("dst_rank", pa.int64()),
        ("dst_event", pa.int64()),
        ("kind", pa.string()),
        ("basis", pa.string()),
        ("lag_ns", pa.int64()),
    ]
)
_NAMED_CALL = "c10d::"


@dataclass(frozen=True, slots=True)
class EventEdges:
    """The edges as a table of ``SCHEMA``, and how many edges of the graph have no event on one side.

    ``src_event`` and ``dst_event`` are indices in the ``traceEvents`` of that rank's file; a rank is null where no file says
    it. ``lag_ns`` is what the model takes to pass from the end of the source to the start of the destination, for ``launch``
    from the start of the call, for ``sync`` to the return of the call, for ``collective`` to the common transfer. It is
    negative where the destination starts before the source has ended.
    """

    table: pa.Table
    without_event: int

    def counts(self) -> dict[str, dict[str, int]]:
        """How many edges there are by kind and basis."""
        kinds, bases = (np.array(self.table.column(name).to_pylist(), np.str_) for name in ("kind", "basis"))
        return {
            k.name.lower(): {b.name.lower(): int(((kinds == k.name.lower()) & (bases == b.name.lower())).sum()) for b in Basis}
            for k in EdgeKind
        }


@dataclass(frozen=True, slots=True)
class _Part:
    """Edges of one kind: ranks as indices, events as rows of their tables (-1 where there is none), lags in ns."""

    kind: EdgeKind
    basis: npt.NDArray[np.int8]
    src_rank: Int64s
    src_row: Int64s
    dst_rank: Int64s
    dst_row: Int64s
    lag_ns: Int64s


def event_edges(graph: DependencyGraph) -> EventEdges:
    """The edges of a graph between events, in order of destination, kind and source."""
    threads = HostThreads(graph)
    parts = [
        *_siblings(graph, threads),
        *(_between_tasks(graph, threads, kind) for kind in EdgeKind if kind is not EdgeKind.COLLECTIVE),
        *(_star(graph, c) for c in graph.collectives if len(set(c.ranks)) == len(c.ranks) > 1),
    ]
    return _table(graph, parts)


def _siblings(graph: DependencyGraph, threads: HostThreads) -> Iterator[_Part]:
    """Consecutive events of each host thread under one parent."""
    for rank, table in enumerate(graph.tables):
        rows = _rows_in_window(graph, rank, table)
        ends = table.column("ts_ns") + table.column("dur_ns")
        parent, pid, tid = table.column("parent_row")[rows], table.codes("pid")[rows], table.codes("tid")[rows]
        order = np.lexsort((rows, -ends[rows], table.column("ts_ns")[rows], parent, tid, pid))
        rows, parent, pid, tid = rows[order], parent[order], pid[order], tid[order]
        same = (parent[1:] == parent[:-1]) & (pid[1:] == pid[:-1]) & (tid[1:] == tid[:-1])
        src, dst = rows[:-1][same], rows[1:][same]
        lag = table.column("ts_ns")[dst] - ends[src]
        # Pairs of one thread lie together.
        width = int(tid.max(initial=0)) + 1
        thread = pid[1:][same].astype(np.int64) * width + tid[1:][same]
        for (of_rank, pid_code, tid_code), span in threads.by_name.items():
            if of_rank == rank and tid_code < width:
                number = pid_code * width + tid_code
                mine = slice(*np.searchsorted(thread, [number, number + 1]).tolist())
                lag[mine] = threads.own_until(span, table.column("ts_ns")[dst[mine]]) - threads.own_until(span, ends[src[mine]])
        ranks = np.full(src.size, rank, np.int64)
        yield _Part(EdgeKind.THREAD_ORDER, np.full(src.size, int(Basis.RECORDED), np.int8), ranks, src, ranks, dst, lag)


def _rows_in_window(graph: DependencyGraph, rank: int, table: EventTable) -> Int64s:
    """Host events that the graph covers, those of communication threads left out: their tasks are the events."""
    spans = [span for span in graph.steps if span.rank == rank]
    low, high = min(s.start_ns for s in spans), max(s.end_ns for s in spans)
    rows = table.rows_of(*HOST_ROLES)
    starts, durations = table.column("ts_ns")[rows], table.column("dur_ns")[rows]
    rows = rows[(durations >= 0) & (starts < high) & (starts + np.maximum(durations, 0) > low)]
    thread = table.codes("pid").astype(np.int64) * (int(table.codes("tid").max(initial=0)) + 1) + table.codes("tid")
    work = graph.nodes.row[(graph.nodes.rank == rank) & (graph.nodes.kind != NodeKind.HOST)]
    communication = np.unique(thread[work[table.column("role")[work] == Role.ANNOTATION]])
    kept: Int64s = rows[~np.isin(thread[rows], communication)]
    return kept


def _between_tasks(graph: DependencyGraph, threads: HostThreads, kind: EdgeKind) -> _Part:
    """The graph's own edges of one kind; of thread order those of communication threads, whose tasks are events."""
    nodes, edges = graph.nodes, graph.edges
    host = nodes.kind == NodeKind.HOST
    chosen = edges.kind == kind
    if kind is EdgeKind.THREAD_ORDER:
        chosen &= ~host[edges.src] & ~host[edges.dst]
    index = np.flatnonzero(chosen)
    src, dst = edges.src[index], edges.dst[index]
    src_row, dst_row, lag = nodes.row[src], nodes.row[dst], edges.lag_ns[index]
    from_start = edges.from_start[index].copy()
    if kind is EdgeKind.LAUNCH:
        src_row = _calls(graph, dst, src_row)
    else:
        # Between host threads the start of a task stands for the end of the one before.
        given = host[src] & host[dst] & from_start
        from_start &= ~given
        for i in np.flatnonzero(host[src]):
            node = int(src[i]) - int(given[i])
            src_row[i], own = (_enqueuing_call(graph, node), 0) if from_start[i] else threads.given_by(node)
            lag[i] += own
        lag -= np.where(from_start, _durations(graph, nodes.rank[src], src_row), 0)
        for i in np.flatnonzero(host[dst]):
            dst_row[i], own = (
                (threads.waiting_call(int(dst[i])), 0) if kind is EdgeKind.SYNC else threads.received_by(int(dst[i]))
            )
            lag[i] += own
    return _Part(kind, edges.basis[index], nodes.rank[src], src_row, nodes.rank[dst], dst_row, lag)


def _calls(graph: DependencyGraph, work: Int64s, otherwise: Int64s) -> Int64s:
    """The row of the call that launched each piece of work."""
    calls = otherwise.copy()
    for rank, table in enumerate(graph.tables):
        mine = np.flatnonzero((graph.nodes.rank[work] == rank) & (graph.nodes.row[work] >= 0))
        linked = table.column("launch_row")[graph.nodes.row[work[mine]]]
        calls[mine] = np.where(linked >= 0, linked, calls[mine])
    return calls


def _enqueuing_call(graph: DependencyGraph, node: int) -> int:
    """The row of the call that begins with a host node and enqueues a collective of a CPU backend; the innermost one there
    where none has such a name.
    """
    table, innermost = graph.tables[int(graph.nodes.rank[node])], int(graph.nodes.row[node])
    row, starts, parents = innermost, table.column("ts_ns"), table.column("parent_row")
    while row >= 0 and starts[row] == graph.nodes.start_ns[node]:
        if table.name_of(row).startswith(_NAMED_CALL):
            return row
        row = int(parents[row])
    return innermost


def _durations(graph: DependencyGraph, rank: Int64s, row: Int64s) -> Int64s:
    """Recorded durations of events, 0 where there is none."""
    durations = np.zeros(row.size, np.int64)
    for number, table in enumerate(graph.tables):
        mine = np.flatnonzero((rank == number) & (row >= 0))
        durations[mine] = table.column("dur_ns")[row[mine]]
    return durations


def _star(graph: DependencyGraph, c: Collective) -> _Part:
    """Edges from the participant that arrived last to the others."""
    last = int(np.argmax(c.start_ns))
    others = [n for n in range(len(c.ranks)) if n != last]
    row, rank = graph.nodes.row[list(c.transfers)], np.array(c.ranks, np.int64)
    basis = Basis.RECORDED if c.group is not None and c.rendezvous is not None else Basis.INFERRED
    count = len(others)
    return _Part(
        EdgeKind.COLLECTIVE, np.full(count, int(basis), np.int8), np.full(count, rank[last]), np.full(count, row[last]),
        rank[others], row[others], np.zeros(count, np.int64),
    )  # fmt: skip


def _table(graph: DependencyGraph, parts: list[_Part]) -> EventEdges:
    """The parts as one table: no edge from an event to itself, none twice (of equal ones that with the largest lag)."""
    src_rank, src_row, dst_rank, dst_row, lag = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("src_rank", "src_row", "dst_rank", "dst_row", "lag_ns")
    )
    kind = np.concatenate([np.full(part.lag_ns.size, int(part.kind), np.int64) for part in parts])
    basis = np.concatenate([part.basis for part in parts])
    known = (src_row >= 0) & (dst_row >= 0) & (src_rank >= 0) & (dst_rank >= 0)
    src_event, dst_event = _events(graph, src_rank, src_row, known), _events(graph, dst_rank, dst_row, known)
    order = np.flatnonzero(known & ~((src_rank == dst_rank) & (src_row == dst_row)))
    order = order[np.lexsort([column[order] for column in (-lag, src_event, src_rank, kind, dst_event, dst_rank)])]
    pairs = np.stack([column[order] for column in (dst_rank, dst_event, kind, src_rank, src_event)])
    order = order[np.concatenate([[True], (pairs[:, 1:] != pairs[:, :-1]).any(axis=0)])[: order.size]]
    numbers = pa.array(graph.rank_numbers, pa.int64())
    columns = [
        numbers.take(pa.array(src_rank[order])), src_event[order], numbers.take(pa.array(dst_rank[order])), dst_event[order],
        pa.array([k.name.lower() for k in EdgeKind]).take(pa.array(kind[order])),
        pa.array([b.name.lower() for b in Basis]).take(pa.array(basis[order])), lag[order],
    ]  # fmt: skip
    table = pa.table([pa.array(column) for column in columns], schema=SCHEMA)
    return EventEdges(table, int(np.count_nonzero(~known)))


def _events(graph: DependencyGraph, rank: Int64s, row: Int64s, known: npt.NDArray[np.bool_]) -> Int64s:
    """Indices in ``traceEvents``, -1 where not known."""
    events = np.full(row.size, -1, np.int64)
    for number, table in enumerate(graph.tables):
        mine = np.flatnonzero((rank == number) & known)
        events[mine] = table.column("event")[row[mine]]
    return events
