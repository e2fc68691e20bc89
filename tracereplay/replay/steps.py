"""Step times of a schedule, as the contract defines them: in, a graph and a schedule; out, times a step and a rank."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph, StepSpan
from tracereplay.replay.schedule import Schedule
from tracereplay.trace.times import Int64s

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
    """The steps that every rank has whole: per number the longest rank's time, their mean, the steady-state time."""

    numbers: tuple[int, ...]
    longest_ns: tuple[int, ...]
    mean_ns: int
    steady_ns: int | None


def step_times(graph: DependencyGraph, schedule: Schedule) -> list[StepTime]:
    """Each step of each rank. A step ends at its mark or, where its recorded work had drained by then (within 1 % of the
    step), when its work has drained.
    """
    drains = _drains(graph, schedule.end_ns)
    times = []
    for position, span in enumerate(graph.steps):
        drain = drains[position]
        start, end = _marks(span, schedule, drain)
        if span.first_node >= 0 and drain is not None and span.drain_ns is not None and _had_drained(span):
            end = max(end, drain - max(span.drain_ns - span.end_ns, 0))
        times.append(StepTime(span.rank, span.number, start, end, None if drain is None else drain - start))
    return times


def _marks(span: StepSpan, schedule: Schedule, drain_ns: int | None) -> tuple[int, int]:
    """Where the main thread enters and leaves a step; without host events from the recorded start to the end of the work."""
    if span.first_node < 0:
        return span.start_ns, span.end_ns if drain_ns is None else drain_ns
    return int(schedule.start_ns[span.first_node]), int(schedule.start_ns[span.last_node + 1])


def recorded_step_times(graph: DependencyGraph) -> list[StepTime]:
    """The steps as recorded: the length of their marks."""
    return [
        StepTime(s.rank, s.number, s.start_ns, s.end_ns, None if s.drain_ns is None else s.drain_ns - s.start_ns)
        for s in graph.steps
    ]


def summarise(graph: DependencyGraph, times: list[StepTime]) -> JobSteps:
    """The job's steps: per number that every rank has whole, the longest rank."""
    numbers = graph.step_numbers
    by_number = {n: [t for t in times if t.number == n] for n in numbers}
    longest = tuple(max(t.dur_ns for t in by_number[n]) for n in numbers)
    return JobSteps(numbers, longest, round(sum(longest) / len(longest)), _steady(numbers, by_number))


def _steady(numbers: tuple[int, ...], by_number: dict[int, list[StepTime]]) -> int | None:
    """Mean over consecutive steps of the longest rank's time from end to end; None without two of them."""
    gaps = []
    for before, after in pairwise(numbers):
        if after != before + 1:
            continue
        ends = {t.rank: t.end_ns for t in by_number[before]}
        gaps.append(max(t.end_ns - ends[t.rank] for t in by_number[after]))
    return round(sum(gaps) / len(gaps)) if gaps else None


def _had_drained(span: StepSpan) -> bool:
    return span.drain_ns is not None and span.drain_ns - span.end_ns <= _DRAINED_SHARE * (span.end_ns - span.start_ns)


def _drains(graph: DependencyGraph, end_ns: Int64s) -> list[int | None]:
    """For each step span the end of the last queue work that it enqueued; None without such work."""
    nodes = graph.nodes
    queued = np.isin(nodes.kind, (NodeKind.DEVICE, NodeKind.TRANSFER, NodeKind.UNSPLIT)) & (nodes.step >= 0)
    spans: dict[tuple[int, int], int] = {}
    seen = [0] * len(graph.tables)
    for position, span in enumerate(graph.steps):
        spans[span.rank, seen[span.rank]] = position
        seen[span.rank] += 1
    low = np.iinfo(np.int64).min
    latest = np.full(len(graph.steps), low, np.int64)
    width = max(seen, default=1)
    slot = np.full(len(graph.tables) * width, 0, np.int64)
    for (rank, number), position in spans.items():
        slot[rank * width + number] = position
    chosen = np.flatnonzero(queued)
    np.maximum.at(latest, slot[nodes.rank[chosen] * width + nodes.step[chosen]], end_ns[chosen])
    return [None if value == low else int(value) for value in latest]
