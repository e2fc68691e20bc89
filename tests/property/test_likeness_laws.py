"""Laws of the same work, of ``--ideal stragglers`` and of held-out steps, on small random jobs."""

import copy
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.simulated import jobs, wild_jobs
from tracereplay.graph.likeness import find_likeness
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import replay
from tracereplay.replay.ideal import without_stragglers
from tracereplay.replay.steps import step_times

LAW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def build(traces: list[TraceFile]) -> DependencyGraph:
    with tempfile.TemporaryDirectory() as folder:
        return graph_of(Path(folder), *traces)


def as_rank(trace: TraceFile, rank: int, world: int) -> TraceFile:
    """The same trace as that of another rank."""
    twin = copy.deepcopy(trace)
    twin.rank = rank
    twin.header["distributedInfo"] |= {"rank": rank, "world_size": world}
    return twin


def ideal_steps(graph: DependencyGraph) -> list[int]:
    return [t.dur_ns for t in step_times(graph, replay(graph, without_stragglers(graph).timing))]


@LAW
@given(jobs())
def test_ranks_that_do_the_same_at_the_same_times_stay_as_they_are(traces: list[TraceFile]) -> None:
    graph = build([as_rank(traces[0], rank, 3) for rank in range(3)])

    schedule = replay(graph, without_stragglers(graph).timing)

    np.testing.assert_array_equal(schedule.start_ns, replay(graph).start_ns)


@LAW
@given(jobs())
def test_the_order_of_ranks_changes_nothing(traces: list[TraceFile]) -> None:
    world = len(traces)
    turned = [as_rank(trace, world - 1 - rank, world) for rank, trace in enumerate(traces)]

    assert ideal_steps(build(traces)) == ideal_steps(build(turned[::-1]))[::-1]


@LAW
@given(jobs() | wild_jobs())
def test_each_role_occurs_once_in_a_step_of_a_rank(traces: list[TraceFile]) -> None:
    graph = build(traces)

    likeness = find_likeness(graph)

    keys = np.stack([graph.nodes.rank, likeness.step, likeness.role])
    assert np.unique(keys, axis=1).shape[1] == len(graph)


@LAW
@given(jobs() | wild_jobs())
def test_without_stragglers_no_task_starts_before_what_it_waits_for(traces: list[TraceFile]) -> None:
    graph = build(traces)

    schedule = replay(graph, without_stragglers(graph).timing)

    edges = graph.edges
    bounds = np.where(edges.from_start, schedule.start_ns[edges.src], schedule.end_ns[edges.src])
    assert (schedule.start_ns[edges.dst] - bounds).min(initial=0) >= 0
