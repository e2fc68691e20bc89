"""Recordings from within a training loop, in this process."""

import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tracereplay.collectors.hook import rivals
from tracereplay.collectors.session import Session, collect
from tracereplay.errors import CollectError, UsageError
from tracereplay.manifest import read_manifest


def train(session: Session, steps: int) -> None:
    x = torch.ones(4, 4)
    for _ in range(steps):
        torch.mm(x, x)
        session.step()


def test_a_session_leaves_a_trace_and_a_manifest_and_nothing_else(tmp_path: Path) -> None:
    with collect(tmp_path / "run", skip=2, steps=3, host="node0", workload={"batch": 4}) as session:
        train(session, 8)

    manifest = read_manifest(tmp_path / "run" / "manifest.json")
    assert manifest.ranks[0].steps == (2, 3, 4)
    assert (manifest.hosts[0].name, manifest.workload) == ("node0", {"batch": 4})
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["manifest.json", "rank0.json.gz"]
    assert session.error is None


def test_a_loop_that_ends_or_raises_in_the_window_keeps_its_whole_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def loop() -> None:
        with collect(tmp_path, skip=1, steps=9) as session:
            train(session, 4)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop()

    assert read_manifest(tmp_path / "manifest.json").ranks[0].steps == (1, 2, 3)
    assert "the loop raised ZeroDivisionError in step 4, before its window was full" in capsys.readouterr().err


def test_an_earlier_recording_stays_without_force(tmp_path: Path) -> None:
    for steps in (1, 2):
        with collect(tmp_path, skip=1, steps=steps, force=steps == 2) as session:
            train(session, 5)
        if steps == 1:
            with pytest.raises(CollectError, match="there is a recording already; choose another folder, or pass force"):
                collect(tmp_path)

    assert read_manifest(tmp_path / "manifest.json").ranks[0].steps == (1, 2)


def test_a_script_that_records_itself_already_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theirs = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    with theirs, collect(tmp_path, skip=1, steps=2) as session:
        train(session, 5)

    assert "the script records itself with torch.profiler" in str(session.error)
    assert "not recorded: the script records itself" in capsys.readouterr().err
    assert [row.key for row in theirs.key_averages() if row.key == "aten::mm"] == ["aten::mm"]
    assert not rivals.is_active()


def test_a_script_that_begins_to_record_itself_takes_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with collect(tmp_path, skip=1, steps=50) as session:
        train(session, 4)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
            train(session, 3)

    assert read_manifest(tmp_path / "manifest.json").ranks[0].steps == (1, 2, 3)
    assert "the script began to record itself with torch.profiler in step 4" in capsys.readouterr().err
    assert [row.count for row in theirs.key_averages() if row.key == "aten::mm"] == [3]


def test_wrong_numbers_and_places_are_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(UsageError, match="skip is 0; it must be at least 1"):
        collect(tmp_path / "run", skip=0)
    with pytest.raises(CollectError, match="cannot write there"):
        collect(tmp_path / "file" / "run")
    assert not os.path.exists(tmp_path / "run")  # noqa: PTH110
