import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.fakes.graphs import Edge, Task, graph_by_hand
from tracereplay.errors import UsageError
from tracereplay.graph.kinds import EdgeKind, NodeKind
from tracereplay.graph.model import DependencyGraph, StepSpan
from tracereplay.replay.batch import replay_steps
from tracereplay.replay.engine import Timing, recorded_timing, replay
from tracereplay.replay.schedule import Schedule
from tracereplay.replay.steps import NO_DRAIN, step_reader, step_times, summarise

#   rank 0   |-- a 10 --|-- b 20 --|closing   kernel of a: starts 5 after a's start, 30 long
#   rank 1   |---- c 25 ----|closing
A, B, CLOSE_0, KERNEL, C, CLOSE_1 = range(6)


def two_ranks() -> DependencyGraph:
    tasks = [
        Task(0, 10, release=0),
        Task(10, 20),
        Task(35, 0),
        Task(5, 30, NodeKind.DEVICE),
        Task(0, 25, rank=1, release=0),
        Task(25, 0, rank=1),
    ]
    edges = [
        Edge(A, B),
        Edge(B, CLOSE_0),
        Edge(A, KERNEL, 5, from_start=True, kind=EdgeKind.LAUNCH),
        Edge(KERNEL, CLOSE_0, kind=EdgeKind.SYNC),
        Edge(C, CLOSE_1),
    ]
    return graph_by_hand(tasks, edges, [StepSpan(0, 7, A, B, 0, 35, 35, 0), StepSpan(1, 7, C, C, 0, 25, None, 0)])


def scaled(graph: DependencyGraph, factors: list[int]) -> Timing:
    return replace(recorded_timing(graph), dur_ns=graph.nodes.dur_ns * np.array(factors))


def test_each_scenario_has_its_steps_by_hand() -> None:
    graph = two_ranks()
    timings = [recorded_timing(graph), scaled(graph, [1, 1, 1, 2, 1, 1]), scaled(graph, [1, 3, 1, 1, 4, 1])]

    steps = replay_steps(graph, timings)

    # Recorded; the kernel twice as long: 5 + 60; b three times as long: 10 + 60, c four times: 100.
    assert steps.start_ns.tolist() == [[0, 0], [0, 0], [0, 0]]
    assert steps.end_ns.tolist() == [[35, 25], [65, 25], [70, 100]]
    assert steps.drain_ns.tolist() == [[35, NO_DRAIN], [65, NO_DRAIN], [35, NO_DRAIN]]
    assert steps.job.longest_ns.tolist() == [[35], [65], [100]]
    assert steps.job.mean_ns.tolist() == [35, 65, 100]
    assert steps.job.steady_ns is None


def test_a_batch_says_what_each_replay_says_of_its_own() -> None:
    graph = two_ranks()
    rng = np.random.default_rng(5)
    timings = [scaled(graph, rng.integers(0, 9, 6).tolist()) for _ in range(40)]

    steps = replay_steps(graph, timings)

    for row, timing in enumerate(timings):
        alone = step_times(graph, replay(graph, timing))
        assert list(zip(steps.start_ns[row].tolist(), steps.end_ns[row].tolist(), strict=True)) == [
            (t.start_ns, t.end_ns) for t in alone
        ]
        assert steps.job.mean_ns[row] == summarise(graph, alone).mean_ns


def test_a_scenario_leaves_nothing_behind_for_the_next() -> None:
    graph = two_ranks()
    recorded = recorded_timing(graph)
    longer = scaled(graph, [9, 9, 9, 9, 9, 9])

    assert replay_steps(graph, [recorded, longer, recorded]).end_ns.tolist()[::2] == [[35, 25], [35, 25]]


def test_no_scenario_gives_no_rows() -> None:
    steps = replay_steps(two_ranks(), [])

    assert len(steps) == 0
    assert steps.end_ns.shape == (0, 2)
    assert steps.job.longest_ns.shape == (0, 1)


def test_memory_does_not_grow_with_the_number_of_scenarios() -> None:
    count = 20_000
    tasks = [Task(0, 1, release=0), *(Task(n, 1) for n in range(1, count))]
    graph = graph_by_hand(
        tasks, [Edge(n, n + 1) for n in range(count - 1)], [StepSpan(0, 1, 0, count - 2, 0, count - 1, None, 0)]
    )

    def stream(scenarios: int) -> Iterator[Timing]:
        for factor in range(1, scenarios + 1):
            yield replace(recorded_timing(graph), dur_ns=graph.nodes.dur_ns * factor)

    def peak_bytes(scenarios: int) -> int:
        tracemalloc.start()
        replay_steps(graph, stream(scenarios))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    replay_steps(graph, stream(1))  # compiles

    # 198 more scenarios are 198 rows, not 198 schedules of 480,000 bytes.
    assert peak_bytes(200) - peak_bytes(2) < 480_000


@pytest.mark.parametrize("column", ["dur_ns", "lag_ns", "residue_ns", "release_ns"])
def test_a_timing_of_another_graph_is_refused(column: str) -> None:
    graph = two_ranks()
    short = replace(recorded_timing(graph), **{column: np.zeros(3, np.int64)})

    with pytest.raises(UsageError, match=rf"a timing's {column} is int64\[3\], the graph needs int64\[\d\]"):
        replay_steps(graph, [short])


def test_a_timing_in_fractions_of_a_nanosecond_is_refused() -> None:
    graph = two_ranks()
    halves = replace(recorded_timing(graph), dur_ns=graph.nodes.dur_ns * 0.5)  # type: ignore[arg-type]

    with pytest.raises(UsageError, match="round to whole nanoseconds"):
        replay(graph, halves)


def test_a_rank_without_host_events_has_its_recorded_start_and_ends_with_its_work() -> None:
    graph = graph_by_hand([Task(10, 30, NodeKind.DEVICE, release=10)], [], [StepSpan(0, 2, -1, -1, 5, 40, 40, 0)])

    steps = replay_steps(graph, [recorded_timing(graph), replace(recorded_timing(graph), dur_ns=np.array([50]))])

    assert (steps.start_ns.tolist(), steps.end_ns.tolist()) == ([[5], [5]], [[40], [60]])


def test_a_graph_without_tasks_keeps_its_recorded_step() -> None:
    graph = graph_by_hand([Task(10, 30)], [])
    none = np.zeros(0, np.int64)
    steps = step_reader(replace(graph, steps=(StepSpan(0, 2, -1, -1, 5, 40, None, 0),))).read(Schedule(none, none, none))

    assert (steps.start_ns.tolist(), steps.end_ns.tolist(), steps.drain_ns.tolist()) == ([5], [40], [NO_DRAIN])
