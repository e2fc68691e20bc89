"""Embedding tables of recorded jobs on other memories, by hand.

The small platform: 16 GB of HBM at 800 GB/s an accelerator, of which lookups reach 80 %; its way to host memory is half of a
switch's 31 GB/s.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.lookups import BACKWARD_KERNEL, FORWARD_KERNEL, LAUNCH, LOOKUP, looking_up, weights_of
from tests.fakes.platforms import small_platform
from tracereplay.errors import HardwareError
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.knobs import parse_setting
from tracereplay.hardware.memory.placement import Tier
from tracereplay.hardware.operators.fitted import shipped
from tracereplay.hardware.platform import Platform
from tracereplay.replay.move import Move, move
from tracereplay.replay.site import Goal, Site

WAY, HBM = 15.5e9, 0.8 * 800e9


def a_lookup(folder: Path, weights: dict[str, Any]) -> DependencyGraph:
    return graph_of(folder, looking_up(weights))


def beyond_the_floor(dur_ns: float, ratio: float) -> float:
    """By what a task is multiplied of which a launch's floor stays."""
    floor_ns = shipped().floor_ns
    return (floor_ns + (dur_ns - floor_ns) * ratio) / dur_ns


def moved(graph: DependencyGraph, platform: Platform, *texts: str) -> Move:
    settings = [setting for text in texts for setting in parse_setting(text)]
    return move(graph, Site(platform, 1.0), Goal(platform, same_host=True).under(settings))


def factors(graph: DependencyGraph, found: Move) -> dict[str, float]:
    return {graph.name_of(n): float(found.factor[n]) for n in np.flatnonzero(graph.nodes.kind == NodeKind.DEVICE).tolist()}


def test_tables_that_fit_move_in_and_their_lookups_go_by_the_two_memories(tmp_path: Path) -> None:
    # 4.5 G numbers of 4 bytes: 18 GB in host memory, and 16 GB of HBM.
    platform = small_platform(tmp_path)
    graph = a_lookup(tmp_path, weights_of(0, 4_500_000_000))

    before, after = moved(graph, platform), moved(graph, platform, "accelerator.hbm.capacity=2x")

    assert set(factors(graph, before).values()) == {1.0}
    assert factors(graph, after) == pytest.approx(
        {
            FORWARD_KERNEL: beyond_the_floor(300_000, WAY / HBM),
            "vectorized_elementwise_kernel": 1.0,
            BACKWARD_KERNEL: beyond_the_floor(600_000, WAY / HBM),
        }
    )
    lookup = int(np.flatnonzero([graph.name_of(n) == FORWARD_KERNEL for n in range(len(graph))])[0])
    assert (np.exp(after.low[lookup]), np.exp(after.high[lookup])) == pytest.approx((0.8 / 0.95, 0.8 / 0.5))
    assert after.tables is not None
    assert [(one.bank.whole_bytes, one.bank.tier, one.tier) for one in after.tables.moved] == [
        (18_000_000_000, Tier.HOST, Tier.HBM)
    ]
    assert after.tables.ranks[0].free == 32_000_000_000 - 18_000_000_000


def test_tables_that_do_not_fit_stay_where_they_are(tmp_path: Path) -> None:
    platform = small_platform(tmp_path)
    graph = a_lookup(tmp_path, weights_of(0, 4_500_000_000))

    found = moved(graph, platform, "accelerator.hbm.capacity=17GB")

    assert found.tables is not None
    assert found.tables.moved == ()
    assert set(factors(graph, found).values()) == {1.0}


def test_tables_in_host_memory_are_read_over_its_link(tmp_path: Path) -> None:
    platform = small_platform(tmp_path)
    graph = a_lookup(tmp_path, weights_of(0, 4_500_000_000))

    found = moved(graph, platform, "accelerator.hbm.bandwidth=2x", "host.link.uplink=2x")

    # 25 GB/s of the accelerator's own link bind then; of HBM a lookup there sees nothing.
    assert factors(graph, found)[FORWARD_KERNEL] == pytest.approx(beyond_the_floor(300_000, 15.5 / 25))


def test_what_a_cache_misses_is_not_fetched_once_all_is_in_hbm(tmp_path: Path) -> None:
    platform = small_platform(tmp_path)
    trace = TraceFile(0).step(1, 0, 2_000)
    trace = (
        trace.op("fbgemm::lxu_cache_populate_byte", 5, 20).call(LAUNCH, 8, 2, 9).kernel("lru_cache_insert_kernel", 12, 40, 7, 9)
    )
    trace = trace.op(LOOKUP, 60, 40, **weights_of(0, 4_500_000_000, 900_000_000)).call(LAUNCH, 70, 5, 1)
    graph = graph_of(tmp_path, trace.kernel(FORWARD_KERNEL, 110, 300, 7, 1))

    found = moved(graph, platform, "accelerator.hbm.capacity=2x")

    assert factors(graph, found) == {"lru_cache_insert_kernel": 0.0, FORWARD_KERNEL: 1.0}


