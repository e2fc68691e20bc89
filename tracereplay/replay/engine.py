"""The compiled pass: in, a graph and durations; out, a Schedule. No files, no clock, no randomness.

A task starts when everything that it waits for has happened and the typical lags have passed, shifted by its residue:

    start = max( max over edges of bound,  max over edges of (bound + lag) + residue )

where the bound of an edge is the end of its source (or its start, for launches). The first term is a law: no task starts
before what it waits for, however negative a residue.
"""

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from tracereplay.graph.model import NO_RELEASE, DependencyGraph
from tracereplay.replay.schedule import Schedule
from tracereplay.trace.times import Int64s


@dataclass(frozen=True, slots=True)
class Timing:
    """What a scenario may change: a duration a node, a lag an edge, a residue and a pinned start a node, all in ns."""

    dur_ns: Int64s
    lag_ns: Int64s
    residue_ns: Int64s
    release_ns: Int64s


def recorded_timing(graph: DependencyGraph) -> Timing:
    """The timing of the hardware that the job ran on."""
    nodes = graph.nodes
    return Timing(nodes.dur_ns, graph.edges.lag_ns, nodes.residue_ns, nodes.release_ns)


def replay(graph: DependencyGraph, timing: Timing | None = None) -> Schedule:
    """The schedule of a graph under a timing, the recorded one by default. Linear in nodes plus edges."""
    timing = timing or recorded_timing(graph)
    edges = graph.edges
    start, end, waited_for = _forward(
        graph.order,
        edges.first,
        edges.src,
        edges.from_start,
        timing.lag_ns,
        timing.dur_ns,
        timing.residue_ns,
        timing.release_ns,
    )
    return Schedule(start, end, waited_for)


@numba.njit(cache=True)
def _forward(  # noqa: PLR0913, PLR0917 - numba takes arrays, not objects, and infers the types
    order: Any, first: Any, src: Any, from_start: Any, lag: Any, dur: Any, residue: Any, release: Any
) -> Any:
    count = dur.shape[0]
    start = np.zeros(count, np.int64)
    end = np.zeros(count, np.int64)
    waited_for = np.full(count, -1, np.int64)
    for node in order:
        hard = np.int64(NO_RELEASE)
        soft = np.int64(NO_RELEASE)
        hard_edge = -1
        soft_edge = -1
        for i in range(first[node], first[node + 1]):
            bound = start[src[i]] if from_start[i] else end[src[i]]
            if hard_edge < 0 or bound > hard:
                hard = bound
                hard_edge = i
            if soft_edge < 0 or bound + lag[i] > soft:
                soft = bound + lag[i]
                soft_edge = i
        if soft_edge < 0:
            begin = release[node]
        elif soft + residue[node] >= hard:
            begin = soft + residue[node]
            waited_for[node] = soft_edge
        else:
            begin = hard
            waited_for[node] = hard_edge
        if release[node] > begin:
            begin = release[node]
            waited_for[node] = -1
        start[node] = begin
        end[node] = begin + dur[node]
    return start, end, waited_for
