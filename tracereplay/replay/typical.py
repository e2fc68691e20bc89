"""What the same work takes elsewhere: in, a graph and which tasks are the same; out, medians of durations, lags, residues.

A lag has two parts, the typical lag of its edge and the residue of the task that waits. The first parts are made equal to
their median; the residues are counted anew against those, and become their median. Where one edge leads to a task the sum
is the median of the recorded lags; where several do, the recorded start decides with which of them it is counted.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracereplay.graph.edges import Edges
from tracereplay.graph.lags import residues
from tracereplay.graph.model import DependencyGraph
from tracereplay.trace.times import Int64s

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Alike:
    """Entries of one ``group`` are the same work; medians are taken over those that are a ``source``, and are used for
    those that are ``known``: enough sources have them.
    """

    group: Int64s
    source: Mask
    known: Mask

    def median(self, values: Int64s, among: Mask | None = None) -> Int64s:
        """The median of each known entry's group, over the sources ``among`` which it is asked for; its own value elsewhere.
        For an even number it is the mean of the middle two, rounded down.
        """
        used = np.flatnonzero(self.source if among is None else self.source & among)
        order = used[np.lexsort((values[used], self.group[used]))]
        width = int(self.group.max(initial=-1)) + 1
        count = np.bincount(self.group[order], minlength=width)
        begin = np.cumsum(count) - count
        low, high = begin + np.maximum(count - 1, 0) // 2, begin + count // 2
        ordered = np.append(values[order], 0)
        there = self.known & (count[self.group] > 0)
        middle = np.minimum(low, order.size), np.minimum(high, order.size)
        return np.where(there, ((ordered[middle[0]] + ordered[middle[1]]) // 2)[self.group], values)


@dataclass(frozen=True, slots=True)
class Typical:
    """Durations and residues a node, lags an edge, in ns; own values where nothing comparable is known. The residues are
    those against ``lag_ns``, so that own and typical ones may stand side by side.
    """

    dur_ns: Int64s
    lag_ns: Int64s
    residue_ns: Int64s


def typical_times(graph: DependencyGraph, tasks: Alike, reasons: Alike) -> Typical:
    """The medians over the same work, ``tasks`` a node and ``reasons`` an edge."""
    nodes, e = graph.nodes, graph.edges
    lag_ns = reasons.median(e.lag_ns)
    edges = Edges(e.src, e.dst, e.kind, e.basis, e.from_start, lag_ns, e.why)
    residue_ns = residues(edges, lag_ns, nodes.start_ns, nodes.start_ns + nodes.dur_ns)
    waits = np.zeros(len(graph), np.bool_)
    waits[e.dst] = True
    return Typical(tasks.median(nodes.dur_ns), lag_ns, tasks.median(residue_ns, among=waits))
