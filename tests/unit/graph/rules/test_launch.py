from pathlib import Path

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.labels import edges_of, lags_of
from tracereplay.graph.kinds import Basis, EdgeKind, NodeKind

LAUNCH = "cudaLaunchKernel"


def test_work_waits_for_the_start_of_the_call_that_launched_it(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile().step(1, 0, 100).call(LAUNCH, 10, 15, 1).kernel("k", 20, 30, 7, 1))

    launch = graph.edges.kind == EdgeKind.LAUNCH
    assert edges_of(graph, EdgeKind.LAUNCH) == ["cudaLaunchKernel@10 -> k@20"]
    assert (graph.edges.from_start[launch].tolist(), graph.edges.basis[launch].tolist()) == ([True], [Basis.RECORDED])
    assert lags_of(graph, EdgeKind.LAUNCH) == [10_000]


def test_work_launched_from_another_thread_waits_for_that_thread(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 10, 5, 1).call(LAUNCH, 30, 5, 2, tid=2)
    trace.kernel("k", 20, 5, 7, 1).kernel("l", 40, 5, 7, 2)

    graph = graph_of(tmp_path, trace)

    assert edges_of(graph, EdgeKind.LAUNCH) == ["cudaLaunchKernel@10 -> k@20", "cudaLaunchKernel@30 -> l@40"]


def test_work_without_a_call_waits_for_no_launch(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile().step(1, 0, 100).op("a", 10, 5).kernel("k", 20, 30, 7, 1))

    assert edges_of(graph, EdgeKind.LAUNCH) == []


def test_a_collective_of_gloo_is_handed_over_by_its_call(tmp_path: Path) -> None:
    trace = TraceFile(world_size=1).step(1, 0, 100).op("c10d::allreduce_", 10, 5).op("aten::mm", 20, 60)

    graph = graph_of(tmp_path, trace.gloo("gloo:all_reduce", 12, 40, tid=5))

    handed = (graph.edges.kind == EdgeKind.THREAD_HANDOFF) & (graph.nodes.kind[graph.edges.dst] == NodeKind.ARRIVAL)
    assert edges_of(graph, EdgeKind.THREAD_HANDOFF)[0] == "c10d::allreduce_@10 -> arrival gloo:all_reduce@12"
    assert (graph.edges.from_start[handed][0], graph.edges.basis[handed][0]) == (True, Basis.INFERRED)
