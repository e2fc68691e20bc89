from pathlib import Path

from tests.fakes.jobs import graph_of, table_of
from tests.fakes.kineto import TraceFile
from tests.fakes.labels import edges_of, tasks_of
from tracereplay.graph.kinds import EdgeKind
from tracereplay.graph.rules.host_collective import match_calls
from tracereplay.trace.collectives import is_host_annotation
from tracereplay.trace.schema import Role

BACKWARD = "autograd::engine::evaluate_function: MmBackward0"
GLOO = 5


def waits_of(folder: Path, *traces: TraceFile) -> list[str]:
    """Edges from collectives back to the host."""
    return [
        edge
        for edge in edges_of(graph_of(folder, *traces), EdgeKind.THREAD_HANDOFF)
        if "transfer gloo" in edge.split(" -> ")[0]
    ]


def exchange(trace: TraceFile, at: int, *, waits_until: int, ends: int) -> TraceFile:
    """From ``at`` on: an all-to-all is enqueued, 30 µs are computed, the exchange is waited for, 20 µs are computed."""
    trace.op("c10d::alltoall_base_", at + 10, 10).op("aten::mm", at + 30, 30)
    trace.annotation("## exchange ##", at + 60, waits_until - at - 60).op("aten::add", waits_until, 20)
    return trace.gloo("gloo:all_to_all", at + 20, ends - at - 20, tid=GLOO)


def test_annotations_of_cpu_backends_are_communication() -> None:
    names = ("gloo:all_to_all", "mpi:all_reduce", "ucc:broadcast", "nccl:all_reduce", "## gloo: ##")

    assert [is_host_annotation(name) for name in names] == [True, True, True, False, False]


def test_collectives_of_a_kind_belong_to_the_calls_of_that_kind_in_order(tmp_path: Path) -> None:
    trace = TraceFile().op("c10d::alltoall_base_", 10, 5).op("c10d::allreduce_", 20, 5).op("c10d::alltoall_base_", 30, 5)
    trace.gloo("gloo:all_reduce", 25, 5, tid=GLOO).gloo("gloo:all_to_all", 40, 5, tid=GLOO).gloo(
        "gloo:all_to_all", 12, 5, tid=GLOO
    )
    table = table_of(tmp_path, trace)

    assert match_calls(table, table.rows_of(Role.ANNOTATION)).tolist() == [1, 2, 0]


def test_a_collective_that_began_before_every_call_belongs_to_none(tmp_path: Path) -> None:
    trace = TraceFile().gloo("gloo:all_reduce", 5, 5, tid=GLOO).op("c10d::allreduce_", 10, 5)
    trace.gloo("gloo:all_reduce", 12, 5, tid=GLOO).gloo("gloo:all_reduce", 20, 5, tid=GLOO)
    table = table_of(tmp_path, trace)

    assert match_calls(table, table.rows_of(Role.ANNOTATION)).tolist() == [-1, 1, -1]


def test_the_host_waits_where_it_was_seen_to_go_on_as_the_collective_ended(tmp_path: Path) -> None:
    trace = exchange(TraceFile(0, 1).step(1, 0, 300), 0, waits_until=200, ends=195)

    graph = graph_of(tmp_path, trace)

    assert edges_of(graph, EdgeKind.THREAD_HANDOFF) == [
        "c10d::alltoall_base_@10 -> arrival gloo:all_to_all@20",
        "transfer gloo:all_to_all@20 -> aten::add@200",
    ]
    assert tasks_of(graph)["## exchange ##@60"] == 0


def test_a_place_seen_in_one_step_is_the_place_in_every_step(tmp_path: Path) -> None:
    # In step 2 the collective had ended (at 340) before the host came to the place (360): 10 µs are what it costs there.
    trace = exchange(TraceFile(0, 1).step(1, 0, 300), 0, waits_until=200, ends=195)
    exchange(trace.step(2, 300, 300), 300, waits_until=370, ends=340)

    graph = graph_of(tmp_path, trace)

    assert edges_of(graph, EdgeKind.THREAD_HANDOFF)[2:] == [
        "transfer gloo:all_to_all@20 -> aten::add@200",
        "transfer gloo:all_to_all@320 -> aten::add@370",
    ]
    assert (tasks_of(graph)["## exchange ##@60"], tasks_of(graph)["## exchange ##@360"]) == (10_000, 10_000)


