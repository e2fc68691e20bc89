"""Step times of a schedule, as the contract defines them: in, a graph and a schedule; out, times a step and a rank."""

from dataclasses import dataclass

import numpy as np

from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph, StepSpan
from tracereplay.replay.schedule import Schedule
from tracereplay.trace.times import Int64s

NO_DRAIN = np.iinfo(np.int64).min
_DRAINED_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step of one rank in a schedule; ``drain_ns`` is how long after the step's start its queue work had ended."""

    rank: int
    number: int
    start_ns: int
    end_ns: int
    drain_ns: int | None

    @property
    def dur_ns(self) -> int:
        """Length of the step."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class JobSteps:
    """The steps that every rank has whole: per number the longest rank's time, their mean, the steady-state time (the mean
    over consecutive numbers of the longest rank's time from end to end; None without two of them).
    """

    numbers: tuple[int, ...]
    longest_ns: tuple[int, ...]
    mean_ns: int
    steady_ns: int | None


@dataclass(frozen=True, slots=True)
class ManyJobSteps:
    """``JobSteps`` of many schedules of one graph: a row a schedule, in ``longest_ns`` a column a number."""

    numbers: tuple[int, ...]
    longest_ns: Int64s
    mean_ns: Int64s
    steady_ns: Int64s | None


@dataclass(frozen=True, slots=True)
class StepReader:
    """What of a graph says where its steps begin and end in a schedule; made once, read for each scenario.

    One entry a span of ``graph.steps``: ``first`` and ``after`` are the nodes with which it begins and the next one
    begins (-1 on ranks without host events), ``recorded_start_ns`` and ``recorded_end_ns`` its mark, ``late_ns`` by how
    much its recorded work outlasted the mark (-1 where the work does not end the step). ``work`` are the nodes of queue
    work ordered by span, ``work_first`` where each span's begin among them, ``working`` the spans that have any; ``other``
    are the nodes with which other threads end, ``other_span`` their spans.
    """

    first: Int64s
    after: Int64s
    recorded_start_ns: Int64s
    recorded_end_ns: Int64s
    late_ns: Int64s
    work: Int64s
    work_first: Int64s
    working: Int64s
    other: Int64s
    other_span: Int64s

    def read(self, schedule: Schedule) -> "StepBounds":
        """The steps of one schedule. A step ends at its mark or, where its recorded work had drained by then (within 1 %
        of the step), when its work has drained; on a rank without host events when its work has. Without marks it lasts
        until every host thread has ended, too.
        """
        drain = np.full(self.first.size, NO_DRAIN, np.int64)
        if self.work.size:
            drain[self.working] = np.maximum.reduceat(schedule.end_ns[self.work], self.work_first)
        on_host, drained = self.first >= 0, drain != NO_DRAIN
        start = self.recorded_start_ns.copy()
        start[on_host] = schedule.start_ns[self.first[on_host]]
        end = np.where(drained, drain, self.recorded_end_ns)
        end[on_host] = schedule.start_ns[self.after[on_host]]
        np.maximum.at(end, self.other_span, schedule.start_ns[self.other])
        by_work = on_host & drained & (self.late_ns >= 0)
        end[by_work] = np.maximum(end[by_work], drain[by_work] - self.late_ns[by_work])
        return StepBounds(start, end, drain)


@dataclass(frozen=True, slots=True)
class StepBounds:
    """Start, end and drain in ns of each span of ``graph.steps`` in one schedule; ``NO_DRAIN`` where it has no work."""

    start_ns: Int64s
    end_ns: Int64s
    drain_ns: Int64s


def step_reader(graph: DependencyGraph) -> StepReader:
    """The reader of a graph's steps."""
    spans = graph.steps
    work, position = _work_of_spans(graph)
    working, work_first = np.unique(position, return_index=True)
    after = [s.last_node + 1 if s.first_node >= 0 else -1 for s in spans]
    return StepReader(
        first=_ints([s.first_node for s in spans]),
        after=_ints(after),
        recorded_start_ns=_ints([s.start_ns for s in spans]),
        recorded_end_ns=_ints([s.end_ns for s in spans]),
        late_ns=_ints([max(s.drain_ns - s.end_ns, 0) if s.drain_ns is not None and _had_drained(s) else -1 for s in spans]),
        work=work,
        work_first=work_first.astype(np.int64),
        working=working.astype(np.int64),
        other=_ints([node for s in spans for node in s.other_ends]),
        other_span=_ints([position for position, s in enumerate(spans) for _ in s.other_ends]),
    )


