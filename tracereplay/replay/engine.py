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

from tracereplay.errors import UsageError
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
    """The schedule of a graph under a timing, the recorded one by default. Linear in nodes plus edges: some 15 ns a node.

    Raises:
        UsageError: the timing is not of this graph, or not in whole nanoseconds.
    """
    schedule = blank_schedule(graph)
    replay_into(schedule, graph, timing or recorded_timing(graph))
    return schedule


def blank_schedule(graph: DependencyGraph) -> Schedule:
    """A schedule of the graph's size with nothing in it yet."""
    return Schedule(*(np.empty(len(graph), np.int64) for _ in range(3)))


def replay_into(schedule: Schedule, graph: DependencyGraph, timing: Timing) -> None:
    """``replay`` that writes into a schedule of the same graph: for batches, which keep none of their schedules.

    Raises:
        UsageError: the timing is not of this graph, or not in whole nanoseconds.
    """
    check_timing(graph, timing)
    edges = graph.edges
    forward(
        graph.replay_order,
        edges.first,
        edges.src,
        edges.from_start,
        timing.lag_ns,
        timing.dur_ns,
        timing.residue_ns,
        timing.release_ns,
        schedule.start_ns,
        schedule.end_ns,
        schedule.waited_for,
    )


def check_timing(graph: DependencyGraph, timing: Timing) -> None:
    """Compiled loops check no bounds: refuse a timing of another graph before they read past its end.

    Raises:
        UsageError: a column has another length than the graph's tasks or edges, or another type than int64.
    """
    nodes, edges = len(graph), len(graph.edges)
    for name, values, wanted in (
        ("dur_ns", timing.dur_ns, nodes),
        ("lag_ns", timing.lag_ns, edges),
        ("residue_ns", timing.residue_ns, nodes),
        ("release_ns", timing.release_ns, nodes),
    ):
        if values.shape != (wanted,) or values.dtype != np.int64:
            raise UsageError(
                f"a timing's {name} is {values.dtype}{list(values.shape)}, the graph needs int64[{wanted}]",
                hint="start from recorded_timing(graph) and round to whole nanoseconds",
            )


@numba.njit(cache=True)
def forward(  # noqa: PLR0913, PLR0917 - numba takes arrays, not objects, and infers the types
    order: Any,
    first: Any,
    src: Any,
    from_start: Any,
    lag: Any,
    dur: Any,
    residue: Any,
    release: Any,
    start: Any,
    end: Any,
    waited_for: Any,
) -> None:
    """Decide the tasks of ``order`` one after the other; what they wait for is in it earlier, or decided before."""
    for node in order:
        hard = np.int64(NO_RELEASE)
        soft = np.int64(NO_RELEASE)
        hard_edge = -1
        soft_edge = -1
        waited_for[node] = -1
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
