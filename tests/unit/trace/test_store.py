import json
import os
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.fakes.jobs import job_of, stored_files, table_of
from tests.fakes.kineto import TraceFile
from tracereplay.errors import TraceError, UsageError
from tracereplay.trace.job import read_job
from tracereplay.trace.store import content_hash, read_job_directory, read_table, stored_bytes, write_job, write_table
from tracereplay.trace.table import EventTable


def whole_trace(rank: int = 3) -> TraceFile:
    """A trace with everything that is stored: header, groups, devices, links, args, faults."""
    trace = TraceFile(rank, 8, "nccl", {"0": [0, 1, 2]}, host_name="node0", base_ns=1_783_322_452_000_000_001)
    trace.header["deviceProperties"] = [{"id": 0, "name": "V100"}]
    trace.header["distributedInfo"]["pg_config"].append({"pg_name": "1", "pg_size": 64, "ranks": [0, "..."]})
    trace.step(1, 0, 100).event("cpu_op", "aten::mm", 1, 50, args={"Input Dims": [[2, 3]], "External id": 5})
    trace.call("cudaLaunchKernel", 10, 5, 1).kernel("kernel µ", 20, 10, 7, 1).event("cpu_op", "cut", 5, None)
    return trace


def names_in(folder: Path) -> list[str]:
    tables = read_job_directory(folder)
    assert tables is not None
    return [table.name_of(0) for table in tables]


def test_a_table_comes_back_as_it_was(tmp_path: Path) -> None:
    table = table_of(tmp_path, whole_trace())
    write_table(table, tmp_path / "t.parquet")

    back = read_table(tmp_path / "t.parquet")

    assert back.table.equals(table.table)
    assert (back.path, back.header, back.quality, back.recorded_events) == (
        table.path, table.header, table.quality, table.recorded_events
    )  # fmt: skip
    assert [back.args_of(row) for row in range(len(back))] == [table.args_of(row) for row in range(len(table))]
    assert back.args_of(1) == {"Input Dims": [[2, 3]], "External id": 5}
    assert back.with_text().equals(table.with_text())


def test_a_salvaged_table_comes_back_with_its_damage(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json"
    path.write_bytes(whole_trace().encode()[:-30])
    table = read_job([str(path)]).ranks[0].table
    write_table(table, tmp_path / "t.parquet")

    assert read_table(tmp_path / "t.parquet").quality == table.quality


def test_a_table_is_called_after_the_source_asked_for(tmp_path: Path) -> None:
    write_table(table_of(tmp_path, whole_trace()), tmp_path / "t.parquet")

    assert read_table(tmp_path / "t.parquet", source="elsewhere.json").path == "elsewhere.json"


def test_the_same_table_gives_the_same_bytes(tmp_path: Path) -> None:
    table = table_of(tmp_path, whole_trace())
    write_table(table, tmp_path / "a.parquet")
    write_table(table, tmp_path / "b.parquet")

    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_writing_leaves_nothing_but_the_file(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write_table(table_of(tmp_path, whole_trace()), tmp_path / "out" / "t.parquet")

    assert [path.name for path in (tmp_path / "out").iterdir()] == ["t.parquet"]


def test_a_table_of_another_schema_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_table(table_of(tmp_path, whole_trace()), path)
    table = pq.read_table(path)
    meta = json.loads(table.schema.metadata[b"tracereplay"]) | {"schema": 1}
    pq.write_table(table.replace_schema_metadata({b"tracereplay": json.dumps(meta).encode()}), path)

    with pytest.raises(TraceError, match=r"t\.parquet: written with schema 1, this version reads 2; convert the trace again"):
        read_table(path)


def test_a_parquet_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(table_of(tmp_path, whole_trace()).table, path)

    with pytest.raises(TraceError, match=r"written with schema (none|None), this version reads 2"):
        read_table(path)


@pytest.mark.parametrize("kept", [0, 3, 100, -100, -1])
def test_a_cut_parquet_file_is_refused(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "t.parquet"
    write_table(table_of(tmp_path, whole_trace()), path)
    path.write_bytes(path.read_bytes()[:kept])

    with pytest.raises(TraceError, match=r"t\.parquet: a damaged parquet file .*; convert the trace again"):
        read_table(path)


def test_a_hash_is_that_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"hello")

    assert content_hash(tmp_path / "a") == "46fb7408d4f285228f4af516ea25851b"


def test_a_job_comes_back_as_it_was(tmp_path: Path) -> None:
    job = job_of(tmp_path, whole_trace(0), whole_trace(1))
    write_job([(t.table, t.rank) for t in job.ranks], tmp_path / "job", force=False)

    back = read_job([str(tmp_path / "job")])

    assert [(t.rank, t.rank_source, t.host, t.table.path) for t in back.ranks] == [
        (0, "metadata", "node0", "rank0.json"), (1, "metadata", "node0", "rank1.json")
    ]  # fmt: skip
    assert [t.table.table.equals(u.table.table) for t, u in zip(back.ranks, job.ranks, strict=True)] == [True, True]
    assert (back.world_size, back.ranks_missing) == (8, (2, 3, 4, 5, 6, 7))


def test_a_job_directory_lists_its_files_and_their_sources(tmp_path: Path) -> None:
    table = table_of(tmp_path, whole_trace())
    write_job([(table, 3), (replace(table, path="gone.json"), None)], tmp_path / "job", force=False)

    files = stored_files(tmp_path / "job")
    assert list(files) == ["rank3", "unranked1"]
    assert json.loads((tmp_path / "job" / "job.json").read_text()) == {
        "schema": "tracereplay/job/2",
        "ranks": [
            {
                "file": files["rank3"].name,
                "rank": 3,
                "source": "rank3.json",
                "hash": content_hash(tmp_path / "rank3.json"),
                "events": 5,
            },
            {"file": files["unranked1"].name, "rank": None, "source": "gone.json", "hash": None, "events": 5},
        ],
        "manifest": None,
    }  # fmt: skip
    assert stored_bytes(tmp_path / "job") == [files[name].stat().st_size for name in ("rank3", "unranked1")]


def test_a_folder_without_an_index_is_no_job_directory(tmp_path: Path) -> None:
    assert read_job_directory(tmp_path) is None


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ("", "not a job directory ("),
        ("{", "not a job directory ("),
        ("[]", "job directory of schema None, this version reads tracereplay/job/2"),
        ('{"schema": "tracereplay/job/3", "ranks": []}', "job directory of schema 'tracereplay/job/3', this version reads"),
        ('{"schema": "tracereplay/job/2", "ranks": [{"file": "gone.parquet", "source": "a"}]}', "a damaged job directory: "),
    ],
)
def test_a_job_directory_of_another_kind_or_damaged_is_refused(tmp_path: Path, index: str, words: str) -> None:
    (tmp_path / "job.json").write_text(index)

    with pytest.raises(TraceError) as caught:
        read_job_directory(tmp_path)

    assert caught.value.what.startswith(words)


