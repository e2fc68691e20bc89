"""HTA's critical path of a step, asked as ``make accuracy`` does."""

import sys
from pathlib import Path

import pytest

from benchmarks.hta_path import HtaRank, ask_hta, version_of
from tests.fakes.kineto import TraceFile

pytest.importorskip("hta", reason="HTA is not installed; `make test-hta` has it")
RUNS = version_of(sys.executable).startswith("traceinsight")


def steps_of_a_rank() -> TraceFile:
    """Two steps, each an operator that launches a kernel; device marks of the steps, which HTA takes for further instances.

    step 1    |0 ······· mul 10-30 ···········100|            kernel 40-70
    step 2                                       |100 ··· add 120-130 ···· 200|   kernel 140-160
    """
    trace = TraceFile(0, 1).step(1, 0, 100).step(2, 100, 100)
    for number, start, end in ((1, 40, 70), (2, 140, 160)):
        args = {"device": 0, "stream": 7}
        trace.event("gpu_user_annotation", f"ProfilerStep#{number}", start, end - start, pid=0, tid=7, args=args)
    trace.op("aten::mul", 10, 20).call("cudaLaunchKernel", 12, 5, 1).kernel("mul_kernel", 40, 30, 7, 1)
    return trace.op("aten::add", 120, 10).call("cudaLaunchKernel", 122, 5, 2).kernel("add_kernel", 140, 20, 7, 2)


@pytest.mark.skipif(not RUNS, reason="HTA 0.5's critical path fails on pandas 3")
def test_each_step_has_its_path_and_window(tmp_path: Path) -> None:
    path = str(steps_of_a_rank().write(tmp_path))

    # From the operator's start to the kernel's end: 10 to 70, and 120 to 160.
    assert ask_hta([path], (1,), sys.executable).ranks == (HtaRank(60_000, 60_000, 1),)
    assert ask_hta([path], (2,), sys.executable).ranks == (HtaRank(40_000, 40_000, 1),)
    assert ask_hta([path, path], (1, 2), sys.executable).ranks == (HtaRank(100_000, 100_000, 2),) * 2


@pytest.mark.skipif(RUNS, reason="this HTA's critical path runs")
def test_a_failure_inside_hta_is_its_answer(tmp_path: Path) -> None:
    answer = ask_hta([str(steps_of_a_rank().write(tmp_path))], (1,), sys.executable)

    assert answer.ranks == ()
    assert len(answer.failures) == 1


@pytest.mark.skipif(not RUNS, reason="HTA 0.5 has no such loader")
def test_a_step_that_hta_does_not_have_is_said(tmp_path: Path) -> None:
    answer = ask_hta([str(steps_of_a_rank().write(tmp_path))], (9,), sys.executable)

    assert answer.ranks == ()
    assert answer.failures == ("HTA has no step 9",)
