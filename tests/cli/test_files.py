"""Files that verbs write: a set of them whole or not at all, and never over what was read."""

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.fakes.kineto import TraceFile
from tests.fakes.workloads import late_peer
from tracereplay.cli.files import write_files
from tracereplay.cli.main import main
from tracereplay.errors import UsageError

VERBS = (
    ["info"], ["replay"], ["whatif", "--scale", "host=0.5x"], ["attribute"], ["why", "--name", "cuda*"], ["graph"],
)  # fmt: skip


def text(content: str, file: Path) -> None:
    file.write_text(content)


def stop(number: signal.Signals, file: Path) -> None:
    file.write_text("half")
    os.kill(os.getpid(), number)


def fail(file: Path) -> None:
    file.write_text("half")
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("second", "ending"),
    [(partial(stop, signal.SIGTERM), SystemExit), (partial(stop, signal.SIGINT), KeyboardInterrupt), (fail, UsageError)],
    ids=["terminated", "interrupted", "failed"],
)
def test_what_ends_between_two_files_leaves_the_old_ones(
    second: Callable[[Path], None], ending: type[BaseException], tmp_path: Path
) -> None:
    places = [tmp_path / "r0", tmp_path / "r1", tmp_path / "r2"]
    places[0].write_text("old")

    with pytest.raises(ending):
        write_files(places, [partial(text, "new"), second, partial(text, "new")])

    assert [path.name for path in tmp_path.iterdir()] == ["r0"]
    assert places[0].read_text() == "old"


def test_all_are_there_when_none_failed(tmp_path: Path) -> None:
    write_files([tmp_path / "r0", tmp_path / "r1"], [partial(text, "a"), partial(text, "b")])

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"r0": "a", "r1": "b"}


def test_the_traces_of_all_ranks_or_of_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job, out = tmp_path / "job", tmp_path / "out"
    for folder in (job, out, out / "r1.json"):
        folder.mkdir()
    for trace in late_peer():
        trace.write(job)

    status = main(["replay", str(job), "--trace-out", str(out / "r{rank}.json")])

    assert (status, capsys.readouterr().err.count("\n")) == (2, 1)
    assert [path.name for path in out.iterdir()] == ["r1.json"]


def test_a_rank_without_a_number_takes_none_that_another_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job, out = tmp_path / "job", tmp_path / "out"
    job.mkdir()
    out.mkdir()
    TraceFile(1).step(1, 0, 100).op("a", 10, 5).write(job, "a.json")
    TraceFile().step(1, 0, 100).op("b", 10, 5).write(job, "b.json")

    assert main(["replay", str(job), "--trace-out", str(out / "r{rank}.json")]) == 0

    capsys.readouterr()
    assert sorted(path.name for path in out.iterdir()) == ["r1.json", "r2.json"]


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        *((verb, name) for verb in VERBS for name in ("a.parquet", "link.parquet", "other.parquet")),
        *((verb, name) for verb in VERBS[:-1] for name in ("manifest.json", "rules.toml")),
    ],
    ids=str,
)
def test_what_is_read_is_not_written_over(
    verb: list[str], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = late_peer()
    read = [first.write(tmp_path, "a.parquet"), second.write(tmp_path, "other.parquet")]
    (tmp_path / "rules.toml").write_text('[[kernel]]\npattern = "x"\nclass = "gemm"\n')
    (tmp_path / "link.parquet").symlink_to(tmp_path / "a.parquet")
    manifest = tmp_path / "manifest.json"
    manifest.write_text("{}")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    words = ["--ranks", "0", "--rules", str(tmp_path / "rules.toml"), "--output", str(tmp_path / name)]
    status = main([*verb, *map(str, read), *words])

    error = capsys.readouterr().err
    assert (status, error.count("\n")) == (2, 1)
    assert error.endswith(f"{name}: is one of the files that are read; name another place\n")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_neither_is_it_by_the_traces_of_another_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [trace.write(tmp_path) for trace in late_peer()]
    before = [path.read_bytes() for path in paths]

    status = main(["replay", str(tmp_path), "--ranks", "0", "--trace-out", str(paths[1])])

    assert (status, capsys.readouterr().err.count("\n"), [path.read_bytes() for path in paths]) == (2, 1, before)


def test_a_job_directory_is_not_converted_into_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for trace in late_peer():
        trace.write(tmp_path)
    job = tmp_path / "job"
    assert main(["convert", str(tmp_path), "--output", str(job)]) == 0
    before = {path.name: path.read_bytes() for path in job.iterdir()}
    capsys.readouterr()

    status = main(["convert", str(job), "--ranks", "0", "--output", str(job), "--force"])

    assert (status, capsys.readouterr().err.count("\n")) == (2, 1)
    assert {path.name: path.read_bytes() for path in job.iterdir()} == before


def test_answer_and_traces_go_to_different_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = late_peer()[0].write(tmp_path), tmp_path / "out.json"

    status = main(["replay", str(source), "--trace-out", str(out), "--output", str(out)])

    assert (status, capsys.readouterr().err.count("\n"), out.exists()) == (2, 1, False)


def test_nor_is_a_hardware_file_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('based_on = "zion"\n')

    statuses = [main(["hardware", verb, str(file), "--output", str(file)]) for verb in ("show", "validate")]

    assert (statuses, capsys.readouterr().err.count("\n"), file.read_text()) == ([2, 2], 2, 'based_on = "zion"\n')
