"""Faults that were found and mended: each test begins with what was wrong."""

from pathlib import Path

import pytest

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.labels import edges_of
from tracereplay.analyzers.accuracy import assess
from tracereplay.analyzers.prediction import predict
from tracereplay.errors import UsageError
from tracereplay.graph.kinds import EdgeKind
from tracereplay.replay.whatif import Moved, apply, parse_scale
from tracereplay.trace.classify import WorkClass, class_of_kernel, class_of_operator


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("volta_scudnn_128x64_relu_interior_nn_v1", WorkClass.CONV),
        ("cudnn_ampere_scudnn_128x64_relu_xregs_large_nn_v1", WorkClass.CONV),
        (
            "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(cudnn::bn_fw_tr_1C11_args<float>)",
            WorkClass.REDUCTION,
        ),
        ("void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>(float)", WorkClass.REDUCTION),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1", WorkClass.GEMM),
        ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", WorkClass.ELEMENTWISE),
        ("void cudnn::ops::convertTensor_kernel<float, __half>", WorkClass.OTHER),
    ],
)
def test_class_of_a_real_kernel(name: str, expected: WorkClass) -> None:
    assert class_of_kernel(name) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten::normal_", WorkClass.ELEMENTWISE),  # listed there, but the rule before takes it ("norm")
        ("aten::expand", WorkClass.OTHER),  # a view: taken for exp
        ("aten::new_empty", WorkClass.OTHER),  # taken for ne
        ("aten::new_zeros", WorkClass.MEMSET),  # taken for ne
    ],
)
def test_class_of_a_real_operator(name: str, expected: WorkClass) -> None:
    assert class_of_operator(name) is expected


def waits_of(folder: Path, *traces: TraceFile) -> list[str]:
    """As in tests/unit/graph/rules/test_host_collective.py."""
    return [e for e in edges_of(graph_of(folder, *traces), EdgeKind.THREAD_HANDOFF) if "transfer gloo" in e.split(" -> ")[0]]


def test_a_collective_of_the_last_step_is_waited_for_by_the_end_of_that_step(tmp_path: Path) -> None:
    # Bug: `_segment_at` gives the closing segment of no length, so `_by_semantics` draws the edge to the first node past the
    # thread (here the collective's own arrival, or another thread): a circle, for which three good edges are dropped.
    trace = TraceFile(0, 1).step(1, 0, 300).op("c10d::alltoall_base_", 10, 10).op("aten::mm", 30, 170).op("aten::add", 200, 20)

    graph = graph_of(tmp_path, trace.gloo("gloo:all_to_all", 20, 175, tid=5))

    assert edges_of(graph, EdgeKind.THREAD_HANDOFF) == [
        "c10d::alltoall_base_@10 -> arrival gloo:all_to_all@20",
        "transfer gloo:all_to_all@20 -> gap@300",
    ]
    assert graph.coverage.dropped_edges == 0


def test_a_place_between_operators_directly_under_the_step_is_learned_from_another_step(tmp_path: Path) -> None:
    # Bug: the place's owner is the step's mark, whose name differs in every step (ProfilerStep#1, ProfilerStep#2).
    trace = TraceFile(0, 1).step(1, 0, 300).op("c10d::alltoall_base_", 10, 10).op("aten::mm", 30, 30).op("aten::add", 200, 20)
    trace.step(2, 300, 300).op("c10d::alltoall_base_", 310, 10).op("aten::mm", 330, 30).op("aten::add", 370, 20)
    trace.gloo("gloo:all_to_all", 20, 175, tid=5).gloo("gloo:all_to_all", 320, 20, tid=5)

    assert waits_of(tmp_path, trace) == [
        "transfer gloo:all_to_all@20 -> aten::add@200",
        "transfer gloo:all_to_all@320 -> aten::add@370",
    ]


def test_a_wait_that_lasts_to_the_end_of_a_step_belongs_to_that_step(tmp_path: Path) -> None:
    # Bug: a step ends with the end of its last segment. Where that segment is a wait (own time 0), the wait falls between the
    # steps: step 1 is replayed as 195 µs (its gloo work's end) instead of 300.
    trace = TraceFile(0, 1).step(1, 0, 300).op("c10d::alltoall_base_", 10, 10).op("aten::mm", 30, 30)
    trace.step(2, 300, 300).op("aten::mm", 330, 30).gloo("gloo:all_to_all", 20, 175, tid=5)

    accuracy = assess(graph_of(tmp_path, trace))

    assert [(s.measured_ns, s.replayed_ns) for s in accuracy.steps] == [(300_000, 300_000), (300_000, 300_000)]


def test_a_single_synchronisation_is_waiting_and_not_time_of_its_own(tmp_path: Path) -> None:
    # Bug: without a call that waited for nothing, the usual cost of a call is the shortest call, waiting included: the one
    # wait of a step (loss.item(), cudaDeviceSynchronize) counts as CPU time, and no faster device ever shortens the step.
    trace = TraceFile().step(1, 0, 100).call("cudaLaunchKernel", 10, 2, 1).kernel("k", 15, 35, 7, 1)
    trace.call("cudaStreamSynchronize", 20, 32)

    prediction = predict(graph_of(tmp_path, trace), [parse_scale("kernel:k=0.4x")])

    # 35 µs become 14: the kernel ends at 29 instead of 50, and the host goes on 21 µs earlier.
    assert prediction.predicted_ns == 79_000


def test_a_single_blocking_call_that_nothing_covers_is_counted(tmp_path: Path) -> None:
    # Bug: the same "usual cost" takes a lone 20 ms call for what such a call costs, so nothing of it is unexplained.
    trace = TraceFile().step(1, 0, 30_000).op("a", 10, 5).call("cudaDeviceSynchronize", 100, 20_000)

    assert graph_of(tmp_path, trace).coverage.uncovered_blocking_ns > 19_000_000


def test_two_waits_before_one_launch_wait_for_two_streams(tmp_path: Path) -> None:
    # Limitation against architecture.md ("all of several waits") and the contract ("one edge per producer queue").
    wait, launch = "cudaStreamWaitEvent", "cudaLaunchKernel"
    trace = TraceFile().step(1, 0, 100).call(launch, 5, 2, 1).call(launch, 10, 2, 2).call(wait, 20, 2).call(wait, 25, 2)

    graph = graph_of(
        tmp_path, trace.call(launch, 30, 2, 3).kernel("a", 8, 42, 7, 1).kernel("b", 15, 20, 8, 2).kernel("c", 55, 5, 20, 3)
    )

    assert edges_of(graph, EdgeKind.EVENT_WAIT) == ["a@8 -> c@55", "b@15 -> c@55"]


def test_work_launched_under_an_operator_includes_its_collectives(tmp_path: Path) -> None:
    # kernel:nccl* and class:collective move the transfer; op:c10d::allreduce_ says that it moved nothing.
    trace = TraceFile(0, 1).step(1, 0, 200).op("c10d::allreduce_", 10, 20).call("cudaLaunchKernel", 15, 5, 1)

    graph = graph_of(tmp_path, trace.kernel("ncclDevKernel_AllReduce", 30, 50, 20, 1))

    assert apply(graph, [parse_scale("op:c10d::allreduce_=0.5x")]).moved == {"all_reduce": Moved(1, 50_000, 25_000, "ratio")}


def test_two_ranks_in_one_selector_are_refused() -> None:
    # The second is dropped in silence.
    with pytest.raises(UsageError):
        parse_scale("host@rank=1=2x@rank=2")
