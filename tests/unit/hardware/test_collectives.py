"""Times of collectives that were worked out by hand: 4 devices, and 2 nodes of 2; a rate of 1 is a byte a nanosecond."""

from collections.abc import Callable
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from tests.fakes.fabrics import fabric, full, nodes_of_two, ring, switched
from tracereplay.errors import HardwareError, UsageError
from tracereplay.hardware.collectives.fabric import Fabric
from tracereplay.hardware.collectives.library import TREE_AT_SIZE, Algorithm, Library, tree_at_size
from tracereplay.hardware.collectives.model import collective_time, uneven_all_to_all_time
from tracereplay.hardware.collectives.of_platform import fabric_of
from tracereplay.hardware.collectives.schedules import Kind
from tracereplay.hardware.collectives.times import link_loads
from tracereplay.hardware.knobs import parse_setting
from tracereplay.hardware.load import load_accelerator, load_platform
from tracereplay.hardware.settings import adjusted

SIZE = 1200


def ns(graph: nx.Graph, kind: Kind, algorithm: Algorithm, ranks: int = 4) -> int:
    return collective_time(fabric(graph), kind, SIZE, ranks, algorithm=algorithm).time_ns


@pytest.mark.parametrize(
    ("kind", "algorithm", "expected"),
    [
        ("all_to_all", "direct", 300),  # 300 bytes to each of 3 peers, 900 into a switch link of 3
        ("all_gather", "direct", 300),  # the same
        ("reduce_scatter", "direct", 300),  # the same
        ("all_reduce", "direct", 600),  # both
        ("all_gather", "ring", 300),  # 3 rounds of 300 bytes
        ("reduce_scatter", "ring", 300),  # the same
        ("all_reduce", "ring", 600),  # 6 rounds of 300 bytes
        ("broadcast", "ring", 400),  # 1200 bytes in chunks past everybody
        ("broadcast", "direct", 1200),  # 3 x 1200 bytes out of the root
        ("all_reduce", "tree", 800),  # who stands in the chain gets 1200 bytes from below and 1200 from above
    ],
)
def test_four_devices_at_a_switch(kind: Kind, algorithm: Algorithm, expected: int) -> None:
    assert ns(switched(4, 3), kind, algorithm) == expected


@pytest.mark.parametrize(
    ("kind", "algorithm", "expected"),
    [
        ("all_to_all", "direct", 300),  # 300 bytes on every link
        ("all_reduce", "direct", 600),
        ("all_gather", "ring", 450),  # K4 falls into 2 rings one way, not 3: 600 bytes each, 3 rounds of 150
        ("all_reduce", "ring", 900),
        ("all_reduce", "tree", 1200),  # 2 rings one way make 1 tree: 1200 bytes up one way and down the other
        ("broadcast", "direct", 1200),
    ],
)
def test_four_devices_with_a_link_of_1_to_each_other(kind: Kind, algorithm: Algorithm, expected: int) -> None:
    assert ns(full(4, 1), kind, algorithm) == expected


@pytest.mark.parametrize(
    ("kind", "algorithm", "expected"),
    [
        ("all_gather", "ring", 3 * 10 + 600),
        ("all_reduce", "ring", 6 * 10 + 1200),
        ("all_to_all", "direct", 10 + 600),
        ("all_reduce", "direct", 2 * 10 + 1200),
        ("all_reduce", "tree", 2 * 3 * 10 + 1600),  # up a chain of 4, and down again
        ("broadcast", "ring", 3 * 10 + 800),
    ],
)
def test_the_latency_over_a_switch_counts_once_a_step(kind: Kind, algorithm: Algorithm, expected: int) -> None:
    assert ns(switched(4, 1.5, latency_ns=10), kind, algorithm) == expected


