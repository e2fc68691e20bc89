"""``sweep`` on the command line: the picture it writes, the points it counts, what it says of several knobs."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.fakes.workloads import late_peer, waits_longer
from tracereplay.cli.main import main


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "job"
    folder.mkdir()
    for trace in late_peer():
        trace.write(folder)
    return folder


def test_a_chart_is_a_whole_picture_beside_the_answer(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart = job.parent / "chart.svg"

    assert main(["sweep", str(job), "--set", "host.speed=1x,2x", "--chart", str(chart), "--json"]) == 0

    points = json.loads(capsys.readouterr().out)["result"]["points"]
    root = ET.fromstring(chart.read_text())
    assert len(root.findall("{http://www.w3.org/2000/svg}circle")) == len(points) == 2


def test_a_chart_is_never_drawn_over_a_trace_or_the_answer(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, answer = job / "rank0.json", job.parent / "answer.txt"
    before = trace.read_bytes()

    for chart in (trace, answer):
        words = ["sweep", str(job), "--set", "host.speed=1x,2x", "--chart", str(chart), "--output", str(answer)]
        assert main(words) == 2
        assert str(chart) in capsys.readouterr().err

    assert trace.read_bytes() == before
    assert not answer.exists()


def test_settings_with_one_value_and_scales_hold_at_every_point(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--set", "fabric.scale_up.bandwidth=2x", "--set", "host.speed=1x,2x", "--scale", "launch=3x", "--json"]

    assert main(["sweep", str(job), *words]) == 0

    result = json.loads(capsys.readouterr().out)["result"]
    # 200 µs: 25 of transfer and, at 2x, 67.5 of host time less, 20 of launch latency more.
    assert [point["predicted_ns"] for point in result["points"]] == [195_000, 127_500]
    assert [knob["knob"] for knob in result["knobs"]] == ["host.speed"]


def test_more_that_is_slower_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for trace in waits_longer():
        trace.write(tmp_path)

    assert main(["sweep", str(tmp_path), "--set", "host.speed=1x,2x", "--json"]) == 0

    warnings = json.loads(capsys.readouterr().out)["warnings"]
    assert any("slower than host.speed=1x: no task takes longer; rank 0" in warning for warning in warnings)
