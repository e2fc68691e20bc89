"""Critical paths: in, a graph, a schedule and a step; out, the pieces that tile it, and the parts that these sum to.

The walk starts at the end of a rank's step and goes back to its start, always to the task that decided the start of the present
one, over ranks where a collective was waited for. Law: the pieces tile the step, so the parts sum to it.

What depends on the graph alone is prepared once and serves the walks of many schedules.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from tracereplay.graph.kinds import EdgeKind, NodeKind
from tracereplay.graph.lags import residue_tail
from tracereplay.graph.model import DependencyGraph, StepSpan
from tracereplay.replay.schedule import RELEASED, Schedule
from tracereplay.replay.steps import StepTime
from tracereplay.trace.classify import WorkClass
from tracereplay.trace.times import Int64s

PART_NAMES = (
    "host", "launch", "input", "late_entry", "gemm", "attention", "conv", "embedding", "elementwise", "reduction", "copy",
    "collective_transfer", "collective_wait", "collective_unsplit", "sync", "other", "unexplained",
)  # fmt: skip

_CLASS_PART = {WorkClass.MEMSET: "copy", WorkClass.COLLECTIVE: "collective_transfer"}
_LAG_PART: dict[int, str] = {
    EdgeKind.LAUNCH: "launch",
    EdgeKind.STREAM_ORDER: "launch",
    EdgeKind.EVENT_WAIT: "sync",
    EdgeKind.SYNC: "sync",
    EdgeKind.THREAD_HANDOFF: "sync",
    EdgeKind.THREAD_ORDER: "host",
    EdgeKind.COLLECTIVE: "collective_wait",
}
# Why a piece is there, where it is not for an edge's lag; what follows an arrival without a transfer, and any other task.
_OWN, _PINNED, _RESIDUE = -1, -2, -3
_NONE, _ITSELF = -1, -2
# Compiled code takes plain numbers.
_RELEASED, _STREAM_ORDER = int(RELEASED), int(EdgeKind.STREAM_ORDER)


_UNEXPLAINED = PART_NAMES.index("unexplained")
_PART_OF_LAG = np.array([PART_NAMES.index(_LAG_PART.get(kind, "unexplained")) for kind in range(max(EdgeKind) + 1)])


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the step."""

    name: str
    ns: int
    share: float


class Piece(NamedTuple):
    """A stretch of the walk: which part, between which times, at which node; ``own`` is the node's own time, not a lag."""

    part: str
    start_ns: int
    end_ns: int
    node: int
    own: bool = False


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Pieces as columns; ``part`` is a place in ``PART_NAMES``."""

    node: Int64s
    low_ns: Int64s
    high_ns: Int64s
    part: Int64s
    own: npt.NDArray[Any]

    def pieces(self) -> list[Piece]:
        """One by one."""
        columns = (self.part, self.low_ns, self.high_ns, self.node, self.own != 0)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [Piece(PART_NAMES[part], low, high, node, own) for part, low, high, node, own in rows]


@dataclass(frozen=True, slots=True)
class PathGraph:
    """What walks need of a graph: what residue is unexplained; of each arrival the transfer of its rank that follows it
    (``_NONE`` where none does, ``_ITSELF`` for tasks that are no arrivals); the ranks' entries into the recording; the part of
    each node that a walk came by, as its place in ``PART_NAMES`` (-1: none came by).
    """

    graph: DependencyGraph
    tail: Int64s
    follows: Int64s
    entries: frozenset[int]
    part: npt.NDArray[np.int8]

    @staticmethod
    def of(graph: DependencyGraph) -> "PathGraph":
        """That of a graph."""
        first = {span.rank: span.first_node for span in reversed(graph.steps)}
        return PathGraph(
            graph, residue_tail(graph.nodes), _follows(graph), frozenset(first.values()), np.full(len(graph), -1, np.int8)
        )

    def parts_of(self, nodes: Int64s) -> npt.NDArray[np.int8]:
        """The parts that nodes' own times belong to, as places in ``PART_NAMES``."""
        for node in np.unique(nodes[self.part[nodes] < 0]).tolist():
            self.part[node] = PART_NAMES.index(_part_of(self.graph, node))
        return self.part[nodes]


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The walks through one schedule of a graph."""

    ground: PathGraph
    schedule: Schedule

    def parts(self, step: StepTime) -> tuple[Part, ...]:
        """The parts of the critical path of a rank's step; they sum to it."""
        tiles = self._of_step(step)
        totals = np.zeros(len(PART_NAMES), np.int64)
        np.add.at(totals, tiles.part, tiles.high_ns - tiles.low_ns)
        return tuple(Part(n, ns, ns / step.dur_ns) for n, ns in zip(PART_NAMES, totals.tolist(), strict=True) if ns)

    def pieces(self, step: StepTime) -> list[Piece]:
        """The pieces of the critical path of a rank's step, the last one first."""
        return self._of_step(step).pieces()

    def walk(self, node: int, start_ns: int, end_ns: int) -> list[Piece]:
        """Pieces that tile [start_ns, end_ns) backwards along the edges that decided each start."""
        return self._walked(node, start_ns, end_ns).pieces()

    def _of_step(self, step: StepTime) -> _Tiles:
        last = self._last_node(step)
        if last is not None:
            return self._walked(last, step.start_ns, step.end_ns)
        whole = [[-1], [step.start_ns], [step.end_ns], [_UNEXPLAINED], [False]] if step.dur_ns else [[]] * 5
        return _Tiles(*(np.array(column, np.int64) for column in whole))

    def _walked(self, node: int, start_ns: int, end_ns: int) -> _Tiles:
        ground, schedule, edges = self.ground, self.schedule, self.ground.graph.edges
        nodes, lows, whys = _walk(
            node, start_ns, end_ns, schedule.start_ns, schedule.end_ns, schedule.waited_for,
            edges.src, edges.lag_ns, edges.kind, edges.from_start, ground.graph.nodes.residue_ns, ground.tail, ground.follows,
        )  # fmt: skip
        highs = np.concatenate([np.array([end_ns], np.int64), lows])[: lows.size]
        own, lag = whys == _OWN, whys >= 0
        part = np.full(whys.size, _UNEXPLAINED, np.int64)
        part[own], part[lag] = ground.parts_of(nodes[own]), _PART_OF_LAG[whys[lag]]
        part[(whys == _PINNED) & np.isin(nodes, [*ground.entries])] = PART_NAMES.index("late_entry")
        return _Tiles(nodes, lows, highs, part, own)

    def _last_node(self, step: StepTime) -> int | None:
        """The task that starts where a step ends, or the work that drained last if that ends later; None where neither is."""
        graph, schedule = self.ground.graph, self.schedule
        span = span_of(graph, step)
        closing = [span.last_node + 1, *span.other_ends] if span.first_node >= 0 else []
        ended = [node for node in closing if schedule.start_ns[node] >= step.end_ns]
        if ended:
            return ended[0]
        index = [s.number for s in graph.steps if s.rank == step.rank].index(step.number)
        nodes = graph.nodes
        mine = np.flatnonzero((nodes.rank == step.rank) & (nodes.step == index) & (nodes.kind != NodeKind.HOST))
        return int(mine[np.argmax(schedule.end_ns[mine])]) if mine.size else None


