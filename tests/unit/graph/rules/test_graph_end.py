from pathlib import Path

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.labels import edges_of
from tracereplay.graph.kinds import EdgeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import replay
from tracereplay.replay.steps import step_times
from tracereplay.replay.whatif import apply, parse_scale

LAUNCH, GRAPH = "cudaLaunchKernel", "cudaGraphLaunch"


def forked(leaf_us: int = 20, behind_at: int = 90) -> TraceFile:
    """``a``, a graph of ``root`` on stream 7 and ``leaf`` on stream 20, then ``c``; the host waits for stream 7 at the end."""
    trace = TraceFile().step(1, 0, 300).call(LAUNCH, 5, 2, 1).call(GRAPH, 10, 5, 2).call(LAUNCH, 20, 2, 3)
    trace.kernel("a", 12, 18, 7, 1).kernel("root", 31, 50, 7, 2).kernel("leaf", 32, leaf_us, 20, 2)
    return trace.kernel("c", behind_at, 10, 7, 3)


def step_us(graph: DependencyGraph, *scales: str) -> float:
    timing = apply(graph, [parse_scale(scale) for scale in scales]).timing
    return step_times(graph, replay(graph, timing))[0].dur_ns / 1_000


def test_a_graph_waits_for_its_stream_and_what_comes_behind_waits_for_all_of_the_graph(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, forked())

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == ["a@12 -> leaf@32", "leaf@32 -> c@90"]
    assert graph.coverage.refuted == 0


def test_a_branch_that_had_slack_delays_what_comes_behind_once_it_is_the_longer_one(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, forked().call("cudaStreamSynchronize", 30, 80, 4).op("aten::end", 115, 185))

    # leaf ends at 52 and c begins at 90: ten times as long it ends at 232.
    assert step_us(graph, "kernel:leaf=2x") == 300
    assert step_us(graph, "kernel:leaf=10x") >= 232 + 10 + 185


def test_a_start_that_contradicts_is_counted_and_makes_no_edge(tmp_path: Path) -> None:
    # The leaf runs until 152, but c has begun at 90: the graph was launched into another stream than c.
    graph = graph_of(tmp_path, forked(leaf_us=120))

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == []
    assert graph.coverage.refuted == 2


def test_a_call_that_waits_for_the_graph_waits_for_all_of_its_streams(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 300).call(GRAPH, 10, 5, 2).kernel("root", 31, 50, 7, 2).kernel("leaf", 32, 20, 20, 2)

    graph = graph_of(tmp_path, trace.call("cudaStreamSynchronize", 20, 66, 4))

    assert [edge.split(" -> ")[0] for edge in edges_of(graph, EdgeKind.SYNC)] == ["root@31", "leaf@32"]
