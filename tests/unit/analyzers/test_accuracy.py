from pathlib import Path

import pytest

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.workloads import late_kernel, late_peer
from tracereplay.analyzers.accuracy import RankError, StepError, assess


def test_a_consistent_recording_is_given_back_without_error(tmp_path: Path) -> None:
    accuracy = assess(graph_of(tmp_path, *late_peer()))

    assert (accuracy.measured_ns, accuracy.replayed_ns, accuracy.error, accuracy.error_max) == (200_000, 200_000, 0.0, 0.0)
    assert accuracy.steps == (StepError(1, 200_000, 200_000, 0.0, 0),)
    assert accuracy.ranks == (RankError(0, 200_000, 200_000, 0.0, 0.0), RankError(1, 200_000, 200_000, 0.0, 0.0))


def test_a_recording_that_typical_lags_explain_has_no_residues(tmp_path: Path) -> None:
    unexplained = assess(graph_of(tmp_path, *late_peer())).unexplained

    assert (unexplained.residue_ns, unexplained.unexplained_wait_ns, unexplained.calibrated_error) == (0, 0, 0.0)


def test_residues_and_what_stands_out_among_them_are_summed(tmp_path: Path) -> None:
    # The launch lags are 10, 10, 10, 20 and 1,010: typical is 10, residues are 10 and 1,000, only the last stands out.
    unexplained = assess(graph_of(tmp_path, late_kernel())).unexplained

    assert (unexplained.residue_ns, unexplained.unexplained_wait_ns) == (1_010_000, 1_000_000)
    assert unexplained.residue_share == pytest.approx(1010 / 1300)
    assert unexplained.unexplained_wait_share == pytest.approx(1000 / 1300)


def test_the_calibrated_error_is_that_of_typical_residues(tmp_path: Path) -> None:
    # Residues are 0, 0, 0, 10 and 1,000: with their median (0) in place of 1,000 the step is 1,000 µs shorter.
    unexplained = assess(graph_of(tmp_path, late_kernel())).unexplained

    assert unexplained.calibrated_error == pytest.approx(-1000 / 1300)


def test_the_replay_of_residues_is_exact_all_the_same(tmp_path: Path) -> None:
    assert assess(graph_of(tmp_path, late_kernel())).error == 0.0


def test_several_steps_have_a_steady_state(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("a", 10, 5).step(2, 120, 100).op("b", 130, 5)

    accuracy = assess(graph_of(tmp_path, trace))

    assert (accuracy.measured_ns, accuracy.steady_ns) == (100_000, 120_000)


def test_blocking_time_that_nothing_covers_is_unexplained(tmp_path: Path) -> None:
    trace = (
        TraceFile().step(1, 0, 100).op("a", 10, 5).call("cudaDeviceSynchronize", 20, 4).call("cudaDeviceSynchronize", 40, 20)
    )

    # 12 µs is the usual call, the longer one is 8 µs above it.
    assert assess(graph_of(tmp_path, trace)).unexplained.unexplained_wait_ns == 8_000
