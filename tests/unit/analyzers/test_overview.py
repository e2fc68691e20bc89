from pathlib import Path

import pytest

from tests.fakes.jobs import job_of
from tests.fakes.kineto import TraceFile
from tracereplay.analyzers.overview import (
    DeviceTime,
    DeviceUse,
    Links,
    RankOverview,
    StepRow,
    StreamUse,
    notes,
    survey,
)
from tracereplay.trace.job import read_job

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def rank_of(folder: Path, trace: TraceFile) -> RankOverview:
    return survey(job_of(folder, trace)).ranks[0]


def test_device_time_is_counted_by_hand(tmp_path: Path) -> None:
    #   stream 7    |0 compute 100|                          |250 copy 300|
    #   stream 20          |50 all-reduce 200|
    trace = TraceFile().kernel("gemm", 0, 100, 7).kernel(ALL_REDUCE, 50, 150, 20).memcpy("Memcpy HtoD", 250, 50, 7)

    assert rank_of(tmp_path, trace).gpu == DeviceTime(
        window_ns=300_000,
        busy_ns=250_000,
        idle_ns=50_000,
        compute_ns=100_000,
        comm_ns=150_000,
        memory_ns=50_000,
        overlap_ns=50_000,
        exposed_comm_ns=100_000,
        work_ns=300_000,
        same_stream_overlap_ns=0,
        raw_work_ns=300_000,
        raw_window_ns=300_000,
        devices=(DeviceUse(0, 250_000, 50_000),),
        streams=(StreamUse(0, 7, 2, 150_000), StreamUse(0, 20, 1, 150_000)),
    )


def test_a_memory_set_and_a_vendors_copy_kernel_move_memory(tmp_path: Path) -> None:
    trace = TraceFile().memset("Memset (Device)", 0, 10, 7).kernel("__amd_rocclr_copyBuffer", 20, 10, 7)

    gpu = rank_of(tmp_path, trace).gpu

    assert gpu is not None
    assert (gpu.memory_ns, gpu.compute_ns) == (20_000, 0)


def test_work_that_overlaps_within_its_stream_is_counted(tmp_path: Path) -> None:
    gpu = rank_of(tmp_path, TraceFile().kernel("a", 0, 30, 7).kernel("b", 20, 30, 7)).gpu

    assert gpu is not None
    assert (gpu.busy_ns, gpu.work_ns, gpu.same_stream_overlap_ns) == (50_000, 60_000, 10_000)


def test_devices_are_busy_and_idle_each_within_the_ranks_window(tmp_path: Path) -> None:
    gpu = rank_of(tmp_path, TraceFile().kernel("a", 0, 30, 7).kernel("b", 20, 80, 7, device=1)).gpu

    assert gpu is not None
    assert gpu.devices == (DeviceUse(0, 30_000, 70_000), DeviceUse(1, 80_000, 20_000))
    assert (gpu.window_ns, gpu.busy_ns, gpu.idle_ns) == (100_000, 110_000, 90_000)


def test_work_without_a_stream_has_none(tmp_path: Path) -> None:
    gpu = rank_of(tmp_path, TraceFile().event("kernel", "a", 0, 30, pid=0)).gpu

    assert gpu is not None
    assert gpu.streams == (StreamUse(0, None, 1, 30_000),)


@pytest.mark.parametrize("dur", [None, "bad"])
def test_without_device_work_the_device_is_not_recorded(tmp_path: Path, dur: str | None) -> None:
    trace = TraceFile().op("a", 0, 10).event("kernel", "k", 5, None if dur is None else f'"{dur}"')

    assert rank_of(tmp_path, trace).gpu is None


def test_events_are_counted_by_role(tmp_path: Path) -> None:
    trace = TraceFile().op("a", 0, 10).call("cudaLaunchKernel", 1, 1, 1).kernel("gemm", 5, 5, 7, 1).kernel(ALL_REDUCE, 12, 5, 7)

    rank = rank_of(tmp_path, trace.memcpy("Memcpy HtoD", 20, 5, 7).memset("Memset", 30, 5, 7))

    assert rank.counts == {"cpu_op": 1, "runtime": 1, "kernel": 2, "memcpy": 1, "memset": 1, "collective": 1}
    assert rank.events == 6


def test_without_kernels_the_annotations_of_the_cpu_backend_are_the_collectives(tmp_path: Path) -> None:
    trace = TraceFile().op("c10d::allreduce_", 0, 10).gloo("gloo:all_reduce", 5, 10, tid=5).annotation("## forward ##", 0, 9)

    assert rank_of(tmp_path, trace).counts["collective"] == 1


