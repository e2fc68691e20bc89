from pathlib import Path

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.labels import edges_of
from tracereplay.graph.kinds import EdgeKind

LAUNCH = "cudaLaunchKernel"
WAIT = "cudaStreamWaitEvent"


def test_the_next_launch_waits_for_the_last_work_launched_on_another_stream(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 10, 2, 1).call(WAIT, 20, 2).call(LAUNCH, 30, 2, 2)

    graph = graph_of(tmp_path, trace.kernel("a", 15, 35, 7, 1).kernel("c", 55, 5, 20, 2))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == ["a@15 -> c@55"]


def test_of_several_earlier_launches_on_the_other_stream_the_last_is_waited_for(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 5, 2, 1).call(LAUNCH, 10, 2, 2).call(WAIT, 20, 2).call(LAUNCH, 30, 2, 3)

    graph = graph_of(tmp_path, trace.kernel("a", 12, 8, 7, 1).kernel("b", 20, 20, 7, 2).kernel("c", 55, 5, 20, 3))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == ["b@20 -> c@55"]


def test_launches_on_the_waiting_stream_itself_are_passed_over(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 5, 2, 1).call(LAUNCH, 10, 2, 2).call(WAIT, 20, 2).call(LAUNCH, 30, 2, 3)

    graph = graph_of(tmp_path, trace.kernel("a", 12, 8, 7, 1).kernel("b", 20, 20, 20, 2).kernel("c", 55, 5, 20, 3))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == ["a@12 -> c@55"]


def test_a_producer_that_ends_after_its_consumer_starts_is_refuted_and_counted(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 10, 2, 1).call(WAIT, 20, 2).call(LAUNCH, 30, 2, 2)

    graph = graph_of(tmp_path, trace.kernel("a", 15, 43, 7, 1).kernel("c", 55, 5, 20, 2))

    assert (edges_of(graph, EdgeKind.EVENT_WAIT), graph.coverage.refuted) == ([], 1)


def test_a_wait_called_on_the_backward_thread_holds_for_what_the_main_thread_launches_next(tmp_path: Path) -> None:
    # DDP: the backward thread makes the default stream wait for the collectives, the optimizer is the next to launch.
    trace = TraceFile().step(1, 0, 200).call(LAUNCH, 10, 2, 1).call(LAUNCH, 100, 2, 2)
    trace.op("autograd::engine::evaluate_function: MmBackward0", 30, 40, tid=2).call(WAIT, 60, 2, tid=2)

    graph = graph_of(tmp_path, trace.kernel("reduce", 15, 60, 20, 1).kernel("adam", 110, 5, 7, 2))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == ["reduce@15 -> adam@110"]


def test_a_wait_on_a_thread_of_its_own_says_nothing_of_the_main_thread(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 10, 2, 1).call(WAIT, 20, 2, tid=9).call(LAUNCH, 30, 2, 2)

    graph = graph_of(tmp_path, trace.kernel("a", 15, 35, 7, 1).kernel("c", 55, 5, 20, 2))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == []


def test_a_wait_that_no_launch_follows_makes_nothing_wait(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 10, 2, 1).call(WAIT, 20, 2)

    assert edges_of(graph_of(tmp_path, trace.kernel("a", 15, 35, 7, 1)), EdgeKind.EVENT_WAIT) == []


def test_two_waits_before_one_launch_are_one_edge(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 10, 2, 1).call(WAIT, 20, 2).call(WAIT, 25, 2).call(LAUNCH, 30, 2, 2)

    graph = graph_of(tmp_path, trace.kernel("a", 15, 35, 7, 1).kernel("c", 55, 5, 20, 2))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == ["a@15 -> c@55"]


def test_the_call_of_other_vendors_is_known(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call("hipLaunchKernel", 10, 2, 1)
    trace.call("hipStreamWaitEvent", 20, 2).call("hipLaunchKernel", 30, 2, 2)

    graph = graph_of(tmp_path, trace.kernel("a", 15, 35, 7, 1).kernel("c", 55, 5, 20, 2))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == ["a@15 -> c@55"]
