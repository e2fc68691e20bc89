from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tracereplay.errors import UsageError
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.knobs import parse_setting
from tracereplay.replay.whatif import Change, Moved, Scenario, apply, parse_scale, setting_change

LAUNCH = "cudaLaunchKernel"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def gpu_rank(rank: int = 0, world_size: int = 1, host_name: str | None = None) -> TraceFile:
    """A kernel of a matrix product, an elementwise kernel, a copy on stream 7, an all-reduce on stream 20."""
    trace = TraceFile(rank, world_size, host_name=host_name).step(1, 0, 200)
    trace.op("aten::mm", 10, 20).call(LAUNCH, 15, 5, 1).kernel("volta_sgemm_64x64_nt", 25, 50, 7, 1)
    trace.op("aten::add", 40, 20).call(LAUNCH, 45, 5, 2).kernel("vectorized_elementwise_kernel", 75, 10, 7, 2)
    trace.call("cudaMemcpyAsync", 70, 5, 3).memcpy("Memcpy DtoD (Device -> Device)", 90, 10, 7, 3)
    return trace.call(LAUNCH, 90, 5, 4).kernel(ALL_REDUCE, 100, 50, 20, 4)


@pytest.fixture
def gpu(tmp_path: Path) -> DependencyGraph:
    return graph_of(tmp_path, gpu_rank())


@pytest.fixture
def cpu(tmp_path: Path) -> DependencyGraph:
    trace = TraceFile(0, 1).step(1, 0, 100).op("aten::linear", 10, 40).op("aten::addmm", 20, 20).op("aten::add", 60, 10)
    return graph_of(tmp_path, trace)


def scaled(graph: DependencyGraph, *texts: str) -> Scenario:
    return apply(graph, [parse_scale(text) for text in texts])


def set_to(graph: DependencyGraph, text: str) -> Scenario:
    return apply(graph, [setting_change(setting) for setting in parse_setting(text)])


def test_a_scale_has_a_selector_and_a_factor() -> None:
    assert parse_scale("kernel:volta_*=0.5x") == Change("kernel:volta_*=0.5x", "kernel", "volta_*", 0.5)


@pytest.mark.parametrize("text", ["host@rank=3=2x", "host=2x@rank=3"])
def test_a_rank_may_stand_before_or_after_the_factor(text: str) -> None:
    assert parse_scale(text) == Change(text, "host", "", 2.0, rank=3)


def test_a_pattern_may_hold_colons_and_equals_signs() -> None:
    change = parse_scale("op:aten::mm=x=1e-1x")

    assert (change.kind, change.pattern, change.factor) == ("op", "aten::mm=x", 0.1)


@pytest.mark.parametrize("text", ["kernel:k", "host=2", "host=fastx", "host=-1x", "=2x", "", "host=2x@rank=a"])
def test_another_form_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not SELECTOR=FACTORx; for example 'collective:all_to_all=0\.5x'"):
        parse_scale(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stream:7=2x", "no selector 'stream'; selectors are kernel:GLOB"),
        ("kernel:=2x", "no selector 'kernel'"),
        ("host:cpu=2x", "no selector 'host'"),
        ("class:matmul=2x", "no class 'matmul'; classes are gemm, attention"),
        ("class:host=2x", "no class 'host'"),
        ("collective:alltoall=2x", "no collective 'alltoall'; collectives are all_to_all, .* or \\*"),
    ],
)
def test_an_unknown_selector_names_the_valid_ones(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_scale(text)


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("kernel:volta_*=0.5x", {"gemm": Moved(1, 50_000, 25_000, "ratio")}),
        ("kernel:nccl*=0.5x", {"all_reduce": Moved(1, 50_000, 25_000, "ratio")}),
        ("op:aten::mm=0.5x", {"gemm": Moved(1, 50_000, 25_000, "ratio")}),
        ("op:aten::*=2x", {"gemm": Moved(1, 50_000, 100_000, "ratio"), "elementwise": Moved(1, 10_000, 20_000, "ratio")}),
        ("class:elementwise=3x", {"elementwise": Moved(1, 10_000, 30_000, "ratio")}),
        ("class:copy=0.1x", {"copy": Moved(1, 10_000, 1_000, "ratio")}),
        ("class:collective=0.5x", {"all_reduce": Moved(1, 50_000, 25_000, "ratio")}),
        ("collective:all_reduce=0.5x", {"all_reduce": Moved(1, 50_000, 25_000, "ratio")}),
        ("collective:*=0x", {"all_reduce": Moved(1, 50_000, 0, "ratio")}),
        ("host=0.5x", {"host": Moved(13, 200_000, 100_000, "ratio")}),
        ("launch=0.5x", {"launch": Moved(4, 40_000, 20_000, "ratio")}),
        ("host=1x", {}),
    ],
)
def test_each_selector_moves_what_it_names(gpu: DependencyGraph, text: str, moved: dict[str, Moved]) -> None:
    scenario = scaled(gpu, text)

    assert scenario.moved == moved
    assert (scenario.unmoved, scenario.unsplit) == ((), ())


