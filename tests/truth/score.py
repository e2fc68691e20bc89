"""How right given edges are: in, true causes and given edges between recorded events; out, recall and precision a kind.

The contract's definitions: a true edge is found when it is given or follows from given edges and program order; a given edge
that follows from true ones and program order is neither right nor wrong; what the file does not record is asked for where it
delayed something by 5 µs or more. "Follows" is reachability between begins and ends of events: program order of a thread and
of a stream's host calls is known to both sides.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.truth.exporter import Export
from tests.truth.machine import Machine

ASKED_FROM_NS = 5_000
_ALWAYS_ASKED = frozenset({"launch", "stream_order", "collective"})
Event = tuple[int, int]


@dataclass(frozen=True)
class Edge:
    """An edge between two recorded events: (rank, index in ``traceEvents``)."""

    src: Event
    dst: Event
    kind: str


@dataclass(frozen=True)
class Score:
    """One kind: true edges asked for and found, given edges that are right and wrong; the rest of the given ones follow."""

    asked: int = 0
    found: int = 0
    right: int = 0
    wrong: int = 0

    @property
    def recall(self) -> float:
        """Found of asked; 1 where nothing is asked."""
        return self.found / self.asked if self.asked else 1.0

    @property
    def precision(self) -> float:
        """Right of right and wrong; 1 where nothing is given."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    def __add__(self, other: "Score") -> "Score":
        return Score(self.asked + other.asked, self.found + other.found, self.right + other.right, self.wrong + other.wrong)


def true_edges(machine: Machine, export: Export, *, all_recorded: bool) -> tuple[list[Edge], list[Edge]]:
    """All true edges between recorded events, and those asked for. ``all_recorded``: the file names each wait."""
    edges, asked = [], []
    for cause in machine.causes:
        src, dst = export.place[cause.src], export.place[cause.dst]
        if src is None or dst is None:
            continue
        edge = Edge(src, dst, cause.kind)
        edges.append(edge)
        named = cause.kind in _ALWAYS_ASKED or (all_recorded and cause.named)
        if named or cause.delay_ns >= ASKED_FROM_NS:
            asked.append(edge)
    return edges, asked


class Order:
    """Reachability between begins and ends of events under program order and some edges."""

    def __init__(self, machine: Machine, export: Export, edges: Iterable[Edge]) -> None:
        self._times = {
            p: (e.start, e.end) for e, p in zip(machine.events, export.place, strict=True) if p and e.kind != "cuda_sync"
        }
        after: dict[tuple[Event, int], set[tuple[Event, int]]] = defaultdict(set)
        for place in self._times:
            after[place, 0].add((place, 1))
        for one, other in self._program_order(machine, export):
            after[one].add(other)
        for edge in edges:
            if edge.src in self._times and edge.dst in self._times:
                for one, other in self.ends(edge):
                    after[one].add(other)
        self._reach: dict[tuple[Event, int], set[tuple[Event, int]]] = {}
        self._after = after

    def ends(self, edge: Edge) -> list[tuple[tuple[Event, int], tuple[Event, int]]]:
        """Which ends of its events an edge joins: a launch the begins, a wait of something under way its end."""
        if edge.kind == "launch":
            return [((edge.src, 0), (edge.dst, 0))]
        if edge.kind == "collective":
            return [((edge.src, 0), (edge.dst, 1)), ((edge.dst, 0), (edge.src, 1))]
        under_way = self._times[edge.dst][0] < self._times[edge.src][1]
        to_end = edge.kind == "sync" or (edge.kind == "thread_handoff" and under_way)
        return [((edge.src, 1), (edge.dst, 1 if to_end else 0))]

    def follows(self, edge: Edge) -> bool:
        """True where an edge is implied."""
        if edge.src not in self._times or edge.dst not in self._times:
            return False
        return all(other in self._from(one) for one, other in self.ends(edge))

    def _from(self, point: tuple[Event, int]) -> set[tuple[Event, int]]:
        if point not in self._reach:
            seen = {point}
            stack = [point]
            while stack:
                for following in self._after[stack.pop()]:
                    if following not in seen:
                        seen.add(following)
                        stack.append(following)
            self._reach[point] = seen
        return self._reach[point]

    def _program_order(self, machine: Machine, export: Export) -> Iterable[tuple[tuple[Event, int], tuple[Event, int]]]:
        """Begins and ends of each thread's events, one after the other."""
        threads: dict[tuple[int, str], list[tuple[int, int, int, tuple[Event, int]]]] = defaultdict(list)
        for number, (event, place) in enumerate(zip(machine.events, export.place, strict=True)):
            if place is None or not event.thread:
                continue
            # Of points at one instant ends of earlier events come first, then begins from the outside in.
            threads[event.rank, event.thread].append((event.start, 1, number, (place, 0)))
            threads[event.rank, event.thread].append((event.end, 0 if event.end > event.start else 2, -number, (place, 1)))
        for points in threads.values():
            for (time, _, _, one), (other_time, _, _, other) in pairwise(sorted(points)):
                yield one, other
                if time == other_time and one[1] == other[1]:
                    yield other, one  # begins, or ends, at one instant are one point


def score(machine: Machine, export: Export, given: Sequence[Edge], *, all_recorded: bool) -> dict[str, Score]:
    """Recall and precision of given edges by kind."""
    verdicts = judge(machine, export, given, all_recorded=all_recorded)
    totals: dict[str, Score] = defaultdict(Score)
    for edge in verdicts.asked:
        totals[edge.kind] += Score(asked=1, found=int(edge not in verdicts.lost))
    for edge in verdicts.right:
        totals[edge.kind] += Score(right=1)
    for edge in verdicts.wrong:
        totals[edge.kind] += Score(wrong=1)
    return dict(sorted(totals.items()))


@dataclass(frozen=True)
class Verdicts:
    """The asked true edges, those of them that were not found, and the given edges that are right and wrong."""

    asked: list[Edge]
    lost: frozenset[Edge]
    right: list[Edge]
    wrong: list[Edge]


def judge(machine: Machine, export: Export, given: Sequence[Edge], *, all_recorded: bool) -> Verdicts:
    """Each edge's verdict. Collectives are sets: a pair is found or right if both are of one set."""
    edges, asked = true_edges(machine, export, all_recorded=all_recorded)
    under_given, under_true = Order(machine, export, given), Order(machine, export, edges)
    together, truly = _sets(given), _sets(edges)
    truth = set(edges)
    lost = frozenset(e for e in asked if not (_in_one(together, e) if e.kind == "collective" else under_given.follows(e)))
    right, wrong = [], []
    for edge in given:
        if edge.kind == "thread_order":
            continue
        if edge in truth or (edge.kind == "collective" and _in_one(truly, edge)):
            right.append(edge)
        elif edge.kind == "collective" or not under_true.follows(edge):
            wrong.append(edge)
    return Verdicts(asked, lost, right, wrong)


def _in_one(root_of: dict[Event, Event], edge: Edge) -> bool:
    return edge.src in root_of and root_of[edge.src] == root_of.get(edge.dst)


def _sets(edges: Iterable[Edge]) -> dict[Event, Event]:
    """For each participant of a collective the first of its connected set."""
    root_of: dict[Event, Event] = {}
    for edge in edges:
        if edge.kind != "collective":
            continue
        one, other = root_of.setdefault(edge.src, edge.src), root_of.setdefault(edge.dst, edge.dst)
        for event in [e for e, root in root_of.items() if root == max(one, other)]:
            root_of[event] = min(one, other)
    return root_of
