"""Graphs as words: in, a graph; out, tasks and edges as ``name@start`` with starts in microseconds."""

import numpy as np

from tracereplay.graph.event_edges import event_edges
from tracereplay.graph.kinds import EdgeKind, NodeKind
from tracereplay.graph.model import DependencyGraph

_PLAIN = (NodeKind.HOST, NodeKind.DEVICE)


def label(graph: DependencyGraph, node: int) -> str:
    """``name@start``; tasks of a collective carry their kind, tasks of a job of several ranks their rank."""
    kind = NodeKind(graph.nodes.kind[node])
    rank = int(graph.nodes.rank[node])
    prefix = f"{rank}:" if len(graph.tables) > 1 and rank >= 0 else ""
    what = "" if kind in _PLAIN else f"{kind.name.lower()} "
    return f"{prefix}{what}{graph.name_of(node)}@{graph.nodes.start_ns[node] // 1_000}"


def edges_of(graph: DependencyGraph, kind: EdgeKind) -> list[str]:
    """The edges of one kind, ``source -> destination``, in order of source and destination."""
    edges = graph.edges
    chosen = [(int(s), int(d)) for s, d, k in zip(edges.src, edges.dst, edges.kind, strict=True) if k == kind]
    return [f"{label(graph, s)} -> {label(graph, d)}" for s, d in sorted(chosen)]


def lags_of(graph: DependencyGraph, kind: EdgeKind) -> list[int]:
    """The lags in ns of one kind of edge, in the order of ``edges_of``."""
    edges = graph.edges
    rows = [
        (int(s), int(d), int(lag))
        for s, d, k, lag in zip(edges.src, edges.dst, edges.kind, edges.lag_ns, strict=True)
        if k == kind
    ]
    return [lag for _, _, lag in sorted(rows)]


def tasks_of(graph: DependencyGraph) -> dict[str, int]:
    """The own time in ns of every task that has one or is no gap, by label."""
    nodes = range(len(graph))
    return {label(graph, n): int(graph.nodes.dur_ns[n]) for n in nodes if graph.nodes.dur_ns[n] or graph.name_of(n) != "gap"}


def event_edges_of(graph: DependencyGraph, kind: EdgeKind) -> list[str]:
    """The edges between events of one kind, ``source -> destination basis lag``, lags in microseconds."""
    rows = [row for row in event_edges(graph).table.to_pylist() if row["kind"] == kind.name.lower()]
    return [
        f"{_event(graph, r['src_rank'], r['src_event'])} -> {_event(graph, r['dst_rank'], r['dst_event'])} "
        f"{r['basis']} {r['lag_ns'] / 1_000:g}"
        for r in rows
    ]


def _event(graph: DependencyGraph, rank: int | None, event: int) -> str:
    table = graph.tables[graph.rank_numbers.index(rank)]
    (row,) = np.flatnonzero(table.column("event") == event)
    prefix = f"{rank}:" if len(graph.tables) > 1 else ""
    return f"{prefix}{table.name_of(int(row))}@{table.column('ts_ns')[row] // 1_000}"
