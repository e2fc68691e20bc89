"""A job on other hardware: in, a graph and where it ran and is to run; out, by what each task's time is multiplied.

- Device work is carried over by the calibrated roofline (``hardware/operators``), work of unknown shape by its class.
- Copies between host and device go by the bandwidth of the link between the two.
- Transfers are carried over by the model of collectives on both fabrics (``hardware/collectives``). A transfer whose size is
  not recorded has the size with which the model explains its time.
- Host time goes by the speed of the hosts, which no data sheet has: it is as recorded unless a setting says otherwise.
- A job that ran on CPUs alone and is to run on accelerators has its operators' times from the model, one after the other.

Waits are results. What nothing models keeps its time and is listed.
"""

from dataclasses import dataclass, replace
from math import log, nan

import numpy as np
import numpy.typing as npt

from tracereplay.errors import HardwareError, UsageError
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import Collective, DependencyGraph
from tracereplay.hardware.collectives.calibration import carry_over_collective
from tracereplay.hardware.collectives.fabric import Fabric, fabric_of
from tracereplay.hardware.collectives.model import CollectiveTime, collective_time
from tracereplay.hardware.collectives.schedules import KINDS, Kind
from tracereplay.hardware.load import load_accelerator
from tracereplay.hardware.operators.carry import analytic_times, carry_over_all, carry_over_class
from tracereplay.hardware.operators.work import CLASSES, OperatorClass, Works
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.schema import Accelerator
from tracereplay.replay.device_work import TaskWork, task_work
from tracereplay.replay.site import Site
from tracereplay.trace.classify import WorkClass
from tracereplay.units import format_share

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# How the bounds of all models are meant: nine of ten held-out predictions lie between them.
LEVEL = 0.9
# Nobody publishes how fast one host runs a framework's code beside another. Between neighbouring generations of server
# processors single threads differ by some 20 % (the hosts of corpus pair_h100_mi300x: 4 to 10 % on the same work).
HOST_RANGE = (0.8, 1.25)
# An unknown figure matters where what depends on it takes more than this share of the steps.
_MATTERS = 0.01
# What the names of the links of each level have in them.
_LEVEL_SIGNS = (
    ("fabric.scale_up", "accelerator"),
    ("fabric.scale_out", "nic"),
    ("host.link", "socket"),
    ("host.interconnect", "socket"),
)
# Groups of errors that go together: classes of operators, then transfers of each level, then the host.
_SCALE_UP, _SCALE_OUT, _HOST, GROUPS = len(CLASSES), len(CLASSES) + 1, len(CLASSES) + 2, len(CLASSES) + 3


@dataclass(frozen=True, slots=True)
class Wire:
    """A collective in the model: on which algorithm, what its bytes wait for, what share of its time is latency."""

    name: str
    size: float | None
    algorithm: str
    bottleneck: str | None
    latency_share: float
    before_ns: int
    after_ns: int


@dataclass(frozen=True, slots=True)
class Move:
    """What moving does. A value a node: ``factor``; natural logarithms of the bounds beside the prediction, ``low`` and
    ``high``; the group whose error it shares, -1 where it has none. ``kept``: nodes that nothing models.

    ``others`` are the factors with other accelerators that may be in the slots; ``assumed`` what was assumed, in words;
    ``wires`` the collectives, one for each that took place.
    """

    factor: Floats
    low: Floats
    high: Floats
    group: npt.NDArray[np.int64]
    kept: Mask
    others: tuple[Floats, ...]
    assumed: tuple[str, ...]
    wires: tuple[Wire, ...]


def move(graph: DependencyGraph, source: Site | None, target: Site) -> Move:
    """The job on ``target``; ``source`` is where it ran, None for a job of CPUs whose hardware is not described.

    Raises:
        UsageError: device work and no ``source``, accelerators that the target lacks, more ranks than endpoints.
        HardwareError: a figure that the job depends on is unknown; the message names the setting that supplies it.
    """
    made = _Made.of(graph)
    work = task_work(graph)
    assumed = _move_devices(graph, work, source, target, made)
    assumed += _move_wires(graph, source, target, made)
    assumed += _move_host(graph, target, made)
    others = _others(graph, work, source, target, made)
    return Move(
        made.factor, made.low, made.high, made.group, made.kept, others, tuple(dict.fromkeys(assumed)), tuple(made.wires)
    )


