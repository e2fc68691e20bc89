from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fakes.hardware import child, write
from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tracereplay.errors import HardwareError
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.collectives.calibration import carry_over_collective
from tracereplay.hardware.collectives.of_platform import fabric_of
from tracereplay.hardware.knobs import parse_setting
from tracereplay.hardware.load import load_accelerator, load_platform
from tracereplay.hardware.operators.carry import analytic_times, carry_over
from tracereplay.hardware.operators.fitted import shipped
from tracereplay.hardware.operators.formulas import mm
from tracereplay.hardware.operators.work import Works
from tracereplay.replay.move import Move, Mover, move
from tracereplay.replay.site import journey, source_of

LAUNCH, GEMM, ALL_REDUCE = "cudaLaunchKernel", "volta_sgemm_128x64_nn", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
SIZE: dict[str, Any] = {"Collective name": "allreduce", "In msg nelems": 25_000_000, "dtype": "Float"}
ADD: dict[str, Any] = {"Input Dims": [[1000], [1000], []], "Input type": ["float", "float", "Scalar"]}
MM: dict[str, Any] = {"Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["float", "float"]}


def moved(graph: DependencyGraph, hardware: str | None, *texts: str, source: str | None = "dgx1-v100") -> Move:
    settings = [setting for text in texts for setting in parse_setting(text)]
    way = journey(source_of(graph, source), hardware, settings)
    return move(graph, way.source, way.target)


def factors(graph: DependencyGraph, found: Move, kind: NodeKind = NodeKind.DEVICE) -> dict[str, float]:
    return {graph.name_of(n): float(found.factor[n]) for n in np.flatnonzero(graph.nodes.kind == kind).tolist()}


def a_product(tmp_path: Path) -> DependencyGraph:
    trace = TraceFile(0).step(1, 0, 20_000).op("aten::mm", 10, 20, **MM).call(LAUNCH, 15, 5, 1).kernel(GEMM, 30, 9_500, 7, 1)
    return graph_of(tmp_path, trace)


def test_device_work_is_carried_over_by_the_model_of_operators(tmp_path: Path) -> None:
    graph = a_product(tmp_path)
    work = mm((4096, 4096), (4096, 4096), "float")
    expected = carry_over(work, 9_500_000, load_accelerator("v100-sxm2-32"), load_accelerator("a100-40-sxm"))

    found = moved(graph, "zionex")

    assert factors(graph, found)[GEMM] == pytest.approx(expected.time_ns / 9_500_000, rel=1e-6)
    node = int(np.flatnonzero(graph.nodes.kind == NodeKind.DEVICE)[0])
    assert np.exp(found.low[node]) == pytest.approx(expected.low_ns / expected.time_ns, rel=1e-3)
    assert np.exp(found.high[node]) == pytest.approx(expected.high_ns / expected.time_ns, rel=1e-3)


def test_on_the_hardware_of_the_recording_nothing_changes_and_nothing_is_uncertain(tmp_path: Path) -> None:
    found = moved(a_product(tmp_path), "dgx1-v100")

    assert (found.factor == 1).all()
    assert (found.low == 0).all()
    assert (found.high == 0).all()


def test_more_of_one_resource_is_never_slower(tmp_path: Path) -> None:
    graph = a_product(tmp_path)

    for knob in ("accelerator.flops", "accelerator.hbm.bandwidth", "host.speed", "fabric.scale_up.bandwidth"):
        ratios = [moved(graph, None, f"{knob}={ratio}x").factor for ratio in (1, 2, 4)]
        assert all((a >= b).all() for a, b in pairwise(ratios))


def test_an_assumed_figure_of_the_accelerator_widens_the_bounds_over_its_range(tmp_path: Path) -> None:
    graph = a_product(tmp_path)
    node = int(np.flatnonzero(graph.nodes.kind == NodeKind.DEVICE)[0])
    flops = "[flops]\nfp32 = {{ value = 15.7, unit = 'TFLOP/s', kind = '{}', source = 'ours'{} }}"
    cards = {"known": flops.format("spec", ""), "unsure": flops.format("assumed", ", range = [7.85, 31.4]")}
    for name, text in cards.items():
        write(tmp_path, f"{name}.toml", child("v100-sxm2-32", text, name=name))

    found = {name: moved(graph, "dgx1-v100", f"accelerator.model={tmp_path / name}.toml") for name in cards}

    # Half the rate takes twice the time; of twice the rate the power pays for a part.
    assert found["known"].factor[node] == found["unsure"].factor[node]
    assert np.exp(found["unsure"].high[node] - found["known"].high[node]) > 1.8
    assert np.exp(found["unsure"].low[node] - found["known"].low[node]) < 0.85


def test_a_job_of_cpus_leaves_the_accelerators_of_where_it_ran_alone(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile(0).step(1, 0, 90_000).op("aten::mm", 10, 80_000, **MM))

    assert (moved(graph, "dgx-a100", source="dgx-a100").factor == 1).all()
    assert (moved(graph, None, "accelerator.hbm.bandwidth=2x", source="dgx-a100").factor == 1).all()


def test_the_host_goes_by_its_speed(tmp_path: Path) -> None:
    graph = a_product(tmp_path)
    host = (graph.nodes.kind == NodeKind.HOST) & (graph.nodes.dur_ns > 0)

    told, untold = moved(graph, "zion", "host.speed=2x"), moved(graph, "zion")

    assert set(told.factor[host]) == {0.5}
    assert (told.group[host] < 0).all()
    assert set(untold.factor[host]) == {1.0}
    assert np.exp(untold.low[host]) == pytest.approx(0.8)
    assert np.exp(untold.high[host]) == pytest.approx(1.25)
    assert any(text.startswith("host.speed 1x (0.8x … 1.25x)") for text in untold.assumed)
    assert not any("host.speed" in text for text in told.assumed)


def a_copy(tmp_path: Path, us: int) -> DependencyGraph:
    trace = TraceFile(0).step(1, 0, 1_000).call("cudaMemcpyAsync", 10, 5, 1)
    copy = {"device": 0, "stream": 7, "correlation": 1, "bytes": 1_000_000}
    return graph_of(tmp_path, trace.event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 20, us, args=copy))


