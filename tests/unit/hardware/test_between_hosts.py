"""Transfers between hosts whose network stacks move the bytes, by hand."""

import math
from pathlib import Path

import pytest

from tracereplay.collectors.lab_platform import platform_text
from tracereplay.collectors.link import parse_link
from tracereplay.hardware.collectives.calibration import carry_over_collective, correction_of
from tracereplay.hardware.collectives.fabric import Fabric
from tracereplay.hardware.collectives.library import STACK_BYTES_PER_S, STACK_STEP_NS
from tracereplay.hardware.collectives.model import collective_time
from tracereplay.hardware.collectives.of_platform import fabric_of
from tracereplay.hardware.collectives.times import CollectiveTime, link_loads
from tracereplay.hardware.load import load_platform
from tracereplay.manifest import HostRecord

HOST = HostRecord(name="h", cpu_model="cpu", cpu_count=2, memory_bytes=8_000_000_000, kernel="Linux")


def hosts(folder: Path, link: str) -> Fabric:
    file = folder / f"{link}.toml"
    file.write_text(platform_text(parse_link(link), HOST, 1))
    return fabric_of(load_platform(str(file)), 2)


def parts(latency_ns: int, stack_ns: int, wire_ns: int) -> CollectiveTime:
    total = latency_ns + stack_ns + wire_ns
    return CollectiveTime(total, total, total, latency_ns, "ring", "Simple", None, "model", (), (), (), stack_ns)


def test_a_transfer_takes_its_steps_its_stack_and_its_wire(tmp_path: Path) -> None:
    time = collective_time(hosts(tmp_path, "1gbit"), "all_reduce", 1_000_000, 2)

    # Two steps of a hop of 5 µs and a stack's 60; 1 MB through stacks of 2 GB/s; 1 MB at 1 Gbit/s, 8948 of 9014 bytes payload.
    assert time.latency_ns == 2 * (STACK_STEP_NS[0] + 5_000)
    assert time.stack_ns == 1_000_000 / STACK_BYTES_PER_S[0] * 1e9
    assert time.time_ns == pytest.approx(130_000 + 500_000 + 8_000_000 * 9014 / 8948, abs=1)
    assert time.algorithm == "ring"
    assert link_loads(time)["node0/socket0>node0/nic0"] == pytest.approx(8_059_000 / time.time_ns, rel=1e-3)
    assert link_loads(time, share=0)["node0/socket0 network stack"] == pytest.approx(500_000 / time.time_ns)
    assert any("network stack of hosts" in words for words in time.stand_ins)


def test_on_the_same_link_the_recorded_time_comes_back_and_is_sure(tmp_path: Path) -> None:
    fabric = hosts(tmp_path, "1gbit")

    carried = carry_over_collective("all_to_all", 500_000, 2, 3_456_789, fabric, fabric)

    assert (carried.low_ns, carried.time_ns, carried.high_ns) == (3_456_789, 3_456_789, 3_456_789)


def carried(here: CollectiveTime, there: CollectiveTime, measured_ns: float) -> float:
    return measured_ns * correction_of([here], measured_ns).ratio(here, there)


def test_what_is_more_than_the_model_says_stays_with_its_part() -> None:
    # All wire: a link that gives 110 for 100 gives 55 for 50. All stack: twice as slow as thought, beside any wire.
    assert carried(parts(0, 0, 100_000), parts(0, 0, 50_000), 110_000) == pytest.approx(55_000)
    assert carried(parts(0, 50_000, 0), parts(0, 50_000, 100_000), 100_000) == pytest.approx(200_000)


def test_an_excess_is_shared_out_by_what_each_part_weighs_and_may_be_off() -> None:
    slow, fast = parts(0, 1_000, 1_000_000), parts(0, 1_000, 10_000)

    # 5 % more wire, and a stack that nobody asked.
    assert carried(slow, fast, 1_051_000) == pytest.approx(11_500, rel=0.03)
    # 1 and 10 µs become 13: k = 7.43 makes 1.36 of the stack's and 11.64 of the wire's, each about as many of its sigmas.
    assert carried(fast, slow, 13_000) == pytest.approx(1_360 + 1_164_000, rel=0.01)


def test_what_was_not_seen_is_unsure_and_what_is_alike_is_not() -> None:
    slow, fast = parts(0, 1_000, 1_000_000), parts(0, 1_000, 10_000)
    found = correction_of([slow], 1_001_000)

    assert 1.0 < found.spread(slow, fast) < 1.2
    assert found.spread(slow, slow) == 1.0
    # Of the short one the wire is ten elevenths: its variance of 0.0225 falls by 0.0205**2 / 0.0223, to a sigma of 0.061.
    assert correction_of([fast], 11_000).spread(fast, slow) == pytest.approx(math.exp(1.645 * 0.061), abs=0.003)


def test_transfers_side_by_side_are_corrected_alike_and_go_by_their_own_parts() -> None:
    # 100 µs of latency alone, 900 µs of wire alone; as recorded, on a wire ten times as fast.
    latency, wire = parts(100_000, 0, 0), parts(0, 0, 900_000)
    found = correction_of([latency, wire], 1_000_000)

    assert found.ratio(latency, parts(100_000, 0, 0)) == pytest.approx(1.0)
    assert found.ratio(wire, parts(0, 0, 90_000)) == pytest.approx(0.1)


def test_nothing_that_was_recorded_corrects_nothing() -> None:
    assert correction_of([parts(0, 0, 100)], 0).ratio(parts(0, 0, 100), parts(0, 0, 50)) == 0.5
