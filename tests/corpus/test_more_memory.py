"""More and less HBM for recorded jobs: where their FBGEMM lookups say that tables stood, and where they do not."""

import json
from pathlib import Path
from typing import Any

import pytest

from tracereplay.cli.main import main


def answer(capsys: pytest.CaptureFixture[str], job: Path, *words: str) -> dict[str, Any]:
    assert main(["whatif", str(job), *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["result"]  # type: ignore[no-any-return] # JSON has no types


@pytest.mark.parametrize(
    ("job", "source", "why"),
    [
        ("dlrm_v100x8", "dgx1-v100", "all tables already stand in HBM"),
        ("recsys_a100_vs_v100/control.json.gz", "zionex", "all tables already stand in HBM"),
        ("torchrec_straggler_off", "dgx1-v100", "where the tables of lookup 0 of rank 0 stood is not known, the shapes"),
        ("torchrec_straggler_on", "dgx1-v100", "where the tables of lookup 0 of rank 0 stood is not known, the shapes"),
    ],
)
def test_more_hbm_says_why_it_moves_nothing(
    corpus: Path, capsys: pytest.CaptureFixture[str], job: str, source: str, why: str
) -> None:
    result = answer(capsys, corpus / "traces" / job, "--from", source, "--set", "accelerator.hbm.capacity=2x")

    assert result["unmoved_knobs"] == ["accelerator.hbm.capacity=2x"]
    assert result["unmoved_reasons"]["accelerator.hbm.capacity=2x"].startswith(why)


def test_tables_of_the_dlrm_job_in_too_little_hbm(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job, less = corpus / "traces" / "dlrm_v100x8", ["--from", "dgx1-v100", "--set", "accelerator.hbm.capacity=0.1x"]

    assert main(["whatif", str(job), *less]) == 3
    # Rank 0 has 640,649,648 weights in 4 bytes with as much Adagrad state, and 112 replicated ones.
    assert "(5,125,197,632 of tables" in capsys.readouterr().err

    memory = answer(capsys, job, *less, "--placement", "auto")["hardware"]["memory"]
    left = {row["rank"]: row["bytes"] for row in memory["tables"] if row["after"] == "host"}
    assert sorted(left) == [0, 1, 2, 3, 4]  # those of more than 400 million weights
    assert left[0] == 2 * 4 * 640_649_648


def test_a_file_says_where_the_tables_of_a_job_without_shapes_stood(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = 'name = "all"\nsharding = "row-wise"\nrows = 40_000_000\ndim = 128\npooling = 1\ntier = "host"'
    path = tmp_path / "placement.toml"
    path.write_text(f'schema = "tracereplay/placement/1"\n[besides]\nactivations = 14_000_000_000\n[[table]]\n{table}\n')
    words = ["--from", "dgx1-v100", "--placement", str(path), "--set", "accelerator.hbm.capacity=2x"]

    result = answer(capsys, corpus / "traces" / "torchrec_straggler_off", *words)

    tables = result["hardware"]["memory"]["tables"]
    assert {(row["before"], row["after"]) for row in tables} == {("host", "hbm")}
    # Row-wise Adagrad keeps a number a row beside 128.
    assert sum(row["bytes"] for row in tables) <= 40_000_000 * 129 * 4
    moved = result["moved"]["embedding"]
    assert moved["after_ns"] < moved["before_ns"] / 10
