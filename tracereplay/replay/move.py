"""A job on other hardware: in, a graph and where it ran and is to run; out, by what each task's time is multiplied.

- Device work is carried over by the calibrated roofline (``hardware/operators``), work of unknown shape by its class.
- Copies between host and device go by the bandwidth of the link between the two.
- Transfers are carried over by the model of collectives on both fabrics (``hardware/collectives``). A transfer whose size is
  not recorded has the size with which the model explains its time.
- Host time goes by the speed of the hosts, which no data sheet has: it is as recorded unless a setting says otherwise.
- A job that ran on CPUs alone and is to run on accelerators has its operators' times from the model, one after the other.

Waits are results. What nothing models keeps its time and is listed.
"""

from dataclasses import dataclass, field, replace
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
from tracereplay.hardware.facts import LinkRate, Measure, MemoryRate
from tracereplay.hardware.memory.rates import ranks_of_node
from tracereplay.hardware.operators.carry import analytic_times, carry_over_all, carry_over_class
from tracereplay.hardware.operators.fitted import shipped
from tracereplay.hardware.operators.work import CLASSES, OperatorClass, Works
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.schema import Accelerator, PlatformFile
from tracereplay.replay.device_work import TaskWork, task_work
from tracereplay.replay.places import Places, places
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
_LIKELY, _LOW, _HIGH = 0, 1, 2
# Classes of operators that wait for memory, as in the plain knobs.
_BY_MEMORY = [
    CLASSES.index(kind)
    for kind in (
        OperatorClass.EMBEDDING,
        OperatorClass.ELEMENTWISE,
        OperatorClass.REDUCTION,
        OperatorClass.NORMALISATION,
        OperatorClass.OPTIMIZER,
        OperatorClass.COPY,
        OperatorClass.MEMSET,
    )
]
_ONE_AFTER_THE_OTHER = (
    "operators of a CPU run take the model's time on the accelerator, one after the other: no launch beside the device"
)
# So many accelerators and fabrics are remembered by who moves a job to many targets.
_REMEMBERED = 16
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
    return Mover.of(graph, source).to(target)


