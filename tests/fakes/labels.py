"""Graphs as words: in, a graph; out, tasks and edges as ``name@start`` with starts in microseconds."""

from tracereplay.graph.kinds import EdgeKind, NodeKind
from tracereplay.graph.model import DependencyGraph

_PLAIN = (NodeKind.HOST, NodeKind.DEVICE)


def label(graph: DependencyGraph, node: int) -> str:
    """``name@start``; tasks of a collective carry their kind, tasks of a job of several ranks their rank."""
    kind = NodeKind(graph.nodes.kind[node])
    rank = int(graph.nodes.rank[node])
    prefix = f"{rank}:" if len(graph.tables) > 1 and rank >= 0 else ""
    what = "" if kind in _PLAIN else f"{kind.name.lower()} "
    return f"{prefix}{what}{graph.name(node)}@{graph.nodes.start_ns[node] // 1_000}"


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
    return {label(graph, n): int(graph.nodes.dur_ns[n]) for n in nodes if graph.nodes.dur_ns[n] or graph.name(n) != "gap"}
