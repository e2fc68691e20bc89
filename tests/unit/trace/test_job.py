from pathlib import Path
from typing import Any

import pytest

from tests.fakes.jobs import job_of
from tests.fakes.kineto import TraceFile
from tracereplay.errors import TraceError
from tracereplay.manifest import HostRecord, Manifest, RankRecord, write_manifest
from tracereplay.trace.job import Conflict, Extras, Job, find_trace_files, read_job, survey_job


def trace(rank: int | None = None, world_size: int | None = None, host_name: str | None = None) -> TraceFile:
    return TraceFile(rank, world_size, host_name=host_name).op("aten::mm", 1, 1)


def manifest(world_size: int, hosts: dict[int, str]) -> Manifest:
    return Manifest(
        created="2026-01-01T00:00:00Z",
        world_size=world_size,
        backend="gloo",
        clock="realtime",
        hosts=(HostRecord(name="node0", cpu_model=None, cpu_count=2, memory_bytes=1, kernel="6"),),
        ranks=tuple(RankRecord(rank=r, trace=f"rank{r}.json", host=h, pid=r, steps=(1,)) for r, h in hosts.items()),
        versions={},
        workload={},
        tracer={},
    )


def test_ranks_come_from_the_metadata_and_stand_in_their_order(tmp_path: Path) -> None:
    job = job_of(tmp_path, trace(2), trace(0), trace(1))

    assert [(t.rank, t.rank_source) for t in job.ranks] == [(0, "metadata"), (1, "metadata"), (2, "metadata")]
    assert job.ranks_present == (0, 1, 2)


@pytest.mark.parametrize("name", ["rank3.json", "rank_3.json", "trace-rank-3.json.gz", "worker3.pt.trace.json", "RANK3.json"])
def test_a_rank_without_metadata_comes_from_the_file_name(tmp_path: Path, name: str) -> None:
    files = [trace().write(tmp_path, name), trace(0).write(tmp_path, "other.json")]

    job = read_job([str(f) for f in files])

    assert [(t.rank, t.rank_source) for t in job.ranks] == [(0, "metadata"), (3, "filename")]


@pytest.mark.parametrize("name", ["frank3.json", "3.json", "crank_7.json"])
def test_a_file_name_that_only_looks_like_a_rank_says_nothing(tmp_path: Path, name: str) -> None:
    files = [trace(host_name="node0").write(tmp_path, name), trace(0, host_name="node0").write(tmp_path, "other.json")]

    job = read_job([str(f) for f in files])

    assert [(t.rank, t.rank_source) for t in job.ranks] == [(0, "metadata"), (None, "none")]
    assert job.warnings == (f"no rank in metadata or file name: {name}",)


def test_a_file_alone_takes_its_rank_from_its_name_too(tmp_path: Path) -> None:
    job = read_job([str(trace().write(tmp_path, "rank3.json"))])

    assert [(t.rank, t.rank_source) for t in job.ranks] == [(3, "filename")]
    assert job.warnings == ()


def test_two_files_of_one_rank_are_refused_by_name(tmp_path: Path) -> None:
    trace(1).write(tmp_path, "a.json")
    trace(1).write(tmp_path, "b.json")

    with pytest.raises(TraceError, match=r"rank 1 is claimed by 2 files: .*a\.json and .*b\.json"):
        read_job([str(tmp_path)])


def test_a_survey_lists_files_in_conflict_and_keeps_them(tmp_path: Path) -> None:
    files = [str(trace(1).write(tmp_path, name)) for name in ("a.json", "b.json")]

    job = survey_job([str(tmp_path)])

    assert (job.conflicts, job.files) == ((Conflict(1, tuple(files)),), files)


def test_ranks_without_a_common_collective_and_a_host_are_named(tmp_path: Path) -> None:
    job = job_of(tmp_path, trace(0), trace(1))

    assert job.warnings == ("no common collective aligns the clocks of ranks 1: nothing is said across these ranks",)


