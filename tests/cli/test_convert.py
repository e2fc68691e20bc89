"""``tracereplay convert`` as scripts see it: a folder that every verb reads like the traces."""

import json
from pathlib import Path

import pytest

from tests.fakes.jobs import stored_files
from tests.fakes.kineto import TraceFile
from tests.fakes.workloads import late_peer
from tracereplay.cli.main import main

VERBS = (["replay"], ["whatif", "--scale", "host=0.5x"], ["attribute"])


@pytest.fixture
def traces(tmp_path: Path) -> list[str]:
    """Two ranks of a job on two hosts."""
    (tmp_path / "traces").mkdir()
    ranks = late_peer()
    for rank, trace in enumerate(ranks):
        trace.header["host_name"] = f"node{rank}"
    return [str(trace.write(tmp_path / "traces")) for trace in ranks]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Where to write."""
    return str(tmp_path / "out" / "job")


def test_it_says_what_it_wrote(traces: list[str], folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["convert", *traces, "--output", folder])

    captured = capsys.readouterr()
    assert (status, captured.err, captured.out.split("\n")[0]) == (0, "", f"wrote {folder}")
    assert list(stored_files(Path(folder))) == ["rank0", "rank1"]


def test_json_is_one_document_in_the_envelope(traces: list[str], folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["convert", *traces, "--output", folder, "--json"])

    document = json.loads(capsys.readouterr().out)
    sizes = [stored_files(Path(folder))[f"rank{rank}"].stat().st_size for rank in (0, 1)]
    assert (document["schema"], document["inputs"]) == ("tracereplay/convert/1", traces)
    assert document["result"] == {
        "folder": folder,
        "ranks": [
            {"rank": 0, "events": 5, "size_bytes": sizes[0]},
            {"rank": 1, "events": 5, "size_bytes": sizes[1]},
        ],
    }


@pytest.mark.parametrize("verb", VERBS, ids=lambda v: v[0])
def test_a_verb_says_of_the_folder_what_it_says_of_the_traces(
    verb: list[str], traces: list[str], folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["convert", *traces, "--output", folder])
    capsys.readouterr()

    main([*verb, *traces, "--json"])
    of_traces = json.loads(capsys.readouterr().out)
    main([*verb, folder, "--json"])
    of_folder = json.loads(capsys.readouterr().out)

    assert of_folder["result"] == of_traces["result"]
    assert of_folder["warnings"] == of_traces["warnings"]


def test_info_says_of_the_folder_what_it_says_of_the_traces(
    traces: list[str], folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["convert", *traces, "--output", folder])
    capsys.readouterr()

    main(["info", *traces, "--json"])
    of_traces = json.loads(capsys.readouterr().out)["result"]
    main(["info", folder, "--json"])
    of_folder = json.loads(capsys.readouterr().out)["result"]

    assert [rank | {"file": Path(rank["file"]).name} for rank in of_traces["ranks"]] == of_folder["ranks"]
    assert of_folder["job"] == of_traces["job"]


def test_what_is_there_is_not_replaced_unasked(traces: list[str], folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["convert", traces[0], "--output", folder])
    capsys.readouterr()

    status = main(["convert", traces[1], "--output", folder])

    captured = capsys.readouterr()
    assert (status, captured.out) == (2, "")
    assert captured.err == f"tracereplay: {folder}: exists already; choose another --output or pass --force\n"
    assert list(stored_files(Path(folder))) == ["rank0"]


def test_force_replaces_what_is_there(traces: list[str], folder: str) -> None:
    main(["convert", traces[0], "--output", folder])

    status = main(["convert", traces[1], "--output", folder, "--force"])

    assert status == 0
    assert list(stored_files(Path(folder))) == ["rank1"]


def test_only_the_ranks_asked_for_are_written(traces: list[str], folder: str) -> None:
    main(["convert", *traces, "--output", folder, "--ranks", "1"])

    assert list(stored_files(Path(folder))) == ["rank1"]


def test_anonymous_traces_name_no_host(traces: list[str], folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["convert", *traces, "--output", folder, "--anonymize"])

    content = b"".join(path.read_bytes() for path in Path(folder).iterdir())
    assert (status, b"node0" in content, b"node1" in content) == (0, False, False)


def test_files_that_claim_one_rank_are_refused(tmp_path: Path, folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(TraceFile(3).op("a", 1, 1).write(tmp_path, name)) for name in ("a.json", "b.json")]

    status = main(["convert", *paths, "--output", folder])

    assert (status, Path(folder).exists()) == (3, False)
    assert "rank 3 is claimed by 2 files" in capsys.readouterr().err


def test_strict_refuses_a_trace_that_needs_a_repair(tmp_path: Path, folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = TraceFile(0).op("a", 1, -1).write(tmp_path)

    status = main(["convert", str(path), "--output", folder, "--strict"])

    assert (status, Path(folder).exists()) == (3, False)


def test_a_folder_of_another_schema_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "job.json").write_text('{"schema": "tracereplay/job/99", "ranks": []}')

    status = main(["info", str(tmp_path)])

    assert status == 3
    assert "job directory of schema 'tracereplay/job/99'" in capsys.readouterr().err


def test_without_a_place_to_write_the_call_is_wrong(traces: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", *traces]) == 2
    assert "--output" in capsys.readouterr().err
