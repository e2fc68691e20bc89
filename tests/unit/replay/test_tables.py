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
from tracereplay.hardware.platform import Platform
from tracereplay.replay.move import Move, move
from tracereplay.replay.site import Goal, Site

WAY, HBM = 15.5e9, 0.8 * 800e9


def a_lookup(folder: Path, weights: dict[str, Any]) -> DependencyGraph:
    return graph_of(folder, looking_up(weights))


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
        {FORWARD_KERNEL: WAY / HBM, "vectorized_elementwise_kernel": 1.0, BACKWARD_KERNEL: WAY / HBM}
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
    assert factors(graph, found)[FORWARD_KERNEL] == pytest.approx(15.5 / 25)


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
        r"are missing.*--set accelerator\.hbm\.capacity=8\.01GB",
    ):
        moved(graph, platform, "accelerator.hbm.capacity=0.25x")


def test_a_job_without_recorded_tables_is_not_asked(tmp_path: Path) -> None:
    graph = graph_of(
        tmp_path, TraceFile(0).step(1, 0, 100).op("aten::mul", 10, 20).call(LAUNCH, 12, 5, 1).kernel("k", 30, 10, 7, 1)
    )

    assert moved(graph, small_platform(tmp_path), "accelerator.hbm.capacity=0.01x").tables is None
