"""What is wired to what in a platform: in, its description and its accelerator; out, nodes, links and a networkx graph.

Members of a group are spread over the next one in blocks, in order: with 8 accelerators and 2 sockets, the first four belong
to socket 0. No source says otherwise for the platforms of the catalogue, nor this. A switched fabric is one switch, without
blocking inside. A network interface's link carries the rate of its network, its own PCIe link being unknown.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations

import networkx as nx
import numpy as np

from tracereplay.errors import HardwareError
from tracereplay.hardware.facts import Count, Measure
from tracereplay.hardware.schema import Accelerator, HostLink, Interconnect, PlatformFile, ScaleUp, Storage

# Every choice of halves is looked at: 92,378 of 20 accelerators.
_MOST_HALVED = 20

Rate = int | float | None


@dataclass(frozen=True, slots=True)
class Node:
    """Something that links join. ``kind``: ``accelerator``, ``socket``, ``memory``, ``switch``, ``nic`` or, where nodes are
    joined, ``rack``; ``capacity_bytes`` is that of a memory, None where unknown.
    """

    name: str
    kind: str
    capacity_bytes: int | float | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """All wires between two nodes. ``level``: the section of the file that describes them. ``bandwidth_bytes_per_s``: of all
    ``links`` together, in one direction; of a memory (``duplex`` False), reads and writes share it. None is unknown.
    """

    a: str
    b: str
    level: str
    links: int | float | None
    bandwidth_bytes_per_s: Rate
    latency_ns: int | None
    duplex: bool = True


def parts_of(platform: PlatformFile, accelerator: Accelerator | None) -> tuple[list[Node], list[Link]]:
    """Nodes and links of one node of the platform.

    Raises:
        HardwareError: the number of sockets or accelerators, or how these are wired, is unknown.
    """
    sockets = _known("host.sockets", platform.host.sockets, platform.name)
    count = 0 if platform.accelerator is None else _known("accelerator.count", platform.accelerator.count, platform.name)
    nodes, links = _host(platform, sockets)
    nodes += [Node(f"accelerator{i}", "accelerator") for i in range(count)]
    if accelerator is not None:
        hbm = accelerator.hbm
        nodes += [Node(f"hbm{i}", "memory", hbm.capacity.base) for i in range(count)]
        ends = [(f"accelerator{i}", f"hbm{i}") for i in range(count)]
        links += [Link(a, b, "accelerator.hbm", 1, hbm.bandwidth.base, None, duplex=False) for a, b in ends]
    for more_nodes, more_links in (
        _disks(platform.host.ssd, sockets),
        _host_links(platform.host.link, count, sockets),
        _scale_up(platform, count),
        _interfaces(platform, count, sockets),
    ):
        nodes += more_nodes
        links += more_links
    return nodes, links


def graph_of(nodes: list[Node], links: list[Link]) -> nx.Graph:
    """The same as a networkx graph; attributes are the fields of Node and Link."""
    graph = nx.Graph()
    for node in nodes:
        graph.add_node(node.name, kind=node.kind, capacity_bytes=node.capacity_bytes)
    for link in links:
        graph.add_edge(link.a, link.b, **{k: v for k, v in asdict(link).items() if k not in {"a", "b"}})
    return graph


def bisection_of(links: list[Link], accelerators: int) -> Rate:
    """Bytes a second, one way, that half of the accelerators can send to the other half over the scale-up fabric, for the worst
    choice of halves. None where a bandwidth is unknown, there are no two equal halves, or more than 20 accelerators.
    """
    fabric = [link for link in links if link.level == "fabric.scale_up"]
    rates = [link.bandwidth_bytes_per_s for link in fabric if link.bandwidth_bytes_per_s is not None]
    if not fabric or accelerators % 2 or not 2 <= accelerators <= _MOST_HALVED or len(rates) < len(fabric):
        return None
    # The first accelerator is in the first half: the other choices are the same splits, seen from the other side.
    chosen = np.array([(0, *rest) for rest in combinations(range(1, accelerators), accelerators // 2 - 1)])
    halves = np.zeros((len(chosen), accelerators), dtype=bool)
    np.put_along_axis(halves, chosen, values=True, axis=1)
    cut = np.zeros(len(chosen))
    into_switch = np.zeros((2, len(chosen)))
    for link, rate in zip(fabric, rates, strict=True):
        a = halves[:, _number(link.a)]
        if link.b.startswith("switch"):
            into_switch += np.where(np.stack([a, ~a]), rate, 0.0)
        else:
            cut += np.where(a != halves[:, _number(link.b)], rate, 0.0)
    return float((cut + into_switch.min(axis=0)).min())


def _number(name: str) -> int:
    return int(name.removeprefix("accelerator"))


def _known(key: str, count: Count, where: str) -> int:
    if count.value is None:
        raise HardwareError(
            f"{key} is unknown",
            where=where,
            hint=f"a topology needs it: give it with --set {key}=..., or in a file that inherits this one",
        )
    return int(count.value)


def _latency(fact: Measure) -> int | None:
    return None if fact.base is None else round(fact.base)


def _times(rate: Rate, links: Rate) -> Rate:
    return None if rate is None or links is None else rate * links


def _block(member: int, members: int, groups: int) -> int:
    """The group of a member when members are dealt to groups in blocks."""
    return member * groups // members


def _host(platform: PlatformFile, sockets: int) -> tuple[list[Node], list[Link]]:
    memory = platform.host.memory
    capacity = None if memory.capacity.base is None else memory.capacity.base / sockets
    rate = None if memory.bandwidth.base is None else memory.bandwidth.base / sockets
    nodes, links = [], []
    for i in range(sockets):
        nodes += [Node(f"socket{i}", "socket"), Node(f"memory{i}", "memory", capacity)]
        links.append(Link(f"socket{i}", f"memory{i}", "host.memory", 1, rate, None, duplex=False))
    between = platform.host.interconnect
    if between is not None and sockets > 1:
        pairs = list(_socket_pairs(between, sockets, platform.name))
        # Each socket has as many neighbours as any other in these layouts, and spreads its links over them.
        neighbours = 2 * len(pairs) // sockets
        each = None if between.links.value is None else between.links.value / neighbours
        rate = _times(between.bandwidth.base, each)
        for a, b in pairs:
            links.append(Link(f"socket{a}", f"socket{b}", "host.interconnect", each, rate, _latency(between.latency)))
    return nodes, links


def _socket_pairs(between: Interconnect, sockets: int, where: str) -> Iterator[tuple[int, int]]:
    if between.layout.value is None:
        raise HardwareError(
            "host.interconnect.layout is unknown", where=where, hint="a topology needs it: give it in your file"
        )
    for a, b in combinations(range(sockets), 2):
        if between.layout.value == "fully-connected" or (a ^ b).bit_count() == 1:
            yield a, b


def _disks(ssd: Storage | None, sockets: int) -> tuple[list[Node], list[Link]]:
    """Solid state disks at the sockets; reads and writes share the bandwidth of one."""
    count = 0 if ssd is None else int(ssd.count.value or 0)
    if ssd is None or not count:
        return [], []
    nodes = [Node(f"ssd{i}", "memory", ssd.capacity.base) for i in range(count)]
    ends = [(f"socket{_block(i, count, sockets)}", f"ssd{i}") for i in range(count)]
    return nodes, [Link(a, b, "host.ssd", 1, ssd.bandwidth.base, None, duplex=False) for a, b in ends]


def _host_links(link: HostLink | None, count: int, sockets: int) -> tuple[list[Node], list[Link]]:
    """Accelerators to sockets, through PCIe switches where their number is known."""
    if link is None or not count:
        return [], []
    level, rate, latency = "host.link", link.bandwidth.base, _latency(link.latency)
    if link.switches.value is None:
        ends = [(f"accelerator{i}", f"socket{_block(i, count, sockets)}") for i in range(count)]
        return [], [Link(a, b, level, 1, rate, latency) for a, b in ends]
    switches = int(link.switches.value)
    nodes = [Node(f"pcie-switch{i}", "switch") for i in range(switches)]
    ends = [(f"accelerator{i}", f"pcie-switch{_block(i, count, switches)}") for i in range(count)]
    links = [Link(a, b, level, 1, rate, latency) for a, b in ends]
    up = [(f"pcie-switch{i}", f"socket{_block(i, switches, sockets)}") for i in range(switches)]
    return nodes, links + [Link(a, b, level, 1, link.uplink.base, latency) for a, b in up]


def _scale_up(platform: PlatformFile, count: int) -> tuple[list[Node], list[Link]]:
    up = platform.fabric.scale_up
    if up is None or not count:
        return [], []
    if up.layout.value is None:
        raise HardwareError(
            "fabric.scale_up.layout is unknown", where=platform.name, hint="a topology needs it: give it in your file"
        )
    level, latency = "fabric.scale_up", _latency(up.latency)
    if up.layout.value == "switch":
        ends = [(f"accelerator{i}", "switch0") for i in range(count)]
        links = [Link(a, b, level, up.links.value, up.bandwidth.base, latency) for a, b in ends]
        return [Node("switch0", "switch")], links
    return [], [
        Link(f"accelerator{a}", f"accelerator{b}", level, n, rate, latency)
        for a, b, n, rate in _wires(up, count, platform.name)
    ]


def _wires(up: ScaleUp, count: int, where: str) -> Iterator[tuple[int, int, Rate, Rate]]:
    """Wired pairs: accelerators, links, and their bandwidth together."""
    if up.layout.value == "fully-connected":
        peers = max(count - 1, 1)
        each = None if up.links.value is None else up.links.value / peers
        rate = None if up.bandwidth.base is None else up.bandwidth.base / peers
        yield from ((a, b, each, rate) for a, b in combinations(range(count), 2))
        return
    if up.pairs is None or up.pairs.value is None:
        raise HardwareError(
            "fabric.scale_up.pairs is unknown", where=where, hint="a topology needs them: give them in your file"
        )
    yield from ((a, b, n, _times(up.link_bandwidth.base, n)) for a, b, n in up.pairs.value)


def _interfaces(platform: PlatformFile, count: int, sockets: int) -> tuple[list[Node], list[Link]]:
    """Network interfaces: each at a socket, or at the PCIe switch of its accelerators where there is one."""
    out, front = platform.fabric.scale_out, platform.fabric.front_end
    nodes, links = [], []
    for i in range(int(out.nics.value or 0)):
        end = _end_of_nic(platform, i, count, sockets)
        nodes.append(Node(f"nic{i}", "nic"))
        links.append(Link(f"nic{i}", end, "fabric.scale_out", 1, out.bandwidth.base, _latency(out.latency)))
    interfaces = 0 if front is None else int(front.nics.value or 0)
    for i in range(interfaces):
        nodes.append(Node(f"front-nic{i}", "nic"))
        end, rate = f"socket{_block(i, interfaces, sockets)}", None if front is None else front.bandwidth.base
        links.append(Link(f"front-nic{i}", end, "fabric.front_end", 1, rate, None))
    return nodes, links


def _end_of_nic(platform: PlatformFile, nic: int, count: int, sockets: int) -> str:
    nics, link = int(platform.fabric.scale_out.nics.value or 0), platform.host.link
    switches = None if link is None else link.switches.value
    if platform.fabric.scale_out.attached_to.value == "accelerator" and switches is not None and count:
        return f"pcie-switch{_block(nic, nics, int(switches))}"
    return f"socket{_block(nic, nics, sockets)}"
