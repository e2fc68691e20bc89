"""``tracereplay graph`` as scripts see it."""

import json
from pathlib import Path

import pytest
from pyarrow import parquet

from tests.fakes.workloads import late_peer
from tracereplay.cli.main import main
from tracereplay.graph.event_edges import SCHEMA


@pytest.fixture
def job(tmp_path: Path) -> str:
    folder = tmp_path / "job"
    folder.mkdir()
    for trace in late_peer():
        trace.write(folder)
    return str(folder)


def test_the_edges_are_written_as_the_contract_says(job: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["graph", job, "--output", str(tmp_path / "edges.parquet"), "--json"])

    document = json.loads(capsys.readouterr().out)
    table = parquet.read_table(tmp_path / "edges.parquet")
    assert (status, document["schema"]) == (0, "tracereplay/graph/1")
    assert table.schema.equals(SCHEMA)
    assert table.column_names == ["src_rank", "src_event", "dst_rank", "dst_event", "kind", "basis", "lag_ns"]
    assert document["result"]["edges"] == table.num_rows == 11
    assert document["result"]["by_kind"]["launch"] == {"recorded": 2, "inferred": 0}


def test_people_get_the_counts(job: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["graph", job, "--output", str(tmp_path / "edges.parquet")])

    assert capsys.readouterr().out.startswith(f"wrote 11 edges to {tmp_path / 'edges.parquet'}\n\nwhy events wait")


@pytest.mark.parametrize("words", [[], ["--output", "edges.json"], ["--output", "/no/such/folder/edges.parquet"]])
def test_without_a_file_that_can_be_written_it_is_wrong_usage(
    words: list[str], job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["graph", job, *words])

    captured = capsys.readouterr()
    assert (status, captured.out, captured.err.count("\n")) == (2, "", 1)


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(job: str, tmp_path: Path) -> None:
    target = tmp_path / "out" / "edges.parquet"
    target.parent.mkdir()
    target.write_text("old")

    assert main(["graph", job, "--output", str(target)]) == 0

    assert parquet.read_table(target).num_rows == 11
    assert [path.name for path in target.parent.iterdir()] == ["edges.parquet"]