@pytest.mark.parametrize("text", ["kernel:cutlass*=2x", "op:aten::bmm=2x", "class:conv=2x", "collective:all_to_all=2x"])
def test_a_selector_that_names_nothing_here_is_said_to_move_nothing(gpu: DependencyGraph, text: str) -> None:
    scenario = scaled(gpu, text)

    assert (scenario.moved, scenario.unmoved) == ({}, (text,))


def test_launch_moves_nothing_without_device_work(cpu: DependencyGraph) -> None:
    assert scaled(cpu, "launch=2x").unmoved == ("launch=2x",)


def test_factors_on_one_task_multiply(gpu: DependencyGraph) -> None:
    scenario = scaled(gpu, "kernel:volta_*=0.5x", "class:gemm=0.5x")

    assert scenario.moved == {"gemm": Moved(1, 50_000, 12_500, "ratio")}


def test_the_same_change_twice_that_moves_nothing_is_named_once(gpu: DependencyGraph) -> None:
    assert scaled(gpu, "class:conv=2x", "class:conv=2x").unmoved == ("class:conv=2x",)


def test_a_transfer_is_scaled_and_the_waiting_before_it_is_not(tmp_path: Path) -> None:
    ranks = [TraceFile(r, 2).step(1, 0, 300).op("a", 1, 1) for r in (0, 1)]
    graph = graph_of(tmp_path, ranks[0].kernel(ALL_REDUCE, 100, 100, 7), ranks[1].kernel(ALL_REDUCE, 150, 50, 7))

    scenario = scaled(graph, "collective:all_reduce=0.5x")

    # One transfer of 50 µs, counted once, not 100 + 50 of recorded kernels.
    assert scenario.moved == {"all_reduce": Moved(1, 50_000, 25_000, "ratio")}
    assert scenario.timing.dur_ns[graph.nodes.kind == NodeKind.TRANSFER].tolist() == [25_000, 25_000]


def test_one_rank_is_scaled_alone(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, gpu_rank(0, 2), gpu_rank(1, 2))

    scenario = scaled(graph, "class:gemm=0.5x@rank=1")

    assert scenario.moved == {"gemm": Moved(1, 50_000, 25_000, "ratio")}
    changed = scenario.timing.dur_ns != graph.nodes.dur_ns
    assert graph.nodes.rank[changed].tolist() == [1]


def test_the_launches_of_one_rank_are_scaled_alone(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, gpu_rank(0, 2), gpu_rank(1, 2))

    assert scaled(graph, "launch=0.5x@rank=1").moved == {"launch": Moved(4, 40_000, 20_000, "ratio")}


def test_a_rank_that_the_job_lacks_is_refused(gpu: DependencyGraph) -> None:
    with pytest.raises(UsageError, match=r"the job has no rank 7; ranks are \[0\]"):
        scaled(gpu, "host=2x@rank=7")


