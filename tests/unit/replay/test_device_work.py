from pathlib import Path
from typing import Any

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.operators.work import OperatorClass, Work
from tracereplay.replay.device_work import task_work

LAUNCH = "cudaLaunchKernel"
GEMM, BIAS = "ampere_sgemm_128x64_tn", "void at::native::elementwise_kernel<128, 4>"
MM: dict[str, Any] = {"Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"]}


def works_of(graph: DependencyGraph) -> dict[str, tuple[Work | None, float]]:
    found = task_work(graph)
    return {
        graph.name_of(node): (found.works[place] if place >= 0 else None, share)
        for node, place, share in zip(found.node.tolist(), found.work.tolist(), found.share.tolist(), strict=True)
    }


def test_a_kernel_does_the_work_of_the_operator_that_launched_it(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).op("aten::mm", 10, 20, **MM).call(LAUNCH, 15, 5, 1).kernel(GEMM, 30, 8, 7, 1)

    work, share = works_of(graph_of(tmp_path, trace))[GEMM]

    # 2 x 64 x 16 x 32 flops; 64 x 32 + 32 x 16 floats read, 64 x 16 written.
    assert work is not None
    assert (work.flops, work.bytes_read, work.bytes_written) == (65_536, 10_240, 4_096)
    assert share == 1


def test_a_kernel_s_name_says_that_it_computed_in_fp32(tmp_path: Path) -> None:
    names = [
        "ampere_sgemm_128x64_tn",
        "ampere_s1688gemm_fp16_128x64",
        "cutlass_80_tensorop_s1688gemm_128x128",
        "volta_sgemm_32x128",
    ]
    trace = TraceFile().step(1, 0, 200).op("aten::mm", 10, 20, **MM)
    for number, name in enumerate(names):
        trace.call(LAUNCH, 12 + number, 1, number + 1).kernel(name, 40 + 10 * number, 8, 7, number + 1)

    assert task_work(graph_of(tmp_path, trace)).in_fp32.tolist() == [True, False, False, True]


def test_kernels_of_one_operator_share_its_work_by_their_durations(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).op("aten::mm", 10, 20, **MM)
    trace.call(LAUNCH, 12, 5, 1).call(LAUNCH, 18, 5, 2).kernel(GEMM, 30, 30, 7, 1)

    graph = graph_of(tmp_path, trace.kernel("splitKreduce_kernel", 62, 10, 7, 2))

    assert {name: share for name, (_, share) in works_of(graph).items()} == {GEMM: 0.75, "splitKreduce_kernel": 0.25}


def test_a_kernel_of_another_class_is_known_by_its_class_alone(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).op("aten::mm", 10, 20, **MM)

    graph = graph_of(tmp_path, trace.call(LAUNCH, 12, 5, 1).kernel(BIAS, 30, 3, 7, 1))

    assert works_of(graph) == {BIAS: (None, 1)}
    assert task_work(graph).kind == (OperatorClass.ELEMENTWISE,)


def test_without_shapes_or_with_shapes_that_contradict_each_other_the_class_is_all_that_is_known(tmp_path: Path) -> None:
    wrong = MM | {"Input Dims": [[64, 32], [31, 16]]}
    trace = TraceFile().step(1, 0, 100).op("aten::mm", 10, 20).op("aten::mm", 40, 20, **wrong)
    trace.call(LAUNCH, 15, 5, 1).kernel(GEMM, 30, 8, 7, 1).call(LAUNCH, 45, 5, 2)

    graph = graph_of(tmp_path, trace.kernel("sgemm_2", 60, 8, 7, 2))

    assert works_of(graph) == {GEMM: (None, 1), "sgemm_2": (None, 1)}


def test_on_cpus_a_wrapper_is_host_time_and_the_pieces_of_an_operator_share_its_work(tmp_path: Path) -> None:
    linear: dict[str, Any] = {"Input Dims": [[64, 32], [16, 32]], "Input type": ["float", "float"]}
    trace = TraceFile().step(1, 0, 500).op("aten::linear", 10, 400, **linear).op("aten::mm", 50, 300, **MM)

    found = task_work(graph := graph_of(tmp_path, trace.op("aten::empty", 100, 100)))

    pieces = [
        (graph.name_of(node), int(graph.nodes.dur_ns[node]), place >= 0, share)
        for node, place, share in zip(found.node.tolist(), found.work.tolist(), found.share.tolist(), strict=True)
    ]
    assert pieces == [
        ("aten::linear", 40_000, False, 1.0),
        ("aten::mm", 50_000, True, 0.25),
        ("aten::empty", 100_000, False, 1.0),
        ("aten::mm", 150_000, True, 0.75),
        ("aten::linear", 60_000, False, 1.0),
    ]


def test_an_operator_that_would_have_been_faster_than_any_host_did_something_else(tmp_path: Path) -> None:
    # A view: 40 MB in 2 µs.
    view: dict[str, Any] = {"Input Dims": [[10_000_000]], "Input type": ["float"]}

    found = task_work(graph_of(tmp_path, TraceFile().step(1, 0, 100).op("aten::contiguous", 10, 2, **view)))

    assert found.work.tolist() == [-1]