@pytest.mark.parametrize(
    ("kind", "algorithm", "expected"),
    [
        ("all_to_all", "direct", 600),  # over each interface what both of a node have for one elsewhere: 2 x 300
        ("all_to_all", "hierarchical", 750),  # 600 bytes for the neighbour's place over links of 4, then 600 over the interface
        ("all_reduce", "ring", 900),  # 2 rings of 600 bytes, 6 rounds of 150
        ("all_reduce", "hierarchical", 900),  # 600 / 4, then 600 over each interface (2 rounds of 300), then 600 / 4
        ("all_reduce", "tree", 600),  # a rail has 600 bytes, two trees half of it each, up and down
        ("all_gather", "ring", 450),  # half of all_reduce
        ("all_gather", "hierarchical", 450),  # 300 over the interface, 600 / 4 in the node
        ("reduce_scatter", "hierarchical", 450),  # the other way round
        ("broadcast", "ring", 600),  # 2 rings of 600 bytes
    ],
)
def test_two_nodes_of_two(kind: Kind, algorithm: Algorithm, expected: int) -> None:
    assert ns(nodes_of_two(2, up=4, out=1), kind, algorithm) == expected


def test_between_nodes_each_interface_has_its_share_of_an_all_to_all() -> None:
    """(R - g) / R x S / W of an interface, for R ranks of which g share a node."""
    for nodes in (2, 3, 5):
        ranks = 2 * nodes
        expected = Fraction(ranks - 2, ranks) * SIZE / 1
        assert ns(nodes_of_two(nodes, up=1e6, out=1), "all_to_all", "direct", ranks) == round(expected)
        assert ns(nodes_of_two(nodes, up=1e6, out=1), "all_to_all", "hierarchical", ranks) == round(expected)


def test_a_bidirectional_ring_beside_a_fully_connected_node() -> None:
    """8 devices, 14 bytes a ns into each, no latency: all-to-all 16/7 as long, all-reduce the same; exact."""
    in_a_ring, all_joined, size = fabric(ring(8, 7)), fabric(full(8, 2)), 56_000

    def both(kind: Kind, ring_algorithm: Algorithm) -> Fraction:
        slow = collective_time(in_a_ring, kind, size, 8, algorithm=ring_algorithm)
        fast = collective_time(all_joined, kind, size, 8, algorithm="direct")
        return Fraction(slow.time_ns, fast.time_ns)

    assert both("all_to_all", "direct") == Fraction(16, 7)
    assert both("all_reduce", "ring") == 1
    # The formulae themselves: p/4 S/W, (p-1)/p S/W, 2 (p-1)/p S/W.
    assert collective_time(in_a_ring, "all_to_all", size, 8).time_ns == Fraction(8, 4) * size / 14
    assert collective_time(all_joined, "all_to_all", size, 8).time_ns == Fraction(7, 8) * size / 14
    assert collective_time(in_a_ring, "all_reduce", size, 8, algorithm="ring").time_ns == 2 * Fraction(7, 8) * size / 14


def test_a_ring_uses_all_links_of_a_fully_connected_node() -> None:
    """8 devices with 7 links each fall into 7 rings, so that a ring is as fast as sending directly."""
    assert ns(full(8, 2), "all_reduce", "ring", 8) == ns(full(8, 2), "all_reduce", "direct", 8) == 150


def test_an_uneven_all_to_all_waits_for_its_fullest_link() -> None:
    splits = np.array([[900, 0, 0, 300], [0, 0, 300, 0], [600, 0, 0, 0], [0, 0, 0, 0]])

    time = uneven_all_to_all_time(fabric(full(4, 1)), splits, 4)

    assert (time.time_ns, time.bottleneck) == (600, "accelerator2>accelerator0")
    assert {link.name: link.bytes for link in time.links} == {
        "accelerator2>accelerator0": 600,
        "accelerator0>accelerator3": 300,
        "accelerator1>accelerator2": 300,
    }
    assert uneven_all_to_all_time(fabric(switched(4, 1)), splits, 4).time_ns == 600  # into accelerator0


