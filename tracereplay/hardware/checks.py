"""What one field of a hardware file says beside another: in, a description; out, the faults in it, each with its key."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tracereplay.errors import HardwareError
from tracereplay.hardware.facts import LinkRate, Measure, Name
from tracereplay.hardware.schema import Accelerator, Description, Interconnect, PlatformFile, Port, ScaleUp
from tracereplay.hardware.technology import LOOPBACK, is_known, misreading, rate_of_link, rate_of_port

# An achievable rate may exceed the nominal one by rounding and clocks, by no more.
_ROUNDING = 1.1
# Of anything; more than that is a slip, and a topology of it would fill the memory.
_MOST_IN_A_NODE = 1024


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong in a file: where (file, key), what, and what to do."""

    file: str
    key: str
    what: str

    def place(self) -> str:
        """File and key."""
        return f"{self.file}: {self.key}" if self.key else self.file

    def line(self) -> str:
        """The fault as one line."""
        return " ".join(f"{self.place()}: {self.what}".split())


class FaultError(HardwareError):
    """A fault as an error; ``more`` others were found with it."""

    def __init__(self, fault: Fault, more: int = 0) -> None:
        self.fault = fault
        others = f"{more} more: tracereplay hardware validate" if more else ""
        super().__init__(fault.what, where=fault.place(), hint=others)


Found = tuple[str, str]  # key, what


def faults_between_fields(description: Description) -> list[Found]:
    """Keys and faults of what does not fit together."""
    if isinstance(description, Accelerator):
        return list(_accelerator(description))
    return list(_platform(description)) if isinstance(description, PlatformFile) else []


def unchecked(description: Description) -> list[str]:
    """Keys of link bandwidths whose technology has no known nominal rate: a slip in their unit would not show."""
    return [
        f"{key} ({technology.text()})"
        for key, technology, rates in _links(description)
        if any(rate.value is not None for rate in rates) and not (technology.value and is_known(technology.value))
    ]


def _accelerator(a: Accelerator) -> Iterator[Found]:
    yield from _achievable("hbm.achievable", a.hbm.bandwidth, a.hbm.achievable)
    for number, flops in a.achievable_flops.items():
        if number in a.flops:
            yield from _achievable(f"achievable_flops.{number}", a.flops[number], flops)
    if a.scale_up is not None:
        yield from _port("scale_up", a.scale_up)
    if a.host_link is not None:
        yield from _link("host_link", a.host_link.technology, a.host_link.bandwidth)
        yield from _achievable("host_link.achievable", a.host_link.bandwidth, a.host_link.achievable)


def _platform(p: PlatformFile) -> Iterator[Found]:
    yield from _too_many(p)
    yield from _achievable("host.memory.achievable", p.host.memory.bandwidth, p.host.memory.achievable)
    for number, flops in p.host.achievable_flops.items():
        if number in p.host.flops:
            yield from _achievable(f"host.achievable_flops.{number}", p.host.flops[number], flops)
    if p.host.interconnect is not None:
        yield from _link("host.interconnect", p.host.interconnect.technology, p.host.interconnect.bandwidth)
        yield from _sockets(p.host.interconnect, p.host.sockets.value)
    if p.host.link is not None:
        yield from _link("host.link", p.host.link.technology, p.host.link.bandwidth)
        yield from _achievable("host.link.achievable", p.host.link.bandwidth, p.host.link.achievable)
    if p.fabric.scale_up is not None:
        yield from _port("fabric.scale_up", p.fabric.scale_up)
        yield from _wiring(p.fabric.scale_up, None if p.accelerator is None else p.accelerator.count.value)
    out = p.fabric.scale_out
    yield from _link("fabric.scale_out", out.technology, out.bandwidth)
    yield from _achievable("fabric.scale_out.achievable", out.bandwidth, out.achievable)
    if out.attached_to.value == "accelerator" and p.accelerator is None:
        yield "fabric.scale_out.attached_to", "there is no accelerator; write 'socket'"
    if p.fabric.front_end is not None:
        yield from _link("fabric.front_end", p.fabric.front_end.technology, p.fabric.front_end.bandwidth)
    if p.accelerator is None and (p.host.link is not None or not _is_loopback(p.fabric.scale_up)):
        yield "accelerator", "is missing, but host.link or fabric.scale_up describes its links"


def _is_loopback(up: ScaleUp | None) -> bool:
    """Whether no accelerator is needed for it: there is no fabric, or it joins processes."""
    return up is None or up.technology.value == LOOPBACK


def _too_many(p: PlatformFile) -> Iterator[Found]:
    """Counts of what one node never has so many of."""
    counts = {"host.sockets": p.host.sockets, "fabric.scale_out.nics": p.fabric.scale_out.nics}
    if p.accelerator is not None:
        counts["accelerator.count"] = p.accelerator.count
    if p.host.link is not None:
        counts["host.link.switches"] = p.host.link.switches
    if p.fabric.front_end is not None:
        counts["fabric.front_end.nics"] = p.fabric.front_end.nics
    for key, count in counts.items():
        if count.value is not None and count.value > _MOST_IN_A_NODE:
            yield key, f"{count.value:,} are more than one node has; a file describes one node (at most {_MOST_IN_A_NODE:,})"


