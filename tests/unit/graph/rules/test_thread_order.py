from pathlib import Path

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.labels import edges_of, lags_of
from tracereplay.graph.kinds import EdgeKind


def test_segments_of_a_thread_follow_each_other_without_lag(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile().step(1, 0, 100).op("a", 10, 20))

    assert edges_of(graph, EdgeKind.THREAD_ORDER) == [
        "ProfilerStep#1@0 -> a@10",
        "a@10 -> ProfilerStep#1@30",
        "ProfilerStep#1@30 -> gap@100",
    ]
    assert lags_of(graph, EdgeKind.THREAD_ORDER) == [0, 0, 0]


def test_threads_do_not_order_each_other(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile().op("a", 0, 50, tid=1).op("b", 10, 10, tid=1).op("c", 40, 10, tid=2))

    assert edges_of(graph, EdgeKind.THREAD_ORDER) == ["a@0 -> b@10", "b@10 -> a@20", "a@20 -> gap@50", "c@40 -> gap@50"]


def test_a_gap_is_host_time_like_any_other(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile().op("a", 0, 10).op("b", 30, 10))

    assert edges_of(graph, EdgeKind.THREAD_ORDER) == ["a@0 -> gap@10", "gap@10 -> b@30", "b@30 -> gap@40"]