def test_uneven_splits_over_two_nodes() -> None:
    splits = np.zeros((4, 4))
    splits[0, 3] = 800  # to the other place of the other node
    fabric_ = fabric(nodes_of_two(2, up=4, out=1))

    assert uneven_all_to_all_time(fabric_, splits, 4).time_ns == 800
    assert uneven_all_to_all_time(fabric_, splits, 4, algorithm="hierarchical").time_ns == 200 + 800


def test_the_switch_adds_up() -> None:
    graph, reduces = switched(8, 3), Library(generation="hopper", reduces=True, ideal=True)

    time = collective_time(fabric(graph, reduces), "all_reduce", 2400, 8)

    assert (time.algorithm, time.time_ns) == ("nvls", 900)  # 2400 x (1 + 1/8) / 3
    assert collective_time(fabric(graph), "all_reduce", 2400, 8).time_ns == 1400  # 2400 x 14/8 / 3
    assert collective_time(fabric(graph, reduces), "all_reduce", 2400, 4).algorithm != "nvls"


def test_the_sum_of_a_message_and_of_its_links() -> None:
    time = collective_time(fabric(full(4, 2, latency_ns=10)), "send_recv", 1000, [3, 1])

    assert (time.time_ns, time.latency_ns, time.bottleneck) == (510, 10, "accelerator3>accelerator1")
    assert [(link.name, link.bytes) for link in time.links] == [("accelerator3>accelerator1", 1000)]
    assert link_loads(time) == {"accelerator3>accelerator1": pytest.approx(500 / 510)}
    assert link_loads(time, share=0.99) == {}


def test_a_fabric_with_other_rates() -> None:
    platform = load_platform("dgx1-v100")
    before = collective_time(fabric_of(platform, nodes=2), "all_reduce", 1 << 20, 8)

    def under(text: str) -> Fabric:
        return fabric_of(adjusted(platform, parse_setting(text)), nodes=2)

    faster = collective_time(under("fabric.scale_up.bandwidth=2x"), "all_reduce", 1 << 20, 8, algorithm=before.algorithm)
    nearer = collective_time(under("fabric.scale_up.latency=0.5x"), "all_reduce", 448, 8)

    assert (faster.latency_ns, faster.protocol) == (before.latency_ns, before.protocol)
    assert faster.time_ns - faster.latency_ns == pytest.approx((before.time_ns - before.latency_ns) / 2, abs=1)
    assert collective_time(fabric_of(platform, nodes=2), "all_reduce", 448, 8).latency_ns - nearer.latency_ns == 14 * 936 / 2
    assert collective_time(under("fabric.scale_out.bandwidth=9x"), "all_reduce", 1 << 20, 8).time_ns == before.time_ns


def test_a_single_rank_has_nothing_to_do() -> None:
    time = collective_time(fabric(full(4, 2)), "all_reduce", 1000, 1)

    assert (time.time_ns, time.links, time.bottleneck) == (0, (), None)


# NCCL's table, worked out for 8 GPUs at a switch whose latency is that of its constants.


def test_small_sizes_take_ll_and_large_ones_simple() -> None:
    on = fabric(switched(8, 240, latency_ns=600), Library("ampere"))

    small, large = (collective_time(on, "all_reduce", size, 8) for size in (1024, 1 << 30))

    # LL: 6.6 µs and 14 steps of 0.6; 14/8 of 1024 bytes at 87.7 GB/s, the most that LL reaches there
    assert (small.algorithm, small.protocol, small.latency_ns) == ("ring", "LL", 15_000)
    assert small.time_ns == round(15_000 + 1024 * 14 / 8 / 87.7)
    # Simple: 8.4 µs and 14 steps of 3.4
    assert (large.algorithm, large.protocol, large.latency_ns) == ("ring", "Simple", 56_000)
    assert large.time_ns == round(56_000 + (1 << 30) * 14 / 8 / 240)


