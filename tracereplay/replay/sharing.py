"""Transfers of a moved job that share links: in, collectives and copies on two fabrics; out, timings in which they slow each
other down.

What one transfer takes is found alone (``replay.transfers``); who overlaps with whom only a replay says::

    recorded times  --the links where it was recorded-->  each transfer's work, alone
    that work, moved  --the links of the target-->        what each takes among the others

The recording has the sharing of its own hardware in it. It is taken out with the same model that puts that of the target in
(``contention.work_on_links``), so that a job on the hardware of its recording keeps its step to the nanosecond.

A collective is one transfer: its ranks' tasks load a link together as much as it keeps that link busy when it is alone. Where
no two transfers of different queues overlap on a link, which is looked up after the plain pass, that pass is the answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np

from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.collectives.fabric import LIKELY
from tracereplay.hardware.collectives.model import NS_PER_S
from tracereplay.hardware.collectives.times import CollectiveTime, link_loads
from tracereplay.replay.columns import Floats, Mask
from tracereplay.replay.contention import SLIVER_NS, Links, replay_on_links, work_on_links
from tracereplay.replay.engine import Timing, recorded_timing, replay
from tracereplay.replay.schedule import Schedule
from tracereplay.replay.steps import step_times, summarise
from tracereplay.replay.transfers import Transfer, Wired
from tracereplay.replay.whatif import Scenario
from tracereplay.trace.times import Int64s

Queue = tuple[int, int, int]  # of a rank by index: process and thread, or device and stream, as its table codes them
_INWARD = ("Memcpy HtoD", "MemcpyHtoD", "CopyHostToDevice")
# Loads are sums of floating point numbers: a link is not full for less than this.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Flow:
    """A transfer: its tasks, the queues that they run on, the share of its time for which it keeps each link busy, alone."""

    nodes: Int64s
    queues: frozenset[Queue]
    loads: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies between host and device, a row each: task, rank by index, to the device or not, bytes (NaN: unknown), queue."""

    node: Int64s
    rank: Int64s
    inward: Mask
    bytes: Floats
    queues: tuple[frozenset[Queue], ...]

    @staticmethod
    def of(graph: DependencyGraph, nodes: Int64s) -> "Copies":
        """The copies among a graph's tasks."""
        nodes = nodes[graph.nodes.dur_ns[nodes] > 0]
        rank = graph.nodes.rank[nodes]
        sizes = [graph.tables[r].args_of(int(graph.nodes.row[n])).get("bytes") for n, r in zip(nodes, rank, strict=True)]
        inward = np.array([graph.name_of(node).startswith(_INWARD) for node in nodes.tolist()], np.bool_)
        known = np.array([float(size) if isinstance(size, int) else np.nan for size in sizes], np.float64)
        return Copies(nodes, rank, inward, known, tuple(frozenset([_queue(graph, node)]) for node in nodes.tolist()))

    def on(self, graph: DependencyGraph, wired: Wired, took_ns: Floats) -> list[Flow]:
        """What they load between host and device; nothing where the ranks' places or the links' rates are not known. A copy of
        unknown size keeps the narrowest of its links busy all the time.
        """
        found = []
        for rank, inward in dict.fromkeys(zip(self.rank.tolist(), self.inward.tolist(), strict=True)):
            mine = np.flatnonzero((self.rank == rank) & (self.inward == inward))
            links = _known_way(wired, graph.rank_numbers[rank] or 0, inward=inward)
            if not links:
                continue
            rates = wired.fabric.rates[LIKELY, links] / NS_PER_S
            moved = np.where(np.isnan(self.bytes[mine]), rates.min() * took_ns[mine], self.bytes[mine])
            loads = np.minimum(moved[:, None] / rates / np.maximum(took_ns[mine], 1.0)[:, None], 1.0).tolist()
            names = [wired.fabric.links[number] for number in links]
            for at, row in zip(mine.tolist(), loads, strict=True):
                found.append(Flow(self.node[at : at + 1], self.queues[at], dict(zip(names, row, strict=True))))
        return found


