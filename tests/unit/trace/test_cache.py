import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fakes.kineto import TraceFile
from tracereplay.errors import TraceError
from tracereplay.trace.cache import SMALLEST_BYTES, cache_folder, read_cached
from tracereplay.trace.job import Extras, read_job
from tracereplay.trace.kineto import read_kineto
from tracereplay.trace.store import StoredText

ROOT = Path(__file__).parents[3]
# Two processes that start together, read one trace through the cache and say what they found.
READERS = """
import os, sys
from pathlib import Path
from tracereplay.trace.cache import read_cached
from tracereplay.trace.kineto import read_kineto

source = Path(sys.argv[1])
read_kineto(source)
children = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if len(read_cached(source)) == 2 else 2
        finally:
            os._exit(code)
    children.append(child)
print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache."""
    monkeypatch.setenv("TRACEREPLAY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def large_trace(folder: Path, name: str = "aten::mm") -> Path:
    """A trace of two events that is just large enough to be cached."""
    trace = TraceFile(0, host_name="node0").event("cpu_op", name, 1, 1, args={"Input Dims": [[2]]})
    return trace.op("x" * SMALLEST_BYTES, 2, 1).write(folder, f"{name.replace(':', '')}.json")


def entries(cache: Path) -> list[Path]:
    return sorted(cache.iterdir())


def test_the_folder_is_the_one_asked_for(cache: Path) -> None:
    assert cache_folder() == cache


def test_a_trace_is_kept_once_it_is_read(tmp_path: Path, cache: Path) -> None:
    path = large_trace(tmp_path)

    first, second = read_cached(path), read_cached(path)

    (entry,) = entries(cache)
    assert second.text == StoredText(entry)
    assert second.table.equals(first.table)
    assert (second.path, second.header, second.quality, second.recorded_events) == (str(path), first.header, first.quality, 2)
    assert second.args_of(0) == {"Input Dims": [[2]]}


def test_the_same_content_is_found_under_another_name(tmp_path: Path, cache: Path) -> None:
    path = large_trace(tmp_path)
    read_cached(path)
    copy = tmp_path / "copy.json"
    copy.write_bytes(path.read_bytes())

    assert read_cached(copy).path == str(copy)
    assert len(entries(cache)) == 1


def test_a_file_that_changed_is_read_again(tmp_path: Path, cache: Path) -> None:
    path = large_trace(tmp_path)
    read_cached(path)
    path.write_bytes(path.read_bytes().replace(b"aten::mm", b"aten::ad"))

    assert read_cached(path).name_of(0) == "aten::ad"
    assert len(entries(cache)) == 2


def test_a_small_file_is_not_worth_it(tmp_path: Path, cache: Path) -> None:
    read_cached(TraceFile(0).op("a", 1, 1).write(tmp_path))

    assert not cache.exists()


def test_a_job_uses_the_cache_only_when_asked(tmp_path: Path, cache: Path) -> None:
    path = str(large_trace(tmp_path))

    read_job([path])
    untouched = cache.exists()
    read_job([path], extras=Extras(cache=True))

    assert (untouched, len(entries(cache))) == (False, 1)


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"no parquet at all"])
def test_a_damaged_entry_is_written_again(tmp_path: Path, cache: Path, damage: bytes) -> None:
    path = large_trace(tmp_path)
    read_cached(path)
    (entry,) = entries(cache)
    whole = entry.read_bytes()
    entry.write_bytes(damage)

    assert read_cached(path).table.equals(read_kineto(path).table)
    assert entry.read_bytes() == whole


def test_a_cut_entry_is_written_again(tmp_path: Path, cache: Path) -> None:
    path = large_trace(tmp_path)
    read_cached(path)
    (entry,) = entries(cache)
    whole = entry.read_bytes()
    entry.write_bytes(whole[:-5])

    read_cached(path)

    assert entry.read_bytes() == whole


