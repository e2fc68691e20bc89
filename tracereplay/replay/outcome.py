"""The steps of a scenario and how sure they are: in, a graph, a scenario, a move to other hardware; out, steps and interval.

Two things leave a step open: collectives whose waiting and transfer cannot be told apart (bounds without a level), and the
known errors of the models of hardware (an interval of ``LEVEL``, from samples of them).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.batch import replay_steps
from tracereplay.replay.engine import Timing, replay
from tracereplay.replay.move import LEVEL, Move
from tracereplay.replay.schedule import Schedule
from tracereplay.replay.sharing import on_links
from tracereplay.replay.steps import JobSteps, StepTime, step_times, summarise
from tracereplay.replay.uncertainty import SAMPLES, sampled
from tracereplay.replay.whatif import Scenario
from tracereplay.trace.times import Int64s

# An event loop takes some 3 µs a task: 64 of them on so many tasks take ten seconds.
SHARED_ANEW = 50_000


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of a prediction; ``level`` is None where they are bounds and not a confidence."""

    low_ns: int
    high_ns: int
    level: float | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A scenario replayed: its schedule, the steps of every rank in it and under the other readings of what cannot be split,
    the job's steps. ``known``: one number is the answer, not an interval alone. ``timing``: with the time that transfers take
    among the others on their links.
    """

    timing: Timing
    schedule: Schedule
    after: list[StepTime]
    others: list[list[StepTime]]
    steps: JobSteps
    known: bool
    interval: Interval | None


def outcome(
    graph: DependencyGraph, scenario: Scenario, move: Move | None = None, samples: int = SAMPLES, *, share_anew: bool = False
) -> Outcome:
    """The steps of a scenario; with a ``move`` its known errors, drawn ``samples`` times and replayed, widen the interval.
    ``share_anew``: transfers share links in each sample as they overlap there, in graphs of up to ``SHARED_ANEW`` tasks; else
    as in the answer, which is an event loop a sample less.
    """
    share_anew = share_anew and len(graph) <= SHARED_ANEW
    asked, sharing = scenario.timing, None if move is None else move.sharing
    scenario = on_links(graph, scenario, sharing)
    schedule = replay(graph, scenario.timing)
    after = step_times(graph, schedule)
    steps = summarise(graph, after)
    others = _other_steps(graph, scenario, after)
    bounds = hull([steps.mean_ns, *(summarise(graph, times).mean_ns for times in others)])
    errors = None
    if move is not None:
        timings = sampled(asked if share_anew else scenario.timing, move, samples)
        if share_anew and sharing is not None:
            timings = (sharing.applied(graph, one) for one in timings)
        errors = interval_of(replay_steps(graph, timings).job.mean_ns, steps.mean_ns)
    widened = errors if bounds is None else _wider(bounds, errors, steps.mean_ns)
    return Outcome(scenario.timing, schedule, after, others, steps, bounds is None, widened)


def hull(readings_ns: list[int]) -> Interval | None:
    """The extremes of several readings; None where there is only one."""
    return Interval(min(readings_ns), max(readings_ns), None) if len(readings_ns) > 1 else None


def _other_steps(graph: DependencyGraph, scenario: Scenario, after: list[StepTime]) -> list[list[StepTime]]:
    """The steps under the scenario's other readings; none where no collective is touched and all agree on every step."""
    others = [step_times(graph, replay(graph, timing)) for timing in scenario.unsplit]
    alike = all([t.dur_ns for t in times] == [t.dur_ns for t in after] for times in others)
    return [] if alike and not scenario.unsplit_touched else others


def interval_of(sampled_ns: Sequence[int] | Int64s, predicted_ns: int) -> Interval:
    """Between which bounds ``LEVEL`` of the sampled answers lie, the answer itself included."""
    low, high = np.quantile(np.asarray(sampled_ns), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(min(round(float(low)), predicted_ns), max(round(float(high)), predicted_ns), LEVEL)


def _wider(bounds: Interval, errors: Interval | None, reading_ns: int) -> Interval:
    """Bounds of what is not recorded, on either side widened by the models' errors around the reading that they were drawn for:
    either may be, so both may. No level holds for them.
    """
    if errors is None:
        return bounds
    low_ns, high_ns = bounds.low_ns - (reading_ns - errors.low_ns), bounds.high_ns + (errors.high_ns - reading_ns)
    return Interval(max(low_ns, 0), high_ns, None)
