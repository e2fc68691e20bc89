"""How much slower compute runs beside communication: in, a graph; out, the slowdown of kernels that occur both ways.

Communication kernels take compute units and memory bandwidth from what runs beside them. A recording shows how much where the
same work (kernel, operator, shapes) occurs both inside and outside of collectives on its rank; where none does the
slowdown is not known, and a prediction that moves work out of the shadow of communication, or into it, keeps its recorded time.
"""

from dataclasses import dataclass

import numpy as np

from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.graph.numbering import numbered
from tracereplay.trace.shapes import input_shapes
from tracereplay.trace.times import Int64s

# Beside communication: nearly all of its time; alone: nearly none of it. What lies between says little.
_BESIDE, _ALONE = 0.9, 0.1
_FEWEST = 3


@dataclass(frozen=True, slots=True)
class Overlap:
    """Compute beside communication: the share of all compute time that ran there; the work that occurs both ways (kinds of
    it, at least three times each way), and by what its median is slower, weighted by time. None where no work occurs so.
    """

    beside_share: float
    kinds: int
    slowdown: float | None


def overlap(graph: DependencyGraph) -> Overlap | None:
    """The slowdown of compute beside communication; None where a job has no collectives or no other work on devices."""
    nodes = graph.nodes
    work = np.flatnonzero((nodes.kind == NodeKind.DEVICE) & (nodes.dur_ns > 0))
    if not work.size or not graph.collectives or graph.host_carries_classes:
        return None
    share = _shares_beside(graph, work)
    dur_ns = nodes.dur_ns[work]
    beside_ns = float((share * dur_ns).sum())
    kind = _kinds(graph, work)
    ratios, weights = [], []
    for members in np.split(np.argsort(kind, kind="stable"), np.cumsum(np.bincount(kind))[:-1]):
        own, ns = share[members], dur_ns[members]
        beside, alone = ns[own >= _BESIDE], ns[own <= _ALONE]
        if min(beside.size, alone.size) >= _FEWEST:
            ratios.append(float(np.median(beside) / np.median(alone)))
            weights.append(float(ns.sum()))
    slowdown = _weighted_median(np.array(ratios), np.array(weights)) - 1 if ratios else None
    return Overlap(beside_ns / float(dur_ns.sum()), len(ratios), slowdown)


def _kinds(graph: DependencyGraph, work: Int64s) -> Int64s:
    """A number for each piece of work: equal on one rank for one kernel under one operator with inputs of one shape."""
    nodes = graph.nodes
    name, operator, shape = (np.full(work.size, -1, np.int64) for _ in range(3))
    for rank, table in enumerate(graph.tables):
        mine = np.flatnonzero(nodes.rank[work] == rank)
        owner = nodes.owner_row[work[mine]]
        name[mine] = table.codes("name")[nodes.row[work[mine]]]
        operator[mine] = np.where(owner >= 0, table.codes("name")[owner], -1)
        shape[mine] = np.where(owner >= 0, input_shapes(table).code[owner], -1)
    return numbered(nodes.rank[work], name, operator, shape)


def _shares_beside(graph: DependencyGraph, work: Int64s) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """For each piece of work the share of its time during which a collective ran on its rank, its waiting included."""
    nodes = graph.nodes
    share = np.zeros(work.size)
    starts: dict[int, list[tuple[int, int]]] = {}
    for c in graph.collectives:
        for rank, start, end in zip(c.ranks, c.start_ns, c.end_ns, strict=True):
            starts.setdefault(rank, []).append((start, end))
    # Nanoseconds since 1970 are more than a float holds: they are counted from the first task.
    origin = int(nodes.start_ns.min())
    for rank, spans in starts.items():
        low, covered = _covered(sorted((start - origin, end - origin) for start, end in spans))
        mine = np.flatnonzero(nodes.rank[work] == rank)
        begin, dur_ns = nodes.start_ns[work[mine]] - origin, nodes.dur_ns[work[mine]]
        share[mine] = (np.interp(begin + dur_ns, low, covered) - np.interp(begin, low, covered)) / dur_ns
    return share


def _covered(spans: list[tuple[int, int]]) -> tuple[Int64s, Int64s]:
    """Times, and how much collective time lies before each."""
    times, covered = [0], [0]
    total, until = 0, None
    for start, end in spans:  # from 0 on
        begin = start if until is None else max(start, until)
        if begin >= end:
            continue
        times += [begin, end]
        covered += [total, total + end - begin]
        total, until = total + end - begin, end
    return np.array(times, np.int64), np.array(covered, np.int64)


def _weighted_median(values: "np.ndarray[tuple[int], np.dtype[np.float64]]", weights: np.ndarray) -> float:
    order = np.argsort(values)
    place = int(np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2))
    return float(values[order][min(place, values.size - 1)])