@dataclass(slots=True)
class _Made:
    """The columns of a ``Move`` while they are made."""

    factor: Floats
    low: Floats
    high: Floats
    group: npt.NDArray[np.int64]
    kept: Mask
    wires: list[Wire]

    @staticmethod
    def of(graph: DependencyGraph) -> "_Made":
        count = len(graph)
        ones, zeros = np.ones(count), np.zeros(count)
        return _Made(ones, zeros, zeros.copy(), np.full(count, -1, np.int64), np.zeros(count, np.bool_), [])

    def put(self, nodes: npt.NDArray[np.int64], group: npt.NDArray[np.int64] | int, times: "_Times") -> None:
        """New times of nodes."""
        positive = times.before_ns > 0
        nodes, times = nodes[positive], times.where(positive)
        self.factor[nodes] = times.ns / times.before_ns
        safe = np.maximum(times.ns, 1.0)
        self.low[nodes] = np.log(np.clip(times.low_ns, 1e-3, None) / safe)
        self.high[nodes] = np.log(np.maximum(times.high_ns, 1e-3) / safe)
        self.group[nodes] = group[positive] if isinstance(group, np.ndarray) else group


@dataclass(frozen=True, slots=True)
class _Times:
    before_ns: Floats
    ns: Floats
    low_ns: Floats
    high_ns: Floats

    def where(self, mask: Mask) -> "_Times":
        return _Times(self.before_ns[mask], self.ns[mask], self.low_ns[mask], self.high_ns[mask])


# -- device work -----------------------------------------------------------------------------------------------------------


def _move_devices(graph: DependencyGraph, work: TaskWork, source: Site | None, target: Site, made: _Made) -> list[str]:
    if not work.node.size:
        return []
    there = target.platform.accelerator
    if graph.host_carries_classes:
        if there is None:
            return []  # from CPUs to CPUs: all of it is host time
        return [*_place_on_accelerators(graph, work, there, made), *_assumed_of(there), *_slots_assumed(target.platform)]
    here = None if source is None else source.platform.accelerator
    if here is None or there is None or source is None:
        missing = "--from" if here is None else "--hardware"
        raise UsageError(f"the job has device work and {missing} has no accelerators", hint="name a platform with accelerators")
    _carry(graph, work, here, there, made)
    links = _move_copies(graph, work.node[work.across], source.platform, target.platform, made)
    return [*_assumed_of(there), *_slots_assumed(target.platform), *links]


def _place_on_accelerators(graph: DependencyGraph, work: TaskWork, there: Accelerator, made: _Made) -> list[str]:
    """Operators of a job of CPUs run on accelerators; those without a formula stay on the host."""
    known = work.work >= 0
    times = analytic_times(Works.of(work.works), there)
    columns = [column[work.work[known]] * work.share[known] for column in (times.time_ns, times.low_ns, times.high_ns)]
    before_ns = graph.nodes.dur_ns[work.node[known]].astype(np.float64)
    made.put(work.node[known], _class_codes(work, known), _Times(before_ns, *columns))
    classed = graph.nodes.work_class[work.node] != WorkClass.OTHER
    made.kept[work.node[~known & classed]] = True
    return ["operators of a CPU run take the model's time on the accelerator, one after the other: no launch beside the device"]


def _carry(graph: DependencyGraph, work: TaskWork, here: Accelerator, there: Accelerator, made: _Made) -> None:
    before_ns = graph.nodes.dur_ns[work.node].astype(np.float64)
    known = (work.work >= 0) & ~work.across
    carried = carry_over_all(_columns(work, known), before_ns[known], here, there)
    times = _Times(before_ns[known], carried.time_ns, carried.low_ns, carried.high_ns)
    made.put(work.node[known], _class_codes(work, known), times)
    kinds = np.array([CLASSES.index(kind) for kind in work.kind], np.int64)
    for code in np.unique(kinds[~known & ~work.across]).tolist():
        mine = ~known & ~work.across & (kinds == code)
        if CLASSES[code] is OperatorClass.OTHER:
            made.kept[work.node[mine]] = True
        carried = carry_over_class(CLASSES[code], before_ns[mine], here, there)
        made.put(work.node[mine], code, _Times(before_ns[mine], carried.time_ns, carried.low_ns, carried.high_ns))


