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

    graph = graph_of(tmp_path, trace.kernel("a", 15, 83, 7, 1).kernel("c", 55, 5, 20, 2))

    assert (edges_of(graph, EdgeKind.EVENT_WAIT), graph.coverage.refuted) == ([], 1)


def test_a_wait_called_on_the_backward_thread_holds_for_what_the_main_thread_launches_next(tmp_path: Path) -> None:
    # DDP: the backward thread makes the default stream wait for the collectives, the optimizer is the next to launch.
    trace = TraceFile().step(1, 0, 200).call(LAUNCH, 10, 2, 1).call(LAUNCH, 100, 2, 2)
    trace.op("autograd::engine::evaluate_function: MmBackward0", 30, 40, tid=2).call(WAIT, 60, 2, tid=2)

    graph = graph_of(tmp_path, trace.kernel("reduce", 15, 60, 20, 1).kernel("adam", 110, 5, 7, 2))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == ["reduce@15 -> adam@110"]


def test_a_wait_on_a_thread_of_its_own_says_nothing_of_the_main_thread(tmp_path: Path) -> None:
    # "c" starts as soon as its launch allows, so that timing shows no wait either.
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 10, 2, 1).call(WAIT, 20, 2, tid=9).call(LAUNCH, 30, 2, 2)

    graph = graph_of(tmp_path, trace.kernel("a", 15, 5, 7, 1).kernel("c", 35, 5, 20, 2))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == []


def test_work_that_starts_late_right_after_other_work_waited_for_it_whatever_was_launched_since(tmp_path: Path) -> None:
    # Program order would name "b", the last launch on stream 7; "c" starts 2 µs after "a" ends, 70 µs after its launch.
    trace = TraceFile().step(1, 0, 300).call(LAUNCH, 10, 2, 1).call(LAUNCH, 14, 2, 2).call(WAIT, 20, 2).call(LAUNCH, 30, 2, 3)

    graph = graph_of(tmp_path, trace.kernel("a", 15, 83, 7, 1).kernel("b", 19, 5, 8, 2).kernel("c", 100, 5, 20, 3))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == ["a@15 -> c@100"]
    assert graph.coverage.edges["event_wait"] == {"recorded": 0, "inferred": 1}


def test_a_wait_call_that_precedes_another_launch_still_holds_for_its_own_stream(tmp_path: Path) -> None:
    # The wait is for stream 20, whose next launch comes second: the first one starts at once.
    trace = TraceFile().step(1, 0, 300).call(LAUNCH, 10, 2, 1).call(WAIT, 20, 2).call(LAUNCH, 30, 2, 2).call(LAUNCH, 40, 2, 3)

    graph = graph_of(tmp_path, trace.kernel("a", 15, 83, 7, 1).kernel("b", 35, 5, 8, 2).kernel("c", 100, 5, 20, 3))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == ["a@15 -> c@100"]


def test_a_device_that_is_full_makes_work_wait_without_any_call(tmp_path: Path) -> None:
    # "b" is ready at 35 and starts when "a" ends 465 µs later: no wait was called, the fit is no accident.
    trace = TraceFile().step(1, 0, 900).call(LAUNCH, 10, 2, 1).call(LAUNCH, 30, 2, 2).call(LAUNCH, 600, 2, 3)

    graph = graph_of(tmp_path, trace.kernel("a", 15, 484, 7, 1).kernel("b", 500, 5, 20, 2).kernel("c", 605, 5, 20, 3))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == ["a@15 -> b@500"]


def test_work_that_starts_late_after_nothing_in_particular_is_left_unexplained(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 900).call(LAUNCH, 10, 2, 1).call(LAUNCH, 30, 2, 2).call(LAUNCH, 600, 2, 3)

    graph = graph_of(tmp_path, trace.kernel("a", 15, 300, 7, 1).kernel("b", 500, 5, 20, 2).kernel("c", 605, 5, 20, 3))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == []


def wait_row(correlation: int, stream: int, on_stream: int, record: int) -> dict[str, object]:
    named = {"wait_on_stream": on_stream, "wait_on_cuda_event_record_corr_id": record, "wait_on_cuda_event_id": 1}
    return {"stream": stream, "correlation": correlation, "device": 0, "context": 1, **named}


