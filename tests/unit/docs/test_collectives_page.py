"""The examples of the page on collectives run as they stand there, one after the other."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "collectives.md"


def test_the_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}

    for example in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S):
        exec(compile(example, PAGE.name, "exec"), names)

    mesh, switch, calibration, time = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"dgx1-v100: \d{4} µs, direct Simple, waits for accelerator\d>accelerator\d", mesh)
    assert re.fullmatch(r"dgx2h: \d{3} µs, direct Simple, waits for (accelerator\d+>switch0|switch0>accelerator\d+)", switch)
    assert re.fullmatch(r"latencies x\d\.\d\d, bytes x\d\.\d\d", calibration)
    assert re.fullmatch(r"\d+ µs, ring \w+", time)
