"""Transfers between hosts side by side: in, a graph's transfers on two fabrics; out, their times there, found together.

A library sends what it has for a peer over one connection: of two collectives that run side by side one waits for pieces of
the other, and what each of them took alone is not to be seen. What they took together is: it says how far the model is off on
this hardware, for all of them alike, and each then goes by its own parts::

    all-reduce  |----    -----------------------|       alone 28 of these ...
    all-to-all        |--------|                        ... and 5: together 33, of which the model knows 30

On the hardware of its recording a job keeps its times.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.collectives.calibration import Correction, correction_of
from tracereplay.hardware.collectives.times import link_loads
from tracereplay.replay.columns import Floats, Times
from tracereplay.replay.engine import replay
from tracereplay.replay.transfers import Transfer


def carry_over_together(graph: DependencyGraph, transfers: Sequence[Transfer], alone: Floats) -> list[Transfer]:
    """The transfers with the times of those between hosts' network stacks corrected by busy period; ``alone``: what of each
    task's recorded time it would have taken alone (``replay.sharing``).
    """
    found = list(transfers)
    between = [at for at, one in enumerate(transfers) if _is_between_hosts(one)]
    for period in _periods(graph, transfers, between):
        taken = sum(float((graph.nodes.dur_ns[transfers[at].nodes] * alone[transfers[at].nodes]).max()) for at in period)
        correction = correction_of([one.here for at in period if (one := transfers[at]).here is not None], taken)
        for at in period:
            found[at] = _moved(transfers[at], correction)
    return found


def _is_between_hosts(one: Transfer) -> bool:
    return (
        one.here is not None
        and one.there is not None
        and one.wire is not None
        and bool(one.here.stack_ns or one.there.stack_ns)
    )


def _periods(graph: DependencyGraph, transfers: Sequence[Transfer], chosen: Sequence[int]) -> Iterator[list[int]]:
    """Those that overlap in the recording on a link or a stack, directly or over others, by number."""
    if not chosen:
        return
    recorded = replay(graph)
    start = {at: int(recorded.start_ns[transfers[at].nodes].min()) for at in chosen}
    end = {at: int(recorded.end_ns[transfers[at].nodes].max()) for at in chosen}
    links = {at: _used(transfers[at]) for at in chosen}
    open_ones: list[tuple[list[int], int, frozenset[str]]] = []
    for at in sorted(chosen, key=lambda at: (start[at], end[at])):
        mine, until, used = [at], end[at], links[at]
        still = []
        for members, last, of_them in open_ones:
            if last <= start[at]:
                yield members
            elif of_them & links[at]:
                mine, until, used = [*members, *mine], max(until, last), used | of_them
            else:
                still.append((members, last, of_them))
        open_ones = [*still, (mine, until, used)]
    for members, _, _ in open_ones:
        yield members


def _used(one: Transfer) -> frozenset[str]:
    return frozenset() if one.here is None else frozenset(link_loads(one.here, share=0.0))


def _moved(one: Transfer, correction: Correction) -> Transfer:
    if one.here is None or one.there is None:
        return one
    before_ns, ratio, spread = (
        one.times.before_ns,
        correction.ratio(one.here, one.there),
        correction.spread(one.here, one.there),
    )
    wire = None if one.wire is None else replace(one.wire, after_ns=max(round(one.wire.before_ns * ratio), 1))
    times = Times(before_ns, before_ns * ratio, before_ns * ratio / spread, before_ns * ratio * spread)
    return replace(one, times=times, wire=wire)
