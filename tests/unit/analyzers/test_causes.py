import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.fakes.graphs import Edge, Task, graph_by_hand
from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.simulated import jobs
from tests.fakes.workloads import ALL_REDUCE, LAUNCH, SYNC, late_peer
from tracereplay.analyzers.causes import (
    BEFORE_STEP,
    RECORDED,
    STEP_START,
    Causes,
    Other,
    Place,
    Target,
    explain,
    target_of_event,
    target_of_name,
)
from tracereplay.errors import TraceError, UsageError
from tracereplay.graph.kinds import EdgeKind
from tracereplay.graph.model import DependencyGraph, StepSpan
from tracereplay.replay.engine import recorded_timing, replay


def told(causes: Causes) -> list[str]:
    """The chain in words: rank, name and start of each task in µs, and by which edge it came after the next."""
    return [
        f"{link.place.rank}:{link.place.name}@{link.start_ns / 1_000:g}" + (f" {link.because.kind}" if link.because else "")
        for link in causes.chain
    ]


def goes_on(graph: DependencyGraph) -> int:
    """The task at which rank 0 goes on after its first synchronisation."""
    nodes, dst = graph.nodes, graph.edges.dst[graph.edges.kind == EdgeKind.SYNC]
    return int(dst[(nodes.rank[dst] == 0) & (nodes.start_ns[dst] == 125_000)][0])


@pytest.fixture
def peers(tmp_path: Path) -> DependencyGraph:
    return graph_of(tmp_path, *late_peer())


def test_the_chain_leads_over_the_ranks_to_the_one_that_was_late(peers: DependencyGraph) -> None:
    # Rank 0 goes on after its first synchronisation because rank 1 launched the all-reduce late.
    causes = explain(peers, target_of_name(peers, SYNC, 1, 0))
    after = explain(peers, Target(goes_on(peers), 0, -1))

    assert told(causes) == [
        f"0:{SYNC}@30 thread_order",
        "0:ProfilerStep#1@15 thread_order",
        f"0:{LAUNCH}@10 thread_order",
        "0:ProfilerStep#1@0",
    ]
    assert told(after) == [
        "0:ProfilerStep#1@125 sync",
        f"0:{ALL_REDUCE}@70 collective",
        "None:all_reduce@70 collective",
        f"1:{ALL_REDUCE}@70 launch",
        f"1:{LAUNCH}@60 thread_order",
        "1:ProfilerStep#1@0",
    ]
    assert after.ends_with == STEP_START


def test_the_reason_comes_with_evidence_lag_and_slack() -> None:
    # The host is through at 15; the kernel ends at 48 and wakes it 2 later: the host could have been 35 later.
    tasks = [Task(0, 10), Task(10, 5), Task(50, 20), Task(8, 40)]
    edges = [Edge(0, 1), Edge(1, 2), Edge(0, 3, lag=8, from_start=True, kind=EdgeKind.LAUNCH)]
    edges.append(Edge(3, 2, lag=2, kind=EdgeKind.SYNC))
    graph = graph_by_hand(tasks, edges, [StepSpan(0, 0, 0, 2, 0, 70, None, 0)])

    because = explain(graph, Target(2, 0, -1)).chain[0].because

    assert because is not None
    assert (because.kind, because.basis, because.from_start) == ("sync", "recorded", False)
    assert because.reason == "a host call returns when device work has ended"
    assert (because.lag_ns, because.rest_ns, because.slack_ns) == (2, 0, 35)
    assert because.others == (Other(Place(0, None, "gap"), "thread_order", "recorded", 35),)


def test_a_residue_is_the_rest() -> None:
    graph = graph_by_hand([Task(0, 10), Task(17, 5, residue=7)], [Edge(0, 1)], [StepSpan(0, 0, 0, 0, 0, 22, None, 0)])

    because = explain(graph, Target(1, 0, -1)).chain[0].because

    assert because is not None
    assert (because.lag_ns, because.rest_ns, because.slack_ns, because.others) == (0, 7, None, ())


def test_a_chain_may_end_where_nothing_explains_a_start(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).op("a", 10, 5).op("other", 20, 5, tid=2).op("next", 30, 5, tid=2)

    graph = graph_of(tmp_path, trace)
    causes = explain(graph, target_of_name(graph, "next", 1, None))

    assert (told(causes)[-1], causes.ends_with) == ("0:other@20", RECORDED)


def test_a_chain_may_lead_to_work_of_an_earlier_step(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 50).call(LAUNCH, 10, 5, 1).step(2, 50, 100).call(LAUNCH, 60, 5, 2)

    graph = graph_of(tmp_path, trace.kernel("long", 20, 70, 7, 1).kernel("next", 92, 10, 7, 2))
    causes = explain(graph, target_of_name(graph, "next", 2, None))

    assert (told(causes), causes.ends_with) == (["0:next@42 stream_order", "0:long@-30"], BEFORE_STEP)


