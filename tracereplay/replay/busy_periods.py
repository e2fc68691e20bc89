"""Transfers between hosts side by side: in, a graph's transfers on two fabrics; out, their times there, found together.

A library sends what it has for a peer over one connection: of two collectives that run side by side one waits for pieces of
the other, and what each of them took alone is not to be seen. What all of a busy period took together is::

    all-reduce  |----    -----------------------|       together: the length of the period; carried over as one
    all-to-all        |--------|                        each keeps its share

The same factor moves all transfers of a period, so that a job on the hardware of its recording keeps its times.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.collectives.calibration import carry_over_between_hosts
from tracereplay.replay.columns import Floats, Times
from tracereplay.replay.engine import replay
from tracereplay.replay.transfers import Transfer


def carry_over_together(graph: DependencyGraph, transfers: Sequence[Transfer], alone: Floats) -> list[Transfer]:
    """The transfers with the times of those between hosts' network stacks carried over by busy period; ``alone``: what of each
    task's recorded time it would have taken alone (``replay.sharing``).
    """
    found = list(transfers)
    between = [at for at, one in enumerate(transfers) if _is_between_hosts(one)]
    for period in _periods(graph, transfers, between):
        taken = [float((graph.nodes.dur_ns[transfers[at].nodes] * alone[transfers[at].nodes]).max()) for at in period]
        before = [one.here for at in period if (one := transfers[at]).here is not None]
        after = [one.there for at in period if (one := transfers[at]).there is not None]
        together = sum(taken)
        if together:
            total, low, high = carry_over_between_hosts(before, after, together)
            for at in period:
                found[at] = _moved(transfers[at], total / together, low / together, high / together)
    return found


def _is_between_hosts(one: Transfer) -> bool:
    return (
        one.here is not None
        and one.there is not None
        and one.wire is not None
        and bool(one.here.stack_ns or one.there.stack_ns)
    )


def _periods(graph: DependencyGraph, transfers: Sequence[Transfer], chosen: Sequence[int]) -> Iterator[list[int]]:
    """Those that overlap in the recording, directly or over others, by number."""
    if not chosen:
        return
    recorded = replay(graph)
    start = {at: int(recorded.start_ns[transfers[at].nodes].min()) for at in chosen}
    end = {at: int(recorded.end_ns[transfers[at].nodes].max()) for at in chosen}
    order = sorted(chosen, key=lambda at: (start[at], end[at]))
    reached = np.maximum.accumulate([end[at] for at in order])
    period = [order[0]]
    for (_, at), until in zip(pairwise(order), reached, strict=False):
        if start[at] >= until:
            yield period
            period = []
        period.append(at)
    yield period


def _moved(one: Transfer, ratio: float, low: float, high: float) -> Transfer:
    before_ns = one.times.before_ns
    wire = None if one.wire is None else replace(one.wire, after_ns=max(round(one.wire.before_ns * ratio), 1))
    return replace(one, times=Times(before_ns, before_ns * ratio, before_ns * low, before_ns * high), wire=wire)
