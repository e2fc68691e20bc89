from pathlib import Path

from tests.fakes.graphs import Edge, Task, graph_by_hand
from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.labels import event_edges_of
from tests.fakes.workloads import late_peer
from tracereplay.graph.build import build_graph
from tracereplay.graph.event_edges import SCHEMA, event_edges
from tracereplay.graph.kinds import EdgeKind
from tracereplay.graph.model import StepSpan
from tracereplay.trace.job import read_job

LAUNCH = "cudaLaunchKernel"
SYNC = "cudaStreamSynchronize"
MM = "autograd::engine::evaluate_function: MmBackward0"


def test_thread_order_joins_neighbours_under_one_parent(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).op("a", 10, 10).op("b", 30, 30).op("in_b", 35, 5).op("in_b_too", 50, 5).op("c", 60, 5)

    edges = event_edges_of(graph_of(tmp_path, trace), EdgeKind.THREAD_ORDER)

    # Between a and b the step itself runs for 10 µs, between the two in b for 10 µs b itself; c follows at once.
    assert edges == ["a@10 -> b@30 recorded 10", "in_b@35 -> in_b_too@50 recorded 10", "b@30 -> c@60 recorded 0"]


def test_threads_do_not_mix(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).op("a", 10, 10).op("other", 15, 10, tid=2).op("b", 30, 10).op("next", 45, 10, tid=2)

    edges = event_edges_of(graph_of(tmp_path, trace), EdgeKind.THREAD_ORDER)

    assert edges == ["a@10 -> b@30 recorded 10", "other@15 -> next@45 recorded 20"]


def test_events_of_no_length_have_their_place(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).op("a", 10, 10).op("point", 25, 0).op("b", 30, 10)

    edges = event_edges_of(graph_of(tmp_path, trace), EdgeKind.THREAD_ORDER)

    assert edges == ["a@10 -> point@25 recorded 5", "point@25 -> b@30 recorded 5"]


def test_what_was_waited_is_no_lag_of_thread_order(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 1000).op("forward", 10, 90).op("optimizer", 420, 80).op(MM, 150, 250, tid=2)

    graph = graph_of(tmp_path, trace)

    # 50 of the 320 µs between the two operators are the host's own; then it waits for the backward thread.
    assert event_edges_of(graph, EdgeKind.THREAD_ORDER) == ["forward@10 -> optimizer@420 recorded 50"]
    assert event_edges_of(graph, EdgeKind.THREAD_HANDOFF) == [
        f"{MM}@150 -> optimizer@420 inferred 20",
        f"forward@10 -> {MM}@150 inferred 50",
    ]


def test_what_is_received_in_a_gap_belongs_to_the_event_that_follows(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 1000).op("forward", 10, 90).op(MM, 150, 250, tid=2).step(2, 1000, 100).op("next", 1010, 5)

    edges = event_edges_of(graph_of(tmp_path, trace), EdgeKind.THREAD_HANDOFF)

    # Nothing else begins in step 1: the host is next seen 600 µs after the backward pass has ended.
    assert edges[1] == f"{MM}@150 -> ProfilerStep#2@1000 inferred 600"


def test_a_launch_leads_from_its_call_and_counts_from_the_call_s_start(tmp_path: Path) -> None:
    # In a trace of whole microseconds the call's parent may begin with it.
    trace = TraceFile().step(1, 0, 100).op("aten::mm", 10, 20).call(LAUNCH, 10, 5, 1).kernel("gemm", 22, 30, 7, 1)

    assert event_edges_of(graph_of(tmp_path, trace), EdgeKind.LAUNCH) == [f"{LAUNCH}@10 -> gemm@22 recorded 12"]


def test_stream_order_leads_to_the_next_work(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 10, 2, 1).call(LAUNCH, 14, 2, 2).call(LAUNCH, 18, 2, 3)
    trace.kernel("a", 20, 10, 7, 1).kernel("b", 33, 10, 7, 2).kernel("c", 46, 10, 7, 3)

    edges = event_edges_of(graph_of(tmp_path, trace), EdgeKind.STREAM_ORDER)

    assert edges == ["a@20 -> b@33 recorded 3", "b@33 -> c@46 recorded 3"]


def test_legal_overlap_on_a_stream_is_a_negative_lag(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 10, 2, 1).call(LAUNCH, 14, 2, 2)

    graph = graph_of(tmp_path, trace.kernel("a", 20, 10, 7, 1).kernel("b", 26, 10, 7, 2))

    assert event_edges_of(graph, EdgeKind.STREAM_ORDER) == ["a@20 -> b@26 recorded -4"]


