"""Graphs written task by task, and when their replay says that everything happens."""

import numpy as np
import pytest

from tracereplay.analyzers.attribution import attribute
from tracereplay.errors import UsageError
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import Collective, DependencyGraph
from tracereplay.graph.written import GraphWriter
from tracereplay.replay.contention import links_of
from tracereplay.replay.engine import replay
from tracereplay.replay.settle import settled
from tracereplay.replay.whatif import apply, parse_scale
from tracereplay.trace.classify import WorkClass

GEMM, EMBEDDING = WorkClass.GEMM, WorkClass.EMBEDDING


def all_reduce(ranks: tuple[int, ...], size: int = 100) -> Collective:
    return Collective("all_reduce", 0, 0, "all", size, False, ranks, (), (), None, (), (), None)


def two_ranks() -> GraphWriter:
    """
    rank 0  compute  |--a 10--|                       |-- c 5 --|
            comm              |···|-- 7 --|···········^
    rank 1  compute  |-----b 30-----|
            comm                    |-- 9 --|
    """
    writer = GraphWriter(2, "by hand")
    a = writer.work(0, "compute", "a", (GEMM, 10))
    b = writer.work(1, "compute", "b", (EMBEDDING, 30))
    ends = writer.collective(all_reduce((0, 1)), "comm", "sum", [7, 9], {0: [a], 1: [b]})
    writer.work(0, "compute", "c", (GEMM, 5), [ends[0]])
    return writer


def times(graph: DependencyGraph) -> dict[str, tuple[int, int]]:
    schedule = replay(graph)
    wanted = [n for n in range(len(graph)) if graph.nodes.kind[n] not in {NodeKind.ARRIVAL, NodeKind.RENDEZVOUS}]
    found = {}
    for n in wanted:
        rank, row = int(graph.nodes.rank[n]), int(graph.nodes.row[n])
        found[f"{graph.tables[rank].name_of(row)}@{rank}"] = (int(schedule.start_ns[n]), int(schedule.end_ns[n]))
    return found


def test_work_runs_in_order_and_a_collective_starts_with_the_last_to_arrive() -> None:
    assert times(two_ranks().graph()) == {
        "a@0": (0, 10), "b@1": (0, 30), "sum@0": (30, 37), "sum@1": (30, 39), "c@0": (37, 42),
    }  # fmt: skip


def test_work_of_one_stream_waits_for_the_work_before_it_and_streams_run_side_by_side() -> None:
    writer = GraphWriter(1, "by hand")
    first = writer.work(0, "one", "first", (GEMM, 10))
    writer.work(0, "one", "second", (GEMM, 10))
    writer.work(0, "two", "beside", (GEMM, 3))
    writer.work(0, "two", "after", (GEMM, 1), [first])

    assert times(writer.graph()) == {"first@0": (0, 10), "second@0": (10, 20), "beside@0": (0, 3), "after@0": (10, 11)}


def test_a_settled_graph_is_as_if_its_replay_had_been_recorded() -> None:
    graph = settled(two_ranks().graph())

    assert [(s.rank, s.start_ns, s.end_ns, s.drain_ns) for s in graph.steps] == [(0, 0, 42, 42), (1, 0, 39, 39)]
    (collective,) = graph.collectives
    assert (collective.start_ns, collective.end_ns, collective.transfer_ns) == ((10, 30), (37, 39), 7)
    assert collective.wait_ns == (20, 2)
    assert graph.tables[0].column("ts_ns").tolist() == [0, 10, 37]
    assert np.array_equal(replay(graph).start_ns, graph.nodes.start_ns)


def test_analyzers_take_a_settled_graph_as_any_other() -> None:
    found = attribute(settled(two_ranks().graph()))

    assert found.step_ns == found.sum_ns == 42
    assert {part.name: part.ns for part in found.parts} == {"embedding": 30, "collective_transfer": 7, "gemm": 5}
    assert [(w.rank, w.caused_by_rank, w.cause, w.ns) for w in found.waits] == [(0, 1, "embedding", 20)]


def test_scenarios_select_written_work_by_name_and_class() -> None:
    graph = settled(two_ranks().graph())

    by_name = replay(graph, apply(graph, [parse_scale("kernel:b=0.5x")]).timing)
    by_kind = replay(graph, apply(graph, [parse_scale("collective:all_reduce=2x")]).timing)

    assert int(by_name.end_ns.max()) == 15 + 7 + 5
    assert int(by_kind.end_ns.max()) == 30 + 14 + 5


def test_negative_times_and_no_ranks_are_refused() -> None:
    with pytest.raises(UsageError, match="takes -1 ns"):
        GraphWriter(1, "by hand").work(0, "one", "a", (GEMM, -1))
    with pytest.raises(UsageError, match="0 ranks"):
        GraphWriter(0, "by hand")


def test_transfers_that_share_a_link_take_longer_and_the_settled_graph_keeps_that() -> None:
    writer = GraphWriter(1, "by hand")
    first = writer.collective(all_reduce((0,)), "one", "first", [10], {})
    second = writer.collective(all_reduce((0,)), "two", "second", [10], {})
    graph = writer.graph()
    links = links_of(graph, {first[0]: [0], second[0]: [0]}, [1.0])

    shared = settled(graph, links)

    assert [c.transfer_ns for c in shared.collectives] == [20, 20]
    assert int(replay(shared).end_ns.max()) == 20
    assert int(replay(settled(graph)).end_ns.max()) == 10