def _known_way(wired: Wired, rank: int, *, inward: bool) -> list[int]:
    """The links of known rate between a rank's device and its host, in the direction of a copy."""
    place = wired.places.endpoint.get(rank)
    way = () if place is None else wired.fabric.host_way(place)
    return [number ^ 1 if inward else number for number in way if np.isfinite(wired.fabric.rates[LIKELY, number])]


def collectives_on(graph: DependencyGraph, transfers: Iterable[Transfer], *, there: bool) -> list[Flow]:
    """What the collectives load where they were recorded, or ``there``. Those of which waiting and transfer cannot be told
    apart load nothing: when they had the links nobody knows.
    """
    found = []
    for transfer in transfers:
        time: CollectiveTime | None = transfer.there if there else transfer.here
        split = (graph.nodes.kind[transfer.nodes] == NodeKind.TRANSFER).all()
        if time is not None and split and transfer.nodes.size:
            queues = frozenset(_queue(graph, node) for node in transfer.nodes.tolist())
            found.append(Flow(transfer.nodes, queues, link_loads(time, share=0.0)))
    return found


def _queue(graph: DependencyGraph, node: int) -> Queue:
    rank, row = int(graph.nodes.rank[node]), int(graph.nodes.row[node])
    if row < 0:
        return rank, -1, -1
    table = graph.tables[rank]
    return rank, int(table.codes("pid")[row]), int(table.codes("tid")[row])


@dataclass(frozen=True, slots=True)
class SharedLinks:
    """The links on which transfers of different queues may slow each other down, for ``contention``. ``flows``: all transfers;
    ``member``: those on these links, one after the other, each task; ``begin``: where each begins there; ``queues``: a number
    for the queues of each. ``on`` and ``link``: a row for each of them and each of its links.
    """

    flows: tuple[Flow, ...]
    links: Links
    member: Int64s
    begin: Int64s
    queues: Int64s
    on: Int64s
    link: Int64s

    @staticmethod
    def of(graph: DependencyGraph, flows: Sequence[Flow]) -> "SharedLinks":
        """The links that the flows may share: used from different queues, and together more than is there."""
        numbers = {queues: number for number, queues in enumerate(dict.fromkeys(flow.queues for flow in flows))}
        most: dict[str, dict[int, float]] = {}
        for flow in flows:
            for name, load in flow.loads.items():
                ours = most.setdefault(name, {})
                ours[numbers[flow.queues]] = max(ours.get(numbers[flow.queues], 0.0), load)
        narrow = {name for name, loads in most.items() if len(loads) > 1 and sum(loads.values()) > 1 + _ROUNDING}
        users: dict[str, list[tuple[int, float]]] = {}
        for at, flow in enumerate(flows):
            for name in narrow & flow.loads.keys():
                users.setdefault(name, []).append((at, flow.loads[name]))
        # Links with the same transfers and loads are full together: one of them says it for all.
        columns = list(dict.fromkeys(tuple(one) for _, one in sorted(users.items())))
        return SharedLinks._made(graph, flows, columns, numbers)

    @staticmethod
    def _made(
        graph: DependencyGraph,
        flows: Sequence[Flow],
        columns: Sequence[tuple[tuple[int, float], ...]],
        numbers: Mapping[frozenset[Queue], int],
    ) -> "SharedLinks":
        routes: dict[int, list[tuple[int, float]]] = {}
        for link, column in enumerate(columns):
            for at, load in column:
                routes.setdefault(at, []).append((link, load))
        chosen = sorted(routes)
        rows = sorted(
            (int(node), link, load / flows[at].nodes.size)
            for at in chosen
            for node in flows[at].nodes
            for link, load in routes[at]
        )
        node = np.array([row[0] for row in rows], np.int64)
        first = np.searchsorted(node, np.arange(len(graph) + 1)).astype(np.int64)
        sizes = [flows[at].nodes.size for at in chosen]
        return SharedLinks(
            flows=tuple(flows),
            links=Links(
                first,
                np.array([row[1] for row in rows], np.int64),
                np.ones(len(columns)),
                np.array([row[2] for row in rows], np.float64),
            ),
            member=np.concatenate([flows[at].nodes for at in chosen]) if chosen else np.zeros(0, np.int64),
            begin=np.cumsum([0, *sizes[:-1]], dtype=np.int64) if chosen else np.zeros(0, np.int64),
            queues=np.array([numbers[flows[at].queues] for at in chosen], np.int64),
            on=np.array([place for place, at in enumerate(chosen) for _ in routes[at]], np.int64),
            link=np.array([link for at in chosen for link, _ in routes[at]], np.int64),
        )

    def are_shared(self, schedule: Schedule) -> bool:
        """Whether two transfers of different queues overlap on a link in a schedule."""
        start = np.minimum.reduceat(schedule.start_ns[self.member], self.begin)[self.on]
        end = np.maximum.reduceat(schedule.end_ns[self.member], self.begin)[self.on]
        order = np.lexsort((start, self.link))
        return bool(_overlap(self.link[order], self.queues[self.on][order], start[order], end[order]))