def test_work_and_launches_without_each_other_are_counted(tmp_path: Path) -> None:
    trace = TraceFile().call("cudaLaunchKernel", 0, 1, 1).call("cudaLaunchKernel", 2, 1, 2).call("cudaMalloc", 4, 1, 3)

    links = rank_of(tmp_path, trace.kernel("a", 5, 5, 7, 1).kernel("b", 10, 5, 7, 99)).links

    assert links == Links(1, 1, 1, {"external_id": 0, "containment": 0, "none": 2})


def test_owners_are_counted_by_how_they_are_known(tmp_path: Path) -> None:
    trace = (
        TraceFile()
        .op("a", 0, 100, **{"External id": 5})
        .op("b", 10, 50, **{"External id": 9})
        .call("cudaLaunchKernel", 20, 5, 1)
    )
    trace.kernel("by id", 30, 5, 7, **{"External id": 5}).kernel("around", 40, 5, 7, 1).kernel("alone", 50, 5, 7)

    assert rank_of(tmp_path, trace).links.owners == {"external_id": 1, "containment": 1, "none": 1}


def test_without_runtime_calls_links_are_not_recorded_and_the_reason_is_told(tmp_path: Path) -> None:
    overview = survey(job_of(tmp_path, TraceFile(0).kernel("k", 0, 5, 7, 1)))

    assert overview.ranks[0].links == Links(None, None, None, {"external_id": 0, "containment": 0, "none": 1})
    assert notes(overview) == ["rank 0: no runtime calls are recorded: linked, orphans and launches_without_work are null"]


def test_without_device_work_the_reason_is_told(tmp_path: Path) -> None:
    assert notes(survey(job_of(tmp_path, TraceFile(0).op("a", 0, 5)))) == ["rank 0: no device work is recorded: gpu is null"]


def test_recorded_durations_are_kept_beside_those_that_were_cut(tmp_path: Path) -> None:
    # Q14: b holds two whole later kernels of its stream.
    trace = TraceFile().kernel("a", 100, 10, 7).kernel("b", 115, 3000, 7).kernel("c", 120, 10, 7).kernel("d", 135, 10, 7)

    gpu = rank_of(tmp_path, trace).gpu

    assert gpu is not None
    assert (gpu.work_ns, gpu.window_ns, gpu.raw_work_ns, gpu.raw_window_ns) == (35_000, 45_000, 3_030_000, 3_015_000)


def test_without_the_end_of_the_file_there_is_no_window_and_the_reason_is_told(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json"
    path.write_bytes(TraceFile(0).kernel("a", 0, 10, 7).kernel("b", 20, 10, 7).encode()[:-9])

    overview = survey(read_job([str(path)]))

    gpu = overview.ranks[0].gpu
    assert gpu is not None
    assert (gpu.window_ns, gpu.idle_ns, gpu.busy_ns, gpu.devices) == (None, None, 10_000, (DeviceUse(0, 10_000, None),))
    assert notes(overview)[-1] == "rank 0: the end of the file is lost: window_ns and idle_ns are null"


def test_steps_are_listed_whole_and_cut(tmp_path: Path) -> None:
    trace = TraceFile().step(3, 0, 100).op("a", 10, 5).step(4, 100, None)

    assert rank_of(tmp_path, trace).steps == (StepRow(3, 100_000, True), StepRow(4, None, False))


def test_only_the_steps_asked_for_are_listed(tmp_path: Path) -> None:
    trace = TraceFile().step(3, 0, 100).op("a", 10, 5).step(4, 100, 50).op("b", 110, 5)

    overview = survey(job_of(tmp_path, trace), frozenset({4}))

    assert (overview.ranks[0].steps, overview.common_steps) == ((StepRow(4, 50_000, True),), (4,))


def test_common_steps_are_those_that_every_rank_has_whole(tmp_path: Path) -> None:
    first = TraceFile(0, 3).step(3, 0, 100).op("a", 10, 5).step(4, 100, 50).op("b", 110, 5)
    second = TraceFile(2, 3).step(4, 0, 100).op("a", 10, 5).step(5, 100, None)

    overview = survey(job_of(tmp_path, first, second))

    assert (overview.common_steps, overview.ranks_present, overview.ranks_missing) == ((4,), (0, 2), (1,))


def test_a_rank_says_where_its_number_comes_from(tmp_path: Path) -> None:
    rank = rank_of(tmp_path, TraceFile(3, 8).op("a", 0, 1))

    assert (rank.rank, rank.rank_source, rank.world_size, Path(rank.file).name) == (3, "metadata", 8, "rank3.json")
