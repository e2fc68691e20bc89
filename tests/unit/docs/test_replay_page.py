"""The examples of the page on the replay run as they stand there, one after the other."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "concepts" / "replay.md"


def test_the_examples_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    examples = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)

    for example in examples:
        exec(compile(example, PAGE.name, "exec"), names)

    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"host at {p} %" for p in range(50, 101, 10)]
    steps_ms = [float(line.split()[-2]) for line in lines]
    assert steps_ms == sorted(steps_ms)
    graph, slowed = names["graph"], names["slowed"]
    lost_ns = np.asarray(slowed.end_ns - slowed.start_ns - graph.nodes.dur_ns)  # type: ignore[attr-defined]
    assert lost_ns.min() == 0 < lost_ns.max()