@numba.njit(cache=True)
def _overlap(link: Any, queues: Any, start: Any, end: Any) -> Any:
    """Whether of rows by link and start one starts before another of the same link and other queues has ended."""
    latest, of, others = np.int64(0), np.int64(-1), np.int64(0)
    for k in range(link.size):
        if k == 0 or link[k] != link[k - 1]:
            latest, of, others = end[k], queues[k], np.int64(start[k])
            continue
        if start[k] < (others if queues[k] == of else latest):
            return True
        if queues[k] == of:
            latest = max(latest, end[k])
        elif end[k] > latest:
            latest, of, others = end[k], queues[k], latest
        else:
            others = max(others, end[k])
    return False


@dataclass(frozen=True, slots=True)
class Sharing:
    """What shares links after a move. ``alone``: of each task's recorded time the part that it would have taken alone where it
    was recorded; ``there``: the links of the target.
    """

    alone: Floats
    there: SharedLinks

    def applied(self, graph: DependencyGraph, timing: Timing) -> Timing:
        """The timing with every transfer as long as it is among the others; a plain replay of it is the schedule."""
        before = self.without(timing)
        if not self.there.begin.size:
            return before
        on_links = np.diff(self.there.links.first) > 0
        # What the recording lost to sharing is nowhere but in the loop: there the plain pass cannot tell that nothing overlaps.
        lost_before = bool((self.alone[on_links] != 1).any())
        if not lost_before and not self.there.are_shared(replay(graph, before)):
            return before
        asked = replace(before, dur_ns=np.where(on_links, timing.dur_ns, before.dur_ns))
        slowed = replay_on_links(graph, self.there.links, asked, timing.dur_ns * self.alone)
        return replace(before, dur_ns=np.where(on_links, slowed.end_ns - slowed.start_ns, before.dur_ns))

    def without(self, timing: Timing) -> Timing:
        """The timing with every transfer as long as it is alone, to the next nanosecond as in ``contention``."""
        if (self.alone == 1).all():
            return timing
        work_ns = np.ceil(timing.dur_ns * self.alone - SLIVER_NS).astype(np.int64)
        return replace(timing, dur_ns=np.where(self.alone == 1, timing.dur_ns, work_ns))


def alone(graph: DependencyGraph, here: SharedLinks) -> Floats:
    """What of each task's recorded time it would have taken alone: 1 where nothing overlapped with it on these links."""
    share = np.ones(len(graph))
    recorded = replay(graph) if here.begin.size else None
    if recorded is not None and here.are_shared(recorded):
        work_ns, took_ns = work_on_links(graph, here.links, recorded), recorded.end_ns - recorded.start_ns
        on_links = (np.diff(here.links.first) > 0) & (took_ns > 0)
        share[on_links] = work_ns[on_links] / took_ns[on_links]
    return share


