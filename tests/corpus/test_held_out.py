"""Steps of real recordings predicted from the other steps of the same recording."""

from pathlib import Path

import pytest

from benchmarks.held_out import held_out_rows, table


@pytest.mark.parametrize(
    "name",
    [
        "recsys_a100_vs_v100/control.json.gz",
        "nccl_args_a100/nccl_data.json.gz",
        "old_schema_2021/num_workers_0.json.gz",
        "old_schema_2021/num_workers_4.json.gz",
    ],
)
def test_the_median_error_of_held_out_steps_is_at_most_5_percent(corpus: Path, name: str) -> None:
    (row,) = held_out_rows([str(corpus / "traces" / name)])

    assert row.name == name
    assert row.found is not None
    assert row.found.median_error <= 0.05


@pytest.mark.parametrize("name", ["dlrm_2rank", "dlrm_2rank_slow_peer"])
def test_so_is_that_of_the_sample_traces(samples: Path, name: str) -> None:
    (row,) = held_out_rows([str(samples / name)])

    assert row.found is not None
    assert row.found.median_error <= 0.05


def test_the_table_has_a_line_for_each_step_and_says_where_there_are_too_few(samples: Path, corpus: Path) -> None:
    rows = held_out_rows([str(samples / "dlrm_2rank_slow_peer"), str(corpus / "traces" / "dlrm_v100x8")])

    lines = table(rows).splitlines()

    assert [line.split(" | ")[1] for line in lines[2:6]] == ["3", "4", "5", "6"]
    assert lines[2].startswith("| sample_traces/dlrm_2rank_slow_peer | 3 | 59.610 | ")
    assert lines[6] == "| traces/dlrm_v100x8 | fewer than 3 whole steps | | | | | | |"