@dataclass(frozen=True, slots=True)
class Mover:
    """Moves of one job from one place to many: what the job does is found out once, and what a target has in common with one
    before is not worked out again. ``works``, ``kinds``: the work of the tasks that have any, the classes of all.
    """

    graph: DependencyGraph
    source: Site | None
    work: TaskWork
    works: Works
    kinds: npt.NDArray[np.int64]
    devices: list[tuple[Accelerator, "_Made"]] = field(default_factory=list)
    fabrics: list["_Wired"] = field(default_factory=list)

    @staticmethod
    def of(graph: DependencyGraph, source: Site | None) -> "Mover":
        """Moves of a graph from where it ran; None for a job of CPUs whose hardware is not described."""
        work = task_work(graph)
        kinds = np.array([CLASSES.index(kind) for kind in work.kind], np.int64)
        return Mover(graph, source, work, _columns(work, _shaped(work)), kinds)

    def to(self, target: Site) -> Move:
        """The move to a target; raises as ``move``."""
        made = _Made.of(self.graph)
        assumed = self._move_devices(target, made)
        assumed += self._move_wires(target, made)
        assumed += _move_host(self.graph, target, made)
        others = self._others(target, made)
        return Move(
            made.factor, made.low, made.high, made.group, made.kept, others, tuple(dict.fromkeys(assumed)), tuple(made.wires)
        )

    def _move_devices(self, target: Site, made: "_Made") -> list[str]:
        work, source, there = self.work, self.source, target.platform.accelerator
        if not work.node.size:
            return []
        if self.graph.host_carries_classes and (there is None or self._has(there)):
            return _move_operators(self.graph, self.kinds, work.node, source, target.platform, made)
        here = None if source is None else source.platform.accelerator
        if there is None or (here is None and not self.graph.host_carries_classes):
            missing = "--from" if here is None else "--hardware"
            raise UsageError(
                f"the job has device work and {missing} has no accelerators", hint="name a platform with accelerators"
            )
        made.take(work.node, self._worked(there))
        self._widen(there, made)
        assumed = [*_assumed_of(there), *_slots_assumed(target.platform)]
        if self.graph.host_carries_classes or source is None:
            return [_ONE_AFTER_THE_OTHER, *assumed]
        return [*assumed, *_move_copies(self.graph, work.node[work.across], source.platform, target.platform, made)]

    def _widen(self, there: Accelerator, made: "_Made") -> None:
        """Bounds that hold for all that the accelerator's file thinks possible of its assumed figures."""
        node = self.work.node
        for end, bound in ((_HIGH, made.low), (_LOW, made.high)):
            other = _at_end(there, end)
            if other is not there:
                shift = np.log(self._worked(other).factor / made.factor[node])
                bound[node] += np.minimum(shift, 0.0) if end == _HIGH else np.maximum(shift, 0.0)

    def _worked(self, there: Accelerator) -> "_Made":
        """The columns of tasks on an accelerator, a row a task with work."""
        found = next((columns for known, columns in self.devices if known == there), None)
        if found is None:
            made = _Made.of(self.graph)
            here = None if self.source is None else self.source.platform.accelerator
            if self.graph.host_carries_classes or here is None:
                self._place_on_accelerators(there, made)
            else:
                self._carry(here, there, made)
            found = made.rows(self.work.node)
            self.devices[_REMEMBERED - 1 :] = []
            self.devices.insert(0, (there, found))
        return found

    def _place_on_accelerators(self, there: Accelerator, made: "_Made") -> None:
        """Operators of a job of CPUs run on accelerators; those without a formula stay on the host."""
        work, known = self.work, self.work.work >= 0
        times = analytic_times(Works.of(work.works), there)
        columns = [column[work.work[known]] * work.share[known] for column in (times.time_ns, times.low_ns, times.high_ns)]
        before_ns = self.graph.nodes.dur_ns[work.node[known]].astype(np.float64)
        made.put(work.node[known], self.kinds[known], _Times(before_ns, *columns))
        classed = self.graph.nodes.work_class[work.node] != WorkClass.OTHER
        made.kept[work.node[~known & classed]] = True

    def _carry(self, here: Accelerator, there: Accelerator, made: "_Made") -> None:
        work, known = self.work, _shaped(self.work)
        before_ns = self.graph.nodes.dur_ns[work.node].astype(np.float64)
        carried = carry_over_all(self.works, before_ns[known], here, there, in_fp32=work.in_fp32[known])
        times = _Times(before_ns[known], carried.time_ns, carried.low_ns, carried.high_ns)
        made.put(work.node[known], self.kinds[known], times)
        for code in np.unique(self.kinds[~known & ~work.across]).tolist():
            mine = ~known & ~work.across & (self.kinds == code)
            if CLASSES[code] is OperatorClass.OTHER:
                made.kept[work.node[mine]] = True
            carried = carry_over_class(CLASSES[code], before_ns[mine], here, there)
            made.put(work.node[mine], code, _Times(before_ns[mine], carried.time_ns, carried.low_ns, carried.high_ns))

    def _others(self, target: Site, made: "_Made") -> tuple[Floats, ...]:
        """The factors with each other accelerator that may be in the target's slots."""
        found = []
        for accelerator in target.alternatives:
            other = made.copied()
            self._move_devices(replace(target, platform=replace(target.platform, accelerator=accelerator)), other)
            found.append(other.factor)
        return tuple(found)

    def _move_wires(self, target: Site, made: "_Made") -> list[str]:
        if not self.graph.collectives:
            return []
        on_cpus = self.graph.host_carries_classes
        stays = target.platform.accelerator is None or self._has(target.platform.accelerator)
        if on_cpus and stays and self._is_at(target.platform):
            made.kept[[n for c in self.graph.collectives for n in c.transfers]] = self.source is None
            return []
        # What a CPU backend took says nothing of accelerators' links: there the model alone does.
        as_recorded = self.source is not None and (not on_cpus or stays)
        here = self._wired(self.source.platform) if self.source is not None and as_recorded else None
        there = self._wired(target.platform)
        if not there.transfers:
            there.transfers.extend(_transfer(self.graph, c, here, there) for c in self.graph.collectives)
        assumed: list[str] = []
        for transfer in there.transfers:
            if transfer.wire is None:
                made.kept[transfer.nodes] = True
                continue
            made.wires.append(transfer.wire)
            assumed += transfer.assumed
            made.put(transfer.nodes, transfer.group, transfer.times)
        return [_described(target.platform, key) for key in dict.fromkeys(assumed)]

    def _has(self, accelerator: Accelerator) -> bool:
        """Whether the platform that a job of CPUs ran on has this accelerator: the job left it alone, and goes on doing so."""
        own = None if self.source is None else self.source.platform.accelerator
        return own is not None and own.name == accelerator.name

    def _is_at(self, target: Platform) -> bool:
        """Whether transfers of a job of CPUs stay as they are: on the fabric that it ran on, or where nobody described that."""
        return self.source is None or self.source.platform.description.fabric == target.description.fabric

    def _wired(self, platform: Platform) -> "_Wired":
        """The fabric of a platform, the same one for platforms that differ in nothing that transfers know of."""
        accelerator = platform.accelerator
        ports = None if accelerator is None else (accelerator.scale_up, accelerator.clock)
        for known in self.fabrics:
            if known.description == platform.description and known.ports == ports:
                return known
        ranks = [r for c in self.graph.collectives for r in _members(self.graph, c)]
        standing = places(ranks, _hosts(self.graph), ranks_of_node(platform))
        fabric = fabric_of(platform, standing.nodes, alike=[known.fabric for known in self.fabrics])
        found = _Wired(platform.description, ports, fabric, standing)
        self.fabrics[_REMEMBERED - 1 :] = []  # the first is that of the source, and stays
        self.fabrics.append(found)
        return found