def _links(description: Description) -> Iterator[tuple[str, Name, tuple[LinkRate, ...]]]:
    """Each group of links: the key of its bandwidth, its technology, the rates that a check compares with it."""
    if isinstance(description, Accelerator):
        if (port := description.scale_up) is not None:
            yield "scale_up.bandwidth", port.technology, (port.link_bandwidth, port.bandwidth)
        if (link := description.host_link) is not None:
            yield "host_link.bandwidth", link.technology, (link.bandwidth,)
    if isinstance(description, PlatformFile):
        host, fabric = description.host, description.fabric
        if host.interconnect is not None:
            yield "host.interconnect.bandwidth", host.interconnect.technology, (host.interconnect.bandwidth,)
        if host.link is not None:
            yield "host.link.bandwidth", host.link.technology, (host.link.bandwidth,)
        if (up := fabric.scale_up) is not None:
            yield "fabric.scale_up.bandwidth", up.technology, (up.link_bandwidth, up.bandwidth)
        yield "fabric.scale_out.bandwidth", fabric.scale_out.technology, (fabric.scale_out.bandwidth,)
        if fabric.front_end is not None:
            yield "fabric.front_end.bandwidth", fabric.front_end.technology, (fabric.front_end.bandwidth,)


def _link(key: str, technology: Name, bandwidth: LinkRate) -> Iterator[Found]:
    nominal = None if technology.value is None else rate_of_link(technology.value)
    if bandwidth.base is not None and technology.value is not None and nominal is not None:
        wrong = misreading(bandwidth.base, nominal, technology.value)
        if wrong is not None:
            yield f"{key}.bandwidth", wrong


def _port(key: str, port: Port) -> Iterator[Found]:
    """One link against its technology; all links against links times one link, or where that is not known against the
    technology.
    """
    technology = port.technology.value
    one, total, links = port.link_bandwidth.base, port.bandwidth.base, port.links.value
    nominal = None if technology is None else rate_of_link(technology)
    if one is not None and technology is not None and nominal is not None:
        wrong = misreading(one, nominal, technology)
        if wrong is not None:
            yield f"{key}.link_bandwidth", wrong
            return  # what it is compared with below would be wrong for the same reason
    nominal = None if technology is None else rate_of_port(technology)
    if one is not None and links is not None and total is not None:
        if not 0.99 <= total / (one * links) <= 1.01:
            yield (
                f"{key}.bandwidth",
                f"{total / 1e9:.4g} GB/s one way is not {links} links times {one / 1e9:.4g}; check units and directions",
            )
    elif total is not None and technology is not None and nominal is not None:
        wrong = misreading(total, nominal, technology)
        if wrong is not None:
            yield f"{key}.bandwidth", wrong
    yield from _achievable(f"{key}.achievable", port.bandwidth, port.achievable)


def _achievable(key: str, peak: Measure, reached: Measure) -> Iterator[Found]:
    if peak.base is not None and reached.base is not None and reached.base > peak.base * _ROUNDING:
        yield key, f"{reached.text()} is more than the peak of {peak.text()}; check unit and direction of both"


def _wiring(up: ScaleUp, count: int | float | None) -> Iterator[Found]:
    layout, links = up.layout.value, up.links.value
    if layout == "hybrid-cube-mesh" and up.pairs is None:
        yield "fabric.scale_up.pairs", "is missing; a hybrid-cube-mesh says which accelerators are wired: [[0, 1, 1], ...]"
    if layout == "cube":
        yield (
            "fabric.scale_up.layout",
            "'cube' is a layout of sockets; accelerators have switch, fully-connected, hybrid-cube-mesh",
        )
    if layout == "fully-connected" and count is not None and links is not None and links % max(count - 1, 1):
        yield "fabric.scale_up.links", f"{links} links cannot be spread evenly over {count - 1} peers"
    if up.pairs is None or up.pairs.value is None or count is None:
        return
    ends = Counter[int]()
    for a, b, n in up.pairs.value:
        ends.update({a: n, b: n})
    if max(ends, default=0) >= count:
        yield "fabric.scale_up.pairs", f"names accelerator {max(ends)}; there are {count}, from 0 on"
    elif links is not None and (crowded := [a for a, n in ends.items() if n > links]):
        yield "fabric.scale_up.pairs", f"accelerator {min(crowded)} has {ends[min(crowded)]} links; links says {links}"


def _sockets(between: Interconnect, sockets: int | float | None) -> Iterator[Found]:
    layout, links = between.layout.value, between.links.value
    if layout == "cube" and sockets not in {8, None}:
        yield "host.interconnect.layout", f"a cube has 8 sockets, not {sockets}; write 'fully-connected'"
    if layout in {"switch", "hybrid-cube-mesh"}:
        yield "host.interconnect.layout", f"{layout!r} is no layout of sockets; write 'fully-connected' or 'cube'"
    if layout == "fully-connected" and links is not None and sockets is not None and links < sockets - 1:
        yield "host.interconnect.links", f"{links} links do not reach {sockets - 1} other sockets"
