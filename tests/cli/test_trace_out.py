"""``--trace-out``: the re-timed job as files that every verb reads."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.kineto import TraceFile
from tests.fakes.workloads import late_peer
from tracereplay.cli.main import main


def write_job(folder: Path, *traces: TraceFile) -> str:
    folder.mkdir()
    for trace in traces:
        trace.write(folder)
    return str(folder)


@pytest.fixture
def job(tmp_path: Path) -> str:
    return write_job(tmp_path / "job", *late_peer())


def result(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main([*words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)["result"]
    return found


def test_the_files_of_a_replay_give_the_same_answers(job: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    out.mkdir()

    before = result(capsys, "replay", job, "--trace-out", str(out / "r{rank}.json.gz"))

    assert sorted(path.name for path in out.iterdir()) == ["r0.json.gz", "r1.json.gz"]
    assert result(capsys, "replay", str(out)) == before
    first, second = (result(capsys, "info", where) for where in (job, str(out)))
    for rank in (*first["ranks"], *second["ranks"]):
        del rank["file"], rank["events"]  # the new file has names and arrows among its events, the old one none
    assert first == second


def test_the_files_of_a_what_if_are_the_predicted_job(job: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    out.mkdir()

    answer = result(capsys, "whatif", job, "--scale", "collective:*=0.5x", "--trace-out", str(out / "r{rank}.json"))

    assert answer["predicted_ns"] == result(capsys, "replay", str(out))["measured_ns"] == 175_000


def test_one_rank_needs_no_number_in_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = write_job(tmp_path / "one", TraceFile(0, 1).step(1, 0, 100).op("a", 10, 5))

    result(capsys, "replay", job, "--trace-out", str(tmp_path / "out.json"))

    assert result(capsys, "info", str(tmp_path / "out.json"))["ranks"][0]["steps"][0]["dur_ns"] == 100_000


def test_what_is_left_out_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = TraceFile(0, 1).op("before", 0, 5).step(1, 10, 100).op("a", 20, 5).event("Trace", "PyTorch Profiler (0)", 0, 200)

    assert main(["replay", write_job(tmp_path / "one", trace), "--trace-out", str(tmp_path / "out.json")]) == 0

    assert "note: out.json leaves out 2 events: 1 category Trace, 1 outside the steps\n" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["out.json", "no/such/folder/{rank}.json"])
def test_a_name_that_cannot_be_is_wrong_usage(name: str, job: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["replay", job, "--trace-out", str(tmp_path / name)])

    captured = capsys.readouterr()
    assert (status, captured.out, captured.err.count("\n")) == (2, "", 1)


def test_an_interval_has_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = write_job(tmp_path / "alone", late_peer()[0])

    status = main(["whatif", job, "--scale", "collective:*=0.5x", "--trace-out", str(tmp_path / "out.json")])

    captured = capsys.readouterr()
    assert (status, captured.out, captured.err.count("\n")) == (2, "", 1)
    assert not (tmp_path / "out.json").exists()


def test_a_trace_that_was_read_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = write_job(tmp_path / "alone", late_peer()[0])
    (source,) = Path(job).iterdir()
    before = source.read_bytes()

    status = main(["replay", str(source), "--trace-out", str(source)])

    assert (status, capsys.readouterr().err.count("\n"), source.read_bytes() == before) == (2, 1, True)


def test_what_is_no_file_is_left_alone_and_a_link_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = write_job(tmp_path / "alone", late_peer()[0])
    pipe, link, target = tmp_path / "pipe", tmp_path / "link.json", tmp_path / "target.json"
    os.mkfifo(pipe)
    link.symlink_to(target)

    statuses = [main(["replay", job, "--trace-out", str(where)]) for where in (pipe, "", link)]

    capsys.readouterr()
    assert statuses == [2, 2, 0]
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert target.is_file()