def test_copies_between_host_and_device_go_by_the_link_between_the_two(tmp_path: Path) -> None:
    graph = a_copy(tmp_path, 100)

    found = moved(graph, None, "host.link.bandwidth=4x")

    # What a kernel takes at least a copy does too; the rest is a quarter.
    fixed = shipped().floor_ns
    assert factors(graph, found)["Memcpy HtoD (Pinned -> Device)"] == pytest.approx((fixed + (100_000 - fixed) / 4) / 100_000)


def test_an_unknown_link_stops_where_it_matters_and_is_named_where_it_does_not(tmp_path: Path) -> None:
    # 50 µs of a step of 1 ms matter, 5 µs do not.
    with pytest.raises(
        HardwareError, match=r"zionex: host\.link\.bandwidth: .* 5\.0 % of the steps; give it with --set host\.link"
    ):
        moved(a_copy(tmp_path, 50), "zionex")

    graph = a_copy(tmp_path, 5)
    found = moved(graph, "zionex")

    assert factors(graph, found) == {"Memcpy HtoD (Pinned -> Device)": 1.0}
    assert found.kept.any()
    assert any("host.link.bandwidth of zionex is unknown" in text for text in found.assumed)
    assert not moved(graph, "zionex", "host.link.bandwidth=32GB/s").kept.any()


def two_ranks(tmp_path: Path, **args: Any) -> DependencyGraph:
    ranks = []
    for rank in (0, 1):
        trace = TraceFile(rank, 2, host_name="n").step(1, 0, 1_000).call(LAUNCH, 10 + 20 * rank, 5, 1)
        ranks.append(trace.kernel(ALL_REDUCE, 20 + 20 * rank, 100 - 20 * rank, 7, 1, **args))
    return graph_of(tmp_path, *ranks)


def test_a_transfer_is_carried_over_by_the_model_of_collectives(tmp_path: Path) -> None:
    graph = two_ranks(tmp_path, **{"Collective name": "allreduce", "In msg nelems": 1_000_000, "dtype": "Float"})
    fabrics = [fabric_of(load_platform(name)) for name in ("dgx1-v100", "dgx-h100")]
    expected = carry_over_collective("all_reduce", 4e6, (0, 1), 80_000, fabrics[0], fabrics[1])

    found = moved(graph, "dgx-h100")

    (wire,) = found.wires
    assert (wire.name, wire.size, wire.before_ns, wire.after_ns) == ("all_reduce", 4e6, 80_000, expected.time_ns)
    (transfer, _) = graph.collectives[0].transfers
    assert found.factor[transfer] == pytest.approx(expected.time_ns / 80_000)


def test_ranks_of_two_hosts_meet_over_the_network_and_stay_on_two_nodes(tmp_path: Path) -> None:
    ranks = []
    for rank in (0, 1):
        trace = TraceFile(rank, 2, host_name=f"n{rank}").step(1, 0, 1_000).call(LAUNCH, 10, 5, 1)
        trace.kernel(ALL_REDUCE, 20, 100, 7, 1, **SIZE)
        ranks.append(trace)
    graph = graph_of(tmp_path, *ranks)

    def faster(knob: str) -> float:
        return float(moved(graph, None, f"{knob}=4x", source="dgx-a100").factor.min())

    assert faster("fabric.scale_up.bandwidth") == 1.0
    assert faster("fabric.scale_out.bandwidth") < 0.9


