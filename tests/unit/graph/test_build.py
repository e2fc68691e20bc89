from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fakes.jobs import graph_of, job_of
from tests.fakes.kineto import TraceFile
from tests.fakes.labels import tasks_of
from tracereplay.analyzers.attribution import attribute
from tracereplay.errors import TraceError
from tracereplay.graph.build import build_graph
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import NO_RELEASE, DependencyGraph
from tracereplay.replay.engine import replay
from tracereplay.replay.steps import step_times
from tracereplay.replay.whatif import apply, parse_scale
from tracereplay.trace.classify import WorkClass

LAUNCH = "cudaLaunchKernel"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def assert_ordered(graph: DependencyGraph) -> None:
    """Every node stands in the order once, after everything that it waits for."""
    assert sorted(graph.replay_order.tolist()) == list(range(len(graph)))
    place = np.argsort(graph.replay_order)
    assert (place[graph.edges.src] < place[graph.edges.dst]).all()


def test_host_segments_and_device_work_are_tasks_with_their_own_time(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile().step(1, 0, 100).call(LAUNCH, 10, 5, 1).kernel("k", 20, 30, 7, 1))

    assert tasks_of(graph) == {
        "ProfilerStep#1@0": 10_000,
        "cudaLaunchKernel@10": 5_000,
        "ProfilerStep#1@15": 85_000,
        "k@20": 30_000,
    }


def test_with_device_work_the_host_carries_no_classes(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile().step(1, 0, 100).op("aten::mm", 10, 5).kernel("volta_sgemm", 20, 30, 7))

    assert graph.host_carries_classes is False
    assert graph.nodes.work_class.tolist() == [WorkClass.HOST] * 4 + [WorkClass.GEMM]


def test_without_device_work_operators_carry_the_classes(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).op("aten::mm", 10, 5).op("c10d::allreduce_", 20, 5).annotation("aten::add", 30, 5)

    graph = graph_of(tmp_path, trace)

    classes = {graph.name_of(n): WorkClass(graph.nodes.work_class[n]) for n in range(len(graph))}
    assert classes == {
        "ProfilerStep#1": WorkClass.HOST,
        "aten::mm": WorkClass.GEMM,
        "c10d::allreduce_": WorkClass.OTHER,
        "aten::add": WorkClass.HOST,
        "gap": WorkClass.HOST,
    }


def test_copies_and_memory_sets_are_classed_by_role_whatever_their_name(tmp_path: Path) -> None:
    trace = TraceFile().op("a", 0, 10).memcpy("gemm", 1, 1, stream=7).memset("gemm", 3, 1, stream=7).kernel("gemm", 5, 1, 7)

    graph = graph_of(tmp_path, trace)

    device = graph.nodes.kind == NodeKind.DEVICE
    assert graph.nodes.work_class[device].tolist() == [WorkClass.COPY, WorkClass.MEMSET, WorkClass.GEMM]


def test_what_nothing_precedes_is_pinned_to_its_recorded_start(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile().step(1, 0, 100).op("a", 10, 5).kernel("k", 20, 30, 7).kernel("l", 60, 5, 7))

    released = {graph.name_of(n): int(t) for n, t in enumerate(graph.nodes.release_ns) if t != NO_RELEASE}
    assert released == {"ProfilerStep#1": 0, "k": 20_000}
    assert graph.coverage.unlinked_work == 2


def test_work_whose_call_lies_before_the_window_is_linked_all_the_same(tmp_path: Path) -> None:
    # The call is in step 1, which is not built; the second kernel has no call at all.
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 80, 5, 1).step(2, 100, 100).op("a", 110, 5)
    job = job_of(tmp_path, trace.kernel("k", 90, 40, 7, 1).kernel("l", 150, 5, 7))

    graph = build_graph(job, steps=frozenset({2}))

    assert np.count_nonzero(graph.nodes.kind == NodeKind.DEVICE) == 2
    assert graph.coverage.unlinked_work == 1


def test_a_thread_that_nobody_hands_work_to_is_counted(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile().step(1, 0, 100).op("a", 20, 5, tid=2).op("b", 30, 5, tid=3))

    assert graph.coverage.pinned_threads == 2


