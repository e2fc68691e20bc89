"""A topology as transfers see it: in, a platform or a networkx graph; out, endpoints, one-way links with rates, and routes.

Every link is two, one each way, named ``a>b``. Rates are achievable ones: the peak of the graph times what the platform's
file says is achieved of it. Where it does not say, ``UNMEASURED`` is taken. All figures come three times: likely, fast, slow
(the ends of the ranges of what a file assumes).

Routes do not depend on bandwidths, so that more bandwidth on any link never makes a transfer slower:

- between accelerators that links join, directly or over a switch, the shortest by hops, over other accelerators if need be
  (``relay``), and of these the one with the most wires at its narrowest; equals share the transfer;
- else over PCIe and the sockets, shortest by hops;
- between nodes from the sender to a network interface of its own, by the rail switch to the same interface of the receiver.
  Where the receiver has another rail, an accelerator of the sender's node that has it passes the bytes on (NCCL's PXN), else
  the racks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from math import inf, log

import networkx as nx
import numpy as np
import numpy.typing as npt

from tracereplay.errors import HardwareError, UsageError
from tracereplay.hardware.collectives.library import CLOCK_HZ, Hardware, Library
from tracereplay.hardware.collectives.paths import Figures, Route, Way, node_of, order_of, places, widest

Floats = npt.NDArray[np.float64]

LIKELY, FAST, SLOW = 0, 1, 2
SCALE_UP, SCALE_OUT = "fabric.scale_up", "fabric.scale_out"
_HOST = ("host.link", "host.interconnect")
# In the place of an endpoint: the memory of the other one's host.
_HOST_MEMORY = -1


@dataclass(frozen=True, eq=False)
class Fabric:
    """A topology with its library. ``name``: how messages call it; ``figures``: per level of links, whole peaks where it has
    none; ``assumed``: keys that are assumed or not measured; ``stand_ins``: words on constants of one library that stand in for
    another's; ``relay``: accelerators may pass on what others send;
    ``unknown``: keys without a value; ``paths``: those found so far, by endpoints and rail; ``routes``: what they add up, by
    what the links say. Fabrics that are wired alike share both.
    """

    name: str
    graph: nx.Graph
    library: Library
    figures: Mapping[str, Figures] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    relay: bool = True
    unknown: frozenset[str] = frozenset()
    paths: dict[tuple[int, int, int | None], list[list[str]]] = field(default_factory=dict, repr=False)
    routes: dict[tuple[object, ...], dict[tuple[int, int, int | None], Route]] = field(default_factory=dict, repr=False)

    @cached_property
    def endpoints(self) -> tuple[str, ...]:
        """What takes part in collectives: accelerators, or sockets where there are none. Ranks are numbered in this order."""
        for kind in ("accelerator", "socket"):
            names = [name for name, its in self.graph.nodes.data("kind") if its == kind]
            if names:
                return tuple(sorted(names, key=order_of))
        raise UsageError(f"{self.name} has neither accelerators nor sockets", hint="give a topology with one of them")

    @cached_property
    def node(self) -> tuple[str, ...]:
        """Per endpoint the node it belongs to (``node3/``; empty where there is one node)."""
        return tuple(node_of(name) for name in self.endpoints)

    @cached_property
    def island(self) -> tuple[int, ...]:
        """Per endpoint the number of its island: endpoints of one node, or of nodes that a scale-up switch joins."""
        joined = nx.Graph()
        joined.add_edges_from(zip(self.endpoints, self.node, strict=True))
        joined.add_edges_from(self._up.edges)
        number = {name: i for i, part in enumerate(nx.connected_components(joined)) for name in part}
        order = {old: new for new, old in enumerate(dict.fromkeys(number[name] for name in self.endpoints))}
        return tuple(order[number[name]] for name in self.endpoints)

    @cached_property
    def links(self) -> tuple[str, ...]:
        """Names of the one-way links, by number."""
        return tuple(f"{a}>{b}" for one in self._wires for a, b in (one, one[::-1]))

    @cached_property
    def level_of(self) -> dict[str, str]:
        """The level of each one-way link, by its name."""
        return {f"{a}>{b}": self.graph.edges[one]["level"] for one in self._wires for a, b in (one, one[::-1])}

    @cached_property
    def rates(self) -> Floats:
        """Bytes a second of each one-way link; rows likely, fast, slow. NaN is unknown."""
        rows = []
        for a, b in self._wires:
            wire = self.graph.edges[a, b]
            peak = wire.get("bandwidth_bytes_per_s")
            share = self.figures.get(wire.get("level", ""), Figures()).share
            rows += 2 * [[np.nan if peak is None else float(peak) * part for part in share]]
        return np.array(rows, np.float64).reshape(-1, 3).T.copy()

    @cached_property
    def _wires(self) -> list[tuple[str, str]]:
        """The links that transfers may use: all but those of memories and of the front end."""
        memories = {name for name, kind in self.graph.nodes.data("kind") if kind == "memory"}
        return [
            (a, b) for a, b, level in self.graph.edges.data("level") if not {a, b} & memories and level != "fabric.front_end"
        ]

    @cached_property
    def _number(self) -> dict[tuple[str, str], int]:
        return {way: 2 * i + back for i, one in enumerate(self._wires) for back, way in enumerate((one, one[::-1]))}

    @cached_property
    def _up(self) -> nx.Graph:
        return self._level(SCALE_UP)

    @cached_property
    def _hosts(self) -> nx.Graph:
        """PCIe and what joins sockets, with the interfaces at its ends; not the network."""
        return self._level(*_HOST, SCALE_OUT, network=False)

    def _level(self, *levels: str, network: bool = True) -> nx.Graph:
        """The links of levels, with their wires: those of an unknown number are all alike in their level, and count as one."""
        chosen = nx.Graph()
        for a, b in self._wires:
            wire = self.graph.edges[a, b]
            if wire.get("level") in levels and (network or node_of(a) == node_of(b)):
                chosen.add_edge(a, b, links=1 if wire.get("links") is None else wire["links"])
        return chosen

    @cached_property
    def interfaces(self) -> tuple[tuple[str, ...], ...]:
        """Per endpoint its network interfaces: they are dealt to the endpoints of a node in blocks, or shared where there
        are fewer.
        """
        nics: dict[str, list[str]] = {}
        for name, kind in self.graph.nodes.data("kind"):
            if kind == "nic" and any(wire.get("level") == SCALE_OUT for wire in self.graph[name].values()):
                nics.setdefault(node_of(name), []).append(name)
        dealt = []
        for i, node in enumerate(self.node):
            mine, members = sorted(nics.get(node, []), key=order_of), self.node.count(node)
            place = i - self.node.index(node)
            low = place * len(mine) // members
            dealt.append(tuple(mine[low : max((place + 1) * len(mine) // members, low + 1)]))
        return tuple(dealt)

    @cached_property
    def _ways(self) -> dict[tuple[int, str], list[list[str]]]:
        return {}

    @cached_property
    def _routes(self) -> dict[tuple[int, int, int | None], Route]:
        return self.routes.setdefault(tuple((way.wire_ns, way.is_known) for way in self._way.values()), {})

    def route(self, source: int, target: int, rail: int | None = None) -> Route:
        """The route between two endpoints; ``rail``: over this interface of both nodes.

        Raises:
            HardwareError: nothing joins the two, or the bandwidth of a link on the way is unknown.
        """
        key = (source, target, rail)
        found = self._routes.get(key)
        if found is None:
            if key not in self.paths:
                inside = self.island[source] == self.island[target]
                self.paths[key] = self._within(source, target) if inside else self._between(source, target, rail)
            found = self._routes[key] = self._made(self.paths[key])
        return found

    def is_wired_like(self, other: "Fabric") -> bool:
        """Whether routes are the same in both: the same parts, joined by as many wires, and the same library."""
        if (self.relay, self.library) != (other.relay, other.library):
            return False
        mine, theirs = (
            ({*one.graph.nodes.data("kind")}, [(a, b, w.get("level"), w.get("links")) for a, b, w in one.graph.edges.data()])
            for one in (self, other)
        )
        return mine == theirs

    def neighbours(self, source: int, target: int) -> float:
        """How many wires join two accelerators directly; 0 where none does."""
        a, b = self.endpoints[source], self.endpoints[target]
        return float(self._up.edges[a, b]["links"]) if self._up.has_edge(a, b) else 0.0

    def is_switched(self, members: Sequence[int]) -> bool:
        """Whether one switch joins all these endpoints."""
        ends = [self.endpoints[m] for m in members]
        common = set.intersection(*(set(self._up[e]) if e in self._up else set() for e in ends))
        return any(self.graph.nodes[name].get("kind") == "switch" for name in common)

    def to_switch(self, source: int, *, up: bool) -> int:
        """The number of the one-way link from an endpoint to its scale-up switch (``up``), or back."""
        end = self.endpoints[source]
        switch = next(name for name in self._up[end] if self.graph.nodes[name].get("kind") == "switch")
        return self._number[(end, switch) if up else (switch, end)]

    def _within(self, source: int, target: int) -> list[list[str]]:
        a, b = self.endpoints[source], self.endpoints[target]
        paths = widest(self._up, a, b)
        if paths and (self.relay or not any(self.graph.nodes[n].get("kind") == "accelerator" for n in paths[0][1:-1])):
            return paths
        over_host = widest(self._hosts, a, b)
        if not over_host:
            raise HardwareError(
                f"nothing joins {a} and {b}", where=self.name, hint="give host.link or fabric.scale_up in your file"
            )
        return over_host

    def _between(self, source: int, target: int, rail: int | None) -> list[list[str]]:
        mine, theirs = self.interfaces[source], self.interfaces[target]
        if rail is not None:
            mine, theirs = (f"{self.node[source]}nic{rail}",), (f"{self.node[target]}nic{rail}",)
        elif self.library.relays and all(f"{self.node[source]}{place}" in self.graph for place in places(theirs)):
            mine = tuple(f"{self.node[source]}{place}" for place in places(theirs))
        if not mine or not theirs:
            raise HardwareError(
                "a node has no network interface", where=self.name, hint="give fabric.scale_out.nics in your file"
            )
        pairs = [(mine[i % len(mine)], theirs[i % len(theirs)]) for i in range(max(len(mine), len(theirs)))]
        return [
            out[:-1] + self._network(a, b) + into[-2::-1]
            for a, b in pairs
            for out in self._to_interface(source, a)
            for into in self._to_interface(target, b)
        ]

    def _to_interface(self, source: int, nic: str) -> list[list[str]]:
        """From an endpoint to an interface of its node: by PCIe to its own, to another's over that other, if links lead
        there.
        """
        found = self._ways.get((source, nic))
        if found is None:
            found = self._ways[source, nic] = self._ways_to(source, nic)
        return found

    def _ways_to(self, source: int, nic: str) -> list[list[str]]:
        end = self.endpoints[source]
        owners = [e for e, mine in zip(self.endpoints, self.interfaces, strict=True) if nic in mine and e != end]
        if nic not in self.interfaces[source] and self.library.relays and owners:
            over = widest(self._up, end, owners[0])
            if over:
                return [path[:-1] + self._host_way(owners[0], nic) for path in over]
        return [self._host_way(end, nic)]

    def _host_way(self, end: str, nic: str) -> list[str]:
        paths = widest(self._hosts, end, nic)
        if not paths:
            raise HardwareError(f"nothing joins {end} and {nic}", where=self.name, hint="give host.link in your file")
        return paths[0]

    def host_way(self, source: int) -> tuple[int, ...]:
        """The numbers of the one-way links from an endpoint to the memory of its host: those to the nearest socket of its node
        (the first of several); none where the endpoint is a socket, or none is joined. The way back has the same links, each
        number with its last bit turned.
        """
        key = (source, _HOST_MEMORY, None)
        if key not in self.paths:
            self.paths[key] = self._to_memory(self.endpoints[source])
        return tuple(self._number[way] for path in self.paths[key] for way in pairwise(path))

    def _to_memory(self, end: str) -> list[list[str]]:
        kinds = self.graph.nodes.data("kind")
        sockets = sorted((n for n, kind in kinds if kind == "socket" and node_of(n) == node_of(end)), key=order_of)
        ways = [paths[0] for socket in sockets if end != socket and (paths := widest(self._hosts, end, socket))]
        return [min(ways, key=len)] if ways and end not in sockets else []

    def _network(self, nic: str, other: str) -> list[str]:
        """From interface to interface over rail switches, racks and the spine."""
        here, there = self._plugged(nic), self._plugged(other)
        if here == there:
            return [nic, here, other]
        racks = [name.split("/")[0] for name in (here, there)]
        middle = racks[:1] if racks[0] == racks[1] else [racks[0], "spine", racks[1]]
        return [nic, here, *middle, there, other]

    def _plugged(self, nic: str) -> str:
        """The rail switch that an interface is plugged into."""
        return next(str(name) for name in self.graph[nic] if not name.startswith(node_of(nic)))

    @cached_property
    def _way(self) -> dict[tuple[str, str], Way]:
        """What a route adds up, by the ends of the way. A link between two endpoints counts with its whole latency, one that
        ends at something in between with half, so that over a switch, or from interface to interface, it counts once.
        """
        ways = {}
        for way, number in self._number.items():
            wire = self.graph.edges[way]
            kinds = [self.graph.nodes[name].get("kind") for name in way]
            weight = 1.0 if kinds[0] == kinds[1] and kinds[0] in {"accelerator", "socket"} else 0.5
            latency, level = wire.get("latency_ns"), wire.get("level", "")
            parts = self.figures.get(level, Figures()).latency
            ns = (
                None
                if latency is None
                else (weight * latency * parts[0], weight * latency * parts[1], weight * latency * parts[2])
            )
            hardware: Hardware = "net" if level == SCALE_OUT else "pci" if level in _HOST else "nvlink"
            ways[way] = Way(number, hardware, ns, bool(np.isfinite(self.rates[LIKELY, number])))
        return ways

    def _made(self, paths: list[list[str]]) -> Route:
        """The route along paths that share a transfer."""
        loads: dict[int, float] = {}
        for path in paths:
            for way in pairwise(path):
                its = self._way[way]
                if not its.is_known:
                    raise self._unknown(way)
                loads[its.number] = loads.get(its.number, 0.0) + 1 / len(paths)
        passed = [self._way[way] for way in pairwise(paths[0])]
        hardware: Hardware = max((its.hardware for its in passed), key=("nvlink", "pci", "net").index)
        known = [its.wire_ns for its in passed if its.wire_ns is not None]
        likely, fast, slow = (sum(ns[k] for ns in known) for k in range(3))
        return Route(tuple(loads.items()), hardware, (likely, fast, slow) if known else None)

    def _unknown(self, way: tuple[str, str]) -> HardwareError:
        level = self.graph.edges[way].get("level", "")
        uplink = level == "host.link" and not set(way) & set(self.endpoints)
        names = ["uplink"] if uplink else ["bandwidth", "links", "link_bandwidth"]
        key = next((f"{level}.{name}" for name in names if f"{level}.{name}" in self.unknown), f"{level}.{names[0]}")
        return HardwareError(
            f"{key} is unknown, and {'>'.join(way)} lies on the way",
            where=self.name,
            hint=f"give it with --set {key}=..., or in a file that inherits this one",
        )


def levels_of(fabric: Fabric, names: Iterable[str]) -> frozenset[str]:
    """The levels of one-way links, by their names."""
    return frozenset(fabric.level_of[name] for name in names)


@lru_cache(maxsize=1024)
def apart(one: Fabric, other: Fabric, levels: frozenset[str]) -> tuple[float, float]:
    """How far two fabrics differ in what transfers over these levels use: the greatest logarithm, without sign, of a ratio of
    two latencies or clocks, and of two rates; infinite where they are wired otherwise or run another library.
    """
    if (one.relay, one.endpoints, one.links) != (other.relay, other.endpoints, other.links):
        return inf, inf
    if replace(one.library, clock_hz=CLOCK_HZ) != replace(other.library, clock_hz=CLOCK_HZ):
        return inf, inf
    latency, rate = abs(log(one.library.clock_hz / other.library.clock_hz)), 0.0
    for number, name in enumerate(one.links):
        here, there = (fabric.graph.edges[tuple(name.split(">"))] for fabric in (one, other))
        if (here["level"], here.get("links")) != (there["level"], there.get("links")):
            return inf, inf
        if here["level"] in levels:
            latency = max(latency, _apart(here.get("latency_ns"), there.get("latency_ns")))
            rate = max(rate, _apart(one.rates[LIKELY, number], other.rates[LIKELY, number]))
    return latency, rate


def _apart(one: float | None, other: float | None) -> float:
    """The logarithm of the ratio of two figures, without sign; None and NaN are unknown, and a latency may be 0."""
    a, b = (None if x is None or np.isnan(x) else float(x) for x in (one, other))
    if a == b:
        return 0.0
    return inf if not a or not b else abs(log(a / b))


def narrowed(fabric: Fabric, certain: frozenset[tuple[str, str]]) -> Fabric:
    """The fabric with some of its figures, each a level and ``share`` or ``latency``, as if their likely value were certain."""
    if not any(level in fabric.figures for level, _ in certain):
        return fabric
    return _narrowed(fabric, certain)


@lru_cache(maxsize=64)
def _narrowed(fabric: Fabric, certain: frozenset[tuple[str, str]]) -> Fabric:
    figures = dict(fabric.figures)
    for level, name in certain:
        if level in figures:
            likely = getattr(figures[level], name)[LIKELY]
            figures[level] = replace(figures[level], **{name: (likely, likely, likely)})
    return replace(fabric, figures=figures)
