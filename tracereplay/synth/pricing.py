"""What a step's work takes on a platform: in, operations and collectives; out, nanoseconds, by the models of ``hardware``.

Operators take the calibrated roofline of ``hardware.operators``, tables outside a rank's own memory their bytes over their way
(``hardware.memory``), collectives the model of ``hardware.collectives``. An ``Efficiency`` divides each: one means as the
models say, and that is what a platform without measurements of its own gets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tracereplay.errors import UsageError
from tracereplay.hardware.collectives.fabric import Fabric
from tracereplay.hardware.collectives.library import Algorithm
from tracereplay.hardware.collectives.model import collective_time, uneven_all_to_all_time
from tracereplay.hardware.collectives.of_platform import fabric_of
from tracereplay.hardware.collectives.times import CollectiveTime, link_loads
from tracereplay.hardware.ends import HIGH, LOW, accelerator_at_end, host_at_end
from tracereplay.hardware.memory.rates import MemoryRate, host_rate, ssd_rate
from tracereplay.hardware.operators.carry import analytic_times
from tracereplay.hardware.operators.fitted import shipped
from tracereplay.hardware.operators.model import PRODUCTS, Sheet, modelled_ns, sheet_of
from tracereplay.hardware.operators.work import OperatorClass, Work, Works
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.schema import Accelerator
from tracereplay.synth.assemble import Spread
from tracereplay.synth.operation import Exchange, Operation
from tracereplay.synth.step import Step
from tracereplay.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class Efficiency:
    """What a software stack reaches of what the models say, by kind of work: products, lookups with their updates, everything
    else on the device, transfers.
    """

    products: float = 1.0
    lookups: float = 1.0
    others: float = 1.0
    transfers: float = 1.0

    def __post_init__(self) -> None:
        if min(self.products, self.lookups, self.others, self.transfers) <= 0:
            raise UsageError(f"an efficiency of {self}", hint="every share is above 0")

    def of(self, kind: OperatorClass) -> float:
        """The share of a class of work."""
        if kind in PRODUCTS:
            return self.products
        return self.lookups if kind is OperatorClass.EMBEDDING else self.others


AS_MODELLED = Efficiency()
_LEVELS = ("fabric.scale_up", "host.link", "host.interconnect", "fabric.scale_out")


@dataclass(frozen=True, slots=True)
class Sharing:
    """What ``replay.contention.links_of`` takes: the links of each transfer, how many transfers a link carries at full rate."""

    routes: dict[int, list[int]]
    capacity: tuple[float, ...]


@dataclass(slots=True)
class PlatformPricer:
    """A ``Pricer`` for ranks on nodes of a platform. ``device`` is what a rank computes on: the platform's accelerator, or a
    data sheet of a socket where it has none.

    Raises:
        UsageError: the platform has no accelerator and none is given.
        HardwareError: a figure that the models need is unknown.
    """

    platform: Platform
    spread: Spread
    efficiency: Efficiency = AS_MODELLED
    device: Accelerator | None = None
    fabric: Fabric = field(init=False)
    exchanged: dict[Exchange, CollectiveTime] = field(default_factory=dict)
    _device: Accelerator = field(init=False)
    _sheet: Sheet = field(init=False)
    _endpoints: tuple[int, ...] = field(init=False)
    _ways: dict[str, MemoryRate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        device = self.device or self.platform.accelerator
        if device is None:
            raise UsageError(
                f"{self.platform.description.name} has no accelerators and no data sheet of its sockets",
                hint="choose a platform with accelerators",
            )
        self._device, self._sheet = device, sheet_of(device)
        self.fabric = fabric_of(self.platform, self.spread.nodes)
        self._endpoints = self.spread.endpoints(self.platform)

    def operation_ns(self, operation: Operation) -> int:
        """One operation on one rank: its work, after what it fetches from outside the rank's own memory."""
        own_ns = self.model_ns(operation.work) / self.efficiency.of(operation.work.kind)
        return round(own_ns + self._fetch_ns(operation, self.platform))

    def model_ns(self, work: Work) -> float:
        """The model's time of work on the rank's device; nothing for no work."""
        if not work.flops and not work.bytes_moved:
            return 0.0
        return float(modelled_ns(Works.of([work]), self._sheet, shipped())[0])

    def bounds_ns(self, operation: Operation) -> tuple[float, float]:
        """Between which times nine of ten of such operations lie by the known errors of the models, with what the platform's
        file assumes at the ends of its ranges. Never the other side of ``operation_ns``.
        """
        likely_ns, low_ns, high_ns = self._own_bounds_ns(operation.work)
        share = self.efficiency.of(operation.work.kind)
        fetched = [self._fetch_ns(operation, platform) for platform in self._fetching()]
        return min(low_ns, likely_ns) / share + min(fetched), max(high_ns, likely_ns) / share + max(fetched)

    def exchange_ns(self, exchange: Exchange) -> Sequence[int]:
        """One collective over all ranks: the same transfer for each."""
        time = self.exchanged.get(exchange)
        if time is None:
            time = self.exchanged[exchange] = self._time_of(exchange)
        return [round(time.time_ns / self.efficiency.transfers)] * len(self._endpoints)

    def shared(self, step: Step) -> Sharing:
        """What transfers of a step share where they overlap: of each rank its part of each level of links (scale-up, host,
        network). A transfer loads the level of the link that it waits for, if that is busy for at least half of its time.
        """
        routes: dict[int, list[int]] = {}
        for exchange, collective in zip(step.exchanges, step.graph.collectives, strict=True):
            loaded = link_loads(self.exchanged[exchange])
            name = self.exchanged[exchange].bottleneck
            if name is None or name not in loaded:
                continue
            level = self._level(name)
            for rank, transfer in zip(collective.ranks, collective.transfers, strict=True):
                routes[transfer] = [rank * len(_LEVELS) + level]
        return Sharing(routes, (1.0,) * (len(_LEVELS) * self.spread.ranks))

    @property
    def ways(self) -> Mapping[str, MemoryRate]:
        """The ways to host memory and disks that were used, by tier."""
        return self._ways

    def _level(self, link: str) -> int:
        """The place of a link's level among ``_LEVELS``."""
        a, _, b = link.partition(">")
        return _LEVELS.index(self.fabric.graph.edges[a, b]["level"])

    def _time_of(self, exchange: Exchange) -> CollectiveTime:
        if exchange.split is not None:
            return uneven_all_to_all_time(self.fabric, exchange.split, self._endpoints)
        in_node_first = exchange.hierarchical and self.spread.nodes > 1
        algorithm: Algorithm | None = "hierarchical" if in_node_first else None
        return collective_time(self.fabric, exchange.kind, exchange.bytes, self._endpoints, algorithm=algorithm)

    def _own_bounds_ns(self, work: Work) -> tuple[float, float, float]:
        """The model's time of work, and its bounds; zeros for no work."""
        if not work.flops and not work.bytes_moved:
            return 0.0, 0.0, 0.0
        works = Works.of([work])
        times = analytic_times(works, self._device)
        likely_ns, low_ns, high_ns = (float(column[0]) for column in (times.time_ns, times.low_ns, times.high_ns))
        slow_ns, fast_ns = (
            float(modelled_ns(works, sheet_of(accelerator_at_end(self._device, end)), shipped())[0]) for end in (LOW, HIGH)
        )
        return likely_ns, low_ns * min(fast_ns / likely_ns, 1.0), high_ns * max(slow_ns / likely_ns, 1.0)

    def _fetching(self) -> tuple[Platform, Platform, Platform]:
        """The platform, and the same with its host at both ends of what its file assumes."""
        description = self.platform.description
        ends = (host_at_end(description.host, end) for end in (LOW, HIGH))
        low, high = (
            self.platform
            if host is description.host
            else replace(self.platform, description=description.model_copy(update={"host": host}))
            for host in ends
        )
        return self.platform, low, high

    def _fetch_ns(self, operation: Operation, platform: Platform) -> float:
        """What an operation fetches from outside the rank's own memory, on a platform like this one."""
        seconds = 0.0
        for tier, size, rate_of in (("host", operation.host_bytes, host_rate), ("ssd", operation.ssd_bytes, ssd_rate)):
            if size:
                rate = self._ways.get(tier) if platform is self.platform else None
                if rate is None:
                    rate = rate_of(platform, self.spread.ranks_per_node)
                if platform is self.platform:
                    self._ways[tier] = rate
                seconds += size / rate.bytes_per_s
        return seconds * NS_PER_S
