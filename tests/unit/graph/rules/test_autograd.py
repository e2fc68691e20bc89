from pathlib import Path

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.labels import edges_of, lags_of, tasks_of
from tracereplay.graph.kinds import EdgeKind

MM = "autograd::engine::evaluate_function: MmBackward0"
LEAF = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"


def test_the_forward_thread_hands_over_and_waits_until_the_backward_thread_is_done(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 1000).op("forward", 10, 90).op("optimizer", 420, 80).op(MM, 150, 250, tid=2)

    graph = graph_of(tmp_path, trace)

    assert edges_of(graph, EdgeKind.THREAD_HANDOFF) == [f"ProfilerStep#1@150 -> {MM}@150", "gap@400 -> optimizer@420"]
    assert lags_of(graph, EdgeKind.THREAD_HANDOFF) == [0, 20_000]


def test_the_forward_threads_gap_is_cut_where_it_hands_over(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 1000).op("forward", 10, 90).op("optimizer", 420, 80).op(MM, 150, 250, tid=2)

    graph = graph_of(tmp_path, trace)

    assert tasks_of(graph) == {
        "ProfilerStep#1@0": 10_000,
        "forward@10": 90_000,
        "ProfilerStep#1@100": 50_000,  # up to the hand-over
        "ProfilerStep#1@150": 0,  # all of it waiting
        "optimizer@420": 80_000,
        "ProfilerStep#1@500": 500_000,
        f"{MM}@150": 250_000,
    }


def test_a_leaf_that_the_engine_runs_on_the_forward_thread_waits_for_the_backward_thread(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 1000).op("forward", 10, 90).op(LEAF, 200, 10).op("optimizer", 420, 80)

    graph = graph_of(tmp_path, trace.op(MM, 150, 40, tid=2).op(MM, 230, 170, tid=2))

    assert edges_of(graph, EdgeKind.THREAD_HANDOFF) == [
        f"ProfilerStep#1@150 -> {MM}@150",
        f"gap@190 -> {LEAF}@200",
        "gap@400 -> optimizer@420",
    ]


def test_what_the_forward_thread_does_inside_a_leaf_is_no_progress_of_its_own(tmp_path: Path) -> None:
    trace = (
        TraceFile().step(1, 0, 1000).op("forward", 10, 90).op(LEAF, 200, 10).op("aten::add_", 202, 5).op("optimizer", 420, 80)
    )

    graph = graph_of(tmp_path, trace.op(MM, 150, 250, tid=2))

    assert graph.coverage.refuted == 0
    assert "gap@400 -> optimizer@420" in edges_of(graph, EdgeKind.THREAD_HANDOFF)


def test_each_backward_pass_is_a_burst_of_its_own(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 1000).op("forward", 10, 90).op("optimizer", 420, 80).op("again", 510, 90)

    graph = graph_of(tmp_path, trace.op("done", 820, 80).op(MM, 150, 250, tid=2).op(MM, 650, 150, tid=2))

    assert edges_of(graph, EdgeKind.THREAD_HANDOFF) == [
        f"ProfilerStep#1@150 -> {MM}@150",
        f"ProfilerStep#1@650 -> {MM}@650",
        "gap@400 -> optimizer@420",
        "gap@800 -> done@820",
    ]


def test_between_bursts_the_backward_thread_only_waits(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 1000).op("forward", 10, 90).op("optimizer", 420, 80).op("again", 510, 90)

    graph = graph_of(tmp_path, trace.op("done", 820, 80).op(MM, 150, 250, tid=2).op(MM, 650, 150, tid=2))

    gaps = graph.nodes.dur_ns[(graph.nodes.row < 0) & (graph.nodes.start_ns == 400_000)]
    assert gaps.tolist() == [0]


def test_a_backward_thread_beside_a_busy_forward_thread_is_refuted_and_counted(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 1000).op("forward", 10, 90).op("busy", 200, 50).op(MM, 150, 250, tid=2)

    graph = graph_of(tmp_path, trace)

    assert (edges_of(graph, EdgeKind.THREAD_HANDOFF), graph.coverage.refuted) == ([], 1)


def test_a_thread_without_events_of_the_engine_is_handed_nothing(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 1000).op("forward", 10, 90).op("optimizer", 520, 80).op("aten::mm", 150, 250, tid=2)

    assert edges_of(graph_of(tmp_path, trace), EdgeKind.THREAD_HANDOFF) == []


def test_a_backward_pass_on_the_forward_thread_itself_needs_no_hand_over(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 1000).op("forward", 10, 90).op(MM, 150, 250).op("aten::mm", 200, 50, tid=2)

    assert edges_of(graph_of(tmp_path, trace), EdgeKind.THREAD_HANDOFF) == []


def test_a_burst_at_the_very_begin_has_nothing_that_handed_it_over_and_is_counted(tmp_path: Path) -> None:
    trace = TraceFile().op(MM, 0, 400, tid=2).op("optimizer", 500, 80).op("again", 600, 80)

    graph = graph_of(tmp_path, trace)

    assert (edges_of(graph, EdgeKind.THREAD_HANDOFF), graph.coverage.refuted) == ([], 1)


def test_a_burst_that_outlasts_the_window_hands_nothing_back(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 1000).op("forward", 10, 90).op(MM, 150, 950, tid=2)

    assert edges_of(graph_of(tmp_path, trace), EdgeKind.THREAD_HANDOFF) == [f"ProfilerStep#1@150 -> {MM}@150"]