def test_a_change_to_one_step_leaves_the_others(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("aten::mm", 10, 40).step(2, 100, 100).op("aten::mm", 110, 30)
    graph = graph_of(tmp_path, trace)

    scenario = apply(graph, [replace(parse_scale("class:gemm=0.5x"), step=2)])

    assert scenario.moved == {"gemm": Moved(1, 30_000, 15_000, "ratio")}


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("op:aten::linear=2x", {"gemm": Moved(3, 40_000, 80_000, "ratio")}),
        ("kernel:aten::addmm=2x", {"gemm": Moved(1, 20_000, 40_000, "ratio")}),
        ("class:gemm=2x", {"gemm": Moved(3, 40_000, 80_000, "ratio")}),
        (
            "host=2x",
            {
                "host": Moved(3, 50_000, 100_000, "ratio"),
                "gemm": Moved(3, 40_000, 80_000, "ratio"),
                "elementwise": Moved(1, 10_000, 20_000, "ratio"),
            },
        ),
    ],
)
def test_without_device_work_the_operators_own_time_is_scaled(cpu: DependencyGraph, text: str, moved: dict[str, Moved]) -> None:
    assert scaled(cpu, text).moved == moved


def test_a_kernel_pattern_without_device_work_is_about_operators_and_not_their_annotations(cpu: DependencyGraph) -> None:
    scenario = scaled(cpu, "kernel:*=2x")

    # Self times: 20 of linear, 20 of addmm, 10 of add; the 50 µs of the step's mark are no operator's.
    assert scenario.moved == {"gemm": Moved(3, 40_000, 80_000, "ratio"), "elementwise": Moved(1, 10_000, 20_000, "ratio")}
    assert scaled(cpu, "kernel:ProfilerStep*=2x").unmoved == ("kernel:ProfilerStep*=2x",)
    assert scaled(cpu, "kernel:ProfilerStep*=2x").timing.dur_ns.tolist() == cpu.nodes.dur_ns.tolist()


@pytest.mark.parametrize("text", ["host=1e300x", "host=1e15x", "kernel:*=1e14x", "launch=1e15x"])
def test_a_factor_beyond_what_times_can_hold_is_refused(gpu: DependencyGraph, text: str) -> None:
    with pytest.raises(UsageError, match="a factor makes the job longer than 73 years; give a smaller factor"):
        scaled(gpu, text)


def test_factors_that_only_together_are_beyond_it_are_refused(gpu: DependencyGraph) -> None:
    with pytest.raises(UsageError, match="longer than 73 years"):
        scaled(gpu, "host=1e10x", "host=1e10x")


def test_a_large_factor_within_it_is_none_of_those(gpu: DependencyGraph) -> None:
    assert scaled(gpu, "host=1e9x").moved == {"host": Moved(13, 200_000, 200_000_000_000_000, "ratio")}


def test_a_collective_that_cannot_be_split_is_all_transfer_or_ends_when_others_arrive(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, gpu_rank(0, world_size=2))

    scenario = scaled(graph, "collective:all_reduce=0.5x")

    unsplit = graph.nodes.kind == NodeKind.UNSPLIT
    assert scenario.timing.dur_ns[unsplit].tolist() == [25_000]
    readings = [(t.dur_ns[unsplit].tolist(), t.release_ns[unsplit].tolist()) for t in scenario.unsplit]
    assert readings == [([0], [150_000]), ([0], [125_000])]
    assert scenario.moved == {"collective_unsplit": Moved(1, 50_000, 25_000, "ratio")}
    assert (scenario.unsplit_touched, scenario.unsplit_kept, scenario.absent) == (1, 0, (1,))


def test_a_scenario_that_leaves_unsplit_collectives_alone_has_one_reading(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, gpu_rank(0, world_size=2))

    assert scaled(graph, "class:gemm=0.5x").unsplit == ()


