"""Placements worked out by hand: 4 accelerators of 16 GB; rows of 8 numbers of 4 bytes."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.platforms import small_platform
from tracereplay.errors import HardwareError, UsageError
from tracereplay.hardware.load import load_platform
from tracereplay.hardware.memory.placement import Besides, Placement, Policy, Tier, local_capacity, place, required
from tracereplay.hardware.memory.tables import EmbeddingTable, Optimizer, Shard, state_bytes
from tracereplay.hardware.memory.traffic import Traffic, backward_traffic, forward_traffic
from tracereplay.hardware.platform import Platform

GB = 10**9
NOTHING = Besides(0, 0, 0, 0)
HOT = EmbeddingTable("hot", 100_000_000, 8, pooling=50)  # 3.2 GB
COLD = EmbeddingTable("cold", 450_000_000, 8, pooling=1)  # 14.4 GB


def placed(platform: Platform, *tables: EmbeddingTable, tier: Tier | None = None, besides: Besides = NOTHING) -> Placement:
    shards = [Shard(table, 0, table.rows) for table in tables]
    return place(shards, platform, [besides], Policy(Optimizer.SGD, tier))


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [(Optimizer.SGD, 0), (Optimizer.ADAGRAD, 320), (Optimizer.ADAM, 640), (Optimizer.ROWWISE_ADAGRAD, 40)],
)
def test_state_of_ten_rows_of_eight(optimizer: Optimizer, expected: int) -> None:
    assert state_bytes(10, 8, optimizer) == expected
    assert Shard(EmbeddingTable("t", 20, 8, 1), 0, 10).state_bytes(optimizer) == expected


def test_what_fits_stays_in_hbm_and_the_rest_counts(tmp_path: Path) -> None:
    rest = Besides(1 * GB, 2 * GB, 3 * GB, 4 * GB)
    placement = placed(small_platform(tmp_path), HOT, tier=Tier.HBM, besides=rest)

    (memory,) = placement.ranks
    assert (memory.tables, memory.used, memory.capacity, memory.free) == (32 * GB // 10, 132 * GB // 10, 16 * GB, 28 * GB // 10)
    assert placement.fits
    assert required(placement, small_platform(tmp_path)) is placement


def test_beyond_capacity_is_refused_with_the_bytes_missing_and_the_ways_out(tmp_path: Path) -> None:
    platform = small_platform(tmp_path)
    placement = placed(platform, HOT, COLD, tier=Tier.HBM)

    assert placement.missing == 1_600_000_000
    with pytest.raises(HardwareError) as refused:
        required(placement, platform)
    assert refused.value.line() == (
        "small: rank 0 needs 17,600,000,000 bytes (17,600,000,000 of tables, 0 besides) of 16,000,000,000: 1,600,000,000 bytes "
        "are missing; with 90.9% of the rows it fits; at best 2 ranks hold it, if the tables are spread evenly; "
        "--set accelerator.hbm.capacity=1.11x; --placement auto moves the coldest tables to host memory, cached puts a cache "
        "before it"
    )


def test_the_capacity_that_a_refusal_names_is_enough(tmp_path: Path) -> None:
    more = ('capacity = { value = 16, unit = "GB"', f'capacity = {{ value = {16 * 1.11}, unit = "GB"')

    assert placed(small_platform(tmp_path, more), HOT, COLD, tier=Tier.HBM).fits


def test_without_tiers_the_coldest_table_goes_to_host_memory_and_more_hbm_brings_it_back(tmp_path: Path) -> None:
    now = placed(small_platform(tmp_path), COLD, HOT)
    more = placed(small_platform(tmp_path, ('value = 16, unit = "GB"', 'value = 32, unit = "GB"')), COLD, HOT)

    assert [(one.shard.table.name, one.tier) for one in now.shards] == [("cold", Tier.HOST), ("hot", Tier.HBM)]
    assert [(n.node, n.tier, n.used, n.capacity) for n in now.nodes] == [(0, Tier.HOST, 14_400_000_000, 100 * GB)]
    assert {one.tier for one in more.shards} == {Tier.HBM}
    assert more.nodes == ()


def test_host_memory_has_an_end_too(tmp_path: Path) -> None:
    platform = small_platform(tmp_path)
    huge = EmbeddingTable("huge", 4_000_000_000, 8, 1)

    placement = placed(platform, huge, tier=Tier.HOST)

    assert placement.missing == 28 * GB
    with pytest.raises(HardwareError, match="node 0 needs 128,000,000,000 bytes of host memory of 100,000,000,000"):
        required(placement, platform)
    assert placed(platform, huge, tier=Tier.SSD).fits


def test_a_cached_table_keeps_a_fifth_of_its_rows_and_its_books_in_hbm(tmp_path: Path) -> None:
    (one,) = placed(small_platform(tmp_path), HOT, tier=Tier.CACHED).shards

    assert one.cached_rows == 20_000_000
    assert one.local_bytes == 20_000_000 * 32 + 100_000_000 * 4 + 20_000_000 * 16
    assert one.host_bytes == 3_200_000_000


def test_capacity_of_a_socket_is_its_part_of_the_host_s_memory() -> None:
    assert local_capacity(load_platform("cpu-8s")) == 192 * GB


def test_lookups_move_bytes_where_the_table_stands(tmp_path: Path) -> None:
    platform = small_platform(tmp_path)

    moved = {tier: forward_traffic(placed(platform, HOT, tier=tier).shards[0], 1_000) for tier in Tier}

    assert moved[Tier.HBM] == Traffic(local_bytes=1_000 * 50 * 32)
    assert moved[Tier.HOST] == Traffic(host_bytes=1_000 * 50 * 32)
    assert moved[Tier.SSD] == Traffic(local_bytes=1_600_000, ssd_bytes=50_000 * 4_096)
    assert moved[Tier.CACHED] == Traffic(local_bytes=1_600_000, host_bytes=40_000 * 32)  # four of five miss without skew


def test_backward_reads_and_writes_and_a_missed_row_is_written_back_once(tmp_path: Path) -> None:
    platform = small_platform(tmp_path)

    in_hbm, cached = (placed(platform, HOT, tier=tier).shards[0] for tier in (Tier.HBM, Tier.CACHED))

    assert backward_traffic(in_hbm, 10, Optimizer.SGD) == Traffic(local_bytes=2 * 10 * 50 * 32)
    assert backward_traffic(in_hbm, 10, Optimizer.ADAGRAD) == Traffic(local_bytes=4 * 10 * 50 * 32)
    assert backward_traffic(in_hbm, 10, Optimizer.ROWWISE_ADAGRAD) == Traffic(local_bytes=2 * 10 * 50 * 36)
    assert backward_traffic(cached, 10, Optimizer.SGD) == Traffic(local_bytes=2 * 10 * 50 * 32, host_bytes=400 * 32)


def test_more_skew_makes_a_cached_lookup_cheaper(tmp_path: Path) -> None:
    platform = small_platform(tmp_path)
    traffic = [
        forward_traffic(placed(platform, replace(HOT, skew=skew), tier=Tier.CACHED).shards[0], 1_000).host_bytes
        for skew in (0.0, 0.5, 1.0, 1.2)
    ]

    assert traffic == sorted(traffic, reverse=True)
    assert traffic[-1] < traffic[0] / 5


@pytest.mark.parametrize("field", ["rows", "dim", "pooling", "element_bytes"])
def test_a_table_without_rows_is_refused(field: str) -> None:
    with pytest.raises(UsageError, match=f"{field} of table hot is 0"):
        replace(HOT, **{field: 0})  # type: ignore[arg-type]
