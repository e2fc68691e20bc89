"""Lags are causes with values from populations: in, nodes and edges with recorded times; out, lags and residues.

A population is the edges of one kind into one kind of task of one rank. Only edges that decided the start of their task
count: for a launch those whose queue was idle when the call began, for the others those whose source ended last. The
lag is the population's median; what a task's recorded start differs from the start that its edges and lags give is its
residue: kept constant by scenarios, and reported.
"""

import numpy as np

from tracereplay.graph.edges import NO_LAG, Edges
from tracereplay.graph.kinds import EdgeKind, NodeKind
from tracereplay.graph.model import Nodes
from tracereplay.trace.classify import WorkClass
from tracereplay.trace.times import Int64s

# Launch-like lags first: whether a queue's order decided a start depends on when its launch would have started it.
_ORDER = (
    EdgeKind.LAUNCH,
    EdgeKind.THREAD_HANDOFF,
    EdgeKind.SYNC,
    EdgeKind.STREAM_ORDER,
    EdgeKind.EVENT_WAIT,
    EdgeKind.THREAD_ORDER,
)
_FEW = 3
_TAIL_PERCENTILE = 99
# Host segments, kernels, copies, memory sets, arrivals, transfers.
_GROUPS = 6


def population(nodes: Nodes) -> Int64s:
    """A number for each node's kind of task within its rank: tasks whose lags and residues are compared with each other."""
    device = nodes.kind == NodeKind.DEVICE
    group = np.zeros(len(nodes), np.int64)
    group[device] = 1
    group[device & (nodes.work_class == WorkClass.COPY)] = 2
    group[device & (nodes.work_class == WorkClass.MEMSET)] = 3
    group[nodes.kind == NodeKind.ARRIVAL] = 4
    group[(nodes.kind == NodeKind.TRANSFER) | (nodes.kind == NodeKind.UNSPLIT)] = 5
    return nodes.rank * _GROUPS + group


def typical_lags(edges: Edges, start_ns: Int64s, end_ns: Int64s, groups: Int64s) -> Int64s:
    """The lag of each edge. ``groups`` is the ``population`` of each node.

    A population without a deciding edge takes the median over all ranks of its kind of edge; without any it is 0.
    """
    lags = edges.lag_ns.copy()
    bound = np.where(edges.from_start, start_ns[edges.src], end_ns[edges.src])
    for kind in _ORDER:
        open_edges = np.flatnonzero((edges.kind == kind) & (lags == NO_LAG))
        if open_edges.size == 0:
            continue
        known = bound + np.where(lags == NO_LAG, 0, lags)
        rest = _latest_other(known, edges.dst, start_ns.size)
        decided = open_edges[bound[open_edges] >= rest[open_edges]]
        gaps = start_ns[edges.dst[decided]] - bound[decided]
        keys = groups[edges.dst]
        lags[open_edges] = _medians(keys[decided], np.maximum(gaps, 0), keys[open_edges])
    return np.where(lags == NO_LAG, 0, lags)


def residues(edges: Edges, lags: Int64s, start_ns: Int64s, end_ns: Int64s) -> tuple[Int64s, int]:
    """Each node's residue, and how many edges the recorded times violate (a task that starts before what it waits for)."""
    bound = np.where(edges.from_start, start_ns[edges.src], end_ns[edges.src])
    ready = np.full(start_ns.size, np.iinfo(np.int64).min, np.int64)
    np.maximum.at(ready, edges.dst, bound + lags)
    waited = np.zeros(start_ns.size, np.bool_)
    waited[edges.dst] = True
    return np.where(waited, start_ns - ready, 0), int(np.count_nonzero(start_ns[edges.dst] < bound))


def residue_tail(nodes: Nodes) -> Int64s:
    """For each node the 99th percentile of its population's residues, at least 0: a residue above it is unexplained."""
    groups = population(nodes)
    limits = np.zeros(len(nodes), np.int64)
    order = np.argsort(groups, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1) if order.size else ():
        limits[part] = max(int(np.percentile(nodes.residue_ns[part], _TAIL_PERCENTILE)), 0)
    return limits


def _latest_other(bound: Int64s, dst: Int64s, count: int) -> Int64s:
    """For each edge the latest bound among the other edges into the same node (the minimum where there is none)."""
    low = np.iinfo(np.int64).min
    order = np.lexsort((bound, dst))
    sorted_dst = dst[order]
    last = np.flatnonzero(np.append(sorted_dst[1:] != sorted_dst[:-1], True)) if dst.size else np.empty(0, np.int64)
    top, second = np.full(count, -1, np.int64), np.full(count, low, np.int64)
    top[sorted_dst[last]] = order[last]
    has_second = (last > 0) & (sorted_dst[np.maximum(last - 1, 0)] == sorted_dst[last])
    second[sorted_dst[last[has_second]]] = bound[order[last[has_second] - 1]]
    is_top = top[dst] == np.arange(dst.size)
    return np.where(is_top, second[dst], bound[top[dst]])


def _medians(keys: Int64s, values: Int64s, wanted: Int64s) -> Int64s:
    """The median of ``values`` by key, looked up for ``wanted``; keys with few values use the median of all."""
    if values.size == 0:
        return np.zeros(wanted.size, np.int64)
    overall = int(np.median(values))
    table = {}
    for key in np.unique(wanted):
        mine = values[keys == key]
        table[int(key)] = int(np.median(mine)) if mine.size >= _FEW else overall
    return np.array([table[int(key)] for key in wanted], np.int64)
