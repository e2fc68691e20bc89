"""Prices on a small platform with round numbers: HBM 800 GB/s, host 15.5 GB/s a rank, disks 2, scale-up 80."""

from math import exp
from pathlib import Path

import pytest

from tests.fakes.platforms import small_platform
from tracereplay.errors import UsageError
from tracereplay.hardware.collectives.model import collective_time, uneven_all_to_all_time
from tracereplay.hardware.collectives.of_platform import fabric_of
from tracereplay.hardware.load import load_platform
from tracereplay.hardware.operators.fitted import shipped
from tracereplay.hardware.operators.work import OperatorClass, Work
from tracereplay.synth.assemble import Spread
from tracereplay.synth.operation import Exchange, Operation, moved, product
from tracereplay.synth.pricing import Efficiency, PlatformPricer

NO_WORK = Work(OperatorClass.EMBEDDING, 0, 0, 0, "fp32")
NODE = Spread(1, 4)


def pricer(folder: Path, efficiency: Efficiency | None = None) -> PlatformPricer:
    return PlatformPricer(small_platform(folder), NODE, efficiency or Efficiency())


def test_bytes_from_outside_come_over_their_way_before_the_work(tmp_path: Path) -> None:
    prices = pricer(tmp_path)

    assert prices.operation_ns(Operation("from the host", NO_WORK, host_bytes=155)) == 10
    assert prices.operation_ns(Operation("from disks", NO_WORK, ssd_bytes=20)) == 10
    assert {tier: way.binds for tier, way in prices.ways.items()} == {"host": "host.link.uplink", "ssd": "host.ssd.bandwidth"}


def test_an_efficiency_divides_the_model_s_time_of_its_kind_of_work_alone(tmp_path: Path) -> None:
    half = pricer(tmp_path, Efficiency(products=0.5, lookups=0.25, others=0.1, transfers=0.8))
    whole = pricer(tmp_path)
    gemm = product("gemm", (512, 512, 512), "fp32")
    lookup = moved("lookup", OperatorClass.EMBEDDING, (1_000_000, 0), "fp32")
    update = moved("update", OperatorClass.OPTIMIZER, (1_000_000, 1_000_000), "fp32")
    summed = Exchange("sum", "all_reduce", 1_000_000)

    for operation, share in ((gemm, 0.5), (lookup, 0.25), (update, 0.1)):
        assert half.operation_ns(operation) == pytest.approx(whole.operation_ns(operation) / share, abs=10)
    assert half.exchange_ns(summed)[0] == pytest.approx(whole.exchange_ns(summed)[0] / 0.8, abs=1)
    assert half.operation_ns(Operation("from the host", NO_WORK, host_bytes=155)) == 10


def test_collectives_are_those_of_the_model_on_the_links_of_the_platform(tmp_path: Path) -> None:
    prices, fabric = pricer(tmp_path), fabric_of(small_platform(tmp_path))
    even, uneven = Exchange("a", "all_to_all", 4_000_000), tuple(tuple(1_000 * (i + 1) for _ in range(4)) for i in range(4))

    assert prices.exchange_ns(even) == [collective_time(fabric, "all_to_all", 4_000_000, 4).time_ns] * 4
    split = Exchange("b", "all_to_all", 16_000, uneven)
    assert prices.exchange_ns(split) == [uneven_all_to_all_time(fabric, uneven, 4).time_ns] * 4


def test_over_nodes_an_exchange_may_go_in_the_node_first(tmp_path: Path) -> None:
    prices = PlatformPricer(small_platform(tmp_path), Spread(2, 4))

    prices.exchange_ns(Exchange("a", "all_to_all", 4_000_000, hierarchical=True))
    prices.exchange_ns(Exchange("a", "all_to_all", 4_000_000))

    assert [time.algorithm for time in prices.exchanged.values()] == ["hierarchical", "direct"]


def test_a_platform_without_accelerators_needs_a_data_sheet_of_its_sockets() -> None:
    with pytest.raises(UsageError, match="no data sheet of its sockets"):
        PlatformPricer(load_platform("cpu-8s"), Spread(1, 8))


def test_no_efficiency_is_nothing() -> None:
    with pytest.raises(UsageError, match="above 0"):
        Efficiency(products=0.0)


def test_what_comes_over_an_assumed_way_is_bounded_by_the_ends_of_its_range(tmp_path: Path) -> None:
    uplink = 'uplink = { value = 31, unit = "GB/s", direction = "one-way", kind = "spec"'
    assumed = 'uplink = { value = 31, range = [15.5, 62], unit = "GB/s", direction = "one-way", kind = "assumed"'
    fetch = Operation("from the host", NO_WORK, host_bytes=1_550)

    prices = PlatformPricer(small_platform(tmp_path, (uplink, assumed)), NODE)

    # Two ranks behind a switch share its uplink: 7.75 GB/s each at the low end; at the high end 31, and then the rank's own
    # link of 25 GB/s binds.
    assert prices.bounds_ns(fetch) == pytest.approx((1_550 / 25, 1_550 / 7.75))
    assert prices.operation_ns(fetch) == 100
    assert {tier: way.binds for tier, way in prices.ways.items()} == {"host": "host.link.uplink"}
    assert pricer(tmp_path).bounds_ns(fetch) == pytest.approx((100, 100))


def test_an_operation_has_the_known_errors_and_those_of_an_assumed_rate(tmp_path: Path) -> None:
    rate = 'bandwidth = { value = 800, unit = "GB/s", kind = "spec"'
    assumed = 'bandwidth = { value = 800, range = [400, 1600], unit = "GB/s", kind = "assumed"'
    update = moved("update", OperatorClass.OPTIMIZER, (100_000_000, 100_000_000), "fp32")
    known = shipped()
    # 800 MB at the share of 800 GB/s that large operators reach.
    own_ns = 800e6 / (800 * known.memory.elementwise)
    likely_ns, fast_ns, slow_ns = (known.floor_ns + own_ns * by for by in (1, 0.5, 2))

    low_ns, high_ns = PlatformPricer(small_platform(tmp_path, (rate, assumed)), NODE).bounds_ns(update)

    assert pricer(tmp_path).operation_ns(update) == pytest.approx(likely_ns, abs=1)
    assert low_ns == pytest.approx(fast_ns * exp(known.residuals.memory.low))
    assert high_ns == pytest.approx(slow_ns * exp(known.residuals.memory.high))
    assert pricer(tmp_path).bounds_ns(update) == pytest.approx(
        (likely_ns * exp(known.residuals.memory.low), likely_ns * exp(known.residuals.memory.high))
    )
