"""What the time of collectives may be whose other participants are not here: in, a graph, factors, a timing; out, timings.

Such a time is waiting and transfer, and nobody knows the split. A scenario that touches it, or moves when a rank comes to it,
is played once as if it were all transfer (the timing that comes in), and as each of these readings says.
"""

from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt

from tracereplay.errors import UsageError
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.graph.numbering import numbered
from tracereplay.replay.engine import Timing, recorded_timing, replay
from tracereplay.trace.times import Int64s

Mask = npt.NDArray[np.bool_]

# Sums of times must stay within 64 bits: 2**61 ns are 73 years.
_LONGEST_JOB_NS = 2.0**61


@dataclass(frozen=True, slots=True)
class Factors:
    """Factors of nodes and lags; ``hardware``: the part of the nodes' that other hardware makes, ``modelled`` where it does."""

    node: npt.NDArray[np.float64]
    hardware: npt.NDArray[np.float64]
    lag: npt.NDArray[np.float64]
    modelled: Mask
    unmoved: list[str] = field(default_factory=list)


def reached_otherwise(graph: DependencyGraph, timing: Timing) -> Mask:
    """Collectives that cannot be split because ranks are not here, and to which a rank comes at another time than recorded."""
    alone = len(graph.tables) == 1
    waiting = np.zeros(len(graph), np.bool_)
    waiting[[node for c in graph.collectives if c.transfer_ns is None and (alone or c.absent) for node in c.transfers]] = True
    return np.asarray(waiting & (replay(graph).start_ns != replay(graph, timing).start_ns))


def all_waiting(graph: DependencyGraph, base: Timing, changed: Timing, factors: Factors) -> tuple[Timing, ...]:
    """What the time of collectives that cannot be split may be, beside transfer of this rank alone: all of it waiting. It ends
    when the ranks that are not here come (``_ends_by_others``), at once where a change makes this rank the later one.
    """
    unsplit = graph.nodes.kind == NodeKind.UNSPLIT
    dur_ns = np.where(unsplit, 0, changed.dur_ns)
    return tuple(
        Timing(dur_ns, changed.lag_ns, changed.residue_ns, np.where(unsplit, end_ns, changed.release_ns))
        for end_ns in _ends_by_others(graph, base, factors)
    )


def with_surplus(graph: DependencyGraph, base: Timing, changed: Timing, factors: Factors) -> tuple[Timing, ...]:
    """The other reading where all is timed afresh, on ranks that are not here too: these waited for them for all of the
    recorded time. They do the same work and more; of what more they do nothing is known but that it took no longer than that.
    It takes at most the largest factor of any class of work, and then the transfer takes the model's time.
    """
    unsplit = graph.nodes.kind == NodeKind.UNSPLIT
    surplus_ns = scaled(base.dur_ns, np.full(len(graph), _most_of_classes(graph, factors.hardware)))
    dur_ns = np.where(unsplit, surplus_ns + changed.dur_ns, changed.dur_ns)
    return (Timing(dur_ns, changed.lag_ns, changed.residue_ns, changed.release_ns),)


def _ends_by_others(graph: DependencyGraph, base: Timing, factors: Factors) -> list[Int64s]:
    """When tasks may end that end when ranks come that are not here.

    They come

    - when they did, in the recording;
    - moved by the transfers before, where the changes touch transfers that cannot be split. A rank gains or loses no more by
      its collectives than their transfers together, and no transfer is longer than the shortest record of it;
    - as if all that they did had been multiplied by the least or the largest factor, where other work is changed: what a rank
      has done by a time takes at least the least factor of that time, and at most the largest one, of other hardware that of
      a whole class of work (``_most_of_classes``). Time counts from the first task here: that other ranks began earlier, no
      file says;
    - at once, where ranks are made equal: what the others do then is not known.
    """
    nodes, ends_ns = graph.nodes, replay(graph).end_ns
    found = [ends_ns]
    if ((nodes.kind == NodeKind.UNSPLIT) & (factors.node != 1)).any():
        found.append(ends_ns + _moved_by_transfers(graph, base, factors.node, ends_ns))
    least, most = _extremes(graph, factors)
    if is_other_job(graph, base):
        least = 0.0
    origin_ns = int(nodes.start_ns.min())
    for factor in {least, most} - {1.0}:
        elapsed_ns = np.minimum((ends_ns - origin_ns) * factor, _LONGEST_JOB_NS)
        found.append(origin_ns + np.rint(elapsed_ns).astype(np.int64))
    return found