def _columns(work: TaskWork, chosen: Mask) -> Works:
    """The work of the chosen tasks, each the share of its operator's that it does."""
    works = Works.of(work.works).take(work.work[chosen])
    share = work.share[chosen]
    return replace(works, flops=works.flops * share, bytes_moved=works.bytes_moved * share)


def _class_codes(work: TaskWork, chosen: Mask) -> npt.NDArray[np.int64]:
    return np.array([CLASSES.index(k) for k, c in zip(work.kind, chosen.tolist(), strict=True) if c], np.int64)


def _move_copies(
    graph: DependencyGraph, copies: npt.NDArray[np.int64], source: Platform, target: Platform, made: _Made
) -> list[str]:
    """Copies between host and device, by the links between the two. A link of which nobody knows the bandwidth matters where
    the copies take more of the steps than ``_MATTERS``; elsewhere they keep their time.

    Raises:
        HardwareError: the bandwidth is unknown and matters.
    """
    if not copies.size or source == target:
        return []
    before_ns = graph.nodes.dur_ns[copies].astype(np.float64)
    rates = [_link_rate(platform) for platform in (source, target)]
    if rates[0] is not None and rates[1] is not None:
        after_ns = before_ns * (rates[0] / rates[1])
        made.put(copies, CLASSES.index(OperatorClass.COPY), _Times(before_ns, after_ns, after_ns, after_ns))
        return []
    unknown = (target if rates[1] is None else source).description.name
    share = before_ns.sum() / max(sum(s.end_ns - s.start_ns for s in graph.steps), 1)
    if share > _MATTERS:
        raise HardwareError(
            f"its bandwidth is unknown, and copies over it take {format_share(share)} of the steps",
            where=f"{unknown}: host.link.bandwidth",
            hint="give it with --set host.link.bandwidth=16GB/s, or in a file that inherits",
        )
    made.kept[copies] = True
    return [
        f"host.link.bandwidth of {unknown} is unknown: copies over it, {format_share(share)} of the steps, keep their time; "
        "--set host.link.bandwidth=..."
    ]


def _link_rate(platform: Platform) -> float | None:
    link = platform.description.host.link
    known = [float(fact.base) for fact in (() if link is None else (link.achievable, link.bandwidth)) if fact.base is not None]
    return known[0] if known else None


def _others(graph: DependencyGraph, work: TaskWork, source: Site | None, target: Site, made: _Made) -> tuple[Floats, ...]:
    """The factors with each other accelerator that the target's file holds possible."""
    slots = target.platform.description.accelerator
    if slots is None or slots.model.kind != "assumed" or target.platform.accelerator is None:
        return ()
    found = []
    for name in slots.model.range or ():
        if name == slots.model.value:
            continue
        other = replace(made, factor=made.factor.copy(), low=made.low.copy(), high=made.high.copy(), group=made.group.copy())
        filled = Site(target.platform.with_accelerator(load_accelerator(name), "range"), target.host_speed)
        _move_devices(graph, work, source, filled, other)
        found.append(other.factor)
    return tuple(found)


# -- transfers -------------------------------------------------------------------------------------------------------------


def _move_wires(graph: DependencyGraph, source: Site | None, target: Site, made: _Made) -> list[str]:
    if not graph.collectives:
        return []
    ranks = 1 + max((r for c in graph.collectives for r in _members(graph, c)), default=0)
    here = None if source is None or graph.host_carries_classes else _fabric(source.platform, ranks)
    there = (
        here
        if here is not None and source is not None and source.platform == target.platform
        else _fabric(target.platform, ranks)
    )
    assumed: list[str] = []
    for c in graph.collectives:
        nodes = np.array([n for n in c.transfers if graph.nodes.dur_ns[n] > 0], np.int64)
        moved = _moved_wire(graph, c, nodes, here, there)
        if moved is None:
            made.kept[nodes] = True
            continue
        wire, low, high, unsure = moved
        made.wires.append(wire)
        assumed += unsure
        ratio = wire.after_ns / wire.before_ns if wire.before_ns else 1.0
        before_ns = graph.nodes.dur_ns[nodes].astype(np.float64)
        times = _Times(before_ns, before_ns * ratio, before_ns * ratio * low, before_ns * ratio * high)
        made.put(nodes, _SCALE_OUT if there.node[max(_members(graph, c))] != there.node[0] else _SCALE_UP, times)
    return [_described(target.platform, key) for key in dict.fromkeys(assumed)]