def test_a_step_knows_when_the_work_it_enqueued_had_drained(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 10, 5, 1).kernel("k", 20, 130, 7, 1).step(2, 100, 100).op("a", 110, 5)

    graph = graph_of(tmp_path, trace)

    assert [(s.number, s.drain_ns) for s in graph.steps] == [(1, 150_000), (2, None)]


def test_work_of_an_earlier_step_that_runs_into_one_is_carried_in(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 80, 5, 1).kernel("k", 90, 40, 7, 1).step(2, 100, 100).op("a", 110, 5)

    graph = graph_of(tmp_path, trace)

    assert [s.carry_in_ns for s in graph.steps] == [0, 30_000]


def test_work_of_an_earlier_step_that_overlaps_counts_once_and_only_within_the_step(tmp_path: Path) -> None:
    # Streams 7 and 8 run from 90 to 130 and from 120 to 150, stream 9 from 180 to 260: 100–150 and 180–200 of step 2.
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 70, 5, 1).call(LAUNCH, 80, 5, 2).call(LAUNCH, 90, 5, 3)
    trace.kernel("k", 90, 40, 7, 1).kernel("l", 120, 30, 8, 2).kernel("m", 180, 80, 9, 3).step(2, 100, 100).op("a", 110, 5)

    graph = graph_of(tmp_path, trace)

    assert [s.carry_in_ns for s in graph.steps] == [0, 70_000]


def test_a_step_reaches_from_its_first_task_to_the_last_that_ends_by_its_mark(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile().step(1, 0, 100).op("a", 10, 5).step(2, 120, 50).op("b", 130, 5))

    starts, ends = graph.nodes.start_ns, graph.nodes.start_ns + graph.nodes.dur_ns
    assert [starts[s.first_node] for s in graph.steps] == [0, 120_000]
    assert [ends[s.last_node] for s in graph.steps] == [100_000, 170_000]


def test_only_the_steps_asked_for_are_built(tmp_path: Path) -> None:
    job = job_of(tmp_path, TraceFile().step(1, 0, 50).op("a", 10, 5).step(2, 50, 50).op("b", 60, 5))

    graph = build_graph(job, steps=frozenset({2}))

    assert graph.step_numbers == (2,)


def test_ranks_without_a_common_step_are_refused(tmp_path: Path) -> None:
    first, second = TraceFile(0).step(1, 0, 50).op("a", 10, 5), TraceFile(1).step(2, 0, 50).op("a", 10, 5)

    with pytest.raises(TraceError, match=r"no whole step in common \(.*rank0\.json: \[1\]; .*rank1\.json: \[2\]\)"):
        graph_of(tmp_path, first, second)


def test_steps_that_one_rank_lacks_are_no_steps_of_the_job(tmp_path: Path) -> None:
    first = TraceFile(0).step(1, 0, 50).op("a", 10, 5).step(2, 50, 50).op("b", 60, 5)
    second = TraceFile(1).step(2, 0, 50).op("a", 10, 5)

    assert graph_of(tmp_path, first, second).step_numbers == (2,)


def test_edges_that_would_close_a_circle_are_dropped_and_counted(tmp_path: Path) -> None:
    # The ranks run the two groups' collectives in opposite order: each would have to wait for the other.
    one: dict[str, Any] = {"Process Group Name": "1", "Seq": 1}
    two: dict[str, Any] = {"Process Group Name": "2", "Seq": 1}
    first = TraceFile(0, 2, host_name="node0").step(1, 0, 100)
    second = TraceFile(1, 2, host_name="node0").step(1, 0, 100)
    first.kernel(ALL_REDUCE, 10, 10, 7, **one).kernel(ALL_REDUCE, 30, 10, 7, **two)
    second.kernel(ALL_REDUCE, 10, 10, 7, **two).kernel(ALL_REDUCE, 30, 10, 7, **one)

    graph = graph_of(tmp_path, first, second)

    assert [c.group for c in graph.collectives if c.rendezvous is not None] == ["1", "2"]
    assert graph.coverage.dropped_edges == 2
    assert_ordered(graph)


