"""Faults of the reader and its store that were found and mended: each test says what was wrong."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.conftest import ROOT
from tests.fakes.jobs import job_of, stored_files, table_of
from tests.fakes.kineto import TraceFile
from tracereplay.analyzers.overview import survey
from tracereplay.cli.main import main
from tracereplay.trace.clock import fit_clock
from tracereplay.trace.collectives import recorded_collectives
from tracereplay.trace.container import Source
from tracereplay.trace.job import read_job
from tracereplay.trace.kineto import read_kineto
from tracereplay.trace.repair import repair_event
from tracereplay.trace.table import EventTable

X = '"ph":"X","name":"a","ts":1,"dur":1'


def reading(folder: Path, text: str) -> EventTable:
    path = folder / "rank0.json"
    path.write_text(text)
    return read_kineto(path)


def test_a_pid_of_more_than_64_bits_is_text(tmp_path: Path) -> None:
    # A pid of more than 64 bits was an OverflowError (exit code 70).
    assert reading(tmp_path, f'[{{{X},"pid":9223372036854775808}}]').dictionary("pid") == ["9223372036854775808"]


def test_a_base_of_more_than_64_bits_is_not_recorded(tmp_path: Path) -> None:
    # A base time of more than 64 bits was an OverflowError.
    assert len(reading(tmp_path, f'{{"baseTimeNanoseconds":9223372036854775808,"traceEvents":[{{{X}}}]}}')) == 1


@pytest.mark.parametrize("number", ["1e999", "-1e999", "[[1e999]]"])
def test_a_number_that_no_float_holds_in_args_breaks_nothing(tmp_path: Path, number: str) -> None:
    # Reading skipped such a number, decoding the args later did not: a ValidationError.
    assert isinstance(reading(tmp_path, f'[{{{X},"args":{{"x":{number}}}}}]').args_of(0), dict)


def test_a_number_that_no_float_holds_in_a_collective_is_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Two ranks whose collectives carry such a number could not be aligned: exit code 70.
    kernel = '{"ph":"X","cat":"kernel","name":"ncclAllReduce","ts":1,"dur":1,"args":{"x":1e999}}'
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.json").write_text(f'{{"distributedInfo":{{"rank":{rank}}},"traceEvents":[{kernel}]}}')
    assert main(["info", str(tmp_path)]) == 0


def test_an_absurd_world_size_breaks_nothing(tmp_path: Path) -> None:
    # The missing ranks of a damaged header's world size filled all memory.
    path = tmp_path / "rank0.json"
    path.write_text(f'{{"distributedInfo":{{"rank":0,"world_size":100000000000}},"traceEvents":[{{{X}}}]}}')
    limit = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))"
    words = f"{limit}; from tracereplay.cli.main import main; sys.exit(main(sys.argv[1:]))"
    assert subprocess.run([sys.executable, "-c", words, "info", str(path)], cwd=ROOT, timeout=30, check=False).returncode == 0


def test_a_start_that_overflows_with_the_base_is_an_invalid_time(tmp_path: Path) -> None:
    # The sum of a start and the base wrapped around to a negative time and was counted nowhere.
    late = '{"ph":"X","name":"b","ts":9000000000000000,"dur":1}'
    table = reading(tmp_path, f'{{"baseTimeNanoseconds":1783322452000000000,"traceEvents":[{{{X}}},{late}]}}')
    assert (int(table.column("ts_ns").min()), table.quality.invalid_times) == (1783322452000001000, 1)


def test_an_end_that_overflows_is_an_invalid_or_impossible_time(tmp_path: Path) -> None:
    # The end wrapped around to a negative time, and the event passed for a good one.
    args = '"cat":"kernel","args":{"device":0,"stream":7}'
    table = reading(
        tmp_path,
        f'[{{"ph":"X","name":"a","ts":5,"dur":9223372036854775.8,{args}}},{{"ph":"X","name":"b","ts":6,"dur":1,{args}}}]',
    )
    assert table.quality.invalid_times + table.quality.impossible_durations == 1


def test_a_small_cut_zstd_stream_keeps_what_came_out(tmp_path: Path) -> None:
    # What had been decompressed in the same read as the damage was lost: all of a small file.
    text = b"".join(b'{"a": %d}' % i for i in range(20_000))  # two zstd blocks of 128 KiB
    (tmp_path / "t").write_bytes(pa.compress(text, "zstd", asbytes=True)[:-1])
    source = Source(tmp_path / "t")
    assert len(b"".join(source.blocks)) >= 128 << 10


def test_what_follows_a_zstd_frame_and_is_none_leaves_the_frame(tmp_path: Path) -> None:
    # Bytes after a frame that are no frame made what the frame held be lost.
    (tmp_path / "t").write_bytes(pa.compress(b"[]" * 9000, "zstd", asbytes=True) + b"hello")
    source = Source(tmp_path / "t")
    assert (b"".join(source.blocks), source.damage is not None) == (b"[]" * 9000, True)


def test_one_bare_quote_does_not_cost_a_file_with_sorted_keys_all_later_events(tmp_path: Path) -> None:
    # Events that begin with "args", as sorted keys do, were not found again after the quote: 490 of 500 were lost.
    event = {"cat": "cpu_op", "dur": 5, "name": "aten::mm", "ph": "X", "pid": 1, "tid": 1}
    events = [{"args": {"Ev Idx": i}} | event | {"ts": i * 10} for i in range(500)]
    events[10]["name"] = "QQ"
    table = reading(tmp_path, json.dumps({"traceEvents": events}, sort_keys=True).replace("QQ", 'say "hi" to x"'))
    assert len(table) >= 499
    assert table.quality.complete


def test_an_owner_without_ids_is_known_by_containment(tmp_path: Path) -> None:
    # Work and operator without ids were counted as linked by External id: both lacked it.
    trace = TraceFile(0).op("b", 10, 50).call("cudaLaunchKernel", 20, 5, 1).kernel("around", 40, 5, 7, 1)
    owners = survey(job_of(tmp_path, trace)).ranks[0].links.owners
    assert owners == {"external_id": 0, "containment": 1, "none": 0}


@pytest.mark.parametrize(("dims", "types"), [([[]], ["double"]), ([[[]], []], ["TensorList", "double"])])
def test_a_tensor_without_dimensions_is_one_element(tmp_path: Path, dims: list[object], types: list[str]) -> None:
    # A tensor without dimensions, such as an averaged loss, had no size.
    args: dict[str, Any] = {"Input Dims": dims, "Input type": types}
    trace = TraceFile().kernel("ncclDevKernel_AllReduce", 10, 5, 7, **args)
    assert recorded_collectives(table_of(tmp_path, trace))[0].bytes == 8


def test_one_late_end_does_not_hide_a_drift() -> None:
    # One late end of 3 ms made a constant look better than a line, and a drift of 20 us a ms was not seen.
    reference = [1_000_000 * i for i in range(1, 12)]
    differences = [500_000 + 20_000 * i for i in range(11)]
    differences[5] += 3_000_000
    clock = fit_clock(1, [r + d for r, d in zip(reference, differences, strict=True)], reference, apply=True)
    assert clock.drift_ppm == pytest.approx(1e6 * 20_000 / 1_020_000)


def test_a_rank_without_a_number_is_not_called_none(tmp_path: Path) -> None:
    # A warning read "no common collective aligns the clocks of ranks None".
    paths = [TraceFile(0).op("a", 1, 1).write(tmp_path, "a.json"), TraceFile().op("a", 1, 1).write(tmp_path, "b.json")]
    assert not any("None" in warning for warning in read_job([str(p) for p in paths]).warnings)


def test_a_long_broken_event_is_given_up_soon() -> None:
    # The time for a repair grew with the square of the event: 16 s for 80 KB.
    assert repair_event(b'{"ph":"X","name":"a"' + b',"name":"b' * 4000) is None


# A process that writes a directory over and over, alternating between two tables, in processes of its own (starting Python
# takes a second, forking does not). ``kill N``: each is killed at a random moment, and what a reader finds then is printed;
# ``race N``: two at a time write N times each, and what they exited with is printed.
WRITER = """
import os, random, signal, sys, time
from pathlib import Path
from tracereplay.trace.kineto import read_kineto
from tracereplay.trace.store import read_job_directory, write_job

