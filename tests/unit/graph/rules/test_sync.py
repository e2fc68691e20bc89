from pathlib import Path

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.labels import edges_of, lags_of, tasks_of
from tracereplay.graph.kinds import EdgeKind

LAUNCH = "cudaLaunchKernel"
STREAM_SYNC = "cudaStreamSynchronize"
DEVICE_SYNC = "cudaDeviceSynchronize"
EVENT_SYNC = "cudaEventSynchronize"


def test_the_host_goes_on_when_the_work_has_ended(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 10, 2, 1).kernel("k", 15, 35, 7, 1).call(STREAM_SYNC, 20, 32)

    graph = graph_of(tmp_path, trace)

    assert edges_of(graph, EdgeKind.SYNC) == ["k@15 -> ProfilerStep#1@52"]
    assert lags_of(graph, EdgeKind.SYNC) == [2_000]


def test_what_a_call_waited_is_no_time_of_its_own(tmp_path: Path) -> None:
    # The second call waits for nothing: 3 µs are what such a call costs.
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 10, 2, 1).kernel("k", 15, 35, 7, 1)

    graph = graph_of(tmp_path, trace.call(STREAM_SYNC, 20, 32).call(STREAM_SYNC, 60, 3))

    assert tasks_of(graph) == {
        "ProfilerStep#1@0": 10_000,
        "cudaLaunchKernel@10": 2_000,
        "ProfilerStep#1@12": 8_000,
        "cudaStreamSynchronize@20": 3_000,
        "ProfilerStep#1@52": 8_000,
        "cudaStreamSynchronize@60": 3_000,
        "ProfilerStep#1@63": 37_000,
        "k@15": 35_000,
    }


def test_of_several_streams_the_one_whose_work_ends_inside_the_call_is_waited_for(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 5, 2, 1).call(LAUNCH, 10, 2, 2).call(LAUNCH, 14, 2, 3)
    trace.kernel("early", 8, 5, 7, 1).kernel("inside", 15, 35, 20, 2).kernel("late", 20, 60, 21, 3)

    graph = graph_of(tmp_path, trace.call(STREAM_SYNC, 20, 32))

    assert edges_of(graph, EdgeKind.SYNC) == ["inside@15 -> ProfilerStep#1@52"]


def test_of_several_that_end_inside_the_call_the_latest_is_waited_for(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 5, 2, 1).call(LAUNCH, 10, 2, 2)
    trace.kernel("first", 8, 30, 7, 1).kernel("second", 15, 35, 20, 2)

    graph = graph_of(tmp_path, trace.call(STREAM_SYNC, 20, 32))

    assert edges_of(graph, EdgeKind.SYNC) == ["second@15 -> ProfilerStep#1@52"]


def test_work_that_was_launched_after_the_call_began_is_not_waited_for(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 5, 2, 1).kernel("before", 8, 30, 7, 1)
    trace.call(LAUNCH, 30, 2, 2, tid=2).kernel("after", 40, 5, 7, 2)

    graph = graph_of(tmp_path, trace.call(STREAM_SYNC, 20, 32))

    assert edges_of(graph, EdgeKind.SYNC) == ["before@8 -> ProfilerStep#1@52"]


def test_an_event_lies_after_earlier_work_of_its_stream_that_ends_inside_the_call(tmp_path: Path) -> None:
    # "late" was launched before the call too, but runs on after it: the event lies between the two.
    trace = TraceFile().step(1, 0, 200).call(LAUNCH, 5, 2, 1).call(LAUNCH, 8, 2, 2).call(LAUNCH, 11, 2, 3)
    trace.kernel("early", 10, 5, 7, 1).kernel("inside", 16, 34, 7, 2).kernel("late", 51, 60, 7, 3)

    graph = graph_of(tmp_path, trace.call(EVENT_SYNC, 20, 32))

    assert edges_of(graph, EdgeKind.SYNC) == ["inside@16 -> ProfilerStep#1@52"]
    assert lags_of(graph, EdgeKind.SYNC) == [2_000]
    assert graph.coverage.refuted == 0


def test_of_several_that_end_inside_an_event_s_call_the_latest_is_waited_for(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 200).call(LAUNCH, 5, 2, 1).call(LAUNCH, 8, 2, 2).call(LAUNCH, 11, 2, 3)
    trace.kernel("first", 10, 15, 7, 1).kernel("second", 26, 24, 7, 2).kernel("late", 51, 60, 7, 3)

    assert edges_of(graph_of(tmp_path, trace.call(EVENT_SYNC, 20, 32)), EdgeKind.SYNC) == ["second@26 -> ProfilerStep#1@52"]


