"""Faults of the reader and its store that were found and mended: each test says what was wrong."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.conftest import ROOT
from tests.fakes.jobs import job_of, table_of
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


# 1. assemble._device_from_pid: any event's pid beyond int64 -> OverflowError (exit 70).
def test_a_pid_of_more_than_64_bits_is_text(tmp_path: Path) -> None:
    assert reading(tmp_path, f'[{{{X},"pid":9223372036854775808}}]').dictionary("pid") == ["9223372036854775808"]


# 2. assemble.finish: np.int64(base_ns) -> OverflowError.
def test_a_base_of_more_than_64_bits_is_not_recorded(tmp_path: Path) -> None:
    assert len(reading(tmp_path, f'{{"baseTimeNanoseconds":9223372036854775808,"traceEvents":[{{{X}}}]}}')) == 1


# 3. table.args_of: msgspec.ValidationError "Number out of range": the typed decoder skips 1e999, args_of decodes it.
@pytest.mark.parametrize("number", ["1e999", "-1e999", "[[1e999]]"])
def test_a_number_that_no_float_holds_in_args_breaks_nothing(tmp_path: Path, number: str) -> None:
    assert isinstance(reading(tmp_path, f'[{{{X},"args":{{"x":{number}}}}}]').args_of(0), dict)


# 3b. the same for every file that reaches recorded_collectives (align, info of two ranks): exit 70.
def test_a_number_that_no_float_holds_in_a_collective_is_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '{"distributedInfo":{"rank":%d},"traceEvents":[{"ph":"X","cat":"kernel","name":"ncclAllReduce","ts":1,"dur":1,"args":{"x":1e999}}]}'
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.json").write_text(text % rank)
    assert main(["info", str(tmp_path)]) == 0


# 4. job.ranks_missing/_warnings: set(range(world_size)) of a damaged header never ends and eats all memory.
def test_an_absurd_world_size_breaks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json"
    path.write_text(f'{{"distributedInfo":{{"rank":0,"world_size":100000000000}},"traceEvents":[{{{X}}}]}}')
    words = "import resource,sys;resource.setrlimit(resource.RLIMIT_AS,(3<<30,3<<30));from tracereplay.cli.main import main;sys.exit(main(sys.argv[1:]))"
    assert subprocess.run([sys.executable, "-c", words, "info", str(path)], cwd=ROOT, timeout=30, check=False).returncode == 0


# 5. assemble.finish: ts + base wraps around int64 and is counted nowhere (here -7663421621709551616).
def test_a_start_that_overflows_with_the_base_is_an_invalid_time(tmp_path: Path) -> None:
    text = f'{{"baseTimeNanoseconds":1783322452000000000,"traceEvents":[{{{X}}},{{"ph":"X","name":"b","ts":9000000000000000,"dur":1}}]}}'
    table = reading(tmp_path, text)
    assert (int(table.column("ts_ns").min()), table.quality.invalid_times) == (1783322452000001000, 1)


# 6. ts + dur wraps: the end is negative, the event is class OK, later work inside it makes nothing impossible.
def test_an_end_that_overflows_is_an_invalid_or_impossible_time(tmp_path: Path) -> None:
    args = '"cat":"kernel","args":{"device":0,"stream":7}'
    table = reading(
        tmp_path,
        f'[{{"ph":"X","name":"a","ts":5,"dur":9223372036854775.8,{args}}},{{"ph":"X","name":"b","ts":6,"dur":1,{args}}}]',
    )
    assert table.quality.invalid_times + table.quality.impossible_durations == 1


# 7. container._unzstd: what was decompressed in the same read is lost where a later byte is damaged or cut or something follows
#    the frame (a small file: everything; "what had been inflated is kept"; gzip keeps it).
def test_a_small_cut_zstd_stream_keeps_what_came_out(tmp_path: Path) -> None:
    text = b"".join(b'{"a": %d}' % i for i in range(20_000))  # two zstd blocks of 128 KiB
    (tmp_path / "t").write_bytes(pa.compress(text, "zstd", asbytes=True)[:-1])
    source = Source(tmp_path / "t")
    assert len(b"".join(source.blocks)) >= 128 << 10


def test_what_follows_a_zstd_frame_and_is_none_leaves_the_frame(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(pa.compress(b"[]" * 9000, "zstd", asbytes=True) + b"hello")
    source = Source(tmp_path / "t")
    assert (b"".join(source.blocks), source.damage is not None) == (b"[]" * 9000, True)


# 8. scan._EVENT_START/_BOUNDARY know only ph|name|cat|pid|tid|ts as first keys. A file written with sorted keys ("args" first)
#    or with dur/id/s/bp first and ONE name with an unescaped quote loses every later event and is called truncated: 10 of 500.
def test_one_bare_quote_does_not_cost_a_file_with_sorted_keys_all_later_events(tmp_path: Path) -> None:
    event = {"cat": "cpu_op", "dur": 5, "name": "aten::mm", "ph": "X", "pid": 1, "tid": 1}
    events = [{"args": {"Ev Idx": i}} | event | {"ts": i * 10} for i in range(500)]
    events[10]["name"] = "QQ"
    table = reading(tmp_path, json.dumps({"traceEvents": events}, sort_keys=True).replace("QQ", 'say "hi" to x"'))
    assert len(table) >= 499
    assert table.quality.complete


# 9. overview._links: work without ids owned by containment by an operator without ids counts as "external_id" (-1 == -1).
#
def test_an_owner_without_ids_is_known_by_containment(tmp_path: Path) -> None:
    trace = TraceFile(0).op("b", 10, 50).call("cudaLaunchKernel", 20, 5, 1).kernel("around", 40, 5, 7, 1)
    owners = survey(job_of(tmp_path, trace)).ranks[0].links.owners
    assert owners == {"external_id": 0, "containment": 1, "none": 0}


# 11. collectives._elements: a tensor without dimensions (an averaged loss) is one element; was 8 bytes before the rewrite.
#
@pytest.mark.parametrize(("dims", "types"), [([[]], ["double"]), ([[[]], []], ["TensorList", "double"])])
def test_a_tensor_without_dimensions_is_one_element(tmp_path: Path, dims: list[object], types: list[str]) -> None:
    trace = TraceFile().kernel("ncclDevKernel_AllReduce", 10, 5, 7, **{"Input Dims": dims, "Input type": types})
    assert recorded_collectives(table_of(tmp_path, trace))[0].bytes == 8


# 12. clock.fit_clock: Theil-Sen is robust, the choice between line and constant is not (median + max of what is left): one late
#     end of 3 ms hides a drift of 20 us a ms.
def test_one_late_end_does_not_hide_a_drift() -> None:
    reference = [1_000_000 * i for i in range(1, 12)]
    differences = [500_000 + 20_000 * i for i in range(11)]
    differences[5] += 3_000_000
    clock = fit_clock(1, [r + d for r, d in zip(reference, differences, strict=True)], reference, apply=True)
    assert clock.drift_ppm == pytest.approx(1e6 * 20_000 / 1_020_000)


# 13. job._warnings: "no common collective aligns the clocks of ranks None".
def test_a_rank_without_a_number_is_not_called_none(tmp_path: Path) -> None:
    paths = [TraceFile(0).op("a", 1, 1).write(tmp_path, "a.json"), TraceFile().op("a", 1, 1).write(tmp_path, "b.json")]
    assert not any("None" in warning for warning in read_job([str(p) for p in paths]).warnings)


# 14. repair_event is quadratic: 80 KB of one broken element takes 16 s (4,000 repeats: 4 s).
def test_a_long_broken_event_is_given_up_soon() -> None:
    assert repair_event(b'{"ph":"X","name":"a"' + b',"name":"b' * 4000) is None


# 15. store._swap: between moving the old directory away and the new one in, there is none; a writer killed there leaves none
#     (7 of 400 kills; the old one stays in .job.old.XXXX/old). Of two writers at once one fails with UsageError (FileNotFoundError
#     or ENOTEMPTY) and leaves .job.old.XXXX. Scratch folders of killed writers are never removed (367 after 400 kills).
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
    found = output_of_writer(tmp_path, "kill", 60)

    assert len(found) == 60
    assert set(found) <= {"old", "new"}


def test_two_writers_at_once_leave_one_whole_directory(tmp_path: Path) -> None:
    codes, found = output_of_writer(tmp_path, "race", 40)

    assert (codes, found in {"old", "new"}) == ("0 0", True)
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["job"]