def _fabric(platform: Platform, ranks: int) -> Fabric:
    """A fabric with an endpoint for each rank: as many nodes as it takes."""
    slots = platform.description.accelerator
    each = int((slots.count.value if slots is not None else platform.description.host.sockets.value) or 1)
    return fabric_of(platform, -(-ranks // each))


def _members(graph: DependencyGraph, c: Collective) -> tuple[int, ...]:
    """The ranks of a collective by number, known absent ones included; a file without a rank is rank 0."""
    return tuple(sorted({*(graph.rank_numbers[r] or 0 for r in c.ranks), *c.absent}))


def _moved_wire(
    graph: DependencyGraph, c: Collective, nodes: npt.NDArray[np.int64], here: Fabric | None, there: Fabric
) -> tuple[Wire, float, float, tuple[str, ...]] | None:
    """The collective on the target, its bounds as multiples of its time, what it rests on; None where nothing models it."""
    members = _members(graph, c)
    if c.name not in KINDS or len(members) < 2 or not nodes.size or (c.name == "send_recv" and len(members) != 2):
        return None
    kind: Kind = c.name
    before_ns = int(graph.nodes.dur_ns[nodes].max() if c.transfer_ns is None else c.transfer_ns)
    size = _size(c, len(members))
    if here is None:
        if size is None:
            return None
        time = collective_time(there, kind, size, members)
        bounds = (time.low_ns, time.time_ns, time.high_ns)
    else:
        size = size if size is not None else _explaining(here, kind, members, before_ns)
        carried = carry_over_collective(kind, size, members, before_ns, here, there)
        time, bounds = carried.target, (carried.low_ns, carried.time_ns, carried.high_ns)
    low, after_ns, high = (max(b, 1) for b in bounds)
    latency = time.latency_ns / time.time_ns if time.time_ns else nan
    wire = Wire(c.name, size, time.algorithm, time.bottleneck, latency, before_ns, after_ns)
    return wire, low / after_ns, high / after_ns, _of_links(time)


def _of_links(time: CollectiveTime) -> tuple[str, ...]:
    """Of what is assumed of a platform the keys of levels whose links the collective uses."""
    names = " ".join(link.name for link in time.links)
    used = [level for level, sign in _LEVEL_SIGNS if sign in names] or ["fabric.scale_up"]
    return tuple(key for key in time.assumed if key.startswith(tuple(used)))


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


# -- the host --------------------------------------------------------------------------------------------------------------


def _move_host(graph: DependencyGraph, target: Site, made: _Made) -> list[str]:
    host = np.flatnonzero((graph.nodes.kind == NodeKind.HOST) & (made.group < 0) & (graph.nodes.dur_ns > 0))
    speed = 1.0 if target.host_speed is None else target.host_speed
    made.factor[host] = 1 / speed
    if target.host_speed is not None or not host.size:
        return []
    made.low[host], made.high[host], made.group[host] = -log(HOST_RANGE[1]), -log(HOST_RANGE[0]), _HOST
    low, high = HOST_RANGE
    return [f"host.speed 1x ({low:g}x … {high:g}x): no data sheet says how fast the host runs this code; --set host.speed=..."]


# -- what is assumed -------------------------------------------------------------------------------------------------------


def _assumed_of(accelerator: Accelerator) -> list[str]:
    used = {"hbm.bandwidth": accelerator.hbm.bandwidth} | {f"flops.{n}": f for n, f in accelerator.flops.items()}
    return [f"accelerator.{key} {fact.text()}: {fact.source}" for key, fact in used.items() if fact.kind == "assumed"]


def _slots_assumed(platform: Platform) -> list[str]:
    slots = platform.description.accelerator
    if slots is None or slots.model.kind != "assumed":
        return []
    return [f"accelerator.model {slots.model.text()} (of {', '.join(slots.model.range or ())}): {slots.model.source}"]


def _described(platform: Platform, key: str) -> str:
    fact = dict(platform.fields()).get(key)
    return key if fact is None else f"{key} {fact.text()}: {fact.source}"
