import random
from pathlib import Path

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.labels import edges_of, tasks_of
from tracereplay.graph.kinds import EdgeKind

LOADER, OTHER = 3, 4


def test_a_thread_that_goes_on_when_another_has_prepared_its_batch_waited_for_it(tmp_path: Path) -> None:
    # The batch is ready at 300: the gap from 10 to 301 is a wait. By accident it would end so close once in 145 times.
    trace = TraceFile().step(1, 0, 1000).op("aten::mm", 5, 5).op("aten::to", 301, 20)

    graph = graph_of(tmp_path, trace.op("aten::_pin_memory", 0, 300, tid=LOADER).op("late", 900, 5, tid=LOADER))

    assert edges_of(graph, EdgeKind.THREAD_HANDOFF) == ["gap@300 -> aten::to@301"]
    assert tasks_of(graph)["ProfilerStep#1@10"] == 0


def test_a_gap_that_ends_not_so_close_once_is_host_time_and_on_all_ranks_a_wait(tmp_path: Path) -> None:
    # 20 µs after the end, of 310: once in 15 times by accident, on three ranks once in 115.
    traces = [TraceFile(rank, 3).step(1, 0, 1000).op("aten::mm", 5, 5).op("aten::to", 320, 20) for rank in range(3)]
    for trace in traces:
        trace.op("aten::_pin_memory", 0, 300, tid=LOADER).op("late", 900, 5, tid=LOADER)

    alone, together = graph_of(tmp_path, traces[0]), graph_of(tmp_path, *traces)

    assert len(edges_of(alone, EdgeKind.THREAD_HANDOFF)) == 0
    assert len(edges_of(together, EdgeKind.THREAD_HANDOFF)) == 3


def test_a_gap_that_ends_near_the_end_of_a_short_poll_is_host_time(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 1000).op("aten::mm", 5, 5).op("aten::to", 310, 20)

    graph = graph_of(tmp_path, trace.op("poll", 295, 5, tid=LOADER))

    assert edges_of(graph, EdgeKind.THREAD_HANDOFF) == []
    assert tasks_of(graph)["ProfilerStep#1@10"] == 300_000


def test_a_gap_that_goes_on_long_after_the_other_thread_ended_is_host_time(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 1000).op("aten::mm", 5, 5).op("aten::to", 410, 20)

    graph = graph_of(tmp_path, trace.op("aten::_pin_memory", 0, 300, tid=LOADER))

    assert edges_of(graph, EdgeKind.THREAD_HANDOFF) == []


def test_an_operator_is_never_taken_for_a_wait(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 1000).op("aten::mm", 5, 305).op("aten::to", 310, 20)

    graph = graph_of(tmp_path, trace.op("aten::_pin_memory", 0, 300, tid=LOADER))

    assert edges_of(graph, EdgeKind.THREAD_HANDOFF) == []


def test_where_a_thread_waits_once_the_other_times_are_slack(tmp_path: Path) -> None:
    # The second batch is ready at 420, before the thread comes for it at 500.
    trace = TraceFile().step(1, 0, 1000).op("aten::mm", 5, 5).op("aten::to", 301, 20).op("aten::mm", 400, 90)
    trace.op("aten::to", 500, 20).op("aten::_pin_memory", 0, 300, tid=LOADER).op("aten::_pin_memory", 310, 110, tid=LOADER)

    graph = graph_of(tmp_path, trace.op("end", 900, 5, tid=LOADER))

    assert edges_of(graph, EdgeKind.THREAD_HANDOFF) == ["gap@300 -> aten::to@301", "gap@420 -> aten::to@500"]
    assert tasks_of(graph)["ProfilerStep#1@490"] == 10_000


def test_a_call_that_ends_with_another_thread_s_call_waited_for_its_lock(tmp_path: Path) -> None:
    # Launches take 5 µs; the one at 200 takes 400 and ends 2 µs after the other thread's cudaMalloc.
    trace = TraceFile().step(1, 0, 1000)
    for start in (20, 40, 60, 80):
        trace.call("cudaLaunchKernel", start, 5)
    trace.call("cudaLaunchKernel", 200, 400).op("aten::mm", 610, 5)

    graph = graph_of(tmp_path, trace.call("cudaMalloc", 190, 408, tid=OTHER).call("cudaMalloc", 700, 5, tid=OTHER))

    assert edges_of(graph, EdgeKind.THREAD_HANDOFF) == ["gap@598 -> ProfilerStep#1@600"]
    assert tasks_of(graph)["cudaLaunchKernel@200"] == 5_000


def test_what_ends_with_the_recording_shows_nothing(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 1000).op("aten::mm", 5, 5).op("aten::to", 990, 20, tid=OTHER)

    graph = graph_of(tmp_path, trace.op("aten::_pin_memory", 0, 1200, tid=LOADER))

    assert edges_of(graph, EdgeKind.THREAD_HANDOFF) == []


def beside_a_busy_thread(seed: int) -> TraceFile:
    """Gaps of any length on the main thread, operators of any length on another that has nothing to do with it."""
    rng = random.Random(seed)
    trace = TraceFile()
    now = 10
    for _ in range(200):
        trace.op("aten::mm", now, 20)
        now += 20 + rng.randrange(25, 150)
    other = 5
    while other < now:
        lasts = rng.randrange(30, 100)
        trace.op("aten::bg", other, lasts, tid=OTHER)
        other += lasts + rng.randrange(1, 10)
    return trace.step(1, 0, now + 200)


def test_a_busy_thread_holds_up_nobody_but_by_a_rare_accident(tmp_path: Path) -> None:
    # One job in fifty may be taken for another by what is believed: of twenty at most one.
    graphs = [graph_of(tmp_path, beside_a_busy_thread(seed)) for seed in range(20)]

    assert sum(bool(edges_of(graph, EdgeKind.THREAD_HANDOFF)) for graph in graphs) <= 1