def test_what_was_used_longest_ago_is_removed_first(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [large_trace(tmp_path, name) for name in ("a", "b", "c")]
    read_cached(paths[0])
    (first,) = entries(cache)
    read_cached(paths[1])
    (second,) = set(entries(cache)) - {first}
    os.utime(first, (1, 1))
    os.utime(second, (2, 2))
    read_cached(paths[0])  # used again: now the second is the one used longest ago
    monkeypatch.setenv("TRACEREPLAY_CACHE_BYTES", str(int(2.5 * first.stat().st_size)))

    read_cached(paths[2])

    left = entries(cache)
    assert (first in left, second in left, len(left)) == (True, False, 2)


def age(entry: Path, seconds: int) -> None:
    """Let an entry have been used that long ago."""
    os.utime(entry, (time.time() - seconds, time.time() - seconds))


def test_a_cache_smaller_than_one_entry_keeps_it_while_it_is_in_use_and_does_no_harm(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEREPLAY_CACHE_BYTES", "10")

    table = read_cached(large_trace(tmp_path))
    (entry,) = entries(cache)
    age(entry, 700)
    read_cached(large_trace(tmp_path, "other"))

    assert table.args_of(0) == {"Input Dims": [[2]]}
    assert (entry.exists(), len(entries(cache))) == (False, 1)


@pytest.mark.parametrize(("seconds", "left"), [(0, True), (500, True), (700, False)])
def test_what_was_used_within_ten_minutes_stays_whatever_the_limit(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, seconds: int, left: bool
) -> None:
    read_cached(large_trace(tmp_path, "a"))
    (entry,) = entries(cache)
    age(entry, seconds)
    monkeypatch.setenv("TRACEREPLAY_CACHE_BYTES", "0")

    read_cached(large_trace(tmp_path, "b"))

    assert entry.exists() is left


def test_reading_an_entry_is_using_it(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = large_trace(tmp_path, "a")
    read_cached(path)
    (entry,) = entries(cache)
    age(entry, 700)
    monkeypatch.setenv("TRACEREPLAY_CACHE_BYTES", "0")

    read_cached(path)
    read_cached(large_trace(tmp_path, "b"))

    assert entry.exists()


def test_what_a_killed_writer_left_is_removed_after_an_hour(tmp_path: Path, cache: Path) -> None:
    cache.mkdir()
    old, new = cache / ".x.parquet.old", cache / ".x.parquet.new"
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    os.utime(old, (time.time() - 4000, time.time() - 4000))

    read_cached(large_trace(tmp_path))

    assert (old.exists(), new.exists()) == (False, True)


def test_files_of_others_in_the_folder_are_left_alone(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir()
    (cache / "notes.txt").write_text("mine")
    age(cache / "notes.txt", 700)
    read_cached(large_trace(tmp_path, "a"))
    (first,) = set(entries(cache)) - {cache / "notes.txt"}
    age(first, 700)
    monkeypatch.setenv("TRACEREPLAY_CACHE_BYTES", "0")

    read_cached(large_trace(tmp_path, "b"))

    assert ((cache / "notes.txt").read_text(), first.exists(), len(entries(cache))) == ("mine", False, 2)


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/none"])
def test_a_place_that_cannot_be_written_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TRACEREPLAY_CACHE", str(tmp_path / place))

    assert len(read_cached(large_trace(tmp_path))) == 2


def test_a_file_that_is_missing_is_refused_as_without_a_cache(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"cannot be read \(No such file or directory\)"):
        read_cached(tmp_path / "absent.json")


def test_two_readers_at_once_leave_one_whole_entry(tmp_path: Path, cache: Path) -> None:
    path = large_trace(tmp_path)

    done = subprocess.run(
        [sys.executable, "-c", READERS, str(path)], cwd=ROOT, capture_output=True, text=True, timeout=50, check=True
    )

    assert (done.stdout, done.stderr, len(entries(cache))) == ("0 0\n", "", 1)
    assert read_cached(path).table.equals(read_kineto(path).table)
