from pathlib import Path

import pytest

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tracereplay.analyzers.overlap import overlap

LAUNCH, ALL_REDUCE = "cudaLaunchKernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def job(alone: list[int], beside: list[int]) -> TraceFile:
    """Kernels on stream 7: some before a collective of 500 to 900 on stream 20, some beside it; times in µs."""
    trace = TraceFile(0).step(1, 0, 1_000).call(LAUNCH, 5, 1, 1).kernel(ALL_REDUCE, 500, 400, 20, 1)
    for number, us in enumerate(alone):
        trace.call(LAUNCH, 10 + number, 1, 10 + number).kernel("k", 50 + 30 * number, us, 7, 10 + number)
    for number, us in enumerate(beside):
        trace.call(LAUNCH, 30 + number, 1, 30 + number).kernel("k", 510 + 30 * number, us, 7, 30 + number)
    return trace


def test_kernels_that_occur_both_ways_say_how_much_slower_they_are_beside_communication(tmp_path: Path) -> None:
    found = overlap(graph_of(tmp_path, job([10, 9, 11], [12, 13, 11])))

    assert found is not None
    assert found.kinds == 1
    assert found.slowdown == pytest.approx(0.2)
    assert found.beside_share == pytest.approx(36 / 66)


def test_too_few_of_them_say_nothing(tmp_path: Path) -> None:
    found = overlap(graph_of(tmp_path, job([10, 10], [12, 12, 12])))

    assert found is not None
    assert (found.kinds, found.slowdown) == (0, None)


def test_a_job_without_collectives_or_devices_has_no_overlap(tmp_path: Path) -> None:
    assert overlap(graph_of(tmp_path, TraceFile(0).step(1, 0, 100).op("aten::mm", 10, 20))) is None