def test_ranks_of_the_recorded_size_that_are_not_there_are_named(tmp_path: Path) -> None:
    job = job_of(tmp_path, trace(0, 4, "node0"), trace(2, 4, "node0"))

    assert (job.world_size, job.ranks_missing) == (4, (1, 3))
    assert job.warnings == ("2 of 4 ranks are missing: 1, 3",)


def test_a_long_list_of_missing_ranks_is_shortened(tmp_path: Path) -> None:
    job = job_of(tmp_path, trace(0, world_size=20))

    assert job.warnings == ("19 of 20 ranks are missing: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 and 3 more",)


def test_a_job_of_unknown_size_misses_nothing(tmp_path: Path) -> None:
    job = job_of(tmp_path, trace(0, host_name="node0"), trace(5, host_name="node0"))

    assert (job.world_size, job.ranks_missing, job.warnings) == (None, (), ())


def test_only_the_ranks_asked_for_are_kept(tmp_path: Path) -> None:
    paths = [str(trace(r).write(tmp_path)) for r in (0, 1, 2)]

    job = read_job(paths, ranks=frozenset({0, 2}))

    assert job.ranks_present == (0, 2)


def test_asking_for_ranks_that_are_not_there_is_refused(tmp_path: Path) -> None:
    path = trace(0).write(tmp_path)

    with pytest.raises(TraceError, match=r"no trace of rank \[7\]; see `tracereplay info`"):
        read_job([str(path)], ranks=frozenset({7}))


def test_a_folder_gives_its_traces_in_order_of_their_names_without_the_manifest(tmp_path: Path) -> None:
    trace(1).write(tmp_path, "b.json.gz")
    trace(0).write(tmp_path, "a.json")
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("no trace")

    assert [f.name for f in find_trace_files([str(tmp_path)])] == ["a.json", "b.json.gz"]


def test_a_quoted_glob_gives_what_it_matches_without_the_manifest(tmp_path: Path) -> None:
    trace(0).write(tmp_path, "rank0.json")
    trace(1).write(tmp_path, "rank1.json")
    (tmp_path / "manifest.json").write_text("{}")

    assert [f.name for f in find_trace_files([f"{tmp_path}/*.json"])] == ["rank0.json", "rank1.json"]


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    path = trace(0).write(tmp_path)

    assert find_trace_files([str(path), str(tmp_path)]) == [path]


def test_a_file_whose_name_holds_glob_signs_is_that_file(tmp_path: Path) -> None:
    path = trace(0).write(tmp_path, "rank[0].json")

    assert find_trace_files([str(path)]) == [path]


def test_a_path_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"absent: no such file or folder; check the path"):
        find_trace_files([str(tmp_path / "absent")])


def test_a_folder_without_traces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"a folder without traces; it should hold \*\.json or \*\.json\.gz files"):
        find_trace_files([str(tmp_path)])


def test_the_host_comes_from_the_metadata(tmp_path: Path) -> None:
    job = job_of(tmp_path, trace(0, host_name="node7"))

    assert [t.host for t in job.ranks] == ["node7"]


def test_a_manifest_beside_the_traces_gives_hosts_and_size(tmp_path: Path) -> None:
    write_manifest(manifest(2, {0: "node0", 1: "node1"}), tmp_path / "manifest.json")

    job = job_of(tmp_path, trace(0, host_name="from-metadata"), trace(1))

    assert ([t.host for t in job.ranks], job.world_size) == (["node0", "node1"], 2)


def test_a_manifest_that_does_not_list_a_rank_leaves_its_host_to_the_metadata(tmp_path: Path) -> None:
    write_manifest(manifest(1, {0: "node0"}), tmp_path / "manifest.json")

    job = job_of(tmp_path, trace(0), trace(1, host_name="node9"))

    assert [t.host for t in job.ranks] == ["node0", "node9"]


