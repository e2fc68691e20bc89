"""Many nodes of a platform joined by a network: in, the parts of one node and how many nodes there are; out, the parts of all.

Network interface *i* of every node is plugged into rail switch *i* of its rack, so that a transfer between the same positions
of two nodes of a rack passes one switch. A rack's rail switches meet in the rack, and racks in the spine::

    node0/nic0 --- rack0/rail0 ---+
    node1/nic0 --/                +-- rack0 --- spine --- rack1 ...
    node0/nic1 --- rack0/rail1 ---+
    node1/nic1 --/

Switches do not block inside. A rail switch has as much towards its rack as its interfaces have together; a rack has that of
all its rail switches towards the spine, divided by the oversubscription. A scale-up switch that reaches beyond a node
(``fabric.scale_up.domain``) is one switch of several nodes. Interfaces of the front end stay unplugged: collectives do not
use it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tracereplay.errors import UsageError
from tracereplay.hardware.topology import Link, Node, Rate

SPINE = "spine"


@dataclass(frozen=True, slots=True)
class Cluster:
    """How nodes are joined: how many there are, how many of them share a rack (all of them by default), how many times more its
    rail switches could take than the rack has towards the spine, and over how many nodes one scale-up switch reaches.

    Raises:
        UsageError: a number that is not positive, or an oversubscription of a network that is a single rack.
    """

    nodes: int = 1
    nodes_per_rack: int | None = None
    oversubscription: float = 1.0
    nodes_per_switch: int = 1

    def __post_init__(self) -> None:
        if self.nodes < 1 or (self.nodes_per_rack or 1) < 1 or self.nodes_per_switch < 1:
            raise UsageError(f"{self.nodes} nodes, {self.nodes_per_rack} a rack", hint="give whole numbers of at least 1")
        if not self.oversubscription >= 1:
            raise UsageError(f"an oversubscription of {self.oversubscription}", hint="give a ratio of at least 1")
        if self.oversubscription > 1 and self.racks == 1:
            raise UsageError(
                "an oversubscription of the upper tier, but all nodes share one rack", hint="say how many nodes a rack has"
            )

    @property
    def racks(self) -> int:
        """How many racks there are."""
        return -(-self.nodes // (self.nodes_per_rack or self.nodes))

    def rack_of(self, node: int) -> int:
        """The rack of a node: nodes fill racks in order."""
        return node // (self.nodes_per_rack or self.nodes)


def join(nodes: list[Node], links: list[Link], cluster: Cluster) -> tuple[list[Node], list[Link]]:
    """The parts of all nodes and of the network between them; those of node *n* are called ``node<n>/<name>``.

    Raises:
        UsageError: a node has no network interface.
    """
    rails = [link for link in links if link.level == "fabric.scale_out"]
    if not rails and cluster.nodes > cluster.nodes_per_switch:
        raise UsageError("nodes without network interfaces cannot be joined", hint="give fabric.scale_out.nics in your file")
    all_nodes: dict[str, Node] = {}
    all_links: list[Link] = []
    for n in range(cluster.nodes):
        for node in nodes:
            name = _name(node.name, n, cluster)
            all_nodes[name] = replace(node, name=name)
        all_links += [replace(link, a=_name(link.a, n, cluster), b=_name(link.b, n, cluster)) for link in links]
        all_links += [_plug(link, n, cluster) for link in rails]
    switches, trunks = _upper_tiers(rails, cluster)
    return [*all_nodes.values(), *switches], all_links + trunks


def _name(name: str, node: int, cluster: Cluster) -> str:
    """The name of a part of a node; the scale-up switch may belong to several nodes."""
    if name == "switch0" and cluster.nodes_per_switch > 1:
        return f"domain{node // cluster.nodes_per_switch}/{name}"
    return f"node{node}/{name}"


def rail_of(nic: str, rack: int) -> str:
    """The rail switch of a rack that an interface, such as ``nic3``, is plugged into."""
    return f"rack{rack}/rail{nic.removeprefix('nic')}"


def _plug(nic: Link, node: int, cluster: Cluster) -> Link:
    """The cable from an interface to its rail switch. It has the rate of the network; the latency of a transfer stands at the
    interfaces, so it has none.
    """
    rail = rail_of(nic.a, cluster.rack_of(node))
    return replace(nic, a=_name(nic.a, node, cluster), b=rail, level="fabric.scale_out", latency_ns=0)


def _upper_tiers(rails: list[Link], cluster: Cluster) -> tuple[list[Node], list[Link]]:
    nodes, links = [], []
    for rack in range(cluster.racks):
        members = sum(cluster.rack_of(n) == rack for n in range(cluster.nodes))
        up = [replace(link, a=rail_of(link.a, rack), b=f"rack{rack}") for link in _tier(rails, members)]
        nodes += [Node(link.a, "switch") for link in up] + [Node(f"rack{rack}", "rack")]
        links += up
        if cluster.racks > 1:
            total = _sum([link.bandwidth_bytes_per_s for link in up])
            rate = None if total is None else total / cluster.oversubscription
            links.append(Link(f"rack{rack}", SPINE, "fabric.scale_out", None, rate, 0))
    return nodes + ([Node(SPINE, "switch")] if cluster.racks > 1 else []), links


def _tier(rails: list[Link], members: int) -> Iterator[Link]:
    for link in rails:
        rate = link.bandwidth_bytes_per_s
        yield replace(link, links=members, bandwidth_bytes_per_s=None if rate is None else rate * members, latency_ns=0)


def _sum(rates: list[Rate]) -> Rate:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if len(known) == len(rates) else None