def test_a_consistent_trace_drops_nothing_and_violates_nothing(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile().step(1, 0, 100).call(LAUNCH, 10, 5, 1).kernel("k", 20, 30, 7, 1))

    assert (graph.coverage.dropped_edges, graph.coverage.clock_violations, graph.coverage.refuted) == (0, 0, 0)


def test_work_that_starts_before_its_launch_violates_the_clock(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile().step(1, 0, 100).call(LAUNCH, 10, 5, 1).kernel("k", 8, 30, 7, 1))

    assert graph.coverage.clock_violations == 1


def test_edges_are_counted_by_kind_and_basis(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile().step(1, 0, 100).call(LAUNCH, 10, 5, 1).kernel("k", 20, 30, 7, 1))

    edges = graph.coverage.edges
    assert edges["thread_order"] == {"recorded": 3, "inferred": 0}
    assert edges["launch"] == {"recorded": 1, "inferred": 0}
    assert edges["sync"] == {"recorded": 0, "inferred": 0}


def test_events_that_overlap_on_a_thread_and_events_outside_steps_are_counted(tmp_path: Path) -> None:
    trace = TraceFile().op("outside", 0, 5).step(1, 10, 100).op("a", 20, 20).op("b", 30, 20)

    coverage = graph_of(tmp_path, trace).coverage

    assert (coverage.overlapping_events, coverage.events_outside_steps) == (1, 1)


def test_the_fabric_of_ranks_without_a_host_is_taken_to_be_scale_up_and_the_reader_is_told(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile(0).op("a", 0, 1), TraceFile(1).op("a", 0, 1))

    assert graph.warnings[-1] == "no host is recorded: the fabric between the ranks is taken to be scale_up"


def test_a_collective_that_misses_participants_names_the_ranks_to_add(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile(0, 3).step(1, 0, 100).kernel(ALL_REDUCE, 10, 10, 7))

    assert graph.warnings == (
        "2 of 3 ranks are missing: 1, 2",
        "1 collectives cannot be split into waiting and transfer: add the missing ranks (1, 2)",
        "no host is recorded: the fabric between the ranks is taken to be scale_up",
    )


def test_steps_that_overlap_are_named(tmp_path: Path) -> None:
    trace = TraceFile(0).step(1, 0, 100).step(2, 90, 100).op("aten::mm", 10, 5).op("aten::mm", 110, 5)

    warnings = graph_of(tmp_path, trace).warnings

    assert "steps overlap in rank0.json: a step is replayed up to where the next one begins on its thread" in warnings


def test_without_a_missing_rank_nobody_is_told_to_add_one(tmp_path: Path) -> None:
    # Two ranks that count their collectives differently: three of one, one of the other.
    ranks = [TraceFile(r, 2, host_name="n").step(1, 0, 300) for r in (0, 1)]
    for number, rank in enumerate((0, 0, 0, 1)):
        ranks[rank].call(LAUNCH, 10 + 50 * number, 5, number).kernel(ALL_REDUCE, 20 + 50 * number, 30, 7, number)

    (warning,) = [w for w in graph_of(tmp_path, *ranks).warnings if "cannot be split" in w]

    assert warning.endswith("the ranks recorded different participants, kinds, sizes, counts or order")


def test_without_marks_the_step_lasts_until_every_thread_has_ended(tmp_path: Path) -> None:
    """Main ends at 320, thread 2 runs 50 to 1000: the step ends with it, then with main once thread 2 is fast enough."""
    trace = TraceFile().op("aten::mm", 0, 300).op("aten::add", 310, 10).op("aten::mul", 50, 950, tid=2)
    graph = graph_of(tmp_path, trace)

    def step_ns(scale: str) -> int:
        return step_times(graph, replay(graph, apply(graph, [parse_scale(scale)]).timing))[0].dur_ns

    assert step_ns("op:aten::mul=1x") == 1_000_000
    assert step_ns("op:aten::mul=0.5x") == 525_000
    assert step_ns("op:aten::mul=0.1x") == 320_000
    assert step_ns("op:aten::mm=0.5x") == 1_000_000
    assert attribute(graph).parts[0].ns == 950_000
    assert attribute(graph).sum_ns == 1_000_000
