"""Many scenarios of one graph: in, a graph and a stream of timings; out, the steps of each, never the schedules.

Timings are taken from their iterator one at a time and the schedule's columns are written again for each, so memory is
that of one scenario plus 24 bytes a scenario and step: a generator of a million timings runs in the memory of one. Who
needs whole schedules maps ``engine.replay`` over the timings and keeps what is wanted of each.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import Timing, blank_schedule, replay_into
from tracereplay.replay.steps import ManyJobSteps, StepBounds, step_reader, summarise_each
from tracereplay.trace.times import Int64s


@dataclass(frozen=True, slots=True)
class ScenarioSteps:
    """The steps of many scenarios: a row a scenario, a column a span of ``graph.steps``, times in ns.

    ``drain_ns`` is when the work that the step enqueued has ended, ``steps.NO_DRAIN`` where it enqueued none; ``job``
    the job's step times, a row a scenario.
    """

    start_ns: Int64s
    end_ns: Int64s
    drain_ns: Int64s
    job: ManyJobSteps

    def __len__(self) -> int:
        return int(self.start_ns.shape[0])


def replay_steps(graph: DependencyGraph, timings: Iterable[Timing]) -> ScenarioSteps:
    """The steps of each timing, in order: the same as ``step_times(graph, replay(graph, timing))`` for each.

    Raises:
        UsageError: a timing is not of this graph, or not in whole nanoseconds.
    """
    reader, schedule = step_reader(graph), blank_schedule(graph)
    rows: list[StepBounds] = []
    for timing in timings:
        replay_into(schedule, graph, timing)
        rows.append(reader.read(schedule))
    shape = (len(rows), len(graph.steps))
    start_ns = np.array([r.start_ns for r in rows], np.int64).reshape(shape)
    end_ns = np.array([r.end_ns for r in rows], np.int64).reshape(shape)
    drain_ns = np.array([r.drain_ns for r in rows], np.int64).reshape(shape)
    return ScenarioSteps(start_ns, end_ns, drain_ns, summarise_each(graph, start_ns, end_ns))