def test_a_device_synchronisation_waits_for_the_last_work_of_every_stream(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 5, 2, 1).call(LAUNCH, 8, 2, 2).call(LAUNCH, 11, 2, 3)
    trace.kernel("a", 10, 5, 7, 1).kernel("b", 20, 20, 7, 2).kernel("c", 15, 35, 20, 3)

    graph = graph_of(tmp_path, trace.call(DEVICE_SYNC, 20, 32))

    assert edges_of(graph, EdgeKind.SYNC) == ["b@20 -> ProfilerStep#1@52", "c@15 -> ProfilerStep#1@52"]


def test_work_that_ends_after_the_call_refutes_that_it_was_waited_for(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 5, 2, 1).kernel("k", 10, 60, 7, 1).call(DEVICE_SYNC, 20, 32)

    graph = graph_of(tmp_path, trace)

    assert (edges_of(graph, EdgeKind.SYNC), graph.coverage.refuted) == ([], 1)


def test_a_call_whose_work_had_ended_keeps_its_time_and_an_edge_with_slack(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 5, 2, 1).kernel("k", 10, 5, 7, 1).call(STREAM_SYNC, 30, 4)

    graph = graph_of(tmp_path, trace)

    assert edges_of(graph, EdgeKind.SYNC) == ["k@10 -> ProfilerStep#1@34"]
    assert tasks_of(graph)["cudaStreamSynchronize@30"] == 4_000


def test_a_call_on_a_thread_that_launched_nothing_waits_for_nothing(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 5, 2, 1).kernel("k", 10, 5, 7, 1).call(STREAM_SYNC, 30, 4, tid=2)

    assert edges_of(graph_of(tmp_path, trace), EdgeKind.SYNC) == []


def test_blocking_time_that_no_work_covers_is_counted(tmp_path: Path) -> None:
    # The usual cost is the median of both calls, 12 µs; the longer one is 8 µs above it.
    trace = TraceFile().step(1, 0, 100).op("a", 10, 5).call(DEVICE_SYNC, 20, 4).call(DEVICE_SYNC, 40, 20)

    graph = graph_of(tmp_path, trace)

    assert graph.coverage.uncovered_blocking_ns == 8_000