@dataclass(frozen=True, slots=True)
class _Transfer:
    """A collective on a fabric: its nodes, the group of its error, its times; ``wire`` is None where nothing models it."""

    nodes: npt.NDArray[np.int64]
    group: int
    times: "_Times"
    wire: Wire | None
    assumed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Wired:
    """A fabric, what of a platform it is made of, and the job's collectives on it."""

    description: PlatformFile
    ports: object
    fabric: Fabric
    places: Places
    transfers: list[_Transfer] = field(default_factory=list)

    def of(self, members: tuple[int, ...]) -> tuple[int, ...]:
        """The endpoints of ranks."""
        return tuple(self.places.endpoint[rank] for rank in members)


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

    def rows(self, nodes: npt.NDArray[np.int64]) -> "_Made":
        """The columns of some nodes alone."""
        return _Made(self.factor[nodes], self.low[nodes], self.high[nodes], self.group[nodes], self.kept[nodes], [])

    def take(self, nodes: npt.NDArray[np.int64], rows: "_Made") -> None:
        """Take what ``rows`` of these nodes gave."""
        self.factor[nodes], self.low[nodes], self.high[nodes] = rows.factor, rows.low, rows.high
        self.group[nodes], self.kept[nodes] = rows.group, rows.kept

    def copied(self) -> "_Made":
        """The same columns, to be written over."""
        return self.rows(np.arange(self.factor.size))


@dataclass(frozen=True, slots=True)
class _Times:
    before_ns: Floats
    ns: Floats
    low_ns: Floats
    high_ns: Floats

    def where(self, mask: Mask) -> "_Times":
        return _Times(self.before_ns[mask], self.ns[mask], self.low_ns[mask], self.high_ns[mask])


