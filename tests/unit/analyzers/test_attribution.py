from pathlib import Path

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.workloads import ALL_REDUCE, late_kernel, late_peer
from tracereplay.analyzers.attribution import Attribution, CollectiveRow, Part, Sensitivity, Wait, attribute


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
    assert attribute(graph_of(tmp_path, *late_peer())).by_class == {"host": 140_000, "collective": 60_000}


def test_a_wait_names_who_caused_it_and_by_what(tmp_path: Path) -> None:
    attribution = attribute(graph_of(tmp_path, *late_peer()))

    # While rank 0 waits (20 to 70), rank 1 is 40 µs on its host and 10 in its launch.
    assert attribution.waits == (Wait(0, 1, "host", "all_reduce#0", 50_000),)


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