def on_links(graph: DependencyGraph, scenario: Scenario, sharing: Sharing | None) -> Scenario:
    """The scenario in which transfers that overlap share their links, in every reading of it."""
    if sharing is None:
        return scenario
    readings = tuple(sharing.applied(graph, timing) for timing in scenario.unsplit)
    return replace(scenario, timing=sharing.applied(graph, scenario.timing), unsplit=readings)


@dataclass(frozen=True, slots=True)
class Lost:
    """What transfers lose to links that they share, one count for each transfer: how many are ``slowed``, by how much in all
    (``lost_ns``) and how much longer the job's step is for it; what was taken out as lost in the recording; the link with the
    most bytes' time, and that as a share of the schedule.
    """

    slowed: int
    lost_ns: int
    step_lost_ns: int
    recorded_lost_ns: int
    busiest_link: str | None
    busiest_share: float | None


def lost(graph: DependencyGraph, sharing: Sharing, asked: Timing, shared: Timing) -> Lost:
    """What of the timing ``shared`` (``Sharing.applied``) is due to sharing; ``asked`` is the timing before."""
    own = asked.dur_ns * sharing.alone
    recorded_ns = recorded_timing(graph).dur_ns
    added = np.maximum(shared.dur_ns - own, 0.0)

    def step_ns(schedule: Schedule) -> int:
        return summarise(graph, step_times(graph, schedule)).mean_ns

    taken = recorded_ns * (1 - sharing.alone)
    busy: dict[str, float] = {}
    losses = [float(added[flow.nodes].max()) for flow in sharing.there.flows]
    for flow in sharing.there.flows:
        for name, load in flow.loads.items():
            busy[name] = busy.get(name, 0.0) + load * float(own[flow.nodes].max())
    schedule = replay(graph, shared)
    length_ns = int(schedule.end_ns.max(initial=0) - schedule.start_ns.min(initial=np.iinfo(np.int64).max)) if len(graph) else 0
    busiest = max(busy, key=lambda one: busy[one], default=None)
    return Lost(
        # Durations are whole nanoseconds: less than one is not a loss.
        slowed=sum(one >= 1 for one in losses),
        lost_ns=round(sum(one for one in losses if one >= 1)),
        step_lost_ns=step_ns(schedule) - step_ns(replay(graph, sharing.without(asked))),
        recorded_lost_ns=round(sum(float(taken[flow.nodes].max()) for flow in sharing.there.flows)),
        busiest_link=busiest,
        busiest_share=None if busiest is None or length_ns <= 0 else busy[busiest] / length_ns,
    )


def sharing_of(graph: DependencyGraph, shares: Floats, there: Wired, copies: Copies, factor: Floats) -> Sharing:
    """What shares links on the target; ``shares`` as ``alone`` gives them, ``factor`` by what the move multiplies each time."""
    took_ns = graph.nodes.dur_ns[copies.node] * factor[copies.node]
    known: SharedLinks | None = there.shared.get(took_ns.tobytes())
    if known is None:
        flows = [*collectives_on(graph, there.transfers, there=True), *copies.on(graph, there, took_ns)]
        known = SharedLinks.of(graph, flows)
        there.shared.clear()  # neighbouring points of a sweep ask for the same, others hardly ever
        there.shared[took_ns.tobytes()] = known
    return Sharing(shares, known)


def alone_of(graph: DependencyGraph, here: Wired, transfers: Iterable[Transfer], copies: Copies) -> Floats:
    """What of their recorded times transfers would have taken alone on the fabric of the recording."""
    took_ns = graph.nodes.dur_ns[copies.node].astype(np.float64)
    flows = [*collectives_on(graph, transfers, there=False), *copies.on(graph, here, took_ns)]
    return alone(graph, SharedLinks.of(graph, flows))
