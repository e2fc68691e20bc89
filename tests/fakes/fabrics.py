"""Topologies written down link by link, whose times can be worked out by hand: a rate of 1 is a byte a nanosecond."""

from itertools import combinations

import networkx as nx

from tracereplay.hardware.collectives.fabric import Fabric
from tracereplay.hardware.collectives.library import Library

GB = 1e9
IDEAL = Library(ideal=True)


def ring(count: int, rate: float, latency_ns: float = 0) -> nx.Graph:
    """Accelerators in a circle."""
    graph = _accelerators(count)
    for i in range(count):
        _link(graph, f"accelerator{i}", f"accelerator{(i + 1) % count}", "fabric.scale_up", rate, latency_ns)
    return graph


def full(count: int, rate: float, latency_ns: float = 0) -> nx.Graph:
    """Accelerators with a link to each other one."""
    graph = _accelerators(count)
    for a, b in combinations(range(count), 2):
        _link(graph, f"accelerator{a}", f"accelerator{b}", "fabric.scale_up", rate, latency_ns)
    return graph


def switched(count: int, rate: float, latency_ns: float = 0) -> nx.Graph:
    """Accelerators at a switch."""
    graph = _accelerators(count)
    graph.add_node("switch0", kind="switch")
    for i in range(count):
        _link(graph, f"accelerator{i}", "switch0", "fabric.scale_up", rate, latency_ns)
    return graph


def nodes_of_two(nodes: int, up: float, out: float, latency_ns: float = 0) -> nx.Graph:
    """Nodes of two accelerators at a switch, each with a network interface of its own, joined by two rails of one rack."""
    graph = nx.Graph()
    graph.add_node("rack0", kind="rack")
    for rail in range(2):
        graph.add_node(f"rack0/rail{rail}", kind="switch")
        _link(graph, f"rack0/rail{rail}", "rack0", "fabric.scale_out", nodes * out, 0)
    for n in range(nodes):
        graph.add_node(f"node{n}/switch0", kind="switch")
        graph.add_node(f"node{n}/socket0", kind="socket")
        for i in range(2):
            graph.add_node(f"node{n}/accelerator{i}", kind="accelerator")
            graph.add_node(f"node{n}/nic{i}", kind="nic")
            _link(graph, f"node{n}/accelerator{i}", f"node{n}/switch0", "fabric.scale_up", up, 0)
            _link(graph, f"node{n}/accelerator{i}", f"node{n}/socket0", "host.link", 1000 * up, None)
            _link(graph, f"node{n}/nic{i}", f"node{n}/socket0", "fabric.scale_out", out, latency_ns)
            _link(graph, f"node{n}/nic{i}", f"rack0/rail{i}", "fabric.scale_out", out, 0)
    return graph


def fabric(graph: nx.Graph, library: Library = IDEAL) -> Fabric:
    """The fabric of a topology, without latencies but its own unless a library is given."""
    return Fabric("by hand", graph, library)


def _accelerators(count: int) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from((f"accelerator{i}" for i in range(count)), kind="accelerator")
    return graph


def _link(graph: nx.Graph, a: str, b: str, level: str, rate: float, latency_ns: float | None) -> None:  # noqa: PLR0917 - a link
    graph.add_edge(a, b, level=level, links=1, bandwidth_bytes_per_s=rate * GB, latency_ns=latency_ns, duplex=True)