def test_tables_in_hbm_that_do_not_fit_are_refused_with_the_bytes(tmp_path: Path) -> None:
    platform = small_platform(tmp_path)
    graph = a_lookup(tmp_path, weights_of(2_000_000_000, 0))

    assert moved(graph, platform, "accelerator.hbm.capacity=2x").tables is not None
    with pytest.raises(
        HardwareError,
        match=r"rank 0 needs at least 8,000,000,000 bytes \(8,000,000,000 of tables\) of 4,000,000,000: 4,000,000,000 bytes "
        r"are missing.*--set accelerator\.hbm\.capacity=8GB",
    ):
        moved(graph, platform, "accelerator.hbm.capacity=0.25x")


def test_a_job_without_recorded_tables_is_not_asked(tmp_path: Path) -> None:
    graph = graph_of(
        tmp_path, TraceFile(0).step(1, 0, 100).op("aten::mul", 10, 20).call(LAUNCH, 12, 5, 1).kernel("k", 30, 10, 7, 1)
    )

    assert moved(graph, small_platform(tmp_path), "accelerator.hbm.capacity=0.01x").tables is None


def two_cached(folder: Path, first: int, second: int) -> DependencyGraph:
    """Two lookups with caches before so many numbers in host memory, filled by one task."""
    trace = TraceFile(0).step(1, 0, 3_000)
    trace = trace.op("fbgemm::lxu_cache_populate_byte", 5, 20).call(LAUNCH, 8, 2, 9).kernel("fill", 12, 40, 7, 9)
    trace = trace.op(LOOKUP, 60, 40, **weights_of(0, first, 1_000)).call(LAUNCH, 70, 5, 1).kernel("one", 110, 300, 7, 1)
    trace = trace.op(LOOKUP, 500, 40, **weights_of(0, second, 1_000)).call(LAUNCH, 510, 5, 2)
    return graph_of(folder, trace.kernel("two", 550, 300, 7, 2))


@pytest.mark.parametrize("sizes", [(4_500_000_000, 9_000_000_000), (9_000_000_000, 4_500_000_000)])
def test_a_cache_goes_on_as_long_as_one_of_its_banks_needs_it(tmp_path: Path, sizes: tuple[int, int]) -> None:
    # 18 and 36 GB: of 32 GB of HBM one fits, of 64 both.
    platform = small_platform(tmp_path)
    graph = two_cached(tmp_path, *sizes)

    one, both = (moved(graph, platform, f"accelerator.hbm.capacity={size}GB") for size in (32, 64))

    assert one.tables is not None
    assert [bank.bank.whole_bytes for bank in one.tables.moved] == [18_000_000_000]
    assert factors(graph, one)["fill"] == 1.0
    assert factors(graph, both)["fill"] == 0.0


def test_modules_alike_are_counted(tmp_path: Path) -> None:
    trace = TraceFile(0).step(1, 0, 3_000)
    for n in range(3):
        start = 10 + 900 * n
        trace = (
            trace.op(LOOKUP, start, 40, **weights_of(1_500_000_000, 0))
            .call(LAUNCH, start + 5, 5, n)
            .kernel("k", start + 50, 30, 7, n)
        )
    graph = graph_of(tmp_path, trace)
    platform = small_platform(tmp_path, ('value = 16, unit = "GB"', 'value = 20, unit = "GB"'))

    with pytest.raises(HardwareError, match=r"at least 18,000,000,000 bytes"):
        moved(graph, platform, "accelerator.hbm.capacity=7GB")


def test_tables_half_in_hbm_hold_what_they_held_there(tmp_path: Path) -> None:
    graph = a_lookup(tmp_path, weights_of(3_000_000_000, 1_000_000))

    with pytest.raises(HardwareError, match=r"at least 12,000,000,000 bytes"):
        moved(graph, small_platform(tmp_path), "accelerator.hbm.capacity=1GB")


def test_what_was_recorded_fits_where_it_was_recorded_whatever_is_estimated(tmp_path: Path) -> None:
    weights = weights_of(3_900_000_000, 0)  # 15.6 of 16 GB
    trace = looking_up(weights).call(LAUNCH, 1_500, 5, 8)
    sizes: dict[str, Any] = {"Collective name": "allreduce", "In msg nelems": 1_000_000_000, "dtype": "Float", "Group size": 1}
    graph = graph_of(tmp_path, trace.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1_520, 100, 9, 8, **sizes))

    found = moved(graph, small_platform(tmp_path), "host.speed=2x")

    assert found.tables is not None
    assert found.tables.ranks[0].free >= 0
