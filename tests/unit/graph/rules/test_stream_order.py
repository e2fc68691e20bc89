from pathlib import Path

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.labels import edges_of, lags_of
from tracereplay.graph.kinds import EdgeKind


def test_work_of_a_stream_runs_in_order(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile().kernel("a", 20, 10, 7).kernel("c", 60, 10, 7).kernel("b", 35, 10, 7))

    assert edges_of(graph, EdgeKind.STREAM_ORDER) == ["a@20 -> b@35", "b@35 -> c@60"]


def test_the_lag_is_the_typical_gap(tmp_path: Path) -> None:
    trace = TraceFile().kernel("a", 0, 10, 7).kernel("b", 12, 10, 7).kernel("c", 25, 10, 7).kernel("d", 45, 10, 7)

    graph = graph_of(tmp_path, trace)

    # gaps 2, 3 and 10
    assert lags_of(graph, EdgeKind.STREAM_ORDER) == [3_000, 3_000, 3_000]


def test_streams_and_devices_do_not_order_each_other(tmp_path: Path) -> None:
    trace = TraceFile().kernel("a", 20, 10, 7).kernel("b", 35, 10, 20).kernel("c", 50, 10, 7, device=1)

    assert edges_of(graph_of(tmp_path, trace), EdgeKind.STREAM_ORDER) == []


def test_work_that_overlaps_its_predecessor_waits_for_its_start_with_the_recorded_distance(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile().kernel("a", 20, 20, 7).kernel("b", 30, 20, 7))

    assert edges_of(graph, EdgeKind.STREAM_ORDER) == ["a@20 -> b@30"]
    assert lags_of(graph, EdgeKind.STREAM_ORDER) == [10_000]
    assert graph.edges.from_start.tolist() == [True]


def test_work_that_begins_as_its_predecessor_ends_does_not_overlap(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile().kernel("a", 20, 10, 7).kernel("b", 30, 10, 7))

    assert graph.edges.from_start.tolist() == [False]


def test_a_communication_thread_takes_its_next_collective_when_it_has_done_the_last(tmp_path: Path) -> None:
    trace = (
        TraceFile(world_size=1).op("a", 0, 100).gloo("gloo:all_reduce", 10, 20, tid=5).gloo("gloo:all_to_all", 40, 20, tid=5)
    )

    graph = graph_of(tmp_path, trace)

    assert "transfer gloo:all_reduce@10 -> arrival gloo:all_to_all@40" in edges_of(graph, EdgeKind.THREAD_ORDER)
    assert edges_of(graph, EdgeKind.STREAM_ORDER) == []


def test_work_without_a_recorded_stream_has_no_order(tmp_path: Path) -> None:
    trace = TraceFile().kernel("a", 20, 10, 7)
    for name, ts in (("b", 40), ("c", 45), ("d", 60)):
        trace.event("kernel", name, ts, 10, pid=0, tid="no stream", args={"device": 0})

    assert edges_of(graph_of(tmp_path, trace), EdgeKind.STREAM_ORDER) == []