def _at_end(accelerator: Accelerator, end: int) -> Accelerator:
    """The accelerator with each assumed rate at the low or the high end of its range; itself where none is assumed."""

    def taken(fact: Measure) -> Measure:
        if fact.range is None:
            return fact
        value = fact.range[end - 1]
        return fact.model_copy(update={"value": value, "kind": "derived", "range": None})

    rates = {"flops": accelerator.flops, "vector_flops": accelerator.vector_flops}
    assumed = [fact for table in rates.values() for fact in table.values() if fact.range is not None]
    if not assumed and accelerator.hbm.bandwidth.range is None:
        return accelerator
    tables = {name: {key: taken(fact) for key, fact in table.items()} for name, table in rates.items()}
    hbm = accelerator.hbm.model_copy(update={"bandwidth": taken(accelerator.hbm.bandwidth)})
    return accelerator.model_copy(update={**tables, "hbm": hbm})


# -- device work -----------------------------------------------------------------------------------------------------------


def _shaped(work: TaskWork) -> Mask:
    """Tasks that the model knows by more than their class."""
    return np.asarray((work.work >= 0) & ~work.across)


def _columns(work: TaskWork, chosen: Mask) -> Works:
    """The work of the chosen tasks, each the share of its operator's that it does."""
    works = Works.of(work.works).take(work.work[chosen])
    share = work.share[chosen]
    return replace(works, flops=works.flops * share, bytes_moved=works.bytes_moved * share, batch=works.batch * share)


def _move_copies(
    graph: DependencyGraph, copies: npt.NDArray[np.int64], source: Platform, target: Platform, made: _Made
) -> list[str]:
    """Copies between host and device, by the links between the two; what a kernel takes at least, a copy does too. A link of
    which nobody knows the bandwidth matters where the copies take more of the steps than ``_MATTERS``; elsewhere they keep
    their time.

    Raises:
        HardwareError: the bandwidth is unknown and matters.
    """
    if not copies.size or _is_same_link(source, target):
        return []
    before_ns = graph.nodes.dur_ns[copies].astype(np.float64)
    rates = _link_rates(source, target)
    if rates is not None:
        here, there = rates
        fixed = np.minimum(before_ns, shipped().floor_ns)
        ratios = (here[_LIKELY] / there[_LIKELY], here[_LOW] / there[_HIGH], here[_HIGH] / there[_LOW])
        times = [fixed + (before_ns - fixed) * ratio for ratio in ratios]
        made.put(copies, CLASSES.index(OperatorClass.COPY), _Times(before_ns, *times))
        return [] if here[_LOW] == here[_HIGH] and there[_LOW] == there[_HIGH] else [_described(target, "host.link.bandwidth")]
    unknown = (target if _known(target) == () else source).description.name
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


def _is_same_link(source: Platform, target: Platform) -> bool:
    one, other = source.description, target.description
    return one.name == other.name and one.host.link == other.host.link


_Rate = tuple[float, float, float]  # likely, low, high


def _link_rates(source: Platform, target: Platform) -> tuple[_Rate, _Rate] | None:
    """Bytes a second of both links, what is achieved of them where that is known of both, else their peaks; None where
    neither is.
    """
    for name in ("achievable", "bandwidth"):
        facts = [getattr(link, name) for p in (source, target) if (link := p.description.host.link) is not None]
        if len(facts) == 2 and all(fact.base is not None for fact in facts):
            here, there = (_rate(fact) for fact in facts)
            return here, there
    return None


def _rate(fact: LinkRate | MemoryRate) -> _Rate:
    base = float(fact.base or 0)
    low, high = fact.base_range or (base, base)
    return base, float(low), float(high)


def _known(platform: Platform) -> tuple[float, ...]:
    link = platform.description.host.link
    return () if link is None else tuple(float(f.base) for f in (link.achievable, link.bandwidth) if f.base is not None)


# -- operators of hosts ----------------------------------------------------------------------------------------------------