def test_no_changes_move_nothing(gpu: DependencyGraph) -> None:
    scenario = apply(gpu, [])

    assert (scenario.moved, scenario.unmoved) == ({}, ())
    assert scenario.timing.dur_ns.tolist() == gpu.nodes.dur_ns.tolist()


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        (
            "accelerator.hbm.bandwidth=2x",
            {"elementwise": Moved(1, 10_000, 5_000, "ratio"), "copy": Moved(1, 10_000, 5_000, "ratio")},
        ),
        ("accelerator.flops=2x", {"gemm": Moved(1, 50_000, 25_000, "ratio")}),
        ("fabric.scale_up.bandwidth=2x", {"all_reduce": Moved(1, 50_000, 25_000, "ratio")}),
        ("fabric.*.bandwidth=2x", {"all_reduce": Moved(1, 50_000, 25_000, "ratio")}),
        ("host.speed=2x", {"host": Moved(13, 200_000, 100_000, "ratio")}),
    ],
)
def test_a_knob_divides_the_time_of_what_it_bounds(gpu: DependencyGraph, text: str, moved: dict[str, Moved]) -> None:
    assert set_to(gpu, text).moved == moved


@pytest.mark.parametrize(
    "name",
    ["accelerator.hbm.capacity", "fabric.scale_out.bandwidth", "fabric.scale_up.latency", "host.memory.bandwidth"],
)
def test_a_knob_that_bounds_nothing_here_is_said_to_move_nothing(gpu: DependencyGraph, name: str) -> None:
    scenario = set_to(gpu, f"{name}=2x")

    assert (scenario.moved, scenario.unmoved) == ({}, (name,))


def test_without_device_work_the_hosts_memory_bounds_its_operators(cpu: DependencyGraph) -> None:
    assert set_to(cpu, "host.memory.bandwidth=2x").moved == {"elementwise": Moved(1, 10_000, 5_000, "ratio")}


def test_without_device_work_the_accelerator_moves_nothing(cpu: DependencyGraph) -> None:
    assert set_to(cpu, "accelerator.*=2x").unmoved == ("accelerator.flops",)


def test_without_collectives_the_fabric_moves_nothing(cpu: DependencyGraph) -> None:
    assert set_to(cpu, "fabric.scale_up.bandwidth=2x").unmoved == ("fabric.scale_up.bandwidth",)


def test_ranks_of_different_hosts_talk_over_scale_out(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, gpu_rank(0, 2, "node0"), gpu_rank(1, 2, "node1"))

    assert set_to(graph, "fabric.scale_out.bandwidth=2x").moved == {"all_reduce": Moved(1, 50_000, 25_000, "ratio")}
    assert set_to(graph, "fabric.scale_up.bandwidth=2x").moved == {}


@pytest.mark.parametrize("texts", [["host=1e308x"], ["host=1e400x"], ["host=1e200x", "host=1e200x"]])
def test_factors_beyond_a_float_are_refused_without_a_runtime_warning(tmp_path: Path, texts: list[str]) -> None:
    graph = graph_of(tmp_path, TraceFile(0, 1).step(1, 0, 100).op("aten::mm", 10, 40))

    with pytest.raises(UsageError, match="longer than 73 years"):
        apply(graph, [parse_scale(text) for text in texts])


@pytest.mark.parametrize("name", ["reduce", "gather", "scatter"])
def test_rooted_collectives_can_be_selected(tmp_path: Path, name: str) -> None:
    trace = TraceFile(0, 1).step(1, 0, 200).op("a", 1, 1)
    recorded: dict[str, Any] = {"Collective name": name}
    graph = graph_of(tmp_path, trace.kernel("ncclDevKernel", 100, 50, 7, **recorded))

    assert apply(graph, [parse_scale(f"collective:{name}=0.5x")]).moved == {name: Moved(1, 50_000, 25_000, "ratio")}