def test_a_pageable_copy_waits_for_itself(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call("cudaMemcpyAsync", 20, 30, 1)

    graph = graph_of(tmp_path, trace.memcpy("Memcpy HtoD (Pageable -> Device)", 25, 20, 7, 1))

    assert edges_of(graph, EdgeKind.SYNC) == ["Memcpy HtoD (Pageable -> Device)@25 -> ProfilerStep#1@50"]


def test_a_copy_that_outlasts_its_call_is_not_waited_for(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call("cudaMemcpyAsync", 20, 5, 1)

    graph = graph_of(tmp_path, trace.memcpy("Memcpy HtoD (Pinned -> Device)", 30, 20, 7, 1))

    assert edges_of(graph, EdgeKind.SYNC) == []


def test_freeing_memory_waits_where_it_ends_with_the_end_of_device_work(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 300).call(LAUNCH, 5, 2, 1).kernel("k", 10, 180, 7, 1).call("cudaFree", 20, 180)

    assert edges_of(graph_of(tmp_path, trace), EdgeKind.SYNC) == ["k@10 -> ProfilerStep#1@200"]


def test_freeing_memory_waits_for_every_queue_and_goes_on_with_work_of_its_own(tmp_path: Path) -> None:
    # 180 µs, of which the device is waited for until 100; what the call does after that is 100 µs of its own.
    trace = TraceFile().step(1, 0, 300).call(LAUNCH, 5, 2, 1).kernel("k", 10, 90, 7, 1).call(LAUNCH, 8, 2, 2)

    graph = graph_of(tmp_path, trace.kernel("other", 12, 30, 20, 2).call("cudaFree", 20, 180))

    assert edges_of(graph, EdgeKind.SYNC) == ["k@10 -> ProfilerStep#1@200", "other@12 -> ProfilerStep#1@200"]
    assert tasks_of(graph)["cudaFree@20"] == 100_000


def test_freeing_memory_while_work_goes_on_did_not_wait(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 300).call(LAUNCH, 5, 2, 1).kernel("k", 10, 80, 7, 1).call("cudaFree", 20, 30)

    assert edges_of(graph_of(tmp_path, trace), EdgeKind.SYNC) == []


def test_allocating_memory_while_short_work_ends_did_not_wait(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 300).call(LAUNCH, 5, 2, 1).kernel("k", 10, 30, 7, 1).call("cudaMalloc", 20, 30)

    assert edges_of(graph_of(tmp_path, trace), EdgeKind.SYNC) == []


def test_any_call_that_lasts_until_device_work_ends_waited_for_it(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 900).call(LAUNCH, 5, 2, 1).kernel("k", 10, 400, 7, 1).call("cudaGetDeviceCount", 20, 395)

    assert edges_of(graph_of(tmp_path, trace), EdgeKind.SYNC) == ["k@10 -> ProfilerStep#1@415"]


def test_a_launch_into_a_full_queue_is_not_taken_for_a_wait(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 900).call(LAUNCH, 5, 2, 1).kernel("k", 10, 400, 7, 1).call(LAUNCH, 20, 395, 2)

    assert edges_of(graph_of(tmp_path, trace.kernel("next", 412, 5, 7, 2)), EdgeKind.SYNC) == []


def test_a_call_that_lasts_a_millisecond_beyond_the_work_did_something_else(tmp_path: Path) -> None:
    # The device is done at 410; the 2,590 µs that follow are the call's own and counted as time that nothing covers.
    trace = TraceFile().step(1, 0, 4000).call(LAUNCH, 5, 2, 1).kernel("k", 10, 400, 7, 1).call(DEVICE_SYNC, 20, 2980)

    graph = graph_of(tmp_path, trace)

    assert edges_of(graph, EdgeKind.SYNC) == ["k@10 -> ProfilerStep#1@3000"]
    assert tasks_of(graph)["cudaDeviceSynchronize@20"] == 2_590_000
    assert graph.coverage.uncovered_blocking_ns == 2_590_000


def sync_row(kind: str, correlation: int, **args: int) -> dict[str, object]:
    return {"cuda_sync_kind": kind, "correlation": correlation, "device": 0, "context": 1, **args}


def test_a_row_that_names_the_stream_wins_over_what_ends_last(tmp_path: Path) -> None:
    # By timing alone the call would be taken to wait for "other", which ends 1 µs before it.
    trace = TraceFile().step(1, 0, 300).call(LAUNCH, 5, 2, 1).call(LAUNCH, 8, 2, 2).call(STREAM_SYNC, 20, 80, 3)
    trace.kernel("k", 10, 84, 7, 1).kernel("other", 12, 87, 20, 2)

    graph = graph_of(
        tmp_path, trace.event("cuda_sync", "Stream Sync", 20, 80, pid=0, tid=7, args=sync_row("Stream Sync", 3, stream=7))
    )

    assert edges_of(graph, EdgeKind.SYNC) == ["k@10 -> ProfilerStep#1@100"]
    assert graph.coverage.edges["sync"] == {"recorded": 1, "inferred": 0}


def test_a_row_of_an_event_names_what_was_enqueued_before_its_record(tmp_path: Path) -> None:
    # The event lies between "a" and "b"; "b" ended before the call did and is not what it waited for.
    trace = TraceFile().step(1, 0, 300).call(LAUNCH, 5, 2, 1).call("cudaEventRecord", 8, 1, 2).call(LAUNCH, 10, 2, 3)
    trace.kernel("a", 12, 60, 7, 1).kernel("b", 73, 5, 7, 3).call(EVENT_SYNC, 20, 80, 4)
    args = sync_row("Event Sync", 4, stream=-1, wait_on_stream=7, wait_on_cuda_event_record_corr_id=2)

    graph = graph_of(tmp_path, trace.event("cuda_sync", "Event Sync", 20, 80, pid=0, tid=-1, args=args))

    assert edges_of(graph, EdgeKind.SYNC) == ["a@12 -> ProfilerStep#1@100"]


def test_a_row_of_the_whole_device_names_the_last_work_of_every_queue(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 300).call(LAUNCH, 5, 2, 1).call(LAUNCH, 8, 2, 2).call(DEVICE_SYNC, 20, 80, 3)
    trace.kernel("a", 10, 30, 7, 1).kernel("b", 12, 80, 20, 2)

    graph = graph_of(
        tmp_path, trace.event("cuda_sync", "Context Sync", 20, 80, pid=0, tid=-1, args=sync_row("Context Sync", 3, stream=-1))
    )

    assert edges_of(graph, EdgeKind.SYNC) == ["a@10 -> ProfilerStep#1@100", "b@12 -> ProfilerStep#1@100"]


def test_a_call_that_sticks_out_of_the_window_is_left_out(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 50).call(LAUNCH, 5, 2, 1).kernel("k", 10, 50, 7, 1).call(STREAM_SYNC, 20, 42)

    assert edges_of(graph_of(tmp_path, trace), EdgeKind.SYNC) == []


def two_devices() -> TraceFile:
    """A main thread that launches on device 0 and a second one on device 1, each while the other's work runs."""
    trace = TraceFile().step(1, 0, 400).call(LAUNCH, 5, 2, 1).kernel("zero", 10, 80, 7, 1, device=0)
    return trace.call(LAUNCH, 6, 2, 2, tid=2).kernel("one", 10, 240, 7, 2, device=1)


def test_a_device_synchronisation_waits_for_the_device_on_which_its_thread_launched(tmp_path: Path) -> None:
    trace = two_devices().call(DEVICE_SYNC, 20, 75).call(DEVICE_SYNC, 20, 235, tid=2)

    graph = graph_of(tmp_path, trace)

    assert edges_of(graph, EdgeKind.SYNC) == ["zero@10 -> ProfilerStep#1@95", "one@10 -> gap@255"]
    assert graph.coverage.refuted == 0


def test_a_device_synchronisation_before_the_first_launch_of_its_thread_is_for_the_next_one_s_device(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 400).call(LAUNCH, 5, 2, 1, tid=2).call(LAUNCH, 8, 2, 2, tid=2)
    trace.kernel("zero", 10, 30, 7, 1, device=0).kernel("one", 12, 33, 7, 2, device=1)

    graph = graph_of(tmp_path, trace.call(DEVICE_SYNC, 20, 30).call(LAUNCH, 60, 2, 3).kernel("next", 65, 5, 7, 3, device=0))

    assert edges_of(graph, EdgeKind.SYNC) == ["zero@10 -> ProfilerStep#1@50"]


def test_a_device_synchronisation_of_a_thread_that_launched_nothing_is_for_every_device(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 400).call(LAUNCH, 5, 2, 1, tid=2).call(LAUNCH, 8, 2, 2, tid=2)
    trace.kernel("zero", 10, 30, 7, 1, device=0).kernel("one", 12, 33, 7, 2, device=1)

    graph = graph_of(tmp_path, trace.call(DEVICE_SYNC, 20, 30))

    assert edges_of(graph, EdgeKind.SYNC) == ["zero@10 -> ProfilerStep#1@50", "one@12 -> ProfilerStep#1@50"]


def test_freeing_memory_waits_for_the_device_of_its_thread_while_another_goes_on(tmp_path: Path) -> None:
    trace = two_devices().call("cudaFree", 20, 72)

    assert edges_of(graph_of(tmp_path, trace), EdgeKind.SYNC) == ["zero@10 -> ProfilerStep#1@92"]


def test_a_device_synchronisation_waits_for_work_without_a_stream_too(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 400)
    for number, (launched, device) in enumerate([(5, 1), (7, 0), (9, 0), (60, 0)], start=1):
        trace.call(LAUNCH, launched, 1, number)
        args = {"correlation": number, "device": device}
        trace.event("kernel", f"k{number}", launched + 5, 20, pid=device, tid=0, args=args)

    graph = graph_of(tmp_path, trace.call(DEVICE_SYNC, 20, 16))

    assert edges_of(graph, EdgeKind.SYNC) == ["k2@12 -> ProfilerStep#1@36", "k3@14 -> ProfilerStep#1@36"]


def event_of_a_stream(device: int) -> TraceFile:
    """A row of device 0 for an event on stream 7, recorded by a thread that launched on a device; both have a stream 7."""
    trace = TraceFile().step(1, 0, 300).call(LAUNCH, 5, 2, 1).call(LAUNCH, 8, 2, 2, tid=2)
    trace.kernel("zero", 12, 60, 7, 1, device=0).kernel("other", 73, 23, 7, 2, device=device)
    trace.call("cudaEventRecord", 12, 1, 3, tid=2).call(EVENT_SYNC, 20, 80, 4)
    args = sync_row("Event Sync", 4, stream=-1, wait_on_stream=7, wait_on_cuda_event_record_corr_id=3)
    return trace.event("cuda_sync", "Event Sync", 20, 80, pid=0, tid=-1, args=args)


def test_a_row_that_leaves_open_on_which_device_its_event_was_recorded_says_nothing(tmp_path: Path) -> None:
    # Stream 7 of device 0 by the row, of device 1 by the thread that recorded it: what ends inside the call decides.
    graph = graph_of(tmp_path, event_of_a_stream(1))

    assert graph.coverage.edges["sync"] == {"recorded": 0, "inferred": 1}
    assert edges_of(graph, EdgeKind.SYNC) == ["other@73 -> ProfilerStep#1@100"]


def test_a_row_counts_where_the_recording_thread_launched_on_its_device(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, event_of_a_stream(0).kernel("apart", 12, 3, 7, device=1))

    assert graph.coverage.edges["sync"] == {"recorded": 1, "inferred": 0}
    assert edges_of(graph, EdgeKind.SYNC) == ["other@73 -> ProfilerStep#1@100"]


def test_a_row_counts_where_one_device_alone_has_a_stream_of_that_number(tmp_path: Path) -> None:
    trace = event_of_a_stream(0)
    moved = trace.call(LAUNCH, 10, 1, 5, tid=2).kernel("elsewhere", 15, 5, 9, 5, device=1)

    assert graph_of(tmp_path, moved).coverage.edges["sync"] == {"recorded": 1, "inferred": 0}


def without_stream(trace: TraceFile, name: str, ts: int, dur: int, correlation: int) -> TraceFile:
    return trace.event("kernel", name, ts, dur, pid=0, tid="no stream", args={"device": 0, "correlation": correlation})


def test_many_synchronisations_of_much_work_without_a_stream_wait_once_for_each_piece(tmp_path: Path) -> None:
    pieces = 2_000
    trace = TraceFile().step(1, 0, 40 * pieces)
    for n in range(pieces):
        without_stream(trace.call(LAUNCH, 40 * n, 2, n + 1), f"k{n}", 40 * n + 5, 10, n + 1).call(DEVICE_SYNC, 40 * n + 4, 13)

    edges = edges_of(graph_of(tmp_path, trace), EdgeKind.SYNC)

    assert len(edges) == pieces
    assert {"k0@5 -> ProfilerStep#1@17", "k1999@79965 -> ProfilerStep#1@79977"} <= set(edges)


def test_what_had_not_ended_at_one_synchronisation_is_waited_for_at_the_next(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 200).call(LAUNCH, 5, 2, 1).call(LAUNCH, 10, 2, 2)
    without_stream(without_stream(trace, "short", 12, 10, 1), "long", 14, 86, 2)

    edges = edges_of(graph_of(tmp_path, trace.call(DEVICE_SYNC, 20, 5).call(DEVICE_SYNC, 30, 72)), EdgeKind.SYNC)

    assert edges == ["short@12 -> ProfilerStep#1@25", "long@14 -> ProfilerStep#1@102"]


def test_a_synchronisation_inside_another_call_goes_on_first(tmp_path: Path) -> None:
    # The outer call began earlier and ends later: it is the inner one after which the thread goes on first.
    trace = TraceFile().step(1, 0, 200).call(LAUNCH, 5, 2, 1).call("cudaFree", 20, 50).call(DEVICE_SYNC, 22, 40)
    without_stream(trace, "k", 10, 50, 1)

    edges = edges_of(graph_of(tmp_path, trace), EdgeKind.SYNC)

    assert edges == ["k@10 -> cudaFree@62"]


def test_each_thread_waits_for_itself(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 200).call(LAUNCH, 5, 2, 1).call(DEVICE_SYNC, 20, 42).call(DEVICE_SYNC, 70, 2)
    trace.op("b", 10, 100, tid=2).call(DEVICE_SYNC, 22, 41, tid=2)
    without_stream(trace, "k", 10, 50, 1)

    edges = edges_of(graph_of(tmp_path, trace), EdgeKind.SYNC)

    assert edges == ["k@10 -> ProfilerStep#1@62", "k@10 -> b@63"]
