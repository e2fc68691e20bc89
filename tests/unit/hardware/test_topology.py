from itertools import combinations
from pathlib import Path

import networkx as nx
import pytest

from tests.fakes.hardware import child, write
from tracereplay.errors import HardwareError, UsageError
from tracereplay.hardware.load import catalogue, load, load_accelerator, load_platform
from tracereplay.hardware.platform import Platform

GB = 1_000_000_000
PLATFORMS = [name for name in catalogue() if isinstance(load(name), Platform)]


def level(graph: nx.Graph, name: str) -> nx.Graph:
    """The wires of one section."""
    return graph.edge_subgraph([(a, b) for a, b, wire in graph.edges.data("level") if wire == name])


def scale_up(name: str) -> nx.Graph:
    return level(load_platform(name).topology(), "fabric.scale_up")


@pytest.mark.parametrize("name", PLATFORMS)
def test_every_platform_is_connected(name: str) -> None:
    assert nx.is_connected(load_platform(name).topology())


def test_dgx1_has_the_real_nvlink_matrix() -> None:
    mesh = scale_up("dgx1-v100")
    pair = {frozenset((int(a[-1]), int(b[-1]))): links for a, b, links in mesh.edges.data("links")}

    assert pair == {
        frozenset(ends): links
        for ends, links in {
            (0, 1): 1, (0, 2): 2, (0, 3): 1, (0, 7): 2, (1, 2): 1, (1, 3): 2, (1, 6): 2, (2, 3): 2,
            (2, 5): 1, (3, 4): 1, (4, 5): 2, (4, 6): 2, (4, 7): 1, (5, 6): 1, (5, 7): 2, (6, 7): 1,
        }.items()
    }  # fmt: skip


@pytest.mark.parametrize("name", ["dgx1-v100", "big-basin-v2", "zion-hcm"])
def test_a_v100_cube_mesh_has_6_links_to_4_neighbours(name: str) -> None:
    mesh = scale_up(name)

    assert set(dict(mesh.degree()).values()) == {4}
    assert set(dict(mesh.degree(weight="links")).values()) == {6}
    assert {a: round(rate / GB) for a, rate in mesh.degree(weight="bandwidth_bytes_per_s")} == dict.fromkeys(mesh, 150)


def test_a_p100_cube_mesh_has_one_link_to_each_of_4_neighbours() -> None:
    mesh = scale_up("big-basin-v1")

    assert set(dict(mesh.degree(weight="links")).values()) == {4}
    assert {rate for *_, rate in mesh.edges.data("bandwidth_bytes_per_s")} == {20 * GB}


@pytest.mark.parametrize(("name", "accelerators", "gb_per_s"), [("dgx2h", 16, 150), ("dgx-a100", 8, 300), ("dgx-b200", 8, 900)])
def test_all_pairs_reach_each_other_over_the_switch(name: str, accelerators: int, gb_per_s: int) -> None:
    fabric = scale_up(name)
    ends = sorted(set(fabric) - {"switch0"})

    assert len(ends) == accelerators
    assert {rate for *_, rate in fabric.edges.data("bandwidth_bytes_per_s")} == {gb_per_s * GB}
    assert all(nx.shortest_path(fabric, a, b) == [a, "switch0", b] for a, b in combinations(ends, 2))


@pytest.mark.parametrize(("name", "gb_per_s"), [("zion", 25), ("mi300x-node", 64)])
def test_fully_connected_is_one_link_a_pair(name: str, gb_per_s: int) -> None:
    fabric = scale_up(name)

    assert {frozenset(edge) for edge in fabric.edges} == {frozenset(pair) for pair in combinations(sorted(fabric), 2)}
    assert {
        (n, rate) for *_, n, rate in ((a, b, w["links"], w["bandwidth_bytes_per_s"]) for a, b, w in fabric.edges.data())
    } == {(1, gb_per_s * GB)}


@pytest.mark.parametrize("name", ["zion", "zion-hcm"])
def test_zion_has_8_sockets_with_memories_8_slots_and_a_nic_a_socket(name: str) -> None:
    graph = load_platform(name).topology()
    kinds = [kind for _, kind in graph.nodes.data("kind")]

    assert {kind: kinds.count(kind) for kind in kinds} == {"socket": 8, "memory": 16, "accelerator": 8, "nic": 8}
    for i in range(8):
        assert set(graph[f"nic{i}"]) == {f"socket{i}"}
        assert set(graph[f"memory{i}"]) == {f"socket{i}"}
        assert graph.has_edge(f"accelerator{i}", f"socket{i}")
    assert graph.nodes["memory0"]["capacity_bytes"] == 192 * GB
    assert graph.edges["socket0", "memory0"]["bandwidth_bytes_per_s"] == pytest.approx(153.6 * GB)
    assert graph.edges["nic0", "socket0"]["bandwidth_bytes_per_s"] == 12.5 * GB


def test_sockets_of_zion_form_a_cube_with_two_links_an_edge() -> None:
    sockets = level(load_platform("zion").topology(), "host.interconnect")

    assert nx.is_isomorphic(sockets, nx.hypercube_graph(3))
    assert {links for *_, links in sockets.edges.data("links")} == {2}
    assert {rate for *_, rate in sockets.edges.data("bandwidth_bytes_per_s")} == {None}


