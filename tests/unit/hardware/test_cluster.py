"""Many nodes joined by rails, racks and a spine, and the routes over them."""

from pathlib import Path

import networkx as nx
import pytest

from tests.fakes.hardware import child, write
from tracereplay.errors import HardwareError, UsageError
from tracereplay.hardware.collectives.fabric import Fabric
from tracereplay.hardware.collectives.model import collective_time
from tracereplay.hardware.collectives.of_platform import fabric_of
from tracereplay.hardware.load import load_platform

GB = 1_000_000_000
RATE = "bandwidth_bytes_per_s"


def way(fabric: Fabric, source: int, target: int) -> list[str]:
    """The one-way links of a route that is not shared among paths."""
    route = fabric.route(source, target)
    assert {share for _, share in route.loads} == {1.0}
    return [fabric.links[number] for number, _ in route.loads]


def test_one_node_keeps_its_names() -> None:
    platform = load_platform("grand-teton")

    assert nx.utils.graphs_equal(platform.topology(), platform.topology(nodes=1))
    assert "accelerator0" in platform.topology()


def test_interfaces_of_the_same_place_share_a_rail_switch() -> None:
    graph = load_platform("grand-teton").topology(nodes=3)

    assert set(graph["rack0/rail5"]) == {"node0/nic5", "node1/nic5", "node2/nic5", "rack0"}
    assert graph.edges["node1/nic5", "rack0/rail5"][RATE] == 50 * GB
    assert graph.edges["rack0/rail5", "rack0"][RATE] == 3 * 50 * GB
    assert "spine" not in graph
    assert nx.is_connected(graph.subgraph(name for name in graph if "front" not in name))


def test_racks_have_less_towards_each_other_by_the_oversubscription() -> None:
    graph = load_platform("grand-teton").topology(nodes=5, nodes_per_rack=2, oversubscription=4)

    assert {rack: graph.edges[rack, "spine"][RATE] for rack in graph["spine"]} == {
        "rack0": 2 * 8 * 50 * GB / 4,
        "rack1": 2 * 8 * 50 * GB / 4,
        "rack2": 1 * 8 * 50 * GB / 4,
    }
    assert {graph.nodes[rack]["kind"] for rack in graph["spine"]} == {"rack"}


def test_a_switch_that_reaches_beyond_a_node_is_one_switch() -> None:
    platform = load_platform("gb200-tray")
    graph = platform.topology(nodes=36)

    assert platform.nodes_per_switch() == 18
    assert graph.degree("domain0/switch0") == graph.degree("domain1/switch0") == 72
    assert way(fabric_of(platform, 36), 0, 71) == [
        "node0/accelerator0>domain0/switch0",
        "domain0/switch0>node17/accelerator3",
    ]


def test_what_goes_to_another_rail_passes_the_accelerator_that_has_it() -> None:
    fabric = fabric_of(load_platform("grand-teton"), nodes=2)

    assert way(fabric, 0, 8 + 3) == [
        "node0/accelerator0>node0/switch0",
        "node0/switch0>node0/accelerator3",
        "node0/accelerator3>node0/pcie-switch1",
        "node0/pcie-switch1>node0/nic3",
        "node0/nic3>rack0/rail3",
        "rack0/rail3>node1/nic3",
        "node1/nic3>node1/pcie-switch1",
        "node1/pcie-switch1>node1/accelerator3",
    ]


def test_between_racks_a_transfer_passes_the_spine() -> None:
    fabric = fabric_of(load_platform("grand-teton"), nodes=2, nodes_per_rack=1)

    assert way(fabric, 0, 8)[2:-2] == [
        "node0/nic0>rack0/rail0",
        "rack0/rail0>rack0",
        "rack0>spine",
        "spine>rack1",
        "rack1>rack1/rail0",
        "rack1/rail0>node1/nic0",
    ]


def test_a_latency_counts_once_from_interface_to_interface() -> None:
    platform = load_platform("grand-teton")
    latency = platform.topology().edges["nic0", "pcie-switch0"]["latency_ns"]

    wire_ns = fabric_of(platform, 2).route(0, 8).wire_ns
    assert wire_ns is not None
    assert wire_ns[0] == pytest.approx(latency)


def test_an_oversubscribed_spine_is_what_an_all_to_all_waits_for() -> None:
    platform = load_platform("grand-teton")
    plain, narrow = (fabric_of(platform, 4, nodes_per_rack=2, oversubscription=ratio) for ratio in (1, 7))

    fast, slow = (collective_time(fabric, "all_to_all", 1 << 30, 32) for fabric in (plain, narrow))

    # 16 ranks of a rack each send 16/32 of their bytes to the other: over 16 interfaces of 50 GB/s, 80 % of it achieved, by 7
    assert slow.bottleneck in {"rack0>spine", "spine>rack1", "rack1>spine", "spine>rack0"}
    assert slow.time_ns - slow.latency_ns == pytest.approx(16 * (1 << 30) * 16 / 32 / (16 * 50 * 0.8 / 7), rel=1e-6)
    assert fast.bottleneck not in {"rack0>spine", "spine>rack1", "rack1>spine", "spine>rack0"}


def test_four_interfaces_of_a_dgx1_are_shared_by_two_accelerators_each() -> None:
    fabric = fabric_of(load_platform("dgx1-v100"), nodes=2)

    assert fabric.interfaces[:8] == tuple((f"node0/nic{i // 2}",) for i in range(8))
    assert "node1/nic1>rack0/rail1" in way(fabric, 8 + 3, 2)


def test_sockets_are_the_ends_where_there_are_no_accelerators() -> None:
    assert fabric_of(load_platform("cpu-8s")).endpoints == tuple(f"socket{i}" for i in range(8))


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ({"nodes": 0}, "at least 1"),
        ({"nodes": 2, "nodes_per_rack": -1}, "at least 1"),
        ({"nodes": 2, "nodes_per_rack": 1, "oversubscription": 0.5}, "a ratio of at least 1"),
        ({"nodes": 2, "oversubscription": 2}, "all nodes share one rack"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(numbers: dict[str, int], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load_platform("dgx-a100").topology(**numbers)


def test_nodes_without_interfaces_cannot_be_joined() -> None:
    with pytest.raises(HardwareError, match=r"nics is unknown; .* --set fabric\.scale_out\.nics="):
        load_platform("cpu-8s").topology(nodes=2)


def test_a_host_link_of_unknown_rate_stops_what_passes_it(tmp_path: Path) -> None:
    with pytest.raises(HardwareError, match=r"zionex: host\.link\.bandwidth is unknown"):
        collective_time(fabric_of(load_platform("zionex"), 2), "all_reduce", 1, 16)

    bandwidth = '{ value = 31.5, unit = "GB/s", direction = "one-way", kind = "spec", source = "Gen4 x16" }'
    mine = write(tmp_path, "mine.toml", child("zionex", f"[host.link]\nbandwidth = {bandwidth}\n"))
    assert collective_time(fabric_of(load_platform(mine), 2), "all_reduce", 1, 16).time_ns > 0


def test_disks_are_memories_at_the_sockets() -> None:
    graph = load_platform("grand-teton").topology()

    assert {name for name, kind in graph.nodes.data("kind") if kind == "memory" and name.startswith("ssd")} == {
        f"ssd{i}" for i in range(16)
    }
    assert set(graph["ssd0"]) == {"socket0"}
    assert set(graph["ssd15"]) == {"socket1"}
