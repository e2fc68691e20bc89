"""Whatever the trace: edges join events that are there, in the order of the program, and none is lost or made twice."""

import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.simulated import jobs, wild_jobs
from tracereplay.graph.event_edges import event_edges
from tracereplay.graph.kinds import EdgeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.trace.schema import HOST_ROLES
from tracereplay.trace.table import EventTable

FEW = settings(max_examples=60, deadline=None)


def built(traces: list[TraceFile]) -> DependencyGraph:
    with tempfile.TemporaryDirectory() as folder:
        return graph_of(Path(folder), *traces)


def neighbours(table: EventTable) -> int:
    """How many host events have another before them on their thread under the same parent."""
    rows = table.rows_of(*HOST_ROLES)
    families = Counter((table.codes("tid")[r], table.column("parent_row")[r]) for r in rows)
    return sum(size - 1 for size in families.values())


@FEW
@given(st.one_of(jobs(), wild_jobs()))
def test_every_edge_joins_two_events_of_the_files_once(traces: list[TraceFile]) -> None:
    graph = built(traces)
    rows = event_edges(graph).table.to_pylist()

    there = {
        (rank, int(e)) for rank, table in zip(graph.rank_numbers, graph.tables, strict=True) for e in table.column("event")
    }
    pairs = [((r["src_rank"], r["src_event"]), (r["dst_rank"], r["dst_event"]), r["kind"]) for r in rows]
    assert all(src in there and dst in there and src != dst for src, dst, _ in pairs)
    assert len(set(pairs)) == len(pairs)


@FEW
@given(st.one_of(jobs(), wild_jobs()))
def test_neighbours_on_a_thread_begin_in_order_and_each_has_one_before_it_at_most(traces: list[TraceFile]) -> None:
    graph = built(traces)
    rows = [r for r in event_edges(graph).table.to_pylist() if r["kind"] == "thread_order"]

    starts = {
        (rank, int(event)): int(start)
        for rank, table in zip(graph.rank_numbers, graph.tables, strict=True)
        for event, start in zip(table.column("event"), table.column("ts_ns"), strict=True)
    }
    assert all(starts[r["src_rank"], r["src_event"]] <= starts[r["dst_rank"], r["dst_event"]] for r in rows)
    assert len({(r["dst_rank"], r["dst_event"]) for r in rows}) == len(rows)
    assert len({(r["src_rank"], r["src_event"]) for r in rows}) == len(rows)


@FEW
@given(jobs())
def test_no_edge_of_the_graph_between_works_is_lost(traces: list[TraceFile]) -> None:
    graph = built(traces)
    result = event_edges(graph)
    counts = {kind: sum(of.values()) for kind, of in result.counts().items()}

    of_graph = {kind: int((graph.edges.kind == kind).sum()) for kind in EdgeKind}
    for kind in (EdgeKind.LAUNCH, EdgeKind.STREAM_ORDER, EdgeKind.EVENT_WAIT):
        assert counts[kind.name.lower()] == of_graph[kind]
    joined = [c for c in graph.collectives if c.rendezvous is not None]
    assert counts["collective"] == sum(len(c.ranks) - 1 for c in joined)
    assert counts["thread_order"] == sum(neighbours(table) for table in graph.tables)
    assert result.without_event == 0