def test_accelerators_and_interfaces_of_grand_teton_share_its_pcie_switches() -> None:
    graph = load_platform("grand-teton").topology()

    assert set(graph["pcie-switch1"]) == {"accelerator2", "accelerator3", "nic2", "nic3", "socket0"}
    assert set(graph["pcie-switch2"]) == {"accelerator4", "accelerator5", "nic4", "nic5", "socket1"}
    assert graph.edges["accelerator2", "pcie-switch1"]["bandwidth_bytes_per_s"] == 63 * GB
    assert graph.edges["pcie-switch1", "socket0"]["bandwidth_bytes_per_s"] is None
    assert set(graph["front-nic1"]) == {"socket1"}


def test_latencies_are_whole_nanoseconds() -> None:
    graph = load_platform("dgx1-v100").topology()

    assert graph.edges["accelerator0", "accelerator1"]["latency_ns"] == 936
    assert graph.edges["nic0", "socket0"]["latency_ns"] == 2_700


@pytest.mark.parametrize(
    ("name", "gb_per_s"),
    [
        ("dgx1-v100", 150),  # 0-3 against 4-7: the pairs 0-7 and 1-6 with 2 links, 2-5 and 3-4 with 1: 6 x 25
        ("big-basin-v1", 80),  # the same 4 pairs with 1 link each: 4 x 20
        ("zion", 400),  # 4 x 4 pairs x 25
        ("mi300x-node", 1024),  # 4 x 4 pairs x 64
        ("dgx-a100", 1200),  # 4 accelerators x 300 into the switch
        ("dgx2h", 1200),  # 8 x 150
    ],
)
def test_bisection_by_hand(name: str, gb_per_s: int) -> None:
    assert load_platform(name).bisection() == gb_per_s * GB


def test_no_choice_of_halves_is_worse_than_the_bisection() -> None:
    mesh = scale_up("dgx1-v100")
    cuts = [nx.cut_size(mesh, half, weight="bandwidth_bytes_per_s") for half in combinations(sorted(mesh), 4)]

    assert min(cuts) == load_platform("dgx1-v100").bisection()


def test_accelerators_whose_kind_is_unknown_are_there_without_their_memory(tmp_path: Path) -> None:
    body = '[accelerator]\nmodel = { unit = "name", kind = "unknown", source = "x" }'

    graph = load_platform(write(tmp_path, "mine.toml", child("zion", body))).topology()

    assert graph.nodes["accelerator7"]["kind"] == "accelerator"
    assert "hbm7" not in graph


@pytest.mark.parametrize(("count", "bisection"), [(1, None), (3, None), (22, None), (2, 300 * GB), (20, 3000 * GB)])
def test_a_bisection_needs_two_equal_halves_of_not_too_many(tmp_path: Path, count: int, bisection: int | None) -> None:
    body = f'[accelerator]\ncount = {{ value = {count}, unit = "1", kind = "spec", source = "x" }}'

    assert load_platform(write(tmp_path, "mine.toml", child("dgx-a100", body))).bisection() == bisection


def test_one_accelerator_is_fully_connected_with_nobody(tmp_path: Path) -> None:
    body = '[accelerator]\ncount = { value = 1, unit = "1", kind = "spec", source = "x" }'

    graph = load_platform(write(tmp_path, "mine.toml", child("mi300x-node", body))).topology()

    assert level(graph, "fabric.scale_up").number_of_edges() == 0


def test_there_is_no_bisection_without_accelerators() -> None:
    assert load_platform("cpu-8s").bisection() is None


@pytest.mark.parametrize(
    ("platform", "body", "key"),
    [
        ("zion", '[host]\nsockets = { unit = "1", kind = "unknown", source = "x" }', "host.sockets"),
        (
            "cpu-4s",
            '[host.interconnect]\nlayout = { unit = "name", kind = "unknown", source = "x" }',
            "host.interconnect.layout",
        ),
        ("zion", '[fabric.scale_up]\nlayout = { unit = "name", kind = "unknown", source = "x" }', "fabric.scale_up.layout"),
        ("zion-hcm", '[fabric.scale_up]\npairs = { unit = "links", kind = "unknown", source = "x" }', "fabric.scale_up.pairs"),
    ],
)
def test_what_a_topology_needs_and_nobody_knows_is_asked_for(tmp_path: Path, platform: str, body: str, key: str) -> None:
    mine = load_platform(write(tmp_path, "mine.toml", child(platform, body)))

    with pytest.raises(HardwareError, match=f"mine: {key} is unknown; a topology needs"):
        mine.topology()


def test_another_accelerator_in_the_slots_leaves_everything_else() -> None:
    zion = load_platform("zion")

    other = zion.with_accelerator(load_accelerator("a100-80-sxm"), "a test")

    assert other.accelerator is not None
    assert other.accelerator.name == "a100-80-sxm"
    assert other.description.accelerator is not None
    assert (other.description.accelerator.model.value, other.description.accelerator.model.source) == ("a100-80-sxm", "a test")
    assert other.description.fabric == zion.description.fabric
    assert other.topology().nodes["hbm7"]["capacity_bytes"] == 80 * GB
    assert zion.topology().nodes["hbm7"]["capacity_bytes"] == 32 * GB


def test_a_node_without_slots_takes_no_accelerator() -> None:
    with pytest.raises(UsageError, match="cpu-8s has no slots for accelerators"):
        load_platform("cpu-8s").with_accelerator(load_accelerator("v100"), "a test")
