from pathlib import Path
from typing import Any

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.workloads import ALL_REDUCE, LAUNCH, SYNC, late_kernel, late_peer
from tracereplay.analyzers.attribution import Attribution, CollectiveRow, Sensitivity, Wait, attribute
from tracereplay.replay.critical_path import Part


def parts_of(attribution: Attribution) -> dict[str, int]:
    return {part.name: part.ns for part in attribution.parts}


def test_the_parts_of_two_ranks_follow_the_critical_path_over_both(tmp_path: Path) -> None:
    attribution = attribute(graph_of(tmp_path, *late_peer()))

    # Backwards: 75 host and 5 to wake up on rank 0, the transfer, then rank 1's launch and the 60 before it.
    assert attribution.parts == (
        Part("host", 135_000, 0.675),
        Part("launch", 10_000, 0.05),
        Part("collective_transfer", 50_000, 0.25),
        Part("sync", 5_000, 0.025),
    )


def test_the_parts_sum_to_the_step_of_the_longest_rank(tmp_path: Path) -> None:
    attribution = attribute(graph_of(tmp_path, *late_peer()))

    assert (attribution.step, attribution.rank, attribution.step_ns) == (1, 0, 200_000)
    assert (attribution.sum_ns, attribution.path_ns, attribution.tail_ns) == (200_000, 200_000, 0)


def test_the_path_is_given_by_class_of_work_too(tmp_path: Path) -> None:
    # 5 to wake up and 10 of the launch belong to no class.
    assert attribute(graph_of(tmp_path, *late_peer())).by_class == {"host": 135_000, "collective": 50_000}


def test_lags_and_unexplained_waits_belong_to_no_class(tmp_path: Path) -> None:
    # Of 1,300 µs 10 are the launch's, 5 those of the wake-up and 1,000 unexplained.
    assert attribute(graph_of(tmp_path, late_kernel())).by_class == {"host": 235_000, "gemm": 50_000}


def test_a_wait_names_who_caused_it_and_by_what(tmp_path: Path) -> None:
    attribution = attribute(graph_of(tmp_path, *late_peer()))

    # While rank 0 waits (20 to 70), rank 1 is 40 µs on its host and 10 in its launch.
    assert attribution.waits == (Wait(0, 1, "host", "all_reduce#0", 50_000),)


def chain() -> tuple[TraceFile, TraceFile, TraceFile]:
    """Rank 2 waits for rank 1 in their group's all-reduce, but rank 1 is late because it waited for rank 0 in theirs.

    rank 0   |--------- host ---------|launch 60| |70 left 80|
    rank 1   |launch 10|launch 15|  |20 left: waits 50 .. 80| |82 right 92|
    rank 2   |launch 10|            |20 right: waits 62 ............... 92|
    """
    groups = {"left": [0, 1], "right": [1, 2]}
    left: dict[str, Any] = {"Process Group Name": "left"}
    right: dict[str, Any] = {"Process Group Name": "right"}
    first, second, third = (TraceFile(r, 3, groups=groups, host_name="node0").step(1, 0, 200) for r in range(3))
    first.call(LAUNCH, 60, 2, 1).kernel(ALL_REDUCE, 70, 10, 7, 1, **left)
    second.call(LAUNCH, 10, 2, 1).kernel(ALL_REDUCE, 20, 60, 7, 1, **left)
    second.call(LAUNCH, 15, 2, 2).kernel(ALL_REDUCE, 82, 10, 7, 2, **right)
    third.call(LAUNCH, 10, 2, 1).kernel(ALL_REDUCE, 20, 72, 7, 1, **right)
    return first, second, third


def test_a_wait_names_the_rank_that_did_what_it_names_not_the_one_that_arrived_last(tmp_path: Path) -> None:
    attribution = attribute(graph_of(tmp_path, *chain()))

    # While rank 2 waits (20 to 82) for rank 1, rank 0 is 40 µs on its host, 10 in its launch, 10 in its transfer.
    assert [(w.rank, w.caused_by_rank, w.cause, w.ns) for w in attribution.waits] == [
        (2, 0, "host", 62_000),
        (1, 0, "host", 50_000),
    ]
    assert [(row.group, row.last_rank) for row in attribution.collectives.rows] == [("left", 0), ("right", 1)]


