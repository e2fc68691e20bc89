from pathlib import Path

import numpy as np

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.workloads import LAUNCH, late_peer, uneven_ranks
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import recorded_timing, replay
from tracereplay.replay.ideal import Equalised, without_stragglers
from tracereplay.replay.steps import StepTime, step_times


def ideal_steps(graph: DependencyGraph) -> list[StepTime]:
    return step_times(graph, replay(graph, without_stragglers(graph).timing))


def test_three_ranks_slow_in_different_ways_take_the_median_of_each_work(tmp_path: Path) -> None:
    # The median rank: a 20 µs, kernel 30 µs, entry at 0: 10 + 20 + 10 + launch, kernel 10 later, + 30 + 2 + 20 = 102.
    # Rank 2 keeps x and the gaps around it: 25 µs where the others have a gap of 10.
    graph = graph_of(tmp_path, *uneven_ranks())

    steps = ideal_steps(graph)

    assert [(s.start_ns, s.dur_ns) for s in steps] == [(0, 102_000), (0, 102_000), (0, 117_000)]


def test_what_was_compared_kept_and_entered_otherwise_is_counted(tmp_path: Path) -> None:
    # Compared on ranks 0 and 1: two gaps around a, a, the launch, the gap behind it, the gap at the end, the kernel; on
    # rank 2 all but the gap between a and the launch. Of 375 µs of work on the host and the device 25 are kept.
    graph = graph_of(tmp_path, *uneven_ranks())

    found = without_stragglers(graph)

    assert found.equalised == Equalised(compared=20, kept=3, kept_ns=25_000, kept_share=25 / 375, entries=1)
    assert (found.late_before_ns.tolist(), found.late_after_ns.tolist()) == ([0, 0, 30_000], [0, 0, 0])


def test_a_late_start_of_device_work_takes_the_median_lag(tmp_path: Path) -> None:
    # Launch latencies 10, 10 and 40 µs.
    traces = [
        TraceFile(r, 3).step(1, 0, 100).call(LAUNCH, 10, 5, 1).kernel("gemm", 20 + late, 20, 7, 1)
        for r, late in enumerate((0, 0, 30))
    ]
    graph = graph_of(tmp_path, *traces)

    schedule = replay(graph, without_stragglers(graph).timing)

    kernels = np.flatnonzero(graph.nodes.dur_ns == 20_000)
    assert schedule.start_ns[kernels].tolist() == [20_000, 20_000, 20_000]


def test_transfers_are_kept_and_waits_follow(tmp_path: Path) -> None:
    # Both launch at 35, the mean of 10 and 60; the all-reduce arrives at 45 and transfers its 50 µs until 95; the
    # synchronisation returns at 100, and 75 µs follow.
    graph = graph_of(tmp_path, *late_peer())

    found = without_stragglers(graph)
    schedule = replay(graph, found.timing)

    collective = graph.collectives[0]
    assert schedule.start_ns[[*collective.arrivals, *collective.transfers]].tolist() == [45_000] * 4
    assert schedule.end_ns[list(collective.transfers)].tolist() == [95_000, 95_000]
    assert [s.dur_ns for s in step_times(graph, schedule)] == [175_000, 175_000]


def test_what_else_is_pinned_moves_with_the_entry_of_its_rank(tmp_path: Path) -> None:
    # Only rank 2 has a helper thread; it enters the step 30 µs after the others.
    traces = [TraceFile(r, 3).step(1, e, 100).op("a", e + 10, 5) for r, e in enumerate((0, 0, 30))]
    traces[2].op("poll", 80, 10, tid=9)
    graph = graph_of(tmp_path, *traces)

    schedule = replay(graph, without_stragglers(graph).timing)

    (poll,) = np.flatnonzero([graph.name_of(n) == "poll" for n in range(len(graph))])
    assert (graph.nodes.start_ns[poll], schedule.start_ns[poll]) == (80_000, 50_000)


def test_a_rank_alone_stays_as_it_is(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, uneven_ranks()[0])

    timing, recorded = without_stragglers(graph).timing, recorded_timing(graph)

    assert timing.dur_ns.tolist() == recorded.dur_ns.tolist()
    assert replay(graph, timing).start_ns.tolist() == graph.nodes.start_ns.tolist()


def test_only_steps_of_one_number_are_compared(tmp_path: Path) -> None:
    # Rank 0 is slow in step 1 and rank 1 in step 2: 10 and 30 µs give 20 in both, not a median over steps.
    one = TraceFile(0, 2).step(1, 0, 100).op("a", 10, 30).step(2, 100, 100).op("a", 110, 10)
    other = TraceFile(1, 2).step(1, 0, 80).op("a", 10, 10).step(2, 80, 120).op("a", 90, 50)
    graph = graph_of(tmp_path, one, other)

    found = without_stragglers(graph)

    operators = np.flatnonzero([graph.name_of(n) == "a" for n in range(len(graph))])
    assert found.timing.dur_ns[operators].tolist() == [20_000, 30_000, 20_000, 30_000]
