from pathlib import Path

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.workloads import ALL_REDUCE, LAUNCH, SYNC, late_peer
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import replay
from tracereplay.replay.retime import NO_CALL, NO_WORK, OUTSIDE, Retimed, retime
from tracereplay.replay.whatif import apply, parse_scale


def retimed(graph: DependencyGraph, *changes: str) -> tuple[Retimed, ...]:
    timing = apply(graph, [parse_scale(change) for change in changes]).timing
    return retime(graph, replay(graph, timing))


def told(graph: DependencyGraph, *changes: str, rank: int = 0) -> dict[str, tuple[float, float]]:
    """Begin and duration in µs of each event that is kept, by name and recorded begin."""
    found, table = retimed(graph, *changes)[rank], graph.tables[rank]
    rows = zip(found.row.tolist(), found.start_ns.tolist(), found.dur_ns.tolist(), strict=True)
    return {f"{table.name_of(r)}@{table.column('ts_ns')[r] // 1_000}": (s / 1_000, d / 1_000) for r, s, d in rows}


def test_a_faster_collective_ends_the_calls_that_wait_for_it_earlier(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, *late_peer())

    # The transfer takes 25 instead of 50 µs: from 70 on, when rank 1 arrives. Both hosts go on 5 µs after it.
    assert told(graph, "collective:*=0.5x") == {
        "ProfilerStep#1@0": (0, 175),
        f"{LAUNCH}@10": (10, 5),
        f"{ALL_REDUCE}@20": (20, 75),
        f"{SYNC}@30": (30, 70),
        f"{SYNC}@150": (125, 2),
    }
    assert told(graph, "collective:*=0.5x", rank=1) == {
        "ProfilerStep#1@0": (0, 175),
        f"{LAUNCH}@60": (60, 5),
        f"{ALL_REDUCE}@70": (70, 25),
        f"{SYNC}@80": (80, 20),
        f"{SYNC}@150": (125, 2),
    }


def test_events_nest_as_they_did(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("outer", 10, 60).op("inner", 20, 30).op("point", 50, 0)

    graph = graph_of(tmp_path, trace)

    # Everything is twice as fast: each border lies half as far from the start.
    assert told(graph, "host=0.5x") == {
        "ProfilerStep#1@0": (0, 50),
        "outer@10": (5, 30),
        "inner@20": (10, 15),
        "point@50": (25, 0),
    }


def test_an_event_that_sticks_out_of_the_one_around_it_keeps_its_share_of_what_follows(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("outer", 10, 60).op("out", 50, 30)

    assert told(graph_of(tmp_path, trace), "host=0.5x")["out@50"] == (25, 15)


def test_a_range_on_a_stream_moves_with_the_work_under_it(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 200).call(LAUNCH, 10, 2, 1).call(LAUNCH, 14, 2, 2)
    trace.kernel("a", 20, 30, 7, 1).kernel("b", 52, 20, 7, 2)
    trace.event("gpu_user_annotation", "range", 19, 54, pid=0, tid=7)

    # The kernels take 15 and 10 µs: from 20 to 35 and from 37 to 47; the range began 1 µs before and ended 1 after.
    assert told(graph_of(tmp_path, trace), "kernel:*=0.5x")["range@19"] == (19, 29)


def test_a_sync_row_moves_with_its_call(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 200).call(LAUNCH, 10, 2, 1).kernel("k", 20, 60, 7, 1).call(SYNC, 30, 53, 9)
    trace.event("cuda_sync", "Stream Sync", 31, 51, pid=0, tid=7, args={"stream": 7, "correlation": 9})

    found = told(graph_of(tmp_path, trace), "kernel:*=0.5x")

    # The kernel ends at 50, the call 3 µs later, as recorded; the row begins and ends 1 µs inside the call.
    assert (found[f"{SYNC}@30"], found["Stream Sync@31"]) == ((30, 23), (31, 21))


def test_of_two_calls_with_one_id_a_sync_row_moves_with_the_one_before_it(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 200).call(LAUNCH, 10, 2, 1).kernel("k", 20, 60, 7, 1).call(SYNC, 30, 53, 9)
    trace.event("cuda_sync", "Stream Sync", 31, 51, pid=0, tid=7, args={"stream": 7, "correlation": 9})

    found = told(graph_of(tmp_path, trace.call(SYNC, 150, 4, 9)), "kernel:*=0.5x")

    assert found["Stream Sync@31"] == (31, 21)


def test_what_the_graph_does_not_cover_is_left_out_and_counted(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).op("before", 0, 10).step(1, 20, 100).op("a", 30, 5).op("after", 130, 10).op("lost", 40, -1)
    trace.event("Trace", "PyTorch Profiler (0)", 0, 200).event("gpu_user_annotation", "range", 40, 5, pid=0, tid=7)
    trace.event("cuda_sync", "Event Sync", 50, 5, pid=0, tid=7, args={"stream": 7, "correlation": 4})

    graph = graph_of(tmp_path, trace)

    assert list(told(graph)) == ["ProfilerStep#1@20", "a@30"]
    assert retimed(graph)[0].left_out == {NO_CALL: 1, NO_WORK: 1, OUTSIDE: 3, "category Trace": 1}


def test_a_collective_of_a_cpu_backend_is_work_of_its_thread(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 200).op("c10d::alltoall_base_", 10, 10).annotation("## exchange ##", 60, 50)

    found = told(graph_of(tmp_path, trace.op("aten::add", 110, 20).gloo("gloo:all_to_all", 25, 70, tid=5)), "collective:*=0.5x")

    # 35 instead of 70 µs; the host, which waited for it up to 110, comes there 35 µs earlier.
    assert (found["gloo:all_to_all@25"], found["## exchange ##@60"], found["aten::add@110"]) == ((25, 35), (60, 15), (75, 20))
