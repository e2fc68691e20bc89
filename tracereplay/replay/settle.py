"""A written graph with its times: in, a graph whose times are zero; out, the same as if its own replay had been recorded."""

from dataclasses import replace

import numpy as np

from tracereplay.graph.model import Collective, DependencyGraph, StepSpan
from tracereplay.replay.contention import Links, replay_on_links
from tracereplay.replay.engine import replay
from tracereplay.replay.schedule import Schedule
from tracereplay.replay.steps import step_times
from tracereplay.trace.times import Int64s


def settled(graph: DependencyGraph, links: Links | None = None) -> DependencyGraph:
    """The graph with the starts, ends of steps and collectives' times of its replay. Transfers that share ``links`` take as
    long as they then do, so that a replay without links gives the same schedule.
    """
    schedule = replay(graph) if links is None else replay_on_links(graph, links)
    graph = replace(graph, nodes=replace(graph.nodes, dur_ns=schedule.end_ns - schedule.start_ns))
    spans = [_ended(span, time.end_ns) for span, time in zip(graph.steps, step_times(graph, schedule), strict=True)]
    tables = tuple(
        table.at(_starts(graph, schedule, rank, len(table))) if len(table) else table for rank, table in enumerate(graph.tables)
    )
    return replace(
        graph,
        tables=tables,
        nodes=replace(graph.nodes, start_ns=schedule.start_ns),
        steps=tuple(spans),
        collectives=tuple(_met(collective, schedule) for collective in graph.collectives),
    )


def _ended(span: StepSpan, end_ns: int) -> StepSpan:
    return replace(span, end_ns=end_ns, drain_ns=end_ns)


def _starts(graph: DependencyGraph, schedule: Schedule, rank: int, rows: int) -> Int64s:
    """When each event of a rank starts: with the first of its tasks."""
    nodes = graph.nodes
    starts = np.full(rows, np.iinfo(np.int64).max, np.int64)
    mine = np.flatnonzero((nodes.rank == rank) & (nodes.row >= 0))
    np.minimum.at(starts, nodes.row[mine], schedule.start_ns[mine])
    return starts


def _met(collective: Collective, schedule: Schedule) -> Collective:
    starts = schedule.start_ns[[*collective.arrivals]]
    ends = schedule.end_ns[[*collective.transfers]]
    shortest_ns = int((ends - schedule.start_ns[[*collective.transfers]]).min())
    return replace(collective, start_ns=tuple(starts.tolist()), end_ns=tuple(ends.tolist()), transfer_ns=shortest_ns)