def test_collectives_are_summed_over_all_ranks(tmp_path: Path) -> None:
    collectives = attribute(graph_of(tmp_path, *late_peer())).collectives

    assert (collectives.count, collectives.recorded_ns) == (1, 150_000)
    assert (collectives.transfer_ns, collectives.wait_ns, collectives.wait_share) == (50_000, 50_000, 1 / 3)
    waits = ((0, 50_000), (1, 0))
    assert collectives.rows == (CollectiveRow("all_reduce", None, 0, None, (0, 1), 50_000, 0, 1, waits),)


def test_a_sensitivity_is_what_twice_the_speed_would_save(tmp_path: Path) -> None:
    attribution = attribute(graph_of(tmp_path, *late_peer()))

    # Host: rank 1 launches 30 µs earlier, and the last 75 µs become 37.5.
    assert attribution.sensitivity == (
        Sensitivity("host", 67_500, 0.675),
        Sensitivity("collective:all_reduce", 25_000, 0.25),
        Sensitivity("launch", 5_000, 0.05),
    )


def test_what_lies_before_the_recording_of_a_late_rank_is_its_late_entry(tmp_path: Path) -> None:
    attribution = attribute(graph_of(tmp_path, *late_peer(enters=50)))

    assert parts_of(attribution) == {
        "host": 85_000,
        "launch": 10_000,
        "late_entry": 50_000,
        "collective_transfer": 50_000,
        "sync": 5_000,
    }
    assert attribution.waits == (Wait(0, 1, "before the recording", "all_reduce#0", 50_000),)


def test_work_that_is_pinned_elsewhere_is_unexplained_and_no_late_entry(tmp_path: Path) -> None:
    # Nothing recorded the launch of the kernel: why it started at 50 is not known.
    trace = TraceFile(0, 1).step(1, 0, 200).kernel("gemm", 50, 100, 7).call("cudaDeviceSynchronize", 60, 95)

    assert parts_of(attribute(graph_of(tmp_path, trace))) == {
        "host": 45_000,
        "gemm": 100_000,
        "sync": 5_000,
        "unexplained": 50_000,
    }


def test_a_second_step_is_entered_late_by_nobody(tmp_path: Path) -> None:
    # Rank 1 enters its first step at 50, its second at 200 like rank 0: what lies before that is recorded.
    first, second = late_peer(enters=50)
    first.step(2, 200, 200).call(LAUNCH, 210, 5, 2).kernel(ALL_REDUCE, 220, 100, 7, 2).call(SYNC, 230, 95)
    second.step(2, 200, 200).call(LAUNCH, 260, 5, 2).kernel(ALL_REDUCE, 270, 50, 7, 2).call(SYNC, 280, 45)
    graph = graph_of(tmp_path, first, second)

    assert "late_entry" in parts_of(attribute(graph, 1))
    assert "late_entry" not in parts_of(attribute(graph, 2))
    assert attribute(graph, 2).waits == (Wait(0, 1, "host", "all_reduce#0", 50_000),)


def test_in_legal_overlap_the_time_until_the_next_kernel_starts_is_the_earlier_ones(tmp_path: Path) -> None:
    # The matrix product runs from 20 to 40, its successor starts at 30 and ends at 60.
    trace = TraceFile(0, 1).step(1, 0, 100).call(LAUNCH, 10, 2, 1).kernel("volta_sgemm", 20, 20, 7, 1)
    trace.kernel("vectorized_elementwise_kernel", 30, 30, 7).call("cudaDeviceSynchronize", 40, 25)

    attribution = attribute(graph_of(tmp_path, trace))

    assert parts_of(attribution) == {
        "host": 45_000,
        "launch": 10_000,
        "gemm": 10_000,
        "elementwise": 30_000,
        "sync": 5_000,
    }
    assert attribution.by_class == {"host": 45_000, "elementwise": 30_000, "gemm": 10_000}


def test_a_start_that_nothing_explains_is_unexplained(tmp_path: Path) -> None:
    attribution = attribute(graph_of(tmp_path, late_kernel()))

    assert parts_of(attribution) == {
        "host": 235_000,
        "launch": 10_000,
        "gemm": 50_000,
        "sync": 5_000,
        "unexplained": 1_000_000,
    }


def test_a_collective_with_a_missing_rank_is_one_unsplit_part(tmp_path: Path) -> None:
    attribution = attribute(graph_of(tmp_path, late_peer()[0]))

    # 10 host, 10 launch, 100 in the collective, 5 to wake up, 75 host
    assert parts_of(attribution) == {"host": 85_000, "launch": 10_000, "collective_unsplit": 100_000, "sync": 5_000}
    assert attribution.waits == ()