def test_sync_leads_to_the_call_that_waits(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 10, 2, 1).kernel("k", 15, 35, 7, 1).call(SYNC, 20, 32).op("after", 52, 5)

    assert event_edges_of(graph_of(tmp_path, trace), EdgeKind.SYNC) == [f"k@15 -> {SYNC}@20 inferred 2"]


def test_event_waits_join_works(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 10, 2, 1).call("cudaStreamWaitEvent", 20, 2).call(LAUNCH, 30, 2, 2)

    graph = graph_of(tmp_path, trace.kernel("a", 15, 35, 7, 1).kernel("c", 55, 5, 20, 2))

    assert event_edges_of(graph, EdgeKind.EVENT_WAIT) == ["a@15 -> c@55 inferred 5"]


def test_a_collective_leads_from_the_last_to_arrive_to_the_others(tmp_path: Path) -> None:
    kernel = "ncclDevKernel_AllReduce"
    starts = {0: 10, 1: 30, 2: 20}
    ranks = [TraceFile(r, 3).op("a", 0, 100).kernel(kernel, at, 60 - at, 7) for r, at in starts.items()]

    edges = event_edges_of(graph_of(tmp_path, *ranks), EdgeKind.COLLECTIVE)

    assert edges == [f"1:{kernel}@30 -> 0:{kernel}@10 inferred 0", f"1:{kernel}@30 -> 2:{kernel}@20 inferred 0"]


def test_a_collective_of_a_cpu_backend_is_enqueued_by_its_call_and_waited_for(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 200).op("c10d::alltoall_base_", 10, 10).op("record_param_comms", 10, 4)
    trace.annotation("## exchange ##", 60, 50).op("aten::add", 110, 20).gloo("gloo:all_to_all", 25, 70, tid=5)

    edges = event_edges_of(graph_of(tmp_path, trace), EdgeKind.THREAD_HANDOFF)

    # 15 µs after the call began and 5 after it ended; the host goes on 15 µs after the exchange has ended.
    assert edges == [
        "gloo:all_to_all@25 -> aten::add@110 inferred 15",
        "c10d::alltoall_base_@10 -> gloo:all_to_all@25 inferred 5",
    ]


def test_collectives_of_one_communication_thread_follow_each_other(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 200).op("c10d::allreduce_", 10, 5).op("c10d::allreduce_", 20, 5)

    graph = graph_of(tmp_path, trace.gloo("gloo:all_reduce", 30, 20, tid=5).gloo("gloo:all_reduce", 53, 20, tid=5))

    between = [edge for edge in event_edges_of(graph, EdgeKind.THREAD_ORDER) if "gloo" in edge]
    assert [edge.rsplit(" ", 1)[0] for edge in between] == ["gloo:all_reduce@30 -> gloo:all_reduce@53 recorded"]


def test_an_event_is_its_index_in_the_file(tmp_path: Path) -> None:
    trace = TraceFile(4, 8).step(1, 0, 100)
    trace.events.insert(0, {"ph": "M", "name": "process_name", "pid": 1})
    trace.op("a", 10, 10).op("b", 30, 10)

    table = event_edges(graph_of(tmp_path, trace)).table

    assert table.schema == SCHEMA
    assert [tuple(row.values()) for row in table.to_pylist()] == [(4, 2, 4, 3, "thread_order", "recorded", 10_000)]


def test_a_rank_that_nothing_says_is_null(tmp_path: Path) -> None:
    path = TraceFile().step(1, 0, 100).op("a", 10, 10).op("b", 30, 10).write(tmp_path, "trace.json")

    table = event_edges(build_graph(read_job([str(path)]))).table

    assert table.column("src_rank").to_pylist() == table.column("dst_rank").to_pylist() == [None]


def test_edges_without_an_event_are_counted() -> None:
    step = StepSpan(0, 1, 0, 1, 0, 2, None, 0)
    result = event_edges(graph_by_hand([Task(0, 1), Task(1, 1)], [Edge(0, 1, kind=EdgeKind.THREAD_HANDOFF)], [step]))

    assert (len(result.table), result.without_event) == (0, 1)


def test_edges_are_counted_by_kind_and_basis(tmp_path: Path) -> None:
    counts = event_edges(graph_of(tmp_path, *late_peer())).counts()

    assert {kind: n for kind, n in counts.items() if any(n.values())} == {
        "thread_order": {"recorded": 4, "inferred": 0},
        "launch": {"recorded": 2, "inferred": 0},
        "sync": {"recorded": 0, "inferred": 4},
        "collective": {"recorded": 0, "inferred": 1},
    }