mode, count, target = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
tables = [[(read_kineto(Path(source)), 0)] for source in sys.argv[4:]]
write_job(tables[0], target, force=False)
chance = random.Random(7)

def start(rounds):
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        for number in range(rounds):
            write_job(tables[number % 2], target, force=True)
        code = 0
    finally:
        os._exit(code)

def found():
    try:
        return read_job_directory(target)[0].name_of(0)
    except BaseException as error:
        return f"{type(error).__name__}: {error}".replace("\\n", " ")

if mode == "kill":
    for _ in range(count):
        child = start(1_000_000)
        time.sleep(chance.uniform(0.0, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        print(found())
else:
    print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in [start(count), start(count)]))
    print(found())
"""


def output_of_writer(folder: Path, mode: str, count: int) -> list[str]:
    """What a process prints that writes ``folder/out/job`` from two traces, whose first events are ``old`` and ``new``."""
    sources = [str(TraceFile(0).op(name, 1, 1).write(folder, f"{name}.json")) for name in ("old", "new")]
    words = [sys.executable, "-c", WRITER, mode, str(count), str(folder / "out" / "job"), *sources]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=50, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_a_killed_writer_leaves_the_old_or_the_new_directory(tmp_path: Path) -> None:
    # There was no directory between the old one's going and the new one's coming: 7 of 400 killed writers left none.
    found = output_of_writer(tmp_path, "kill", 60)

    assert len(found) == 60
    assert set(found) <= {"old", "new"}


def test_two_writers_at_once_leave_one_whole_directory(tmp_path: Path) -> None:
    # One of the two failed and left the old directory behind under another name.
    codes, found = output_of_writer(tmp_path, "race", 40)

    assert (codes, found in {"old", "new"}) == ("0 0", True)
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["job"]
    assert list(stored_files(tmp_path / "out" / "job")) == ["rank0"]
