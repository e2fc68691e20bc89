"""Why an event began when it began: in, a graph and a task; out, the chain of causes back to the start of the step.

The chain goes from each task to the one that decided its start in a replay, over threads, streams and ranks. Law: a task's
start is its cause's start, plus the cause's own time unless the cause is a start itself, plus the lag, plus a rest; so the
chain's times sum to the distance between its ends.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from tracereplay.errors import TraceError, UsageError
from tracereplay.graph.kinds import REASONS, Basis, EdgeKind, NodeKind
from tracereplay.graph.model import DependencyGraph, StepSpan
from tracereplay.graph.threads import HostThreads
from tracereplay.replay.engine import replay
from tracereplay.replay.schedule import RELEASED, Schedule
from tracereplay.trace.schema import DEVICE_ROLES, HOST_ROLES
from tracereplay.trace.times import Int64s

STEP_START = "the start of the step"
BEFORE_STEP = "work from before the step"
RECORDED = "a start that is kept as recorded"


@dataclass(frozen=True, slots=True)
class Place:
    """A task as people look for it: ``rank`` and ``event`` (index in ``traceEvents``) are None where it has none."""

    rank: int | None
    event: int | None
    name: str


@dataclass(frozen=True, slots=True)
class Other:
    """Something else that a task waited for, and how much later that could have been without delaying the task."""

    place: Place
    kind: str
    basis: str
    slack_ns: int


@dataclass(frozen=True, slots=True)
class Because:
    """The edge that decided a task's start: its cause is the next link of the chain.

    ``rest_ns`` is what the start differs from cause and typical lag (the residue, or less where the law cut it).
    ``slack_ns`` is that of the nearest of the ``others``, None without any.
    """

    kind: str
    basis: str
    reason: str
    from_start: bool
    lag_ns: int
    rest_ns: int
    slack_ns: int | None
    others: tuple[Other, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """One task of the chain: ``start_ns`` after the start of the step, ``dur_ns`` its own time, and why it began then (None
    for the last).
    """

    place: Place
    task: str
    start_ns: int
    dur_ns: int
    because: Because | None


@dataclass(frozen=True, slots=True)
class Causes:
    """The result of ``tracereplay why``: the event asked for, how many fitted the question, its chain from effect to cause,
    and what the chain ends with.
    """

    place: Place
    step: int
    matches: int
    start_ns: int
    ends_with: str
    chain: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A task to explain, its rank's index, the row of its event (-1 for none), and how many events fitted the question."""

    node: int
    rank: int
    row: int
    matches: int = 1


def target_of_event(graph: DependencyGraph, rank: int | None, event: int) -> Target:
    """The task with which an event begins; ``event`` is its index in the ``traceEvents`` of that rank's file.

    Raises:
        UsageError: several ranks and none named.
        TraceError: no such rank or event, or one that the steps do not cover.
    """
    number = _rank_index(graph, rank)
    table = graph.tables[number]
    rows = np.flatnonzero(table.column("event") == event)
    if rows.size == 0:
        raise TraceError(f"event {event} is no complete event", where=table.path, hint="count from 0 in traceEvents")
    row = int(rows[0])
    node = _Index(graph).node_of(number, row)
    if node is None:
        what = f"event {event} ({table.name_of(row)}) is not part of a whole step's host or device work"
        raise TraceError(what, where=table.path, hint="see `tracereplay info` for the steps")
    return Target(node, number, row)


def target_of_name(graph: DependencyGraph, pattern: str, step: int | None, rank: int | None) -> Target:
    """The first event of a step (of any, where ``step`` is None) whose name fits, on the lowest rank that has one.

    Raises:
        TraceError: no event fits.
    """
    ranks = range(len(graph.tables)) if rank is None else [_rank_index(graph, rank)]
    index = _Index(graph)
    found: list[Target] = []
    for number in sorted(ranks, key=lambda n: _order(graph.rank_numbers[n])):
        found += [Target(n, number, row) for row, n in index.named(number, pattern) if step in {None, index.step_of(n)}]
    if not found:
        where = "" if step is None else f" in step {step}"
        raise TraceError(f"no event is called {pattern!r}{where}", hint="a name is matched whole: '*name*' finds a part of it")
    return Target(found[0].node, found[0].rank, found[0].row, len(found))


def explain(graph: DependencyGraph, target: Target) -> Causes:
    """The chain of causes of a task, back to the start of the step in which it begins.

    Raises:
        TraceError: the task lies before the first step of its rank.
    """
    schedule = replay(graph)
    step = _step_around(graph, target)
    origin = int(schedule.start_ns[step.first_node]) if step.first_node >= 0 else step.start_ns
    nodes, end = _walk(graph, schedule, target.node, step.number)
    links = [
        Link(
            _place(graph, node),
            NodeKind(graph.nodes.kind[node]).name.lower(),
            int(schedule.start_ns[node]) - origin,
            int(schedule.end_ns[node] - schedule.start_ns[node]),
            None if node == nodes[-1] else _because(graph, schedule, node),
        )
        for node in nodes
    ]
    return Causes(_asked_for(graph, target), step.number, target.matches, links[0].start_ns, end, tuple(links))


def _asked_for(graph: DependencyGraph, target: Target) -> Place:
    """The event of a question, which may have begun together with one inside it; the task where there is no event."""
    if target.row < 0:
        return _place(graph, target.node)
    table = graph.tables[target.rank]
    return Place(graph.rank_numbers[target.rank], int(table.column("event")[target.row]), table.name_of(target.row))