def step_times(graph: DependencyGraph, schedule: Schedule) -> list[StepTime]:
    """Each step of each rank in a schedule, in the order of ``graph.steps``; how they end: ``StepReader.read``."""
    bounds = step_reader(graph).read(schedule)
    columns = (bounds.start_ns.tolist(), bounds.end_ns.tolist(), bounds.drain_ns.tolist())
    return [
        StepTime(span.rank, span.number, start, end, None if drain == NO_DRAIN else drain - start)
        for span, start, end, drain in zip(graph.steps, *columns, strict=True)
    ]


def recorded_step_times(graph: DependencyGraph) -> list[StepTime]:
    """The steps as recorded: the length of their marks."""
    return [
        StepTime(s.rank, s.number, s.start_ns, s.end_ns, None if s.drain_ns is None else s.drain_ns - s.start_ns)
        for s in graph.steps
    ]


def summarise(graph: DependencyGraph, times: list[StepTime]) -> JobSteps:
    """The job's steps: per number that every rank has whole, the longest rank. ``times`` stand in the order of
    ``graph.steps``.
    """
    steps = summarise_each(graph, _ints([t.start_ns for t in times])[None], _ints([t.end_ns for t in times])[None])
    steady_ns = None if steps.steady_ns is None else int(steps.steady_ns[0])
    return JobSteps(steps.numbers, tuple(steps.longest_ns[0].tolist()), int(steps.mean_ns[0]), steady_ns)


def summarise_each(graph: DependencyGraph, start_ns: Int64s, end_ns: Int64s) -> ManyJobSteps:
    """The job's steps in many schedules at once; one row a schedule, one column a span of ``graph.steps``."""
    numbers = graph.step_numbers
    columns = [[i for i, s in enumerate(graph.steps) if s.number == n] for n in numbers]
    longest = np.stack([(end_ns - start_ns)[:, c].max(axis=1) for c in columns], axis=1)
    gaps = []
    for before, after, earlier, later in zip(numbers, numbers[1:], columns, columns[1:], strict=False):
        if after == before + 1:
            last = {graph.steps[i].rank: i for i in earlier}
            gaps.append((end_ns[:, later] - end_ns[:, [last[graph.steps[i].rank] for i in later]]).max(axis=1))
    return ManyJobSteps(numbers, longest, _rounded_mean(longest), _rounded_mean(np.stack(gaps, axis=1)) if gaps else None)


def _rounded_mean(values: Int64s) -> Int64s:
    return np.asarray(np.rint(values.sum(axis=1) / values.shape[1]), np.int64)


def _had_drained(span: StepSpan) -> bool:
    return span.drain_ns is not None and span.drain_ns - span.end_ns <= _DRAINED_SHARE * (span.end_ns - span.start_ns)


def _work_of_spans(graph: DependencyGraph) -> tuple[Int64s, Int64s]:
    """The queue work that steps enqueued, ordered by the span that did, and that span for each."""
    nodes = graph.nodes
    seen = [0] * len(graph.tables)
    width = int(np.bincount(_ints([s.rank for s in graph.steps])).max(initial=0))
    span_of = np.zeros(len(graph.tables) * width, np.int64)
    for position, span in enumerate(graph.steps):
        span_of[span.rank * width + seen[span.rank]] = position
        seen[span.rank] += 1
    queued = np.isin(nodes.kind, (NodeKind.DEVICE, NodeKind.TRANSFER, NodeKind.UNSPLIT)) & (nodes.step >= 0)
    work = np.flatnonzero(queued)
    position = span_of[nodes.rank[work] * width + nodes.step[work]]
    order = np.argsort(position, kind="stable")
    return work[order], position[order]


def _ints(values: list[int]) -> Int64s:
    return np.array(values, np.int64).reshape(-1)
