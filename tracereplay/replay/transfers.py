"""Transfers on other hardware: in, a graph's collectives and fabrics; out, their times there, carried over or the model's.

A transfer whose size is not recorded has the size with which the model explains its time.
"""

from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np

from tracereplay.graph.model import Collective, DependencyGraph
from tracereplay.hardware.collectives.calibration import carry_over_collective
from tracereplay.hardware.collectives.fabric import Fabric
from tracereplay.hardware.collectives.model import collective_time, uneven_all_to_all_time
from tracereplay.hardware.collectives.schedules import KINDS, Kind
from tracereplay.hardware.collectives.times import CollectiveTime
from tracereplay.hardware.schema import PlatformFile
from tracereplay.replay.columns import SCALE_OUT, SCALE_UP, Times
from tracereplay.replay.places import Places
from tracereplay.replay.uneven import splits_between
from tracereplay.trace.times import Int64s

# What the names of the links of each level have in them.
_LEVEL_SIGNS = (
    ("fabric.scale_up", "accelerator"),
    ("fabric.scale_out", "nic"),
    ("host.link", "socket"),
    ("host.interconnect", "socket"),
)


@dataclass(frozen=True, slots=True)
class Wire:
    """A collective in the model: on which algorithm, what its bytes wait for, what share of its time is latency; ``uneven``: an
    all-to-all with its recorded splits.
    """

    name: str
    size: float | None
    algorithm: str
    bottleneck: str | None
    latency_share: float
    before_ns: int
    after_ns: int
    uneven: bool = False


@dataclass(frozen=True, slots=True)
class Transfer:
    """A collective on a fabric: its nodes, the group of its error, its times; ``wire`` is None where nothing models it.
    ``here``, ``there``: what the model says of it where it was recorded and on the fabric, for the links that it keeps busy.
    """

    nodes: Int64s
    group: int
    times: "Times"
    wire: Wire | None
    assumed: tuple[str, ...]
    here: CollectiveTime | None = None
    there: CollectiveTime | None = None


@dataclass(frozen=True, slots=True)
class Wired:
    """A fabric, what of a platform it is made of, the job's collectives on it, and by the times of its copies there the links
    that all of them share (``sharing.SharedLinks``).
    """

    description: PlatformFile
    ports: object
    fabric: Fabric
    places: Places
    transfers: list[Transfer] = field(default_factory=list)
    shared: dict[bytes, Any] = field(default_factory=dict)

    def of(self, members: tuple[int, ...]) -> tuple[int, ...]:
        """The endpoints of ranks."""
        return tuple(self.places.endpoint[rank] for rank in members)


def hosts_of(graph: DependencyGraph) -> dict[int, str | None]:
    """The host of each rank, by its number, as far as it is recorded."""
    return {rank: host for rank, host in zip(graph.rank_numbers, graph.hosts, strict=False) if rank is not None}


def members_of(graph: DependencyGraph, c: Collective) -> tuple[int, ...]:
    """The ranks of a collective by number, known absent ones included; a file without a rank is rank 0."""
    return tuple(sorted({*(graph.rank_numbers[r] or 0 for r in c.ranks), *c.absent}))


def transfer_on(graph: DependencyGraph, c: Collective, here: Wired | None, there: Wired) -> Transfer:
    """The collective on the target; without ``here`` the model's time of it, else the recorded one carried over."""
    members = members_of(graph, c)
    at = there.of(members)
    nodes = np.array([n for n in c.transfers if graph.nodes.dur_ns[n] > 0], np.int64)
    size = _size(c, len(members))
    unknown = c.name not in KINDS or (size is None and here is None) or (c.name == "send_recv" and len(members) != 2)
    if unknown or len(members) < 2 or not nodes.size:
        return Transfer(nodes, -1, Times(*(np.zeros(0) for _ in range(4))), None, ())
    kind: Kind = c.name  # type: ignore[assignment] # one of KINDS
    recorded_ns = int(graph.nodes.dur_ns[nodes].max() if c.transfer_ns is None else c.transfer_ns)
    splits, before = splits_between(graph, c, members), None
    if here is None:
        if splits is None:
            time = collective_time(there.fabric, kind, size or 0.0, at)
        else:
            time = uneven_all_to_all_time(there.fabric, splits, at)
        bounds = (time.low_ns, time.time_ns, time.high_ns)
    else:
        size = size if size is not None else _explaining(here.fabric, kind, here.of(members), recorded_ns)
        sides = (here.of(members), recorded_ns, here.fabric, there.fabric)
        carried = carry_over_collective(kind, size, *sides, target_ranks=at, splits=splits)
        before, time, bounds = carried.source, carried.target, (carried.low_ns, carried.time_ns, carried.high_ns)
    low, after_ns, high = (max(b, 1) for b in bounds)
    latency = time.latency_ns / time.time_ns if time.time_ns else nan
    wire = Wire(c.name, size, time.algorithm, time.bottleneck, latency, recorded_ns, after_ns, splits is not None)
    ratio = after_ns / recorded_ns if recorded_ns else 1.0
    before_ns = graph.nodes.dur_ns[nodes].astype(np.float64)
    times = Times(before_ns, *(before_ns * ratio * by for by in (1.0, low / after_ns, high / after_ns)))
    group = SCALE_OUT if len({there.fabric.island[place] for place in at}) > 1 else SCALE_UP
    return Transfer(nodes, group, times, wire, _of_links(time), before, time)


def _of_links(time: CollectiveTime) -> tuple[str, ...]:
    """Of what is assumed of a platform the keys of levels that the collective uses, and what stands in for its library."""
    names = " ".join(link.name for link in time.links)
    used = [level for level, sign in _LEVEL_SIGNS if sign in names] or ["fabric.scale_up"]
    return (*(key for key in time.assumed if key.startswith(tuple(used))), *time.stand_ins)


def _size(c: Collective, members: int) -> float | None:
    """Bytes as the models count them (``schedules``): of an all-gather what a rank has in the end."""
    if c.bytes is None:
        return None
    return float(c.bytes) * (members if c.name == "all_gather" else 1)


def _explaining(fabric: Fabric, kind: Kind, members: tuple[int, ...], ns: int) -> float:
    """The size with which the model takes a recorded time, to 1 %; 0 where it is less than that of no bytes."""
    low, high = 0.0, 1.0
    while collective_time(fabric, kind, high, members).time_ns < ns and high < 2.0**50:
        low, high = high, high * 8
    while high - low > 0.01 * high and high > 1:
        middle = (low + high) / 2
        low, high = (middle, high) if collective_time(fabric, kind, middle, members).time_ns < ns else (low, middle)
    return low
