"""The command line as scripts see it: exit codes, one line on stderr, one JSON document on stdout."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.fakes.kineto import TraceFile
from tracereplay.cli.load import note
from tracereplay.cli.main import main

VERBS = (
    ["info"],
    ["replay"],
    ["whatif", "--scale", "host=0.5x"],
    ["sweep", "--set", "host.speed=1x,2x"],
    ["attribute"],
    ["why", "--name", "aten::*"],
)


def one_line(captured: Any) -> str:
    """The error line; there is nothing else on either stream."""
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return str(captured.err)


@pytest.fixture
def sample(samples: Path) -> str:
    return str(samples / "dlrm_2rank")


@pytest.mark.parametrize("verb", VERBS, ids=lambda v: v[0])
@pytest.mark.parametrize(
    "kind", ["missing", "empty", "empty.gz", "other", "list", "not_json", "cut.gz", "folder", "no_events", "execution"]
)
def test_unreadable_input_is_one_line_that_names_it_and_code_3(
    verb: list[str], kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = TraceFile(0).step(1, 0, 100).op("aten::mm", 1, 50).encode()
    contents = {
        "empty": b"",
        "empty.gz": gzip.compress(b""),
        "other": b'{"a": 1}',
        "list": b"[1, 2]",
        "not_json": b"hello",
        "cut.gz": gzip.compress(whole)[:60],
        "no_events": b'{"traceEvents": []}',
        "execution": b'{"schema": "1.0.1", "pid": 3, "nodes": []}',
    }
    path = tmp_path / f"x_{kind}"
    if kind == "folder":
        path.mkdir()
    elif kind in contents:
        path.write_bytes(contents[kind])

    status = main([*verb, str(path)])

    assert status == 3
    assert str(path) in one_line(capsys.readouterr())


@pytest.mark.parametrize(
    "arguments",
    [
        ["info"],
        ["info", "x", "--bogus"],
        ["bogus"],
        ["whatif", "SAMPLE"],
        ["whatif", "SAMPLE", "--scale", "bogus=2x"],
        ["whatif", "SAMPLE", "--ideal", "bogus"],
        ["whatif", "SAMPLE", "--scale", "class:bogus=2x"],
        ["whatif", "SAMPLE", "--scale", "collective:bogus=2x"],
        ["whatif", "SAMPLE", "--scale", "host=-2x"],
        ["whatif", "SAMPLE", "--scale", "host=nanx"],
        ["whatif", "SAMPLE", "--scale", "host=2"],
        ["whatif", "SAMPLE", "--scale", "host=2x@rank=9"],
        ["whatif", "SAMPLE", "--set", "bogus.bandwidth=2x"],
        ["whatif", "SAMPLE", "--set", "host.speed=0x"],
        ["whatif", "SAMPLE", "--set", "host.speed=3GB/s"],
        ["whatif", "SAMPLE", "--set", "host.link.uplink=3GB/s"],
        ["whatif", "SAMPLE", "--hardware", "bogus"],
        ["whatif", "SAMPLE", "--hardware", "h100-sxm"],
        ["whatif", "SAMPLE", "--hardware", "zion", "--set", "bogus.bandwidth=2x"],
        ["whatif", "SAMPLE", "--hardware", "zion", "--set", "accelerator.hbm.bandwidth=2"],
        ["whatif", "SAMPLE", "--hardware", "zion", "--from", "bogus"],
        ["sweep", "SAMPLE"],
        ["sweep", "SAMPLE", "--set", "host.speed=2x"],
        ["sweep", "SAMPLE", "--set", "host.speed=1x:2x"],
        ["sweep", "SAMPLE", "--set", "host.speed=1x:100x:101", "--set", "host.memory.bandwidth=1x:10x:10"],
        [
            "sweep",
            "SAMPLE",
            "--set",
            "host.speed=1x,2x",
            "--set",
            "fabric.*.bandwidth=1x,2x",
            "--set",
            "accelerator.flops=1x,2x",
        ],
        ["sweep", "SAMPLE", "--set", "host.link.bandwidth=16GB/s,32GB/s"],
        ["sweep", "SAMPLE", "--set", "host.speed=1x,2x", "--chart", "/no/such/folder/x.svg"],
        ["why", "SAMPLE"],
        ["why", "SAMPLE", "--event", "5"],
        ["why", "SAMPLE", "--event", "5", "--name", "aten::mm"],
        ["why", "SAMPLE", "--rank", "0", "--event", "5", "--step", "3"],
        ["info", "SAMPLE", "--ranks", "a"],
        ["info", "SAMPLE", "--ranks", "3-1"],
        ["replay", "SAMPLE", "--steps", "x"],
        ["replay", "SAMPLE", "--output", "/no/such/folder/x.txt"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_line_and_code_2(arguments: list[str], sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main([sample if a == "SAMPLE" else a for a in arguments])

    assert status == 2
    one_line(capsys.readouterr())


@pytest.mark.parametrize(
    "words", [["--name", "nothing*"], ["--name", "aten::mm", "--step", "99"], ["--rank", "7", "--event", "5"]], ids=" ".join
)
def test_an_event_that_is_not_there_is_code_3(words: list[str], sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["why", sample, *words])

    assert status == 3
    one_line(capsys.readouterr())


@pytest.mark.parametrize("arguments", [["--ranks", "7"], ["--steps", "99"]], ids=" ".join)
def test_a_rank_or_step_that_is_not_there_is_code_3(
    arguments: list[str], sample: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["replay", sample, *arguments])

    assert status == 3
    one_line(capsys.readouterr())


@pytest.mark.parametrize("verb", VERBS, ids=lambda v: v[0])
def test_json_is_one_document_in_the_envelope(verb: list[str], sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main([*verb, sample, "--json"])

    captured = capsys.readouterr()
    document = json.loads(captured.out, parse_constant=pytest.fail)
    assert status == 0
    assert document["schema"] == f"tracereplay/{verb[0]}/1"
    assert set(document) == {"schema", "version", "inputs", "warnings", "result"}
    assert captured.err == ""


@pytest.mark.parametrize("verb", VERBS, ids=lambda v: v[0])
def test_output_writes_there_instead(verb: list[str], sample: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "answer.json"

    status = main([*verb, sample, "--json", "--output", str(target)])

    assert status == 0
    assert capsys.readouterr().out == ""
    assert json.loads(target.read_text())["result"]


def test_attribution_has_the_contract_s_keys(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["attribute", sample, "--json"])

    result = json.loads(capsys.readouterr().out)["result"]
    assert {"step_ns", "parts", "sum_ns", "tail_ns", "waits", "collectives", "critical_path", "sensitivity"} <= set(result)
    assert set(result["critical_path"]) == {"length_ns", "by_class"}
    assert set(result["collectives"]["rows"][0]) == {
        "op", "group", "seq", "bytes", "ranks", "transfer_ns", "end_skew_ns", "last_rank", "waits"
    }  # fmt: skip
    assert set(result["waits"][0]) == {"rank", "caused_by_rank", "cause", "op", "ns"}


def test_replay_has_the_contract_s_keys(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["replay", sample, "--json"])

    result = json.loads(capsys.readouterr().out)["result"]
    assert {"measured_ns", "replayed_ns", "error", "error_max", "steady_ns", "steps", "ranks", "coverage"} <= set(result)
    assert {
        "edges", "unexplained_wait_ns", "unexplained_wait_share", "residue_ns", "residue_share", "calibrated_error",
        "unlinked_work", "ranks_missing",
    } <= set(result["coverage"])  # fmt: skip


def test_an_accelerator_knob_moves_nothing_on_a_cpu_recording_and_says_so(
    sample: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["whatif", sample, "--set", "accelerator.hbm.bandwidth=2x", "--json"])

    document = json.loads(capsys.readouterr().out)
    assert document["result"]["unmoved_knobs"] == ["accelerator.hbm.bandwidth"]
    assert document["result"]["predicted_ns"] == document["result"]["baseline_ns"]
    assert any("moved nothing" in warning for warning in document["warnings"])


def test_a_fault_of_ours_asks_for_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    program = typer.Typer()

    @program.command()
    def broken() -> None:
        raise ZeroDivisionError("no such luck")

    status = main([], program)

    assert status == 70
    assert "report" in one_line(capsys.readouterr())


def test_strict_refuses_a_trace_that_needs_a_repair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = TraceFile(0).step(1, 0, 100).op("aten::mm", 1, 50).op("aten::add", 60, -1).write(tmp_path)

    tolerant, strict = main(["info", str(path)]), main(["info", str(path), "--strict"])

    assert (tolerant, strict) == (0, 3)
    assert "invalid_times" in capsys.readouterr().err


def test_strict_accepts_work_that_starts_before_its_launch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).call("cudaLaunchKernel", 10, 5, 1).kernel("gemm", 8, 30, 7, 1)

    status = main(["info", str(trace.write(tmp_path)), "--strict"])

    assert (status, "1 starts before their launch" in capsys.readouterr().out) == (0, True)


@pytest.mark.parametrize("verb", VERBS, ids=lambda v: v[0])
def test_notes_go_to_stderr_and_stdout_holds_only_the_result(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = TraceFile(0, 2).step(1, 0, 100).op("aten::mm", 1, 50).write(tmp_path)

    status = main([*verb, str(path)])

    shown = capsys.readouterr()
    assert status == 0
    assert "note: 1 of 2 ranks are missing: 1\n" in shown.err
    assert all(line.startswith("note: ") for line in shown.err.splitlines())
    assert shown.out
    assert "note: " not in shown.out
    assert "missing" not in shown.out


def test_convert_s_notes_go_to_stderr_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = TraceFile(0, 2).step(1, 0, 100).op("aten::mm", 1, 50).write(tmp_path)

    status = main(["convert", str(path), "--output", str(tmp_path / "job")])

    shown = capsys.readouterr()
    assert (status, shown.err) == (0, "note: 1 of 2 ranks are missing: 1\n")
    assert shown.out.startswith(f"wrote {tmp_path / 'job'}\n")
    assert "note: " not in shown.out


def test_each_note_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    note(["one", "two"])

    assert capsys.readouterr() == ("", "note: one\nnote: two\n")


def test_a_cut_file_gives_its_whole_events_with_a_note_unless_that_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = TraceFile(0).step(1, 0, 100).op("aten::mm", 1, 50).op("aten::add", 60, 10).encode()
    path = tmp_path / "rank0.json.gz"
    path.write_bytes(gzip.compress(whole)[:-20])

    tolerant = main(["info", str(path)])
    shown = capsys.readouterr()
    strict = main(["info", str(path), "--strict"])

    assert (tolerant, strict) == (0, 3)
    assert "note: rank0.json.gz is truncated: truncated gzip stream" in shown.err
    assert "note: " not in shown.out
    assert "truncated gzip stream" in one_line(capsys.readouterr())


def test_ranks_that_are_not_there_are_named(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", sample, "--ranks", "0,1,7"]) == 0

    assert "note: asked for ranks that are not there: 7\n" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--ranks", "0-99999999999"], ["--steps", "0:99999999999"], ["--ranks", "٣"]])
def test_ranges_that_no_job_has_are_refused(sample: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", sample, *words]) == 2

    assert words[0] in one_line(capsys.readouterr())


def test_output_that_nobody_reads_or_nothing_takes(sample: str) -> None:
    program = [sys.executable, "-c", "from tracereplay.cli.main import run; run()", "replay", sample, "--json"]
    read, write = os.pipe()
    os.close(read)
    gone = subprocess.run(program, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        refused = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert (gone.returncode, gone.stderr) == (0, "")
    assert refused.returncode == 2
    assert refused.stderr == ("tracereplay: cannot write to standard output (No space left on device); give --output a file\n")


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(sample: str, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()

    assert main(["replay", sample, "--output", str(tmp_path / "taken")]) == 2

    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize("verb", VERBS, ids=lambda v: v[0])
def test_an_empty_path_is_named(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*verb, ""]) == 3

    assert one_line(capsys.readouterr()) == "tracereplay: '': an empty path; check the path\n"
