"""Predicted collectives beside NCCL's measured times, calibrated on two sizes of each table."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.collectives import PAGE, carried_rows, measured_row, recorded_rows, ring_beside_full, tables_of
from benchmarks.collectives_page import ALL_REDUCE, ALL_TO_ALL, SMALLEST, TYPICAL, Row, Table, missed, typical
from tracereplay.hardware.collectives.calibration import CARRIED_WITHIN
from tracereplay.hardware.collectives.model import CALIBRATED_WITHIN, MODEL_WITHIN

# Tables whose own median is above what is asked of all sizes together; the page lists them.
MISSES = {
    ("h100_sxm", "2.23", "all_to_all", "half", 8),
    ("a100_sxm", "2.27.3", "reduce_scatter", "int8", 8),
    ("a100_sxm", "2.27.3", "all_to_all", "int8", 8),
}


@pytest.fixture(scope="module")
def tables(corpus: Path) -> list[Table]:
    return tables_of(corpus)


@pytest.fixture(scope="module")
def rows(tables: list[Table]) -> list[Row]:
    return [measured_row(table) for table in tables]


def of(rows: list[Row], system: str) -> list[Row]:
    return [row for row in rows if row.table.system.startswith(system)]


def test_what_is_asked() -> None:
    assert (65_536, 0.15, ring_beside_full()[0], ring_beside_full()[1]) == (SMALLEST, TYPICAL, ALL_TO_ALL, ALL_REDUCE)


def test_every_table_is_measured(tables: list[Table]) -> None:
    """Four collectives (three in NCCL 2.23) of two types on 2, 4 and 8; all-reduce of 2 to 8 of two GPUs."""
    nccl = [table for table in tables if not table.system.startswith("vtrain")]

    assert len(nccl) == 3 * 2 * (4 + 4 + 4 + 3)
    assert {table.ranks for table in nccl} == {2, 4, 8}
    assert {len(table.points) for table in nccl} == {14}
    assert len(tables) - len(nccl) == 2 * 7
    assert min(size for table in tables for size, _ in table.points) == SMALLEST


@pytest.mark.parametrize("system", ["a100_sxm", "h100_sxm", "vtrain a100", "vtrain v100", ""])
def test_the_median_error_over_all_sizes_is_at_most_15_percent(rows: list[Row], system: str) -> None:
    assert typical(np.concatenate([row.calibrated for row in of(rows, system)])) <= TYPICAL


def test_no_other_table_misses(rows: list[Row]) -> None:
    found = {(r.table.system, r.table.version, r.table.kind, r.table.dtype, r.table.ranks) for r in missed(rows)}

    assert found <= MISSES


def test_the_model_is_worth_more_than_a_line_through_the_two_sizes(rows: list[Row]) -> None:
    nccl = [*of(rows, "a100_sxm"), *of(rows, "h100_sxm")]

    ours = typical(np.concatenate([row.calibrated for row in nccl]))
    line = typical(np.concatenate([row.line for row in nccl]))
    assert ours < line


def test_rings_of_a_cube_mesh_are_right_without_calibration(rows: list[Row]) -> None:
    """2 to 8 V100 differ by a factor 6 in bandwidth, all of which the link matrix says; the largest size, in each."""
    last = {row.table.ranks: float(row.catalogue[-1]) for row in of(rows, "vtrain v100")}

    assert set(last) == set(range(2, 9))
    assert all(abs(error) < 0.15 for ranks, error in last.items() if ranks != 5)
    assert abs(last[5]) < 0.3  # no ring: NCCL's tree reaches all of the link, its constants say 92 %


def test_collectives_of_a_recorded_step_are_right_without_calibration(corpus: Path) -> None:
    recorded = recorded_rows(corpus)

    assert [(one.kind, one.size) for one in recorded if one.kind == "all_reduce"] == [
        ("all_reduce", 1_576_964), ("all_reduce", 448), ("all_reduce", 907_840),
    ]  # fmt: skip
    assert len(recorded) == 8
    half_us = 500  # recorded are whole µs
    assert all(one.predicted.low_ns - half_us <= one.ns <= one.predicted.high_ns + half_us for one in recorded)
    assert np.median([abs(one.predicted.time_ns / one.ns - 1) for one in recorded]) <= TYPICAL


def test_nine_in_ten_sizes_lie_within_the_intervals(tables: list[Table], rows: list[Row]) -> None:
    nccl = [*of(rows, "a100_sxm"), *of(rows, "h100_sxm")]
    for errors, (low, high) in (
        ([row.calibrated for row in nccl], CALIBRATED_WITHIN),
        ([row.catalogue for row in nccl], MODEL_WITHIN),
        ([row.carried for row in carried_rows(tables)], CARRIED_WITHIN),
    ):
        ratio = 1 / (1 + np.concatenate(errors))
        assert np.mean((ratio >= low) & (ratio <= high)) >= 0.9


def test_the_page_is_of_this_corpus(rows: list[Row]) -> None:
    text = PAGE.read_text()

    assert all(f"| {row.table.system} | {row.table.version} | {row.table.kind} | {row.table.dtype} |" in text for row in rows)
