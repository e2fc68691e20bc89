"""How well a replay on the recorded hardware gives back the recording: in, a graph and its schedule; out, errors and coverage.

Law: with every residue in place each step's error is the sum of what recorded times violate (0 on a consistent trace).
"""

from dataclasses import dataclass

import numpy as np

from tracereplay.graph.lags import residue_tail
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import Timing, recorded_timing, replay
from tracereplay.replay.schedule import Schedule
from tracereplay.replay.steps import StepTime, recorded_step_times, step_times, summarise


@dataclass(frozen=True, slots=True)
class StepError:
    """A step of the job: longest rank recorded and replayed, relative error; device time of earlier work that runs into the
    step, on the rank that took longest.
    """

    number: int
    measured_ns: int
    replayed_ns: int
    error: float
    carry_in_ns: int


@dataclass(frozen=True, slots=True)
class RankError:
    """A rank: mean step recorded and replayed, relative error, 95th percentile of task-start errors in steps."""

    rank: int | None
    measured_ns: int
    replayed_ns: int
    error: float
    start_error_p95: float


@dataclass(frozen=True, slots=True)
class Unexplained:
    """What rules and typical lags do not explain; shares are of the sum of all ranks' step times.

    ``calibrated_error`` is the step's error with every residue replaced by its population's median.
    """

    unexplained_wait_ns: int
    unexplained_wait_share: float
    residue_ns: int
    residue_share: float
    calibrated_error: float


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The result of ``tracereplay replay``."""

    measured_ns: int
    replayed_ns: int
    error: float
    error_max: float
    steady_ns: int | None
    steps: tuple[StepError, ...]
    ranks: tuple[RankError, ...]
    unexplained: Unexplained


def assess(graph: DependencyGraph) -> Accuracy:
    """Replay the graph as recorded and compare each step, rank and task start with the recording."""
    schedule = replay(graph)
    measured, replayed = recorded_step_times(graph), step_times(graph, schedule)
    before, after = summarise(graph, measured), summarise(graph, replayed)
    steps = tuple(
        StepError(n, a, b, _relative(b, a), _carry_in(graph, n))
        for n, a, b in zip(before.numbers, before.longest_ns, after.longest_ns, strict=True)
    )
    return Accuracy(
        measured_ns=before.mean_ns,
        replayed_ns=after.mean_ns,
        error=_relative(after.mean_ns, before.mean_ns),
        error_max=max((abs(s.error) for s in steps), default=0.0),
        steady_ns=after.steady_ns,
        steps=steps,
        ranks=tuple(_rank_error(graph, schedule, r, measured, replayed) for r in range(len(graph.tables))),
        unexplained=_unexplained(graph, before.mean_ns, sum(t.dur_ns for t in measured)),
    )


def _carry_in(graph: DependencyGraph, number: int) -> int:
    mine = [span for span in graph.steps if span.number == number]
    return max(mine, key=lambda span: span.end_ns - span.start_ns).carry_in_ns


def _relative(value: int, reference: int) -> float:
    return value / reference - 1 if reference else 0.0


def _rank_error(
    graph: DependencyGraph, schedule: Schedule, rank: int, measured: list[StepTime], replayed: list[StepTime]
) -> RankError:
    before = [t.dur_ns for t in measured if t.rank == rank]
    after = [t.dur_ns for t in replayed if t.rank == rank]
    mean_before, mean_after = round(sum(before) / len(before)), round(sum(after) / len(after))
    mine = graph.nodes.rank == rank
    shift = np.abs(schedule.start_ns[mine] - graph.nodes.start_ns[mine])
    return RankError(
        graph.rank_numbers[rank],
        mean_before,
        mean_after,
        _relative(mean_after, mean_before),
        float(np.percentile(shift, 95)) / mean_before if mean_before else 0.0,
    )


def _unexplained(graph: DependencyGraph, measured_ns: int, all_steps_ns: int) -> Unexplained:
    residue = graph.nodes.residue_ns
    excess = int(residue[residue > residue_tail(graph.nodes)].clip(min=0).sum())
    excess += graph.coverage.uncovered_blocking_ns
    total = int(np.abs(residue).sum())
    return Unexplained(
        unexplained_wait_ns=excess,
        unexplained_wait_share=excess / all_steps_ns if all_steps_ns else 0.0,
        residue_ns=total,
        residue_share=total / all_steps_ns if all_steps_ns else 0.0,
        calibrated_error=_relative(_calibrated(graph), measured_ns),
    )


def _calibrated(graph: DependencyGraph) -> int:
    waited = np.zeros(len(graph), np.bool_)
    waited[graph.edges.dst] = True
    residue, groups = graph.nodes.residue_ns, graph.nodes.population
    typical = np.zeros_like(residue)
    members = np.flatnonzero(waited)
    members = members[np.argsort(groups[members], kind="stable")]
    for part in np.split(members, np.flatnonzero(np.diff(groups[members])) + 1):
        if part.size:
            typical[part] = int(np.median(residue[part]))
    recorded = recorded_timing(graph)
    schedule = replay(graph, Timing(recorded.dur_ns, recorded.lag_ns, typical, recorded.release_ns))
    return summarise(graph, step_times(graph, schedule)).mean_ns
