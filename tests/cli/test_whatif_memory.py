"""``tracereplay whatif`` and the memory of accelerators."""

import json
from pathlib import Path

import pytest

from tests.fakes.lookups import looking_up, weights_of
from tracereplay.cli.main import main


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["whatif", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_more_memory_moves_tables_in_and_says_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(looking_up(weights_of(0, 9_000_000_000)).write(tmp_path))

    code, text, errors = asked(capsys, trace, "--from", "dgx1-v100", "--set", "accelerator.hbm.capacity=40GB")

    assert code == 0
    assert "embedding tables: 36.00 GB a rank in a memory of 40.00 GB" in text
    row = next(line for line in text.splitlines() if "split_embedding_codegen_lookup" in line)
    assert row.split()[-4:] == ["36.00", "GB", "host", "hbm"]
    assert "moved nothing" not in errors


def test_memory_that_no_table_needs_is_said_to_move_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(looking_up(weights_of(1_000_000, 0)).write(tmp_path))

    code, text, errors = asked(capsys, trace, "--from", "dgx1-v100", "--set", "accelerator.hbm.capacity=2x", "--json")

    assert code == 0
    answer = json.loads(text)["result"]
    assert answer["unmoved_knobs"] == ["accelerator.hbm.capacity=2x"]
    assert answer["hardware"]["tables"]["banks"][0]["tier"] == "hbm"
    assert answer["hardware"]["tables"]["ranks"][0]["table_bytes"] == 4_000_000
    assert errors == ""


def test_tables_that_do_not_fit_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(looking_up(weights_of(4_000_000_000, 0)).write(tmp_path))

    code, text, errors = asked(capsys, trace, "--from", "dgx1-v100", "--set", "accelerator.hbm.capacity=8GB")

    assert (code, text) == (3, "")
    assert "8,000,000,000 bytes are missing" in errors
    assert errors.count("\n") == 1


def test_without_a_platform_nothing_is_said_of_what_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(looking_up(weights_of(4_000_000_000, 0)).write(tmp_path))

    code, _, errors = asked(capsys, trace, "--set", "accelerator.hbm.capacity=0.1x")

    assert code == 0
    assert "whether tables fit or move is not looked at where nobody says what the job ran on; name it with --from" in errors