def _move_operators(  # noqa: PLR0913, PLR0917 - a job's operators, from where, to where
    graph: DependencyGraph,
    kinds: npt.NDArray[np.int64],
    operators: npt.NDArray[np.int64],
    source: Site | None,
    target: Platform,
    made: _Made,
) -> list[str]:
    """Operators of a job of CPUs on other CPUs: those that memory bounds go by the bandwidth of the hosts' memories, as far as
    it is known and with bounds from no change to that; the others, as all host time, by the speed of the hosts.
    """
    if source is None:
        made.kept[operators] = True
        return [
            "what the job ran on is not described: its operators go by host.speed, its transfers keep their time; --from NAME"
        ]
    if source.platform.description.host.memory == target.description.host.memory:
        return []
    bound = operators[np.isin(kinds, _BY_MEMORY) & (graph.nodes.dur_ns[operators] > 0)]
    rates = _memory_rates(source.platform, target)
    if rates is None:
        made.kept[bound] = True
        return ["host.memory.bandwidth is unknown on one side: operators keep their time; --set host.memory.bandwidth=..."]
    before_ns = graph.nodes.dur_ns[bound].astype(np.float64)
    ratio = rates[0] / rates[1]
    times = [before_ns * by for by in (ratio, min(ratio, 1.0), max(ratio, 1.0))]
    made.put(bound, CLASSES.index(OperatorClass.ELEMENTWISE), _Times(before_ns, *times))
    return ["operators that memory bounds go by host.memory.bandwidth alone, the bounds hold that they do not"]


def _memory_rates(source: Platform, target: Platform) -> tuple[float, float] | None:
    for name in ("achievable", "bandwidth"):
        here, there = (getattr(platform.description.host.memory, name).base for platform in (source, target))
        if here is not None and there is not None:
            return float(here), float(there)
    return None


# -- transfers -------------------------------------------------------------------------------------------------------------


def _hosts(graph: DependencyGraph) -> dict[int, str | None]:
    return {rank: host for rank, host in zip(graph.rank_numbers, graph.hosts, strict=False) if rank is not None}


def _members(graph: DependencyGraph, c: Collective) -> tuple[int, ...]:
    """The ranks of a collective by number, known absent ones included; a file without a rank is rank 0."""
    return tuple(sorted({*(graph.rank_numbers[r] or 0 for r in c.ranks), *c.absent}))


def _transfer(graph: DependencyGraph, c: Collective, here: _Wired | None, there: _Wired) -> _Transfer:
    """The collective on the target; without ``here`` the model's time of it, else the recorded one carried over."""
    members = _members(graph, c)
    at = there.of(members)
    nodes = np.array([n for n in c.transfers if graph.nodes.dur_ns[n] > 0], np.int64)
    size = _size(c, len(members))
    unknown = c.name not in KINDS or (size is None and here is None) or (c.name == "send_recv" and len(members) != 2)
    if unknown or len(members) < 2 or not nodes.size:
        return _Transfer(nodes, -1, _Times(*(np.zeros(0) for _ in range(4))), None, ())
    kind: Kind = c.name  # type: ignore[assignment] # one of KINDS
    recorded_ns = int(graph.nodes.dur_ns[nodes].max() if c.transfer_ns is None else c.transfer_ns)
    if here is None:
        time = collective_time(there.fabric, kind, size or 0.0, at)
        bounds = (time.low_ns, time.time_ns, time.high_ns)
    else:
        size = size if size is not None else _explaining(here.fabric, kind, here.of(members), recorded_ns)
        sides = (here.of(members), recorded_ns, here.fabric, there.fabric)
        carried = carry_over_collective(kind, size, *sides, target_ranks=at)
        time, bounds = carried.target, (carried.low_ns, carried.time_ns, carried.high_ns)
    low, after_ns, high = (max(b, 1) for b in bounds)
    latency = time.latency_ns / time.time_ns if time.time_ns else nan
    wire = Wire(c.name, size, time.algorithm, time.bottleneck, latency, recorded_ns, after_ns)
    ratio = after_ns / recorded_ns if recorded_ns else 1.0
    before_ns = graph.nodes.dur_ns[nodes].astype(np.float64)
    times = _Times(before_ns, *(before_ns * ratio * by for by in (1.0, low / after_ns, high / after_ns)))
    group = _SCALE_OUT if len({there.fabric.island[place] for place in at}) > 1 else _SCALE_UP
    return _Transfer(nodes, group, times, wire, _of_links(time))


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