def test_a_row_names_the_streams_of_a_wait(tmp_path: Path) -> None:
    # What timing and program order would say is "b", launched last and ended last before "c" started.
    trace = TraceFile().step(1, 0, 300).call(LAUNCH, 10, 2, 1).call("cudaEventRecord", 14, 1, 2).call(LAUNCH, 18, 2, 3)
    trace.call(WAIT, 22, 2, 4).call(LAUNCH, 30, 2, 5).kernel("a", 15, 60, 7, 1).kernel("b", 24, 74, 8, 3)

    graph = graph_of(
        tmp_path, trace.kernel("c", 100, 5, 20, 5).event("cuda_sync", "Stream Wait Event", 22, 2, args=wait_row(4, 20, 7, 2))
    )

    assert "a@15 -> c@100" in edges_of(graph, EdgeKind.EVENT_WAIT)
    assert graph.coverage.edges["event_wait"]["recorded"] == 1


def test_a_row_whose_event_may_be_of_a_stream_of_another_device_names_nothing(tmp_path: Path) -> None:
    # The row is of device 0, but the recording thread had launched on stream 7 of device 1.
    trace = TraceFile().step(1, 0, 300).call(LAUNCH, 5, 2, 6).call(LAUNCH, 10, 2, 1, tid=2)
    trace.call("cudaEventRecord", 14, 1, 2, tid=2).call(WAIT, 22, 2, 4).call(LAUNCH, 30, 2, 5)
    trace.kernel("zero", 8, 60, 7, 6, device=0).kernel("one", 15, 60, 7, 1, device=1).kernel("c", 100, 5, 20, 5, device=0)

    graph = graph_of(tmp_path, trace.event("cuda_sync", "Stream Wait Event", 22, 2, args=wait_row(4, 20, 7, 2)))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == []


def test_a_stream_made_to_wait_hands_the_wait_on_to_whoever_waits_for_it(tmp_path: Path) -> None:
    # Stream 8 waits for "a"; an event recorded on it then, without work of its own, stands for "a".
    trace = TraceFile().step(1, 0, 300).call(LAUNCH, 10, 2, 1).call("cudaEventRecord", 14, 1, 2).call(WAIT, 16, 1, 3)
    trace.call("cudaEventRecord", 18, 1, 4).call(WAIT, 20, 1, 5).call(LAUNCH, 30, 2, 6).call(LAUNCH, 40, 2, 7)
    trace.kernel("a", 15, 60, 7, 1).kernel("c", 77, 5, 20, 6).kernel("later", 90, 5, 8, 7)
    trace.event("cuda_sync", "Stream Wait Event", 16, 1, args=wait_row(3, 8, 7, 2))

    graph = graph_of(tmp_path, trace.event("cuda_sync", "Stream Wait Event", 20, 1, args=wait_row(5, 20, 8, 4)))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == ["a@15 -> later@90", "a@15 -> c@77"]


def test_kernels_of_one_graph_wait_for_each_other_without_any_call(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 300).call("cudaGraphLaunch", 10, 5, 1).kernel("root", 20, 10, 7, 1)
    trace.kernel("left", 31, 40, 20, 1).kernel("right", 31, 10, 7, 1)

    graph = graph_of(tmp_path, trace.kernel("join", 72, 5, 7, 1))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == ["root@20 -> left@31", "left@31 -> join@72"]


def test_spikes_of_one_stream_are_not_tied_to_the_ends_of_a_busy_one(tmp_path: Path) -> None:
    # Stream 7 runs 20 µs kernels back to back; on stream 20 every tenth launch takes 300 µs longer than the others.
    trace = TraceFile()
    for number in range(400):
        trace.call(LAUNCH, 10 + 2 * number, 1, number + 1).kernel("busy", 1000 + 21 * number, 20, 7, number + 1)
    for number in range(40):
        late = 300 if number % 10 == 0 else 0
        at = 1003 + 205 * number
        trace.call(LAUNCH, at, 1, 1000 + number, tid=2).kernel("other", at + 6 + late, 4, 20, 1000 + number)

    graph = graph_of(tmp_path, trace.step(1, 0, 10_000))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == []
