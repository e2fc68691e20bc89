"""Critical paths: in, a graph, a schedule and a step; out, the pieces that tile it, and the parts that these sum to.

The walk starts at the end of a rank's step and goes back to its start, always to the task that decided the start of the present
one, over ranks where a collective was waited for. Law: the pieces tile the step, so the parts sum to it.

What depends on the graph alone is prepared once and serves the walks of many schedules.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

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

    @property
    def dur_ns(self) -> int:
        """Its length."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class PathGraph:
    """What walks need of a graph: what residue is unexplained, the ranks' entries into the recording, and the part of each node
    that a walk came by.
    """

    graph: DependencyGraph
    tail: Int64s
    entries: frozenset[int]
    part: dict[int, str] = field(default_factory=dict)

    @staticmethod
    def of(graph: DependencyGraph) -> "PathGraph":
        """That of a graph."""
        first = {span.rank: span.first_node for span in reversed(graph.steps)}
        return PathGraph(graph, residue_tail(graph.nodes), frozenset(first.values()))

    def part_of(self, node: int) -> str:
        """The part that a node's own time belongs to."""
        found = self.part.get(node)
        if found is None:
            found = self.part[node] = _part_of(self.graph, node)
        return found


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The walks through one schedule of a graph."""

    ground: PathGraph
    schedule: Schedule

    def parts(self, step: StepTime) -> tuple[list[Piece], tuple[Part, ...]]:
        """The pieces and the parts of the critical path of a rank's step."""
        last = self._last_node(step)
        pieces = [] if last is None else self.walk(last, step.start_ns, step.end_ns)
        if last is None and step.dur_ns:
            pieces = [Piece("unexplained", step.start_ns, step.end_ns, -1)]
        totals: Counter[str] = Counter()
        for piece in pieces:
            totals[piece.part] += piece.dur_ns
        return pieces, tuple(Part(n, totals[n], totals[n] / step.dur_ns) for n in PART_NAMES if totals[n])

    def walk(self, node: int, start_ns: int, end_ns: int) -> list[Piece]:
        """Pieces that tile [start_ns, end_ns) backwards along the edges that decided each start."""
        ground, schedule, edges = self.ground, self.schedule, self.ground.graph.edges
        # Views give Python's own numbers, several times faster than numpy's scalars.
        starts, ends, waited_for = (c.data for c in (schedule.start_ns, schedule.end_ns, schedule.waited_for))
        sources, lags, kinds, from_start = (c.data for c in (edges.src, edges.lag_ns, edges.kind, edges.from_start))
        residues, tails = ground.graph.nodes.residue_ns.data, ground.tail.data
        tiles = _Tiles(start_ns, end_ns)
        while tiles.upper_ns > start_ns:
            tiles.add(ground.part_of(node), starts[node], node, own=True)
            edge = waited_for[node]
            if tiles.upper_ns <= start_ns:
                break
            if edge == RELEASED:
                tiles.add("late_entry" if node in ground.entries else "unexplained", start_ns, node)
                break
            source = sources[edge]
            bound = starts[source] if from_start[edge] else ends[source]
            beside = self._beside(source, tiles.upper_ns) if from_start[edge] and kinds[edge] == EdgeKind.STREAM_ORDER else None
            if beside is not None:
                # The next kernel started while this one ran: until then the time is this one's.
                source, bound = beside, starts[beside]
                tiles.add(ground.part_of(source), bound, source, own=True)
            if residues[node] > tails[node]:
                tiles.add("unexplained", max(min(tiles.upper_ns, bound + lags[edge]), bound), node)
            tiles.add(_LAG_PART[kinds[edge]], bound, node)
            node = source
        return tiles.pieces

    def _beside(self, source: int, time_ns: int) -> int | None:
        """The work that runs beside what started while it ran: the source itself; of an arrival the transfer that follows it,
        where that had begun by then, else None.
        """
        nodes = self.ground.graph.nodes
        if nodes.kind[source] != NodeKind.ARRIVAL:
            return source
        number = int(nodes.collective[source])
        for transfer in self.ground.graph.collectives[number].transfers if number >= 0 else ():
            if nodes.rank[transfer] == nodes.rank[source] and self.schedule.start_ns[transfer] < time_ns:
                return transfer if nodes.kind[transfer] == NodeKind.TRANSFER else None
        return None

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


@dataclass(slots=True)
class _Tiles:
    """Pieces while they are laid, from ``upper_ns`` down to ``start_ns``."""

    start_ns: int
    upper_ns: int
    pieces: list[Piece] = field(default_factory=list)

    def add(self, part: str, low_ns: int, node: int, *, own: bool = False) -> None:
        """Lay a piece down to ``low_ns``; nothing where the walk has come there."""
        low_ns = max(low_ns, self.start_ns)
        if low_ns < self.upper_ns:
            self.pieces.append(Piece(part, low_ns, self.upper_ns, node, own))
            self.upper_ns = low_ns


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