@numba.njit(cache=True)
def _walk(  # noqa: PLR0912, PLR0913, PLR0917 - numba takes arrays, not objects; a loop without calls
    node: Any,
    start_ns: Any,
    end_ns: Any,
    starts: Any,
    ends: Any,
    waited_for: Any,
    sources: Any,
    lags: Any,
    kinds: Any,
    from_start: Any,
    residues: Any,
    tails: Any,
    follows: Any,
) -> Any:
    """Pieces from ``end_ns`` down to ``start_ns``: their nodes, lower ends, and why they are there: a kind of edge for its lag,
    ``_OWN``, ``_PINNED``, ``_RESIDUE``. Each node gives four pieces at most; those without length are written over.
    """
    most = 4 * starts.size + 4
    nodes, lows, whys = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    count, upper = 0, end_ns
    while upper > start_ns:
        edge = waited_for[node]
        source, bound, beside, residue = -1, start_ns, -1, False
        if edge != _RELEASED:
            source = sources[edge]
            bound = starts[source] if from_start[edge] else ends[source]
            residue = residues[node] > tails[node]
            if from_start[edge] and kinds[edge] == _STREAM_ORDER:
                # The next kernel started while this one ran: until then the time is this one's.
                transfer = follows[source]
                if transfer == _ITSELF:
                    beside = source
                elif transfer != _NONE and starts[transfer] < min(upper, max(starts[node], start_ns)):
                    beside = transfer
                if beside >= 0:
                    source, bound = beside, starts[beside]
        for piece in range(4):
            if piece == 0:
                at, low, why = node, starts[node], _OWN
            elif edge == _RELEASED:
                at, low, why = node, start_ns, _PINNED
            elif piece == 1:
                at, low, why = source, (bound if beside >= 0 else upper), _OWN
            elif piece == 2:
                at, low, why = node, (max(min(upper, bound + lags[edge]), bound) if residue else upper), _RESIDUE
            else:
                at, low, why = node, bound, int(kinds[edge])
            low = max(low, start_ns)
            if low < upper:
                nodes[count], lows[count], whys[count] = at, low, why
                count, upper = count + 1, low
        if edge == _RELEASED:
            break
        node = source
    return nodes[:count], lows[:count], whys[:count]


def _follows(graph: DependencyGraph) -> Int64s:
    nodes = graph.nodes
    found = np.where(nodes.kind == NodeKind.ARRIVAL, _NONE, _ITSELF)
    transfers = {(int(nodes.collective[t]), int(nodes.rank[t])): t for c in graph.collectives for t in c.transfers[::-1]}
    for arrival in np.flatnonzero(found == _NONE).tolist():
        transfer = transfers.get((int(nodes.collective[arrival]), int(nodes.rank[arrival])), _NONE)
        if transfer >= 0 and nodes.kind[transfer] == NodeKind.TRANSFER:
            found[arrival] = transfer
    return found.astype(np.int64)


def span_of(graph: DependencyGraph, step: StepTime) -> StepSpan:
    """The recorded step that a step of a schedule is."""
    return next(s for s in graph.steps if s.rank == step.rank and s.number == step.number)


def _part_of(graph: DependencyGraph, node: int) -> str:
    nodes = graph.nodes
    kind = NodeKind(nodes.kind[node])
    if kind is NodeKind.UNSPLIT:
        return "collective_unsplit"
    if kind is NodeKind.TRANSFER:
        return "collective_transfer"
    if kind is NodeKind.HOST and nodes.work_class[node] == WorkClass.HOST:
        return "input" if _is_input(graph, node) else "host"
    work = WorkClass(nodes.work_class[node])
    return _CLASS_PART.get(work, work.name.lower())


def _is_input(graph: DependencyGraph, node: int) -> bool:
    """True for host time under a data loader's or a collector's input annotation."""
    rank, row = int(graph.nodes.rank[node]), int(graph.nodes.row[node])
    while row >= 0:
        name = graph.tables[rank].name_of(row)
        if "DataLoader" in name or name in ("## input ##", "## copy_batch_to_gpu ##"):
            return True
        row = int(graph.tables[rank].column("parent_row")[row])
    return False
