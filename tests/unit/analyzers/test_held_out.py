from pathlib import Path

import pytest

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.workloads import LAUNCH, SYNC
from tracereplay.analyzers.held_out import HeldOutStep, hold_out


def steps_of(*operators: int, extra: int | None = None) -> TraceFile:
    """Steps of one rank, each with an operator that long, a kernel of 20 µs and a wait for it; ``extra`` adds an operator of
    25 µs to the step of that position.

    A step is 10 + a + 10 + launch 5 + 5, a wait until the kernel that starts 10 µs after the launch has ended, and 20.
    """
    trace, begin = TraceFile(0, 1), 0
    for position, a in enumerate(operators):
        launch = begin + 10 + a + 10
        end = launch + 10 + 20 + 2
        trace.op("a", begin + 10, a).call(LAUNCH, launch, 5, position + 1).kernel("gemm", launch + 10, 20, 7, position + 1)
        trace.call(SYNC, launch + 10, 22)
        more = 0
        if position == extra:
            trace.op("x", end + 5, 25)
            more = 25
        trace.step(position + 1, begin, end + more + 20 - begin)
        begin = end + more + 20
    return trace


def test_steps_that_take_the_same_times_are_predicted_exactly(tmp_path: Path) -> None:
    found = hold_out(graph_of(tmp_path, steps_of(20, 20, 20)))

    assert found is not None
    assert (found.median_error, found.spread) == (0.0, 0.0)


def test_a_step_takes_the_median_of_the_same_work_in_the_others(tmp_path: Path) -> None:
    # Steps take 72 + a = 92, 112 and 82 µs. Held out: (40 + 10) / 2, (20 + 10) / 2, (20 + 40) / 2.
    found = hold_out(graph_of(tmp_path, steps_of(20, 40, 10)))

    assert found is not None
    assert [(s.number, s.measured_ns, s.predicted_ns) for s in found.steps] == [
        (1, 92_000, 97_000),
        (2, 112_000, 87_000),
        (3, 82_000, 102_000),
    ]
    # Errors of 5 in 92, 25 in 112 and 20 in 82.
    assert found.median_error == pytest.approx(25 / 112)
    assert found.spread == pytest.approx(30 / 92)


def test_work_that_only_one_step_has_keeps_its_time_and_is_counted(tmp_path: Path) -> None:
    # x and the gaps of 5 and 15 µs around it: 45 µs of 117 - 22 waited + 20 on the device = 115.
    found = hold_out(graph_of(tmp_path, steps_of(20, 20, 20, extra=1)))

    assert found is not None
    assert found.steps[1] == HeldOutStep(2, 117_000, 117_000, 0.0, 45 / 115)
    assert [s.only_here_share for s in found.steps] == [0.0, 45 / 115, 0.0]


def test_one_step_cannot_be_predicted_from_others(tmp_path: Path) -> None:
    assert hold_out(graph_of(tmp_path, steps_of(20))) is None