def is_other_job(graph: DependencyGraph, base: Timing) -> bool:
    """True for a base that is not the recording."""
    recorded = recorded_timing(graph)
    return any((getattr(base, f.name) != getattr(recorded, f.name)).any() for f in fields(Timing))


def _extremes(graph: DependencyGraph, factors: Factors) -> tuple[float, float]:
    """The least and the largest factor, at most and at least 1, where more than transfers is changed; else none."""
    lags = factors.lag[graph.edges.lag_ns != 0]
    timed = graph.nodes.dur_ns > 0
    if not ((factors.node[timed & ~is_wire(graph)] != 1).any() or (lags != 1).any()):
        return 1.0, 1.0
    asked = np.divide(factors.node, factors.hardware, out=np.ones(len(graph)), where=factors.hardware > 0)
    least = min(1.0, factors.node[timed].min(initial=1.0), lags.min(initial=1.0))
    most = max(1.0, asked[timed].max(initial=1.0) * _most_of_classes(graph, factors.hardware), lags.max(initial=1.0))
    return float(least), float(most)


def _most_of_classes(graph: DependencyGraph, factors: npt.NDArray[np.float64]) -> float:
    """By what other hardware multiplies the time of a rank at most, at least 1: any mix of work is multiplied by no more than
    the class of it that is multiplied by most, each class as it is on the ranks here on the whole. A single operator may be
    multiplied by more (of a tenth of a microsecond on a host a device makes several): a rank has as much of such as these have,
    relative to its time.
    """
    nodes = graph.nodes
    timed = nodes.dur_ns > 0
    dur_ns, factor, rank = nodes.dur_ns[timed].astype(np.float64), factors[timed], nodes.rank[timed]
    of_class = numbered(nodes.kind[timed].astype(np.int64), nodes.work_class[timed].astype(np.int64))
    by_class = np.bincount(of_class, dur_ns * factor) / np.bincount(of_class, dur_ns)
    whole_ns = np.bincount(rank, dur_ns)
    grown = np.bincount(rank, dur_ns * np.maximum(factor, 1.0))[whole_ns > 0] / whole_ns[whole_ns > 0]
    return float(max(1.0, by_class.max(initial=1.0), grown.max(initial=1.0)))


def _moved_by_transfers(graph: DependencyGraph, base: Timing, factors: npt.NDArray[np.float64], ends_ns: Int64s) -> Int64s:
    """For each node by how much the transfers of all collectives that had ended by its end can move it at most."""
    found = []
    for c in graph.collectives:
        nodes = np.array(c.transfers)
        shortest_ns = int(base.dur_ns[nodes].min())
        farthest = float(factors[nodes][np.argmax(np.abs(factors[nodes] - 1))])
        found.append((int(ends_ns[nodes].min()), round((farthest - 1) * shortest_ns)))
    found.sort()
    total_ns = np.cumsum([0, *(moved for _, moved in found)])
    return np.asarray(total_ns[np.searchsorted([end for end, _ in found], ends_ns, side="right")], np.int64)


def is_wire(graph: DependencyGraph) -> Mask:
    """Tasks that are transfers, those that cannot be told from waiting included."""
    return np.isin(graph.nodes.kind, (NodeKind.TRANSFER, NodeKind.UNSPLIT))


def scaled(values: Int64s, factors: npt.NDArray[np.float64]) -> Int64s:
    """Times in ns by factors.

    Raises:
        UsageError: the job becomes longer than 64 bits hold.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        multiplied = np.rint(values * factors)
    if not np.abs(multiplied).sum() < _LONGEST_JOB_NS:
        raise UsageError("a factor makes the job longer than 73 years", hint="give a smaller factor")
    return np.where(factors == 1, values, multiplied.astype(np.int64))
