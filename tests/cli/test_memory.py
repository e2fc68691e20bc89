"""More and less HBM for a recorded job on the command line. The platform: see ``tests/unit/replay/test_table_moves.py``."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.hardware import ACCELERATOR, write
from tests.fakes.lookups import Lookups
from tests.fakes.platforms import PLATFORM
from tracereplay.cli.main import main
from tracereplay.hardware.operators.fitted import shipped

MORE = ["--set", "accelerator.hbm.capacity=2x"]
KNOB = "accelerator.hbm.capacity=2x"


def question(tmp_path: Path, rank: Lookups, *words: str) -> list[str]:
    write(tmp_path, "fast.toml", ACCELERATOR)
    platform = write(tmp_path, "small.toml", PLATFORM)
    return [str(rank.trace.write(tmp_path)), "--from", platform, *words]


def answer(capsys: pytest.CaptureFixture[str], verb: str, words: list[str]) -> dict[str, Any]:
    assert main([verb, *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return] # JSON has no types


def test_whatif_says_which_tables_move_from_where_to_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = question(tmp_path, Lookups().lookup(0, host=2_500_000_000, us=10_000), *MORE)

    result = answer(capsys, "whatif", words)["result"]

    # Both kernels of 10 ms keep the floor and 0.019375 of the rest; the host waits for them.
    kept = shipped().floor_ns + (10_000_000 - shipped().floor_ns) * 0.019375
    assert result["baseline_ns"] - result["predicted_ns"] == pytest.approx(2 * (10_000_000 - kept), abs=2)
    assert result["unmoved_knobs"] == []
    assert result["unmoved_reasons"] == {}
    assert result["moved"]["embedding"]["count"] == 2
    assert result["hardware"]["memory"]["why"] is None
    assert result["hardware"]["memory"]["tables"] == [
        {
            "name": "lookup 0",
            "rank": 0,
            "before": "host",
            "after": "hbm",
            "bytes": 10_000_000_000,
            "lookups": 1_000,
            "missing_bytes": None,
        }
    ]
    assert main(["whatif", *words]) == 0
    text = capsys.readouterr().out
    assert "10,000,000,000 bytes of tables move into HBM" in text
    assert "lookup 0              0   10,000,000,000         1,000       host        hbm" in text


def test_whatif_says_what_does_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = question(tmp_path, Lookups().lookup(0, host=2_500_000_000), "--set", "accelerator.hbm.capacity=1.5x")

    document = answer(capsys, "whatif", words)

    assert document["result"]["unmoved_knobs"] == ["accelerator.hbm.capacity=1.5x"]
    (reason,) = document["result"]["unmoved_reasons"].values()
    assert reason.startswith("no tables that stand outside of HBM fit: lookup 0 of rank 0 lacks 2,000,000,000 bytes")
    assert f"accelerator.hbm.capacity=1.5x moved nothing in this job: {reason}" in document["warnings"]
    assert main(["whatif", *words]) == 0
    assert "lacks 2,000,000,000 bytes" in capsys.readouterr().out


def test_a_knob_that_moves_nothing_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = question(tmp_path, Lookups().lookup(80), *MORE)

    assert answer(capsys, "whatif", asked)["result"]["unmoved_reasons"] == {KNOB: "all tables already stand in HBM"}
    plain = answer(capsys, "whatif", [asked[0], *MORE])["result"]
    assert plain["unmoved_knobs"] == ["accelerator.hbm.capacity"]
    assert plain["unmoved_reasons"] == {"accelerator.hbm.capacity": "name the platform that the job ran on with --from"}


def test_less_than_is_needed_is_refused_unless_tables_may_leave(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = question(tmp_path, Lookups().lookup(2_500_000_000), "--set", "accelerator.hbm.capacity=0.5x")

    assert main(["whatif", *words]) == 3
    assert "2,000,000,000 bytes are missing" in capsys.readouterr().err
    (row,) = answer(capsys, "whatif", [*words, "--placement", "auto"])["result"]["hardware"]["memory"]["tables"]
    assert (row["before"], row["after"], row["missing_bytes"]) == (
        "hbm",
        "host",
        10_000_000_000 - 8_000_000_000 + 6_000_000_000,
    )


def test_a_file_and_auto_go_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = '[[table]]\nname = "t"\nrows = 1_000_000\ndim = 64\ntier = "host"'
    path = write(tmp_path, "placement.toml", f'schema = "tracereplay/placement/1"\n{tables}')
    words = question(tmp_path, Lookups(shapes=False).lookup(1), *MORE, "--placement", path, "--placement", "auto")

    (row,) = answer(capsys, "whatif", words)["result"]["hardware"]["memory"]["tables"]

    assert (row["name"], row["bytes"], row["after"]) == ("lookup 0: t", 256_000_000, "hbm")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--placement", "cached"], "--placement 'cached': no such placement"),
        (["--placement", "a.toml", "--placement", "b.toml"], "--placement 'b.toml': no such placement"),
        (["--placement", "none.toml"], "cannot read the placement file"),
    ],
)
def test_a_placement_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    asked = question(tmp_path, Lookups().lookup(80), *MORE, *words)

    assert main(["whatif", *asked]) == 2
    assert message in capsys.readouterr().err
    assert main(["sweep", asked[0], "--set", "host.speed=1x,2x", "--placement", "auto"]) == 2
    assert "--placement: no platform whose memory would hold tables" in capsys.readouterr().err


def test_a_sweep_over_capacity_shows_what_stays_outside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rank = Lookups().lookup(0, host=1_000_000_000, us=10_000).lookup(0, host=2_000_000_000, indices=4_000, us=40_000)
    words = question(tmp_path, rank, "--set", "accelerator.hbm.capacity=1x,1.25x,1.5x,2x")

    points = answer(capsys, "sweep", words)["result"]["points"]

    predicted = [point["predicted_ns"] for point in points]
    assert predicted == sorted(predicted, reverse=True)
    assert predicted[-1] < 0.03 * predicted[0]  # all but 2 % of the way to host memory was what the step waited for
    assert [point["tables_outside_bytes"] for point in points] == [12_000_000_000, 8_000_000_000, 4_000_000_000, 0]
    assert [point["tables_in_hbm_bytes"] for point in points] == [0, 4_000_000_000, 8_000_000_000, 12_000_000_000]
    assert main(["sweep", *words]) == 0
    text = capsys.readouterr().out
    assert "bytes of tables outside of HBM:\n12,000,000,000 at accelerator.hbm.capacity=1x\n8,000,000,000 at" in text


def test_a_sweep_over_capacity_that_moves_nothing_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = question(tmp_path, Lookups().lookup(80), "--set", "accelerator.hbm.capacity=1x,2x")

    document = answer(capsys, "sweep", words)

    assert document["result"]["knobs"][0]["why"] == "all tables already stand in HBM"
    assert "accelerator.hbm.capacity moved nothing in this job: all tables already stand in HBM" in document["warnings"]