def test_the_latency_of_the_wire_takes_the_place_of_nccls() -> None:
    slower = fabric(switched(8, 240, latency_ns=1600), Library("ampere"))

    assert collective_time(slower, "all_reduce", 1024, 8).latency_ns == 6_600 + 14 * 1_600
    assert collective_time(slower, "all_reduce", 1 << 30, 8).latency_ns == 8_400 + 14 * (3_400 + 1_000)


def test_sends_take_ll_up_to_16_kib_each() -> None:
    on = fabric(switched(8, 240, latency_ns=600), Library("ampere"))

    assert collective_time(on, "all_to_all", 8 * 16_384, 8).protocol == "LL"
    assert collective_time(on, "all_to_all", 8 * 16_384 + 8, 8).protocol == "Simple"
    assert collective_time(on, "send_recv", 16_384, 2).latency_ns == 7_200
    assert collective_time(on, "send_recv", 16_385, 2).latency_ns == 11_800


def test_nccl_corrects_trees_at_medium_sizes() -> None:
    assert {len(factors) for factors in TREE_AT_SIZE.values()} == {23}
    assert [tree_at_size("LL", size) for size in (0, 63, 64, 127, 1024, 1 << 19, 1 << 40)] == [1, 1, 1, 1, 0.9, 0.4, 1]


def test_steps_within_the_nodes_of_a_ring_wait_for_the_posting_of_messages() -> None:
    """2 nodes of 2, all-gather in LL: 2 steps in a node, which post for 1 µs, and one over the network of 5 µs."""
    on = fabric(nodes_of_two(2, up=100, out=10, latency_ns=5_000), Library("ampere", "intel"))

    assert collective_time(on, "all_gather", 8, 4).latency_ns == 6_600 + 2 * 1_000 + 5_000


def test_eight_v100_in_a_cube_mesh_have_six_rings() -> None:
    """6 of 25 GB/s each, of which 80 % are achieved: 120 GB/s."""
    time = collective_time(fabric_of(load_platform("dgx1-v100")), "all_reduce", 8e9, 8)

    assert time.algorithm == "ring"
    assert (time.time_ns - time.latency_ns) / 1e9 == pytest.approx(8 * 14 / 8 / 120)


@pytest.mark.parametrize(("gpus", "gb_per_s"), [(2, 20), (3, 40), (4, 80), (5, 29.44), (6, 40), (7, 80), (8, 120)])
def test_fewer_v100_have_the_rings_that_their_links_allow(gpus: int, gb_per_s: float) -> None:
    """Bus bandwidth: a link of 20 GB/s is a ring one way. Five have none: a chain up and down, 0.92 x 20 GB/s x 8/5."""
    time = collective_time(fabric_of(load_platform("dgx1-v100")), "all_reduce", 8e9, gpus)

    assert 8 * 2 * (gpus - 1) / gpus / ((time.time_ns - time.latency_ns) / 1e9) == pytest.approx(gb_per_s, rel=1e-6)


def test_an_all_to_all_is_slower_in_a_cube_mesh_than_at_a_switch() -> None:
    """Both have 150 GB/s into each of 8 V100, 120 of them achieved. Through the switch go 7 of 8 eighths. In the mesh 3 of 7
    peers are two links away: over the single link from 2 to 5, of 20 GB/s achieved, go the eighths for 2-5 and half of those
    for 1-5, 2-4, 2-6 and 3-5.
    """
    mesh, switch = (fabric_of(load_platform(name)) for name in ("dgx1-v100", "dgx2h"))

    slow, fast = (collective_time(on, "all_to_all", 8e9, 8) for on in (mesh, switch))

    assert (fast.time_ns - fast.latency_ns) / 1e9 == pytest.approx(8 * 7 / 8 / 120)
    assert (slow.time_ns - slow.latency_ns) / 1e9 == pytest.approx(8 * 3 / 8 / 20)
    assert slow.links[0].bytes == 3e9
    assert "accelerator2>accelerator5" in {link.name for link in slow.links if link.bytes == 3e9}


