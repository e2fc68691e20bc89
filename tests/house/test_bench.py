"""The bench's own parts run on a small trace: what it prints is then only a matter of the machine."""

from pathlib import Path

import pytest

from benchmarks import graph, sweep
from benchmarks.generate import generate
from tests.fakes.workloads import late_peer


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "small.json.gz"
    generate(path, 600)
    return path


@pytest.mark.parametrize("what", ["graph", "replay", "batch"])
def test_a_measurement_counts_the_tasks_and_gives_a_median_within_its_spread(
    trace: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph, "SCENARIOS", 3)

    row = graph.run_one(what, trace)

    assert row["nodes"] == len(graph._graph(trace))
    assert 0 < row["low"] <= row["seconds"] <= row["high"]


def test_scenarios_are_the_same_in_every_run(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "SCENARIOS", 3)
    tasks = graph._graph(trace)

    first, again = (list(graph._scenarios(tasks)) for _ in range(2))

    assert [t.dur_ns.tolist() for t in first] == [t.dur_ns.tolist() for t in again]
    assert len({tuple(t.dur_ns.tolist()) for t in first}) == 3


def test_an_environment_without_hta_is_named_and_the_next_one_tried(
    trace: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    missing = str(tmp_path / "python")

    assert graph.hta(trace, [missing]) is None
    assert f"  {missing}: not measured ([Errno 2] No such file or directory" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["read", "build", "grid"])
def test_a_measurement_of_sweeps_gives_a_median_within_its_spread(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "SWEEPS", {"grid": ("host.speed=1x,2x", "fabric.scale_up.bandwidth=1x,2x")})
    for one in late_peer():
        one.write(tmp_path)

    row = sweep.run_one(what, tmp_path, "dgx1-v100")

    assert 0 < row["low"] <= row["seconds"] <= row["high"]
