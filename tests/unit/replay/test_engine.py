from dataclasses import replace

import numpy as np

from tests.fakes.graphs import Edge, Task, graph_by_hand
from tracereplay.graph.kinds import EdgeKind, NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import Timing, recorded_timing, replay
from tracereplay.replay.schedule import RELEASED, Schedule

#   host     |launch A|----launch B----|sync|..........|rest|
#   stream     `5|------------A-----------|2|--B--|`3
LAUNCH_A, LAUNCH_B, SYNC, A, B, REST = range(6)
EDGES = [
    Edge(LAUNCH_A, LAUNCH_B),
    Edge(LAUNCH_B, SYNC),
    Edge(LAUNCH_A, A, 5, from_start=True, kind=EdgeKind.LAUNCH),
    Edge(LAUNCH_B, B, 5, from_start=True, kind=EdgeKind.LAUNCH),
    Edge(A, B, 2, kind=EdgeKind.STREAM_ORDER),
    Edge(SYNC, REST),
    Edge(B, REST, 3, kind=EdgeKind.SYNC),
]


def six_tasks(rest: Task | None = None) -> DependencyGraph:
    tasks = [
        Task(0, 10, release=0),
        Task(10, 20),
        Task(30, 4),
        Task(5, 40, NodeKind.DEVICE),
        Task(47, 10, NodeKind.DEVICE),
        rest or Task(60, 6),
    ]
    return graph_by_hand(tasks, EDGES)


def deciders(graph: DependencyGraph, schedule: Schedule) -> list[int | None]:
    """For each task the one that it waited for, None for a pinned one."""
    return [None if e == RELEASED else int(graph.edges.src[e]) for e in schedule.waited_for]


def test_a_whole_schedule_of_six_tasks() -> None:
    graph = six_tasks()

    schedule = replay(graph)

    assert schedule.start_ns.tolist() == [0, 10, 30, 5, 47, 60]
    assert schedule.end_ns.tolist() == [10, 30, 34, 45, 57, 66]
    assert deciders(graph, schedule) == [None, LAUNCH_A, LAUNCH_B, LAUNCH_A, A, B]


def test_a_shorter_kernel_moves_what_waits_for_it_until_another_reason_holds() -> None:
    graph = six_tasks()
    recorded = recorded_timing(graph)
    dur_ns = np.array([10, 20, 4, 10, 10, 6], np.int64)

    schedule = replay(graph, replace(recorded, dur_ns=dur_ns))

    # A ends at 15, B waits 2 for it, the rest 3 for B at 27: the synchronising call at 34 is later.
    assert schedule.start_ns.tolist() == [0, 10, 30, 5, 17, 34]
    assert deciders(graph, schedule) == [None, LAUNCH_A, LAUNCH_B, LAUNCH_A, A, SYNC]


def test_a_residue_shifts_a_start() -> None:
    assert replay(six_tasks(Task(60, 6, residue=4))).start_ns[REST] == 64


def test_a_negative_residue_starts_a_task_earlier_than_the_lags_say() -> None:
    assert replay(six_tasks(Task(60, 6, residue=-2))).start_ns[REST] == 58


def test_no_task_starts_before_what_it_waits_for_however_negative_its_residue() -> None:
    graph = six_tasks(Task(60, 6, residue=-10))

    schedule = replay(graph)

    assert (schedule.start_ns[REST], deciders(graph, schedule)[REST]) == (57, B)


def test_a_release_holds_a_task_back() -> None:
    graph = six_tasks(Task(60, 6, release=100))

    schedule = replay(graph)

    assert (schedule.start_ns[REST], schedule.waited_for[REST]) == (100, RELEASED)


def test_a_release_that_has_passed_holds_nothing_back() -> None:
    assert replay(six_tasks(Task(60, 6, release=20))).start_ns[REST] == 60


def test_of_equal_reasons_the_first_edge_decides() -> None:
    graph = graph_by_hand([Task(0, 5, release=0), Task(0, 5, release=0), Task(5, 1)], [Edge(1, 2), Edge(0, 2)])

    assert deciders(graph, replay(graph))[2] == 0


def test_a_lag_from_a_start_counts_from_the_start() -> None:
    graph = graph_by_hand([Task(0, 50, release=0), Task(7, 5)], [Edge(0, 1, 7, from_start=True)])

    assert replay(graph).start_ns.tolist() == [0, 7]


def test_a_scenario_leaves_the_graph_as_it_is() -> None:
    graph = six_tasks()
    timing = Timing(graph.nodes.dur_ns * 2, graph.edges.lag_ns * 2, graph.nodes.residue_ns, graph.nodes.release_ns)

    replay(graph, timing)

    assert replay(graph).end_ns.tolist() == [10, 30, 34, 45, 57, 66]