def test_a_collective_with_a_missing_rank_has_no_culprit_and_no_wait(tmp_path: Path) -> None:
    collectives = attribute(graph_of(tmp_path, late_peer()[0])).collectives

    assert (collectives.recorded_ns, collectives.transfer_ns, collectives.wait_ns) == (100_000, None, None)
    assert collectives.wait_share is None
    assert (collectives.rows[0].last_rank, collectives.rows[0].waits, collectives.rows[0].transfer_ns) == (None, None, None)


def test_a_job_without_collectives_has_none_and_no_share(tmp_path: Path) -> None:
    collectives = attribute(graph_of(tmp_path, TraceFile(0, 1).op("a", 0, 10))).collectives

    assert (collectives.count, collectives.recorded_ns, collectives.wait_share) == (0, 0, None)


def test_without_device_work_an_operators_own_time_counts_by_its_class(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("aten::linear", 10, 40).op("aten::t", 20, 5).op("aten::zero_", 60, 10)

    assert parts_of(attribute(graph_of(tmp_path, trace))) == {"host": 50_000, "gemm": 35_000, "copy": 10_000, "other": 5_000}


def test_host_time_under_the_data_loader_is_input(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 10, 30)

    assert parts_of(attribute(graph_of(tmp_path, trace.annotation("collate", 15, 10)))) == {"host": 70_000, "input": 30_000}


def test_what_other_ranks_do_after_the_end_is_a_tail_outside_the_sum(tmp_path: Path) -> None:
    first, second = TraceFile(0, 2).step(1, 0, 200).op("a", 10, 5), TraceFile(1, 2).step(1, 100, 150).op("a", 110, 5)

    attribution = attribute(graph_of(tmp_path, first, second))

    assert (attribution.rank, attribution.sum_ns, attribution.tail_ns) == (0, 200_000, 50_000)


def test_the_longest_step_is_taken_where_none_is_named(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("a", 10, 5).step(2, 100, 150).op("b", 110, 5)

    assert (attribute(graph_of(tmp_path, trace)).step, attribute(graph_of(tmp_path, trace), 1).step) == (2, 1)


def test_only_the_collectives_of_the_step_are_listed(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("a", 1, 1).kernel(ALL_REDUCE, 10, 20, 7).step(2, 100, 150).op("b", 110, 5)

    attribution = attribute(graph_of(tmp_path, trace.kernel(ALL_REDUCE, 130, 30, 7)))

    assert (attribution.collectives.count, attribution.collectives.recorded_ns) == (1, 30_000)


def test_a_kernel_that_overlaps_a_collective_does_not_hide_who_was_waited_for(tmp_path: Path) -> None:
    # On rank 0 a kernel starts at 100, before the collective ahead of it on its stream (20 to 120) has ended; of its time
    # 50 µs are waiting for rank 1, which arrives at 70, and only 30 are transfer.
    first, second = (TraceFile(r, 2, host_name="n").step(1, 0, 300 - 100 * r) for r in (0, 1))
    first.call(LAUNCH, 10, 5, 1).kernel(ALL_REDUCE, 20, 100, 7, 1).kernel("volta_sgemm", 100, 100, 7)
    first.call("cudaDeviceSynchronize", 150, 55)
    second.call(LAUNCH, 60, 5, 1).kernel(ALL_REDUCE, 70, 50, 7, 1)

    assert parts_of(attribute(graph_of(tmp_path, first, second)))["collective_transfer"] == 30_000


def test_a_step_of_no_length_has_no_parts(tmp_path: Path) -> None:
    attribution = attribute(graph_of(tmp_path, TraceFile(0).op("aten::mm", 5, 0)))

    assert (attribution.step_ns, attribution.sum_ns, attribution.parts) == (0, 0, ())


def test_without_marks_device_work_after_the_last_host_event_is_no_host_time(tmp_path: Path) -> None:
    # The host works 0 to 15, the kernel runs 20 to 120.
    trace = TraceFile(0).op("aten::mm", 0, 15).call(LAUNCH, 10, 5, 1).kernel("volta_sgemm", 20, 100, 7, 1)

    assert parts_of(attribute(graph_of(tmp_path, trace))) == {"gemm": 100_000, "host": 10_000, "launch": 10_000}