def test_a_manifest_given_wins_over_the_one_beside_the_traces(tmp_path: Path) -> None:
    write_manifest(manifest(1, {0: "beside"}), tmp_path / "manifest.json")
    write_manifest(manifest(1, {0: "given"}), tmp_path / "elsewhere")
    path = trace(0).write(tmp_path)

    job = read_job([str(path)], extras=Extras(manifest=tmp_path / "elsewhere"))

    assert [t.host for t in job.ranks] == ["given"]


def test_files_are_listed_in_the_order_of_ranks(tmp_path: Path) -> None:
    job = job_of(tmp_path, trace(1), trace(0))

    assert job.files == [str(tmp_path / "rank0.json"), str(tmp_path / "rank1.json")]


def exchanges(rank: int, host: str | None, shifted_us: int, *meetings: tuple[str, int]) -> TraceFile:
    """A rank that ends its all-reduces in the groups given at these times, on a clock that is ahead by ``shifted_us``."""
    found = TraceFile(rank, 3, groups={"left": [0, 1], "right": [1, 2]}, host_name=host).step(1, shifted_us, 1000)
    for group, end in meetings:
        args: dict[str, Any] = {"Process Group Name": group}
        found.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", shifted_us + end - 50, 50, 7, **args)
    return found


def starts_of(job: Job) -> list[list[int]]:
    return [rank.table.column("ts_ns").tolist() for rank in job.ranks]


def test_ranks_of_a_host_have_one_clock_though_only_one_of_them_meets_the_first_rank(tmp_path: Path) -> None:
    # Ranks 1 and 2 share host b, whose clock is a second ahead; rank 2 shares no collective with rank 0.
    first = exchanges(0, "a", 0, ("left", 100), ("left", 300))
    second = exchanges(1, "b", 1_000_000, ("left", 100), ("right", 200), ("left", 300), ("right", 400))
    third = exchanges(2, "b", 1_000_000, ("right", 200), ("right", 400))

    job = job_of(tmp_path, first, second, third)

    assert starts_of(job) == [[0, 50_000, 250_000], [0, 50_000, 150_000, 250_000, 350_000], [0, 150_000, 350_000]]
    assert [(t.clock.rank, t.clock.offset_ns, t.clock.applied) for t in job.ranks] == [
        (0, 0, False),
        (1, 1_000_000_000, True),
        (2, 1_000_000_000, True),
    ]
    assert job.warnings == ()


def test_clocks_are_chained_through_ranks_whose_clock_is_known(tmp_path: Path) -> None:
    # Three hosts: rank 2's clock is known against rank 1's alone, and that one against rank 0's.
    first = exchanges(0, "a", 0, ("left", 100), ("left", 300))
    second = exchanges(1, "b", 1_000_000, ("left", 100), ("right", 200), ("left", 300), ("right", 400))
    third = exchanges(2, "c", 7_000_000, ("right", 200), ("right", 400))

    job = job_of(tmp_path, first, second, third)

    assert starts_of(job) == [[0, 50_000, 250_000], [0, 50_000, 150_000, 250_000, 350_000], [0, 150_000, 350_000]]
    assert [t.clock.offset_ns for t in job.ranks] == [0, 1_000_000_000, 7_000_000_000]
    assert job.warnings == ()


def test_collectives_that_contradict_the_clock_of_a_host_are_counted_and_said(tmp_path: Path) -> None:
    # Rank 2 is said to be on rank 1's host, but reads half a millisecond more.
    first = exchanges(0, "a", 0, ("left", 100), ("left", 300))
    second = exchanges(1, "b", 0, ("left", 100), ("right", 200), ("left", 300), ("right", 400))
    third = exchanges(2, "b", 500, ("right", 200), ("right", 400))

    job = job_of(tmp_path, first, second, third)

    assert [t.clock.contradicted for t in job.ranks] == [0, 0, 2]
    assert job.warnings == (
        "2 collectives of rank 2 contradict that it shares the clock of host b: they end farther apart than ends scatter, and "
        "times are compared as recorded",
    )