def test_an_operator_is_the_task_with_which_it_begins(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile(0, 1).step(1, 0, 100).op("outer", 10, 50).op("inner", 10, 20))

    target = target_of_event(graph, 0, 1)

    assert (graph.nodes.start_ns[target.node], graph.name_of(target.node)) == (10_000, "inner")
    assert explain(graph, target).place == Place(0, 1, "outer")


def test_a_collective_is_asked_for_by_its_arrival(peers: DependencyGraph) -> None:
    causes = explain(peers, target_of_event(peers, 0, 2))

    assert told(causes)[:2] == [f"0:{ALL_REDUCE}@20 launch", f"0:{LAUNCH}@10 thread_order"]


def test_the_first_that_fits_on_the_lowest_rank_is_taken_and_all_are_counted(peers: DependencyGraph) -> None:
    target = target_of_name(peers, "cuda*", 1, None)

    assert (target.rank, target.row, target.matches) == (0, 1, 6)
    assert target_of_name(peers, "cuda*", 1, 1).rank == 1


def test_a_name_is_looked_for_in_its_step_alone(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 50).op("a", 10, 5).step(2, 50, 50).op("a", 70, 5)

    target = target_of_name(graph_of(tmp_path, trace), "a", 2, None)

    assert (target.row, target.matches) == (3, 1)


@pytest.mark.parametrize(("name", "step", "rank"), [("nothing", 1, None), (SYNC, 9, None), (SYNC, 1, 7)])
def test_what_fits_nothing_is_said(name: str, step: int, rank: int | None, peers: DependencyGraph) -> None:
    with pytest.raises(TraceError):
        target_of_name(peers, name, step, rank)


def test_an_event_that_is_not_there_is_said(peers: DependencyGraph) -> None:
    with pytest.raises(TraceError, match="event 99 is no complete event"):
        target_of_event(peers, 0, 99)


def test_an_event_outside_the_steps_is_said(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile(0, 1).step(1, 0, 100).op("a", 10, 5).op("late", 200, 5))

    with pytest.raises(TraceError, match=r"event 2 \(late\) is not part of a whole step"):
        target_of_event(graph, 0, 2)


def test_of_several_ranks_one_must_be_named(peers: DependencyGraph) -> None:
    with pytest.raises(UsageError, match="--rank"):
        target_of_event(peers, None, 1)


@settings(max_examples=40, deadline=None)
@given(jobs())
def test_the_chain_s_times_sum_to_the_distance_between_its_ends(traces: list[TraceFile]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        graph = graph_of(Path(folder), *traces)
    for node in range(0, len(graph), 7):
        if graph.step_number[node] < 0 or graph.nodes.row[node] < 0:
            continue
        chain = explain(graph, Target(node, int(graph.nodes.rank[node]), int(graph.nodes.row[node]))).chain
        passed = 0
        for link, cause in pairwise(chain):
            assert link.because is not None
            passed += link.because.lag_ns + link.because.rest_ns + (0 if link.because.from_start else cause.dur_ns)
        assert passed == chain[0].start_ns - chain[-1].start_ns


@settings(max_examples=40, deadline=None)
@given(jobs())
def test_a_cause_may_be_later_by_its_slack_and_not_by_more(traces: list[TraceFile]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        graph = graph_of(Path(folder), *traces)
    timing, edges = recorded_timing(graph), graph.edges
    recorded = replay(graph)
    for node in [n for n in range(len(graph)) if edges.first[n + 1] - edges.first[n] > 1][:12]:
        if graph.nodes.row[node] < 0 or graph.step_number[node] < 0:
            continue
        because = explain(graph, Target(node, int(graph.nodes.rank[node]), int(graph.nodes.row[node]))).chain[0].because
        for edge in range(edges.first[node], edges.first[node + 1]):
            # A longer lag is a later cause, where the lag counts (see replay: a residue may cancel it).
            if because is None or edge == recorded.waited_for[node] or edges.lag_ns[edge] + graph.nodes.residue_ns[node] < 0:
                continue
            slack = {(o.place, o.kind): o.slack_ns for o in because.others}
            mine = slack[_place(graph, int(edges.src[edge])), EdgeKind(edges.kind[edge]).name.lower()]
            for more, moved in ((0, 0), (1_000, 1_000)):
                lags = timing.lag_ns.copy()
                lags[edge] += mine + more
                start = replay(graph, replace(timing, lag_ns=lags)).start_ns[node]
                assert start == recorded.start_ns[node] + moved


def _place(graph: DependencyGraph, node: int) -> Place:
    rank, row = int(graph.nodes.rank[node]), int(graph.nodes.row[node])
    event = int(graph.tables[rank].column("event")[row]) if rank >= 0 and row >= 0 else None
    return Place(graph.rank_numbers[rank] if rank >= 0 else None, event, graph.name_of(node))