def test_what_is_there_is_not_replaced_unasked(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()

    with pytest.raises(UsageError, match=r"job: exists already; choose another --output or pass --force"):
        write_job([(table_of(tmp_path, whole_trace()), 3)], tmp_path / "job", force=False)

    assert list((tmp_path / "job").iterdir()) == []


def test_what_is_there_is_replaced_when_asked(tmp_path: Path) -> None:
    old, new = table_of(tmp_path, TraceFile(0).op("old", 1, 1)), table_of(tmp_path, TraceFile(1).op("new", 1, 1))
    (tmp_path / "out").mkdir()
    write_job([(old, 0)], tmp_path / "out" / "job", force=False)

    write_job([(new, 1)], tmp_path / "out" / "job", force=True)

    assert list(stored_files(tmp_path / "out" / "job")) == ["rank1"]
    assert names_in(tmp_path / "out" / "job") == ["new"]
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["job"]


def test_folders_above_the_target_are_made(tmp_path: Path) -> None:
    write_job([(table_of(tmp_path, whole_trace()), 3)], tmp_path / "a" / "b" / "job", force=False)

    assert names_in(tmp_path / "a" / "b" / "job") == ["ProfilerStep#1"]


def test_a_target_that_cannot_be_written_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UsageError, match=r"cannot write \(.*\); free space or choose another --output"):
        write_job([(table_of(tmp_path, whole_trace()), 3)], tmp_path / "file" / "job", force=False)


def test_a_writer_that_fails_leaves_the_old_directory_and_nothing_else(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile(0).op("old", 1, 1))
    (tmp_path / "out").mkdir()
    write_job([(table, 0)], tmp_path / "out" / "job", force=False)
    before = stored_files(tmp_path / "out" / "job")
    write_table(table, tmp_path / "gone.parquet")
    gone = read_table(tmp_path / "gone.parquet")
    (tmp_path / "gone.parquet").unlink()  # its text can no longer be read

    with pytest.raises(TraceError, match=r"gone.parquet: the stored trace was replaced or removed while it was read"):
        write_job([(table_of(tmp_path, whole_trace(1)), 1), (gone, 0)], tmp_path / "out" / "job", force=True)
    with pytest.raises(TraceError):
        write_job([(table, 1), (gone, 0)], tmp_path / "out" / "fresh", force=False)

    assert [p.name for p in (tmp_path / "out").iterdir()] == ["job"]
    assert stored_files(tmp_path / "out" / "job") == before
    assert names_in(tmp_path / "out" / "job") == ["old"]


def test_what_a_killed_writer_left_goes_when_it_is_old(tmp_path: Path) -> None:
    table = table_of(tmp_path, whole_trace())
    write_job([(table, 3)], tmp_path / "job", force=False)
    abandoned = [tmp_path / "job" / name for name in ("rank3-00000000.parquet", ".rank3-00000000.parquet.x", ".job.json.0")]
    for file in abandoned:
        file.write_text("")
    write_job([(table, 3)], tmp_path / "job", force=True)
    assert [file.exists() for file in abandoned] == [True, True, True]  # a writer may still be at work on them

    for file in abandoned:
        os.utime(file, (1, 1))
    write_job([(table, 3)], tmp_path / "job", force=True)

    assert list(stored_files(tmp_path / "job")) == ["rank3"]


def test_a_directory_may_be_written_over_itself(tmp_path: Path) -> None:
    write_job([(table_of(tmp_path, whole_trace()), 3)], tmp_path / "job", force=False)
    table: EventTable = read_job([str(tmp_path / "job")]).ranks[0].table

    write_job([(table, 3)], tmp_path / "job", force=True)

    assert read_job([str(tmp_path / "job")]).ranks[0].table.args_of(1) == {"Input Dims": [[2, 3]], "External id": 5}
