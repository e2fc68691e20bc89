"""Ways through a topology: in, a networkx graph and two of its nodes; out, the paths that a transfer takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import networkx as nx

from tracereplay.hardware.collectives.library import Hardware


class Way(NamedTuple):
    """A one-way link on a route: its number, what it is, its part of the latency (None: unknown), whether its rate is known."""

    number: int
    hardware: Hardware
    wire_ns: tuple[float, float, float] | None
    is_known: bool


class Route(NamedTuple):
    """How a transfer goes: numbers of one-way links with the share of its bytes on each, what kind of hardware that is, and the
    latency (ns; likely, fast, slow), None where no link on the way has a known one.
    """

    loads: tuple[tuple[int, float], ...]
    hardware: Hardware
    wire_ns: tuple[float, float, float] | None


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one level of links: the achieved share of the peak, and the latency relative to the graph's; likely, fast, slow."""

    share: tuple[float, float, float] = (1.0, 1.0, 1.0)
    latency: tuple[float, float, float] = (1.0, 1.0, 1.0)


def widest(graph: nx.Graph, a: str, b: str) -> list[list[str]]:
    """The shortest paths by hops, of these the ones with the most wires at their narrowest; empty where nothing joins the
    two.
    """
    if a not in graph or b not in graph:
        return []
    try:
        paths = list(nx.all_shortest_paths(graph, a, b))
    except nx.NetworkXNoPath:
        return []
    wires = [min(graph.edges[way]["links"] for way in pairwise(path)) for path in paths]
    return [path for path, narrowest in zip(paths, wires, strict=True) if narrowest == max(wires)]


def places(nics: Sequence[str]) -> list[str]:
    """Interfaces without their node: which rails they are on."""
    return [name.rpartition("/")[2] for name in nics]


def node_of(name: str) -> str:
    """The prefix of a name; that of a part of a single node is empty."""
    prefix, slash, _ = name.partition("/")
    return prefix + slash if slash else ""


def order_of(name: str) -> tuple[int, ...]:
    """Natural order: ``node2/accelerator10`` after ``node2/accelerator9``."""
    return tuple(int("".join(filter(str.isdigit, part)) or 0) for part in name.split("/"))