def test_a_job_of_cpus_on_the_hosts_that_it_ran_on_stays_as_it_is(tmp_path: Path) -> None:
    ranks = []
    for rank in (0, 1):
        trace = TraceFile(rank, 2, host_name="n").step(1, 0, 1_000).op("aten::add_", 100, 200, **ADD)
        trace.op("c10d::allreduce_", 400, 10).gloo("gloo:all_reduce", 420, 100, tid=9)
        ranks.append(trace)
    graph = graph_of(tmp_path, *ranks)

    same, faster = (moved(graph, None, *texts, source="cpu-8s") for texts in ((), ("host.memory.bandwidth=2x",)))

    assert (same.factor == 1).all()
    assert (same.low == 0).all()
    assert not same.kept.any()
    assert factors(graph, faster, NodeKind.HOST)["aten::add_"] == 0.5
    assert {factor for name, factor in factors(graph, faster, NodeKind.HOST).items() if name != "aten::add_"} == {1.0}


def test_where_a_job_of_cpus_ran_is_not_known_its_transfers_on_cpus_are_not_modelled(tmp_path: Path) -> None:
    ranks = [
        TraceFile(r, 2, host_name="n")
        .step(1, 0, 1_000)
        .op("c10d::allreduce_", 400, 10)
        .gloo("gloo:all_reduce", 420, 100, tid=9)
        for r in (0, 1)
    ]
    graph = graph_of(tmp_path, *ranks)

    found = moved(graph, "cpu-8s", source=None)

    transfers = list(graph.collectives[0].transfers)
    assert found.kept[transfers].all()
    assert (found.factor[transfers] == 1).all()


def test_settings_hold_for_whatever_stands_in_the_slots_and_the_order_of_questions_does_not_matter(tmp_path: Path) -> None:
    graph = a_product(tmp_path)
    mover = Mover.of(graph, source_of(graph, "dgx1-v100"))

    def others(*texts: str) -> list[float]:
        settings = [setting for text in texts for setting in parse_setting(text)]
        found = mover.to(journey(mover.source, "zion", settings).target)
        node = int(np.flatnonzero(graph.nodes.kind == NodeKind.DEVICE)[0])
        return [float(factor[node]) for factor in found.others]

    plain, fast = others(), others("accelerator.flops=4x", "accelerator.hbm.bandwidth=4x")
    others("accelerator.model=a100-40-sxm", "accelerator.flops=100x")

    assert all(a > b for a, b in zip(plain, fast, strict=True))
    assert others() == plain


def test_constants_of_another_library_are_said_to_stand_in(tmp_path: Path) -> None:
    found = moved(two_ranks(tmp_path, **SIZE), "mi300x-node", "accelerator.compute_units=304")

    assert any(text.startswith("collective library: NCCL's constants") for text in found.assumed)


def test_a_transfer_of_unknown_size_has_the_one_that_explains_its_time(tmp_path: Path) -> None:
    graph = two_ranks(tmp_path)

    (wire,) = moved(graph, "dgx-h100").wires

    assert wire.size is not None
    here = carry_over_collective("all_reduce", wire.size, (0, 1), 80_000, *(2 * [fabric_of(load_platform("dgx1-v100"))]))
    assert here.source.time_ns == pytest.approx(80_000, rel=0.02)


def test_operators_of_a_job_of_cpus_take_the_model_s_time(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile(0).step(1, 0, 90_000).op("aten::mm", 10, 80_000, **MM).op("mine::op", 80_100, 50))
    works = Works.of([mm((4096, 4096), (4096, 4096), "float")])
    expected_ns = analytic_times(works, load_accelerator("v100-sxm2-32")).time_ns[0]

    found = moved(graph, "zion", source=None)

    operators = factors(graph, found, NodeKind.HOST)
    assert operators["aten::mm"] == pytest.approx(expected_ns / 80_000_000, rel=1e-4)
    assert operators["mine::op"] == 1.0


def test_what_else_may_stand_in_the_slots_is_kept_for_sampling(tmp_path: Path) -> None:
    found = moved(a_product(tmp_path), "zion")

    assert len(found.others) == 3
    assert any(text.startswith("accelerator.model v100-sxm2-32 (of v100-sxm2-16,") for text in found.assumed)
    assert moved(a_product(tmp_path), "zion", "accelerator.model=a100-40-sxm").others == ()