def test_without_relays_what_has_no_link_goes_over_the_host() -> None:
    relayed, not_relayed = (fabric_of(load_platform("dgx1-v100"), relay=relay) for relay in (True, False))

    assert relayed.route(0, 5).hardware == "nvlink"
    with pytest.raises(HardwareError, match=r"host\.interconnect\.bandwidth is unknown, and socket0>socket1 lies on the way"):
        not_relayed.route(0, 5)
    assert not_relayed.route(0, 1) == relayed.route(0, 1)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda on: collective_time(on, "gossip", 1, 4), "no collective 'gossip'"),  # type: ignore[arg-type]
        (lambda on: collective_time(on, "all_reduce", -1, 4), "-1 bytes"),
        (lambda on: collective_time(on, "all_reduce", 1, 5), "it has 4 endpoints"),
        (lambda on: collective_time(on, "all_reduce", 1, [0, 0]), "at most once"),
        (lambda on: collective_time(on, "all_reduce", 1, []), "it has 4 endpoints"),
        (lambda on: collective_time(on, "send_recv", 1, 3), "a send among 3 ranks"),
        (lambda on: collective_time(on, "broadcast", 1, 4, root=4), "root 4 of 4"),
        (lambda on: collective_time(on, "all_to_all", 1, 4, algorithm="ring"), "no ring all_to_all"),
        (lambda on: collective_time(on, "all_reduce", 1, 4, algorithm="nvls"), "no nvls all_reduce"),
        (lambda on: collective_time(on, "all_reduce", 1, 4, algorithm="hierarchical"), "needs several nodes, all alike"),
        (lambda on: uneven_all_to_all_time(on, [[1, 2], [3, 4]], 4), "give 4 rows of 4 numbers"),
        (lambda on: uneven_all_to_all_time(on, -np.eye(4), 4), "none below 0"),
        (lambda on: uneven_all_to_all_time(on, np.eye(4), 4, algorithm="tree"), "no tree all_to_all"),
    ],
)
def test_what_cannot_be_is_refused(call: Callable[[Fabric], object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        call(fabric(full(4, 1)))


def test_what_nothing_joins_is_refused() -> None:
    apart = nx.union(full(2, 1), nx.relabel_nodes(full(2, 1), {"accelerator0": "accelerator2", "accelerator1": "accelerator3"}))

    with pytest.raises(HardwareError, match=r"nothing joins|no network interface"):
        collective_time(fabric(apart), "all_to_all", 1, 4)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("big-basin-v1", Library("volta", whole_lines=False, clock_hz=1.48e9)),
        ("dgx1-v100", Library("volta", clock_hz=1.53e9)),
        ("dgx-a100", Library("ampere", "amd", clock_hz=1.41e9)),
        ("dgx-h100", Library("hopper", reduces=True, clock_hz=1.83e9)),
        ("dgx-b200", Library("blackwell", reduces=True, clock_hz=1.965e9)),
        ("zion", Library("volta", clock_hz=1.53e9)),
    ],
)
def test_the_library_of_a_platform(name: str, expected: Library) -> None:
    assert fabric_of(load_platform(name)).library == expected


def test_another_accelerator_in_the_slots_runs_its_own_steps_over_the_same_links() -> None:
    zion = load_platform("zion")
    with_a100 = zion.with_accelerator(load_accelerator("a100-40-sxm"), "a question")

    before, after = fabric_of(zion), fabric_of(with_a100)

    assert after.library == Library("ampere", clock_hz=1.41e9)
    assert np.array_equal(before.rates, after.rates, equal_nan=True)


def test_a_slower_clock_takes_as_many_cycles() -> None:
    """Simple on 8: 8.4 µs and 14 times 2.8 µs of NCCL's steps at half the clock, 14 times the wire's 0.6 µs as it is."""
    slow = fabric(switched(8, 240, latency_ns=600), Library("ampere", clock_hz=1.53e9 / 2))

    assert collective_time(slow, "all_reduce", 1 << 30, 8).latency_ns == 2 * 8_400 + 14 * (2 * 2_800 + 600)
