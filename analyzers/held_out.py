"""Steps predicted from the other steps: in, a graph; out, each step's time with the durations and lags of the others.

A step keeps its structure, its entry and the device work that earlier steps left it. The duration of every task and the lag
of every edge in it (typical lag and residue) become the median of the same work in the other steps of the same rank;
transfers too. Work that no other step has keeps its own time and is counted. This is harder than a replay, which has every
residue of the step itself, and shows what the structure is worth.

Law: where all steps take the same times, each is predicted exactly.
"""

from dataclasses import dataclass

import numpy as np

from tracereplay.graph.likeness import Likeness, find_likeness
from tracereplay.graph.model import DependencyGraph
from tracereplay.graph.numbering import numbered
from tracereplay.replay.engine import Timing, recorded_timing, replay
from tracereplay.replay.steps import recorded_step_times, step_times, summarise
from tracereplay.replay.typical import Alike, Mask, typical_times
from tracereplay.trace.times import Int64s


@dataclass(frozen=True, slots=True)
class HeldOutStep:
    """One step: longest rank as recorded and as predicted from the other steps, relative error, and the share of its time
    on the device and in host work (``Likeness.work``) that no other step has.
    """

    number: int
    measured_ns: int
    predicted_ns: int
    error: float
    only_here_share: float


@dataclass(frozen=True, slots=True)
class HeldOut:
    """All steps of a job: the median of the errors' sizes, and the spread of the recorded steps, (max - min) / median."""

    steps: tuple[HeldOutStep, ...]
    median_error: float
    spread: float


def hold_out(graph: DependencyGraph) -> HeldOut | None:
    """Each step that every rank has, predicted from the others; None with fewer than two of them."""
    numbers = graph.step_numbers
    if len(numbers) < 2:
        return None
    likeness = find_likeness(graph)
    measured = summarise(graph, recorded_step_times(graph))
    steps = []
    for position, number in enumerate(numbers):
        timing, only_here_share = _from_others(graph, likeness, number)
        predicted_ns = summarise(graph, step_times(graph, replay(graph, timing))).longest_ns[position]
        measured_ns = measured.longest_ns[position]
        steps.append(HeldOutStep(number, measured_ns, predicted_ns, predicted_ns / measured_ns - 1, only_here_share))
    longest = np.array(measured.longest_ns)
    return HeldOut(
        tuple(steps),
        float(np.median([abs(s.error) for s in steps])),
        float((longest.max() - longest.min()) / np.median(longest)),
    )


def _from_others(graph: DependencyGraph, likeness: Likeness, number: int) -> tuple[Timing, float]:
    """The recorded timing with that of one step from the others, and the share of the step's work that only it has."""
    nodes, edges = graph.nodes, graph.edges
    here = likeness.step == number
    tasks = _over_steps(likeness.role, nodes.rank, here, likeness.step >= 0)
    of_edge = likeness.step[edges.dst]
    reasons = _over_steps(likeness.edge_role, nodes.rank[edges.dst], of_edge == number, of_edge >= 0)
    typical, recorded = typical_times(graph, tasks, reasons), recorded_timing(graph)
    timing = Timing(
        np.where(here, typical.dur_ns, recorded.dur_ns),
        np.where(of_edge == number, typical.lag_ns, recorded.lag_ns),
        np.where(here, typical.residue_ns, recorded.residue_ns),
        recorded.release_ns,
    )
    work = here & likeness.work
    total_ns = int(nodes.dur_ns[work].sum())
    return timing, int(nodes.dur_ns[work & ~tasks.known].sum()) / total_ns if total_ns else 0.0


def _over_steps(role: Int64s, rank: Int64s, here: Mask, in_a_step: Mask) -> Alike:
    """Entries of one role and rank in several steps; known where a step other than the one held out has them."""
    group = numbered(role, rank)
    source = ~here & in_a_step
    return Alike(group, source, np.isin(group, group[source]))