def test_a_place_seen_on_one_rank_is_the_place_on_every_rank(tmp_path: Path) -> None:
    waiting = exchange(TraceFile(0, 2).step(1, 0, 300), 0, waits_until=200, ends=195)
    late = exchange(TraceFile(1, 2).step(1, 0, 300), 130, waits_until=205, ends=195)

    assert waits_of(tmp_path, waiting, late) == [
        "0:transfer gloo:all_to_all@150 -> 0:aten::add@200",
        "1:transfer gloo:all_to_all@150 -> 1:aten::add@205",
    ]


def test_a_place_that_one_step_passed_before_the_end_is_refuted_for_all(tmp_path: Path) -> None:
    # Step 2 went on at 370 while its collective ran until 450: nobody waits there. Both wait by the end of their step.
    trace = exchange(TraceFile(0, 1).step(1, 0, 300), 0, waits_until=200, ends=195)
    exchange(trace.step(2, 300, 300), 300, waits_until=370, ends=450)

    assert waits_of(tmp_path, trace) == [
        "transfer gloo:all_to_all@20 -> ProfilerStep#2@300",
        "transfer gloo:all_to_all@320 -> gap@600",
    ]


def test_the_body_of_an_operator_is_no_place_to_wait(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 300).op("c10d::alltoall_base_", 10, 10).op("aten::mm", 30, 170).op("aten::add", 200, 20)
    trace.step(2, 300, 100).op("aten::mm", 310, 50).gloo("gloo:all_to_all", 20, 175, tid=GLOO)

    assert waits_of(tmp_path, trace) == ["transfer gloo:all_to_all@20 -> ProfilerStep#2@300"]


def test_a_host_that_went_on_long_after_the_end_did_not_wait_there(tmp_path: Path) -> None:
    # 2 ms after a wait of 140 µs: later than any wake-up.
    trace = exchange(TraceFile(0, 1).step(1, 0, 5000), 0, waits_until=2195, ends=195)
    trace.step(2, 5000, 100).op("aten::mm", 5010, 50)

    assert waits_of(tmp_path, trace) == ["transfer gloo:all_to_all@20 -> ProfilerStep#2@5000"]


def test_a_forward_exchange_that_nobody_was_seen_waiting_for_ends_before_the_backward_pass(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 3000).op("c10d::alltoall_base_", 10, 10).op("aten::mm", 30, 970)
    trace.op(BACKWARD, 1000, 500).op("optimizer", 2000, 100)

    assert waits_of(tmp_path, trace.gloo("gloo:all_to_all", 20, 100, tid=GLOO)) == [
        f"transfer gloo:all_to_all@20 -> {BACKWARD}@1000"
    ]


def test_an_all_reduce_of_the_backward_pass_ends_with_the_backward_pass(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 5000).op(BACKWARD, 1000, 500).op("c10d::allreduce_", 1100, 10)
    trace.op(BACKWARD, 1600, 900).op("optimizer", 4000, 100)

    waits = waits_of(tmp_path, trace.gloo("gloo:all_reduce", 1110, 100, tid=GLOO))

    assert waits == ["transfer gloo:all_reduce@1110 -> ProfilerStep#1@2500"]


def test_a_collective_that_outlasts_its_step_has_no_place_and_is_counted(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 300).op("c10d::alltoall_base_", 10, 10).op("aten::mm", 30, 30)

    graph = graph_of(tmp_path, trace.gloo("gloo:all_to_all", 20, 330, tid=GLOO))

    assert edges_of(graph, EdgeKind.THREAD_HANDOFF) == ["c10d::alltoall_base_@10 -> arrival gloo:all_to_all@20"]
    assert graph.coverage.refuted == 1


def test_the_second_of_two_like_places_is_told_from_the_first(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 3000).op("c10d::alltoall_base_", 10, 10).op("aten::mm", 30, 30)
    trace.annotation("wait", 60, 5).op("aten::add", 65, 1000).annotation("wait", 1065, 100).op("aten::add", 1165, 20)

    waits = waits_of(tmp_path, trace.gloo("gloo:all_to_all", 20, 1140, tid=GLOO))

    assert waits == ["transfer gloo:all_to_all@20 -> aten::add@1165"]
