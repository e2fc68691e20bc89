"""Dependency graphs written down task by task, without a trace: in, work and collectives of ranks; out, a DependencyGraph.

Each piece of work is queued on a stream of its rank, where work runs in the order in which it was written, and may wait for
other work of the rank. A collective is one task a participant on that participant's stream, with a rendezvous of all. Times of
the graph are zero until a replay says when everything happens: ``replay.settle.settled``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracereplay.errors import UsageError
from tracereplay.graph.edges import Edges, concat_edges, make_edges
from tracereplay.graph.kinds import Basis, NodeKind, Why
from tracereplay.graph.model import NO_RELEASE, Collective, Coverage, DependencyGraph, EdgeArrays, Nodes, StepSpan
from tracereplay.graph.topology import topological_order
from tracereplay.trace.classify import WorkClass
from tracereplay.trace.columns import coded_column, integer_column
from tracereplay.trace.schema import COLUMNS, Role
from tracereplay.trace.table import EventTable, Header, HeldText, Quality
from tracereplay.trace.times import Int64s, TimeClass


@dataclass(frozen=True, slots=True)
class _Node:
    rank: int
    kind: NodeKind
    work_class: WorkClass
    row: int
    dur_ns: int
    collective: int


@dataclass(slots=True)
class GraphWriter:
    """A graph in the making: ``work`` and ``collective`` add to it, ``graph`` ends it.

    ``source``: what stands for the file name, such as ``synth dlrm``. Nodes are numbered in the order in which they are added.
    """

    ranks: int
    source: str
    _nodes: list[_Node] = field(default_factory=list)
    _edges: list[tuple[Why, int, int]] = field(default_factory=list)
    _events: list[list[tuple[str, str, int]]] = field(default_factory=list)
    _last: dict[tuple[int, str], int] = field(default_factory=dict)
    _collectives: list[Collective] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.ranks < 1:
            raise UsageError(f"{self.ranks} ranks", hint="a graph has at least 1")
        self._events = [[] for _ in range(self.ranks)]

    def work(self, rank: int, stream: str, name: str, work: tuple[WorkClass, int], after: Sequence[int] = ()) -> int:
        """Queue work of a class that takes so many ns on a stream; it waits for the work before it there and for ``after``.

        Raises:
            UsageError: a negative time.
        """
        work_class, dur_ns = work
        row = self._event(rank, stream, name, dur_ns)
        return self._queued(rank, stream, _Node(rank, NodeKind.DEVICE, work_class, row, dur_ns, -1), after)

    def collective(
        self, what: Collective, stream: str, label: str, dur_ns: Sequence[int], after: Mapping[int, Sequence[int]]
    ) -> dict[int, int]:
        """Queue a collective on a stream of each of its ranks; ``dur_ns`` is each participant's transfer, ``after`` what a
        rank's arrival waits for. Of ``what`` the name, group, bytes, ``scale_out`` and ranks count. Returns the transfer of
        each rank.

        Raises:
            UsageError: a negative time.
        """
        number, arrivals, transfers = len(self._collectives), [], []
        rows = [self._event(rank, stream, label, dur) for rank, dur in zip(what.ranks, dur_ns, strict=True)]
        for rank, row in zip(what.ranks, rows, strict=True):
            node = _Node(rank, NodeKind.ARRIVAL, WorkClass.COLLECTIVE, row, 0, number)
            arrivals.append(self._queued(rank, stream, node, after.get(rank, ())))
        meeting = self._add(_Node(-1, NodeKind.RENDEZVOUS, WorkClass.COLLECTIVE, -1, 0, number))
        for rank, row, dur, arrival in zip(what.ranks, rows, dur_ns, arrivals, strict=True):
            self._edges.append((Why.COLLECTIVE, arrival, meeting))
            transfer = self._add(_Node(rank, NodeKind.TRANSFER, WorkClass.COLLECTIVE, row, dur, number))
            self._edges.append((Why.COLLECTIVE, meeting, transfer))
            self._last[rank, stream] = transfer
            transfers.append(transfer)
        together = replace(
            what,
            step=0,
            order=number,
            arrivals=tuple(arrivals),
            transfers=tuple(transfers),
            rendezvous=meeting,
            start_ns=(0,) * len(what.ranks),
            end_ns=tuple(dur_ns),
            transfer_ns=min(dur_ns, default=0),
        )
        self._collectives.append(together)
        return dict(zip(what.ranks, transfers, strict=True))

    def graph(self) -> DependencyGraph:
        """The graph of all that was added: one step, number 0, which begins at 0 and ends when its work has ended."""
        count = len(self._nodes)
        edges = self._edge_arrays(count)
        steps = tuple(StepSpan(rank, 0, -1, -1, 0, 0, 0, 0) for rank in range(self.ranks))
        return DependencyGraph(
            tuple(_table(self.source, rank, self.ranks, events) for rank, events in enumerate(self._events)),
            tuple(range(self.ranks)),
            self._columns(),
            edges,
            topological_order(count, edges.src, edges.dst),
            steps,
            tuple(self._collectives),
            Coverage({}, 0, 0, 0, 0, 0, 0, 0, 0),
            host_carries_classes=False,
        )

    def _event(self, rank: int, stream: str, name: str, dur_ns: int) -> int:
        if dur_ns < 0:
            raise UsageError(f"{name} takes {dur_ns} ns", hint="work takes no negative time")
        self._events[rank].append((stream, name, dur_ns))
        return len(self._events[rank]) - 1

    def _queued(self, rank: int, stream: str, node: _Node, after: Sequence[int]) -> int:
        number, before = self._add(node), self._last.get((rank, stream))
        if before is not None:
            self._edges.append((Why.STREAM_ORDER, before, number))
        self._edges += [(Why.EVENT_WAIT, source, number) for source in after if source != before]
        self._last[rank, stream] = number
        return number

    def _add(self, node: _Node) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _columns(self) -> Nodes:
        nodes = self._nodes
        count, waiting = len(nodes), {dst for _, _, dst in self._edges}
        nothing, none = np.zeros(count, np.int64), np.full(count, -1, np.int64)
        return Nodes(
            rank=_ints([n.rank for n in nodes]),
            kind=np.array([int(n.kind) for n in nodes], np.int8),
            work_class=np.array([int(n.work_class) for n in nodes], np.int8),
            row=_ints([n.row for n in nodes]),
            start_ns=nothing,
            dur_ns=_ints([n.dur_ns for n in nodes]),
            release_ns=_ints([NO_RELEASE if i in waiting else 0 for i in range(count)]),
            residue_ns=nothing,
            step=_ints([0 if n.rank >= 0 else -1 for n in nodes]),
            collective=_ints([n.collective for n in nodes]),
            owner_row=none,
            population=nothing,
        )

    def _edge_arrays(self, count: int) -> EdgeArrays:
        edges = _made(self._edges)
        order = np.lexsort((edges.src, edges.kind, edges.dst))
        dst = edges.dst[order]
        return EdgeArrays(
            np.searchsorted(dst, np.arange(count + 1)).astype(np.int64),
            edges.src[order],
            dst,
            edges.kind[order],
            edges.basis[order],
            edges.from_start[order],
            np.zeros(len(self._edges), np.int64),
            edges.why[order],
        )


def _made(written: list[tuple[Why, int, int]]) -> Edges:
    parts = [make_edges(Why.STREAM_ORDER, Basis.RECORDED, [], [], lag_ns=0)]
    for why in sorted({why for why, _, _ in written}):
        pairs = [(src, dst) for one, src, dst in written if one == why]
        parts.append(make_edges(why, Basis.RECORDED, [src for src, _ in pairs], [dst for _, dst in pairs], lag_ns=0))
    return concat_edges(parts)


def _table(source: str, rank: int, ranks: int, events: list[tuple[str, str, int]]) -> EventTable:
    """The events of a rank as a table: kernels, whose stream's name stands for the thread."""
    count = len(events)
    numbers = {stream: i for i, stream in enumerate(dict.fromkeys(stream for stream, _, _ in events))}
    dur_ns = _ints([dur for _, _, dur in events])
    columns: dict[str, npt.NDArray[Any]] = {
        "event": np.arange(count, dtype=np.int64),
        "ts_ns": np.zeros(count, np.int64),
        "dur_ns": dur_ns,
        "raw_dur_ns": dur_ns,
        "time_class": np.full(count, int(TimeClass.OK), np.int8),
        "role": np.full(count, int(Role.KERNEL), np.int8),
        "device": np.zeros(count, np.int64),
        "stream": _ints([numbers[stream] for stream, _, _ in events]),
    }
    text = {
        "name": [name for _, name, _ in events],
        "category": ["kernel"] * count,
        "pid": ["0"] * count,
        "tid": [stream for stream, _, _ in events],
    }
    arrays = []
    for one in COLUMNS:
        if one.name in columns:
            arrays.append(integer_column(columns[one.name]))
        elif one.name in text:
            arrays.append(_coded(text[one.name]))
        else:
            arrays.append(integer_column(np.zeros(count, np.int64), np.zeros(count, np.bool_)))
    table = pa.Table.from_arrays(arrays, schema=COLUMNS)
    return EventTable(f"{source}, rank {rank}", table, Header(rank=rank, world_size=ranks), Quality(), count, HeldText(()))


def _coded(values: list[str]) -> pa.Array:
    code = {value: i for i, value in enumerate(dict.fromkeys(values))}
    return coded_column(np.array([code[value] for value in values], np.int32), list(code))


def _ints(values: Sequence[int]) -> Int64s:
    return np.array(values, np.int64).reshape(-1)