class _Index:
    """Tasks by the events with which they begin."""

    def __init__(self, graph: DependencyGraph) -> None:
        self.graph = graph
        self.threads = HostThreads(graph)
        self.first_work: list[Int64s] = []
        for rank, table in enumerate(graph.tables):
            first = np.full(len(table), -1, np.int64)
            work = np.flatnonzero((graph.nodes.rank == rank) & (graph.nodes.kind != NodeKind.HOST))
            first[graph.nodes.row[work][::-1]] = work[::-1]  # of a collective's two tasks the arrival, which stands first
            self.first_work.append(first)

    def node_of(self, rank: int, row: int) -> int | None:
        """The task with which an event begins, None where the graph does not cover it."""
        table = self.graph.tables[rank]
        if self.first_work[rank][row] >= 0:
            return int(self.first_work[rank][row])
        host = table.column("role")[row] in HOST_ROLES and table.column("dur_ns")[row] >= 0
        return self.threads.begin_node(rank, row) if host else None

    def named(self, rank: int, pattern: str) -> list[tuple[int, int]]:
        """(row, task) of each event whose name fits, in order of the recorded starts."""
        table = self.graph.tables[rank]
        codes = [code for code, name in enumerate(table.names) if fnmatchcase(name, pattern)]
        rows = table.rows_of(*HOST_ROLES, *DEVICE_ROLES)
        rows = rows[np.isin(table.codes("name")[rows], codes)]
        rows = rows[np.argsort(table.column("ts_ns")[rows], kind="stable")]
        pairs = [(int(row), self.node_of(rank, int(row))) for row in rows]
        return [(row, node) for row, node in pairs if node is not None]

    def step_of(self, node: int) -> int:
        """The number of the step in which a task lies, -1 outside."""
        return int(self.graph.step_number[node])


def _order(rank: int | None) -> int:
    return -1 if rank is None else rank


def _rank_index(graph: DependencyGraph, rank: int | None) -> int:
    if rank is None and len(graph.rank_numbers) == 1:
        return 0
    if rank is None:
        raise UsageError("the job has several ranks and the event does not say which", hint="give --rank R")
    if rank not in graph.rank_numbers:
        known = ", ".join(str(r) for r in graph.rank_numbers[:16])
        raise TraceError(f"there is no rank {rank}", hint=f"the ranks are {known}")
    return graph.rank_numbers.index(rank)


def _step_around(graph: DependencyGraph, target: Target) -> StepSpan:
    """The step in which a task lies; between steps the one before."""
    own = [span for span in graph.steps if span.rank == target.rank]
    number = int(graph.step_number[target.node])
    start = int(graph.nodes.start_ns[target.node])
    around = [s for s in own if (s.number == number if number >= 0 else s.start_ns <= start)]
    if not around:
        raise TraceError("the event lies before the first whole step", hint="ask for one inside a step")
    return around[-1]


def _walk(graph: DependencyGraph, schedule: Schedule, node: int, number: int) -> tuple[list[int], str]:
    """The tasks from an effect back to the first that nothing inside the step explains, and what that is."""
    entries = {s.first_node for s in graph.steps if s.number == number}
    begins = {s.rank: int(schedule.start_ns[s.first_node]) for s in graph.steps if s.number == number and s.first_node >= 0}
    chain = [node]
    while True:
        rank = int(graph.nodes.rank[node])
        if node in entries:
            return chain, STEP_START
        if schedule.waited_for[node] == RELEASED:
            return chain, RECORDED
        if rank >= 0 and schedule.start_ns[node] < begins.get(rank, schedule.start_ns[node]):
            return chain, BEFORE_STEP
        node = int(graph.edges.src[schedule.waited_for[node]])
        chain.append(node)


def _because(graph: DependencyGraph, schedule: Schedule, node: int) -> Because:
    """The edge that decided a task's start, and the slack of every other edge into the task."""
    edges, decided = graph.edges, int(schedule.waited_for[node])
    into = np.arange(edges.first[node], edges.first[node + 1])
    bound = np.where(edges.from_start[into], schedule.start_ns[edges.src[into]], schedule.end_ns[edges.src[into]])
    start = int(schedule.start_ns[node])
    # How late its source may be: neither before the source itself nor before what follows typically after it (see replay).
    slack = start - bound - np.maximum(edges.lag_ns[into] + graph.nodes.residue_ns[node], 0)
    others = [
        Other(
            _place(graph, int(edges.src[e])),
            EdgeKind(edges.kind[e]).name.lower(),
            Basis(edges.basis[e]).name.lower(),
            int(slack[e - into[0]]),
        )
        for e in into[np.argsort(slack, kind="stable")]
        if e != decided
    ]
    kind = EdgeKind(edges.kind[decided])
    lag = int(edges.lag_ns[decided])
    return Because(
        kind=kind.name.lower(),
        basis=Basis(edges.basis[decided]).name.lower(),
        reason=REASONS[edges.why[decided]].reason,
        from_start=bool(edges.from_start[decided]),
        lag_ns=lag,
        rest_ns=start - int(bound[decided - into[0]]) - lag,
        slack_ns=others[0].slack_ns if others else None,
        others=tuple(others),
    )


def _place(graph: DependencyGraph, node: int) -> Place:
    rank, row = int(graph.nodes.rank[node]), int(graph.nodes.row[node])
    known = rank >= 0 and row >= 0
    event = int(graph.tables[rank].column("event")[row]) if known else None
    return Place(graph.rank_numbers[rank] if rank >= 0 else None, event, graph.name_of(node))
