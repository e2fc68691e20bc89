"""The job without stragglers: in, a graph; out, the timing in which every rank takes the median for the same work.

Host segments, device work, lags and the entry into the first step become the median over the ranks that do the same work in
the same step (``graph/likeness.py``). Work that fewer than half of the ranks have is kept. Transfers and the time of
collectives that cannot be split are kept too, and waits follow from the replay: they are results, not work.
"""

from dataclasses import dataclass

import numpy as np

from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.likeness import Likeness, find_likeness
from tracereplay.graph.model import NO_RELEASE, DependencyGraph
from tracereplay.graph.numbering import numbered
from tracereplay.replay.engine import Timing, replay
from tracereplay.replay.typical import Alike, Mask, typical_times
from tracereplay.trace.times import Int64s

# What has durations and lags of its own. Transfers and collectives that cannot be split begin and last as a result.
_WORK = (NodeKind.HOST, NodeKind.DEVICE, NodeKind.ARRIVAL)


@dataclass(frozen=True, slots=True)
class Equalised:
    """What was made equal over the ranks: ``compared`` pieces of work that take time and that at least half of the ranks
    have, ``kept`` ones that fewer have, with their time and its share of all work, ``entries`` ranks that enter their first
    step at another time.
    """

    compared: int
    kept: int
    kept_ns: int
    kept_share: float
    entries: int


@dataclass(frozen=True, slots=True)
class Ideal:
    """The timing; what it did; for each node its lag (typical lag and residue) before and after; how much later than the
    earliest rank each rank enters its first step, before and after. All in ns.
    """

    timing: Timing
    equalised: Equalised
    lag_before_ns: Int64s
    lag_after_ns: Int64s
    late_before_ns: Int64s
    late_after_ns: Int64s


def without_stragglers(graph: DependencyGraph) -> Ideal:
    """The timing of ``--ideal stragglers``. Linear in tasks and edges times their log."""
    nodes, edges = graph.nodes, graph.edges
    likeness = find_likeness(graph)
    tasks = _over_ranks(graph, likeness.role, likeness.step, nodes.rank)
    tasks = Alike(tasks.group, tasks.source, tasks.known & np.isin(nodes.kind, _WORK))
    reasons = _over_ranks(graph, likeness.edge_role, likeness.step[edges.dst], nodes.rank[edges.dst])
    typical = typical_times(graph, tasks, reasons)
    release_ns = _entered(graph, likeness)
    decided = replay(graph).waited_for
    return Ideal(
        timing=Timing(typical.dur_ns, typical.lag_ns, typical.residue_ns, release_ns),
        equalised=_count(graph, likeness.work, tasks.known, release_ns),
        lag_before_ns=_deciding(nodes.residue_ns, edges.lag_ns, decided),
        lag_after_ns=_deciding(typical.residue_ns, typical.lag_ns, decided),
        late_before_ns=_late(nodes.release_ns, graph),
        late_after_ns=_late(release_ns, graph),
    )


def _deciding(residue_ns: Int64s, lag_ns: Int64s, decided: Int64s) -> Int64s:
    """Lag and residue of the edge that decided each start, 0 where none did."""
    result = np.zeros(residue_ns.size, np.int64)
    waited = np.flatnonzero(decided >= 0)
    result[waited] = residue_ns[waited] + lag_ns[decided[waited]]
    return result


def _over_ranks(graph: DependencyGraph, role: Int64s, step: Int64s, rank: Int64s) -> Alike:
    """Entries of one role and step on different ranks, known where at least half of the ranks that have the step have it."""
    group = numbered(role, step)
    having = np.array([sum(s.number == number for s in graph.steps) for number in np.unique(step)], np.int64)
    having = np.where(np.unique(step) < 0, len(graph.tables), having)
    of_step = having[np.unique(step, return_inverse=True)[1]]
    shared = 2 * np.bincount(group, minlength=1)[group] >= of_step
    return Alike(group, rank >= 0, shared & (rank >= 0))


def _entry_nodes(graph: DependencyGraph) -> Int64s:
    """The node with which each rank enters its first step, -1 for a rank without host events."""
    entries = np.full(len(graph.tables), -1, np.int64)
    for span in reversed(graph.steps):
        entries[span.rank] = span.first_node
    return entries


def _entered(graph: DependencyGraph, likeness: Likeness) -> Int64s:
    """Pinned starts: the median over the ranks where the same work is pinned; what fewer than half of the ranks have pinned
    moves with its rank's entry.
    """
    nodes = graph.nodes
    pinned = np.flatnonzero((nodes.release_ns != NO_RELEASE) & (nodes.rank >= 0))
    alike = _over_ranks(graph, likeness.role[pinned], likeness.step[pinned], nodes.rank[pinned])
    release_ns = nodes.release_ns.copy()
    release_ns[pinned] = alike.median(nodes.release_ns[pinned])
    entries = _entry_nodes(graph)
    shift = np.zeros(entries.size, np.int64)
    entered = np.flatnonzero(entries >= 0)
    shift[entered] = release_ns[entries[entered]] - nodes.release_ns[entries[entered]]
    alone = pinned[~alike.known]
    release_ns[alone] += shift[nodes.rank[alone]]
    return release_ns


def _late(release_ns: Int64s, graph: DependencyGraph) -> Int64s:
    """How much later than the earliest rank each rank enters its first step; ranks without host events are left out."""
    entries = _entry_nodes(graph)
    entered = release_ns[entries[entries >= 0]]
    return entered - entered.min(initial=np.iinfo(np.int64).max) if entered.size else entered


def _count(graph: DependencyGraph, work: Mask, known: Mask, release_ns: Int64s) -> Equalised:
    nodes = graph.nodes
    timed = work & (nodes.dur_ns > 0)
    kept_ns, all_ns = int(nodes.dur_ns[timed & ~known].sum()), int(nodes.dur_ns[timed].sum())
    entries = _entry_nodes(graph)
    entries = entries[entries >= 0]
    return Equalised(
        compared=int(np.count_nonzero(timed & known)),
        kept=int(np.count_nonzero(timed & ~known)),
        kept_ns=kept_ns,
        kept_share=kept_ns / all_ns if all_ns else 0.0,
        entries=int(np.count_nonzero(release_ns[entries] != nodes.release_ns[entries])),
    )
