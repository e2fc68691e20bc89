"""Lags are causes with values from populations: in, nodes and edges with recorded times; out, lags and residues.

A population is the edges of one kind into tasks of one rank that are alike: of a kind, on one queue, launched alone or with
others by a graph, copies by their length. Only edges that decided the start of their task
count: for a launch those whose queue was idle when the call began, for the others those whose source ended last. The
lag is the population's median; what a task's recorded start differs from the start that its edges and lags give is its
residue: kept constant by scenarios, and reported.
"""

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

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
# Chosen: of fewer gaps a median follows the single one. How sensitive: docs/design/constants.md.
FEWEST_GAPS = 3
# What lies above is unexplained by the contract's definition.
_TAIL_PERCENTILE = 99
# Tasks of one rank and kind form one population where those of a queue and length are fewer than this. Chosen: from 32 on the
# standard error of a median (1.25 sigma / sqrt(n)) is under a quarter of the scatter. How sensitive: docs/design/constants.md.
FEWEST_ALIKE = 32
# Host segments, kernels, copies, memory sets, arrivals, transfers; kernels and copies of graphs.
_KINDS = 8
_GRAPH_KERNEL, _GRAPH_COPY = 6, 7
# Copies are set up by size: what takes less than 10 µs, less than a millisecond, or longer. Chosen: below the first a copy is
# mostly its set-up, above the second hardly. How sensitive: docs/design/constants.md.
COPY_LENGTHS_NS = (10_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Alike:
    """What makes tasks alike, one entry a task: rank, kind, class and length of the task, its queue (-1 on a host thread), and
    whether one call launched it together with others.
    """

    rank: Int64s
    kind: npt.NDArray[np.int8]
    work_class: npt.NDArray[np.int8]
    dur_ns: Int64s
    queue: Int64s
    in_graph: npt.NDArray[np.bool_]


def populations(alike: Alike) -> Int64s:
    """A number for each task: tasks of one number have their lags and residues compared with each other."""
    coarse = (alike.rank + 1) * _KINDS + _kind_of_task(alike)
    is_copy = (alike.kind == NodeKind.DEVICE) & (alike.work_class == WorkClass.COPY)
    length = np.where(is_copy, np.searchsorted(COPY_LENGTHS_NS, alike.dur_ns, side="right"), 0)
    width = (int(alike.queue.max(initial=0)) + 2) * (len(COPY_LENGTHS_NS) + 1)
    key = coarse * width + (alike.queue + 1) * (len(COPY_LENGTHS_NS) + 1) + length
    _, fine, counts = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(np.where(counts[fine] >= FEWEST_ALIKE, fine, counts.size + coarse), np.int64)


def _kind_of_task(alike: Alike) -> Int64s:
    device = alike.kind == NodeKind.DEVICE
    copies = device & (alike.work_class == WorkClass.COPY)
    group = np.zeros(alike.rank.size, np.int64)
    group[device] = 1
    group[copies] = 2
    group[device & (alike.work_class == WorkClass.MEMSET)] = 3
    group[alike.kind == NodeKind.ARRIVAL] = 4
    group[(alike.kind == NodeKind.TRANSFER) | (alike.kind == NodeKind.UNSPLIT)] = 5
    group[device & alike.in_graph] = _GRAPH_KERNEL
    group[copies & alike.in_graph] = _GRAPH_COPY
    return group


def typical_lags(edges: Edges, start_ns: Int64s, end_ns: Int64s, groups: Int64s) -> Int64s:
    """The lag of each edge. ``groups`` is the population of each node.

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


def residues(edges: Edges, lags: Int64s, start_ns: Int64s, end_ns: Int64s) -> Int64s:
    """Each node's residue; 0 where it waits for nothing."""
    bound = np.where(edges.from_start, start_ns[edges.src], end_ns[edges.src])
    ready = np.full(start_ns.size, np.iinfo(np.int64).min, np.int64)
    np.maximum.at(ready, edges.dst, bound + lags)
    waited = np.zeros(start_ns.size, np.bool_)
    waited[edges.dst] = True
    return np.where(waited, start_ns - ready, 0)


def residue_tail(nodes: Nodes) -> Int64s:
    """For each node the 99th percentile of its population's residues, at least 0: a residue above it is unexplained."""
    groups = nodes.population
    limits = np.zeros(len(nodes), np.int64)
    order = np.argsort(groups, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1) if order.size else ():
        limits[part] = max(int(np.percentile(nodes.residue_ns[part], _TAIL_PERCENTILE)), 0)
    return limits


def _latest_other(bound: Int64s, dst: Int64s, count: int) -> Int64s:
    """For each edge the latest bound among the other edges into the same node (the minimum where there is none)."""
    return np.asarray(_others(bound, dst, count), np.int64)


@numba.njit(cache=True)
def _others(bound: Any, dst: Any, count: Any) -> Any:  # numba infers the types
    low = np.iinfo(np.int64).min
    top = np.full(count, low, np.int64)
    second = np.full(count, low, np.int64)
    best = np.full(count, -1, np.int64)
    for edge in range(dst.shape[0]):
        node = dst[edge]
        if best[node] < 0 or bound[edge] >= top[node]:
            second[node] = top[node]
            top[node] = bound[edge]
            best[node] = edge
        elif bound[edge] > second[node]:
            second[node] = bound[edge]
    result = np.empty(dst.shape[0], np.int64)
    for edge in range(dst.shape[0]):
        result[edge] = second[dst[edge]] if best[dst[edge]] == edge else top[dst[edge]]
    return result


def _medians(keys: Int64s, values: Int64s, wanted: Int64s) -> Int64s:
    """The median of ``values`` by key, looked up for ``wanted``; keys with few values use the median of all."""
    if values.size == 0:
        return np.zeros(wanted.size, np.int64)
    table = np.full(max(int(keys.max()), int(wanted.max(initial=0))) + 1, int(np.median(values)), np.int64)
    order = np.argsort(keys, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
        if part.size >= FEWEST_GAPS:
            table[keys[part[0]]] = int(np.median(values[part]))
    return table[wanted]
