"""How fast one accelerator reads each memory of its node: in, a platform and who shares; out, bytes a second and what binds.

The way to host memory is as fast as its narrowest part: ``min(link of the accelerator, uplink of its PCIe switch over the
accelerators behind it, host memory over all accelerators, socket interconnect where the memory is on another socket)``. The
share of the uplink is what separates platforms with the same host memory.
"""

from dataclasses import dataclass

from tracereplay.errors import HardwareError
from tracereplay.hardware.facts import Measure
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.schema import HostLink, Memory


@dataclass(frozen=True, slots=True)
class MemoryRate:
    """Bytes a second of one accelerator, which field of the platform binds, and which fields nobody knows, so that they do not
    bind here though they might.
    """

    bytes_per_s: float
    binds: str
    unknown: tuple[str, ...] = ()

    def spread(self, platform: Platform) -> tuple[float, float]:
        """The ends of the range of what binds, as parts of what it is taken to be; 1 twice where it has none."""
        fact = dict(platform.fields()).get(self.binds)
        if not isinstance(fact, Measure) or fact.base is None or fact.base_range is None:
            return 1.0, 1.0
        return float(fact.base_range[0] / fact.base), float(fact.base_range[1] / fact.base)


def sockets_of(platform: Platform) -> int:
    """How many sockets a node has.

    Raises:
        HardwareError: it is unknown.
    """
    sockets = platform.description.host.sockets.value
    if sockets is None:
        raise HardwareError("host.sockets is unknown", where=platform.description.name, hint=_hint("host.sockets"))
    return int(sockets)


def ranks_of_node(platform: Platform) -> int:
    """How many ranks a node has: its accelerators, its sockets where it has none.

    Raises:
        HardwareError: it is unknown.
    """
    slots = platform.description.accelerator
    if slots is None:
        return sockets_of(platform)
    if slots.count.value is None:
        raise HardwareError("accelerator.count is unknown", where=platform.description.name, hint=_hint("accelerator.count"))
    return int(slots.count.value)


def _hint(key: str) -> str:
    return f"give it with --set {key}=..., or in a file that inherits this one"


def host_rate(platform: Platform, sharers: int, remote: bool = False) -> MemoryRate:
    """Host memory behind the accelerator's link while ``sharers`` accelerators of the node read it; ``remote``: the memory of
    another socket. Of a node without accelerators, its sockets' memory over ``sharers``.

    Raises:
        HardwareError: neither the link nor the memory is known.
    """
    terms, unknown = [], []
    memory = _memory_rate(platform.description.host.memory, "host.memory")
    if memory is None:
        unknown.append("host.memory.bandwidth")
    else:
        terms.append(MemoryRate(memory.bytes_per_s / sharers, memory.binds))
    if platform.accelerator is not None:
        found, missing = _link_terms(platform.description.host.link, ranks_of_node(platform))
        terms += found
        unknown += missing
        if not found:
            raise HardwareError(
                "host.link.bandwidth is unknown, and tables in host memory are read over it",
                where=platform.description.name,
                hint="give it in a file that inherits this one, or place tables in HBM",
            )
    if remote:
        between = platform.description.host.interconnect
        rate = None if between is None else _product(between.bandwidth, between.links.value)
        if rate is None:
            unknown.append("host.interconnect.bandwidth")
        else:
            terms.append(MemoryRate(rate, "host.interconnect.bandwidth"))
    if not terms:
        raise HardwareError(
            "host.memory.bandwidth is unknown", where=platform.description.name, hint=_hint("host.memory.bandwidth")
        )
    narrowest = min(terms, key=lambda term: term.bytes_per_s)
    return MemoryRate(narrowest.bytes_per_s, narrowest.binds, tuple(unknown))


def hbm_rate(platform: Platform) -> MemoryRate:
    """The accelerator's own memory.

    Raises:
        HardwareError: there is none, or its bandwidth is unknown.
    """
    hbm = None if platform.accelerator is None else platform.accelerator.hbm
    found = None if hbm is None else _reached(hbm.achievable, hbm.bandwidth)
    if found is None:
        key = "accelerator.hbm.bandwidth"
        raise HardwareError(f"{key} is unknown", where=platform.description.name, hint=_hint(key))
    return MemoryRate(found[0], f"accelerator.hbm.{found[1]}")


def ssd_rate(platform: Platform, sharers: int) -> MemoryRate:
    """Solid state disks while ``sharers`` accelerators of the node read them, over the way to host memory.

    Raises:
        HardwareError: the platform has no disks, or their bandwidth is unknown.
    """
    ssd = platform.description.host.ssd
    if ssd is None or ssd.bandwidth.base is None or ssd.count.value is None:
        raise HardwareError(
            "host.ssd is unknown, and tables are placed there",
            where=platform.description.name,
            hint="give [host.ssd] with count, capacity and bandwidth in a file that inherits this one",
        )
    disks = MemoryRate(ssd.bandwidth.base * ssd.count.value / sharers, "host.ssd.bandwidth")
    way = host_rate(platform, sharers)
    return disks if disks.bytes_per_s <= way.bytes_per_s else way


def _link_terms(link: HostLink | None, count: int) -> tuple[list[MemoryRate], list[str]]:
    """The accelerator's own link, and its share of its switch's uplink; which of the two is unknown."""
    if link is None:
        return [], ["host.link"]
    own = _reached(link.achievable, link.bandwidth)
    terms = [] if own is None else [MemoryRate(own[0], f"host.link.{own[1]}")]
    if link.switches.value is None or link.uplink.base is None:
        return terms, ["host.link.switches" if link.switches.value is None else "host.link.uplink"]
    behind = -(-count // int(link.switches.value))
    return [*terms, MemoryRate(link.uplink.base / behind, "host.link.uplink")], []


def _memory_rate(memory: Memory, key: str) -> MemoryRate | None:
    found = _reached(memory.achievable, memory.bandwidth)
    return None if found is None else MemoryRate(found[0], f"{key}.{found[1]}")


def _reached(achievable: Measure, bandwidth: Measure) -> tuple[float, str] | None:
    """What was reached, else what the data sheet says, with the field's name; None where both are unknown."""
    if achievable.base is not None:
        return float(achievable.base), "achievable"
    return None if bandwidth.base is None else (float(bandwidth.base), "bandwidth")


def _product(rate: Measure, links: int | float | None) -> float | None:
    return None if rate.base is None or links is None else float(rate.base) * links
