from pathlib import Path
from typing import Any

import pytest

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.labels import edges_of, tasks_of
from tracereplay.graph.kinds import EdgeKind
from tracereplay.graph.model import DependencyGraph

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
BROADCAST = "ncclDevKernel_Broadcast_RING_LL"
SEND_RECV = "ncclDevKernel_SendRecv"


def rank(number: int, world_size: int | None = 2, **more: Any) -> TraceFile:
    return TraceFile(number, world_size, **more).step(1, 0, 1000).op("aten::empty", 1, 1)


def pair(folder: Path, name: str, first: tuple[int, int], second: tuple[int, int]) -> DependencyGraph:
    """Two ranks of one host with one collective each, given as (start, duration)."""
    ranks = rank(0, host_name="node0"), rank(1, host_name="node0")
    return graph_of(folder, ranks[0].kernel(name, *first, stream=7), ranks[1].kernel(name, *second, stream=7))


def test_an_all_reduce_splits_into_waiting_and_the_shortest_participants_duration(tmp_path: Path) -> None:
    graph = pair(tmp_path, ALL_REDUCE, (100, 100), (150, 50))

    (collective,) = graph.collectives
    assert (collective.name, collective.transfer_ns, collective.wait_ns) == ("all_reduce", 50_000, (50_000, 0))


def test_the_split_needs_no_common_clock(tmp_path: Path) -> None:
    # Rank 1's clock is 400 µs late: its durations still say that it waited for nobody.
    graph = pair(tmp_path, ALL_REDUCE, (100, 100), (550, 50))

    assert (graph.collectives[0].transfer_ns, graph.collectives[0].wait_ns) == (50_000, (50_000, 0))


def test_participants_meet_at_the_rendezvous_and_leave_it_with_their_transfers(tmp_path: Path) -> None:
    graph = pair(tmp_path, ALL_REDUCE, (100, 100), (150, 50))

    assert edges_of(graph, EdgeKind.COLLECTIVE) == [
        f"0:arrival {ALL_REDUCE}@100 -> rendezvous all_reduce@150",
        f"1:arrival {ALL_REDUCE}@150 -> rendezvous all_reduce@150",
        f"rendezvous all_reduce@150 -> 0:transfer {ALL_REDUCE}@150",
        f"rendezvous all_reduce@150 -> 1:transfer {ALL_REDUCE}@150",
    ]


def test_arrival_and_rendezvous_take_no_time(tmp_path: Path) -> None:
    tasks = tasks_of(pair(tmp_path, ALL_REDUCE, (100, 100), (150, 50)))

    assert (tasks[f"0:arrival {ALL_REDUCE}@100"], tasks["rendezvous all_reduce@150"]) == (0, 0)
    assert (tasks[f"0:transfer {ALL_REDUCE}@150"], tasks[f"1:transfer {ALL_REDUCE}@150"]) == (50_000, 50_000)


def test_a_share_is_no_longer_than_what_is_left_after_the_rendezvous(tmp_path: Path) -> None:
    # Both take 50 µs, but rank 0 ends 20 µs before rank 1: 30 µs are left after the last has arrived.
    graph = pair(tmp_path, ALL_REDUCE, (130, 50), (150, 50))

    tasks = tasks_of(graph)
    assert (tasks[f"0:transfer {ALL_REDUCE}@150"], tasks[f"1:transfer {ALL_REDUCE}@150"]) == (30_000, 50_000)


def test_a_broadcasts_transfer_is_from_the_latest_start_to_the_end(tmp_path: Path) -> None:
    graph = pair(tmp_path, BROADCAST, (100, 60), (150, 50))

    assert (graph.collectives[0].transfer_ns, graph.collectives[0].wait_ns) == (50_000, (10_000, 0))


def test_a_broadcast_whose_last_participant_starts_after_the_end_transfers_nothing(tmp_path: Path) -> None:
    graph = pair(tmp_path, BROADCAST, (100, 20), (150, 0))

    assert graph.collectives[0].transfer_ns == 0


@pytest.mark.parametrize("name", ["reduce", "gather", "scatter"])
def test_a_rooted_collective_transfers_from_the_latest_start_to_the_end(tmp_path: Path, name: str) -> None:
    # The last to start ends first: its own 20 µs are not the transfer, 160 − 120 is.
    ranks = [rank(r, host_name="node0") for r in (0, 1)]
    recorded: dict[str, Any] = {"Collective name": name}
    for trace, (start, dur) in zip(ranks, [(100, 60), (120, 20)], strict=True):
        trace.call("cudaLaunchKernel", 50, 5, 1).kernel("ncclDevKernel", start, dur, 7, 1, **recorded)

    (found,) = graph_of(tmp_path, *ranks).collectives

    assert (found.name, found.transfer_ns, found.wait_ns) == (name, 40_000, (20_000, 0))


def test_an_all_to_all_is_known_by_the_operator_around_its_launch(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 200).op("c10d::alltoall_base_", 10, 30).op("record_param_comms", 12, 20)

    graph = graph_of(tmp_path, trace.call("cudaLaunchKernel", 15, 5, 1).kernel(SEND_RECV, 30, 40, 7, 1))

    assert graph.collectives[0].name == "all_to_all"


def test_a_recorded_name_wins_over_the_kernels(tmp_path: Path) -> None:
    recorded: dict[str, Any] = {"Collective name": "all_to_allv"}
    trace = TraceFile(0, 1).step(1, 0, 200).op("a", 10, 5)

    assert graph_of(tmp_path, trace.kernel(SEND_RECV, 30, 40, 7, **recorded)).collectives[0].name == "all_to_all"


def test_without_operator_and_record_the_kernels_name_counts(tmp_path: Path) -> None:
    trace = rank(0, 1).call("cudaLaunchKernel", 15, 5, 1).kernel(SEND_RECV, 30, 40, 7, 1)

    assert graph_of(tmp_path, trace).collectives[0].name == "send_recv"


def test_collectives_of_a_kind_are_matched_by_their_order(tmp_path: Path) -> None:
    first = rank(0).kernel(ALL_REDUCE, 100, 50, 7).kernel(ALL_REDUCE, 200, 90, 7)
    second = rank(1).kernel(ALL_REDUCE, 120, 30, 7).kernel(ALL_REDUCE, 260, 30, 7)

    graph = graph_of(tmp_path, first, second)

    assert [(c.order, c.transfer_ns, c.wait_ns) for c in graph.collectives] == [
        (0, 30_000, (20_000, 0)),
        (1, 30_000, (60_000, 0)),
    ]


def test_collectives_of_different_kinds_are_not_matched_with_each_other(tmp_path: Path) -> None:
    first = rank(0, host_name="node0").kernel(ALL_REDUCE, 100, 50, 7).kernel(BROADCAST, 200, 50, 7)
    second = rank(1, host_name="node0").kernel(BROADCAST, 120, 30, 7).kernel(ALL_REDUCE, 260, 30, 7)

    names = [(c.name, c.start_ns) for c in graph_of(tmp_path, first, second).collectives]

    assert names == [("all_reduce", (100_000, 260_000)), ("broadcast", (200_000, 120_000))]


def test_collectives_are_matched_within_their_step(tmp_path: Path) -> None:
    # Rank 1 has no collective in step 1: its first one belongs to step 2.
    first = rank(0).kernel(ALL_REDUCE, 100, 50, 7).step(2, 1000, 500).kernel(ALL_REDUCE, 1100, 50, 7)
    second = rank(1).step(2, 1000, 500).kernel(ALL_REDUCE, 1120, 30, 7)

    graph = graph_of(tmp_path, first, second)

    assert [(c.step, c.ranks, c.transfer_ns) for c in graph.collectives] == [(1, (0,), None), (2, (0, 1), 30_000)]


def test_a_collective_with_a_participant_missing_stays_unsplit(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, rank(0).kernel(ALL_REDUCE, 100, 100, 7))

    (collective,) = graph.collectives
    assert (collective.transfer_ns, collective.wait_ns, collective.rendezvous) == (None, None, None)
    assert edges_of(graph, EdgeKind.COLLECTIVE) == [f"arrival {ALL_REDUCE}@100 -> unsplit {ALL_REDUCE}@100"]
    assert tasks_of(graph)[f"unsplit {ALL_REDUCE}@100"] == 100_000


def messages(
    world: int, times: list[tuple[int, int]], *, host: str | None = "node", kernel: str = SEND_RECV
) -> list[TraceFile]:
    """A kernel without args on each rank in turn: (start, duration)."""
    traces = [rank(number, world, host_name=host) for number in range(world)]
    for place, (start, duration) in enumerate(times):
        traces[place % world].kernel(kernel, start, duration, 7)
    return traces


def test_sends_and_receives_without_args_on_all_ranks_are_joined_by_order_and_common_ends(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, *messages(2, [(100, 60), (150, 10), (300, 20), (280, 41)]))

    assert [(c.name, c.ranks, c.transfer_ns) for c in graph.collectives] == [
        ("send_recv", (0, 1), 10_000),
        ("send_recv", (0, 1), 21_000),  # from the later start to the later end
    ]
    assert not any("cannot be split" in warning for warning in graph.warnings)


NO_CLOCK = "no clock tells which ended together"
APART = "their ends do not lie together on all of them or on two"


@pytest.mark.parametrize(
    ("host", "times", "why"), [("node", [(100, 60), (150, 90)], APART), (None, [(100, 60), (150, 10)], NO_CLOCK)]
)
def test_where_no_ends_show_who_took_part_the_note_says_so(
    host: str | None, times: list[tuple[int, int]], why: str, tmp_path: Path
) -> None:
    graph = graph_of(tmp_path, *messages(2, times, host=host))

    assert [(c.ranks, c.rendezvous, c.transfer_ns) for c in graph.collectives] == [((0, 1), None, None)]
    (warning,) = [warning for warning in graph.warnings if "cannot be split" in warning]
    assert warning == (
        "1 collectives cannot be split into waiting and transfer: sends and receives of which nothing recorded names the "
        f"ranks, and {why}"
    )


def test_with_a_rank_missing_they_are_not_joined(tmp_path: Path) -> None:
    first, second, _ = messages(3, [(100, 60), (150, 10)])

    assert [c.transfer_ns for c in graph_of(tmp_path, first, second).collectives] == [None]


def test_messages_between_pairs_show_by_their_ends_beside_collectives_of_all(tmp_path: Path) -> None:
    # Rank 0 sends to 1 and 2 to 3; all four run all-reduces that fit by order.
    traces = messages(4, [(100 + 300 * n, 50) for n in range(12) for _ in range(4)], kernel=ALL_REDUCE)
    for place in range(3):
        for number, trace in enumerate(traces):
            trace.kernel(SEND_RECV, 160 + 300 * place + 60 * (number // 2), 40 + number % 2, 8)

    graph = graph_of(tmp_path, *traces)

    found = [(c.ranks, c.transfer_ns) for c in graph.collectives if c.name == "send_recv"]
    assert found == [((0, 1), 41_000), ((2, 3), 41_000)] * 3
    assert {c.ranks for c in graph.collectives if c.name == "all_reduce"} == {(0, 1, 2, 3)}


def test_sends_and_receives_of_a_recorded_group_are_joined(tmp_path: Path) -> None:
    size: dict[str, Any] = {"Group size": 2}
    ranks = rank(0, 4), rank(1, 4)

    graph = graph_of(tmp_path, ranks[0].kernel(SEND_RECV, 100, 60, 7, **size), ranks[1].kernel(SEND_RECV, 150, 10, 7, **size))

    assert [(c.name, c.ranks, c.transfer_ns) for c in graph.collectives] == [("send_recv", (0, 1), 10_000)]


def test_a_send_receive_kernel_that_one_rank_knows_for_an_all_to_all_is_joined(tmp_path: Path) -> None:
    known: dict[str, Any] = {"Collective name": "all_to_all"}

    graph = graph_of(tmp_path, rank(0).kernel(SEND_RECV, 100, 60, 7), rank(1).kernel(SEND_RECV, 150, 10, 7, **known))

    assert [(c.name, c.ranks, c.transfer_ns) for c in graph.collectives] == [("all_to_all", (0, 1), 10_000)]


def test_more_participants_than_the_group_has_are_not_joined(tmp_path: Path) -> None:
    size: dict[str, Any] = {"Group size": 2}

    graph = graph_of(tmp_path, *(rank(r, 4).kernel(ALL_REDUCE, 100, 50, 7, **size) for r in range(3)))

    assert [(c.ranks, c.rendezvous, c.transfer_ns) for c in graph.collectives] == [((0, 1, 2), None, None)]


def test_exactly_the_participants_that_the_group_has_are_joined(tmp_path: Path) -> None:
    size: dict[str, Any] = {"Group size": 3}

    graph = graph_of(tmp_path, *(rank(r, 4).kernel(ALL_REDUCE, 100, 50, 7, **size) for r in range(3)))

    assert [(c.ranks, c.transfer_ns) for c in graph.collectives] == [((0, 1, 2), 50_000)]


def test_several_ranks_of_a_job_of_unknown_size_are_taken_to_be_all(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, rank(0, None).kernel(ALL_REDUCE, 100, 100, 7), rank(1, None).kernel(ALL_REDUCE, 150, 50, 7))

    assert graph.collectives[0].transfer_ns == 50_000


def test_one_rank_of_a_job_of_unknown_size_is_never_all(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, rank(0, None).kernel(ALL_REDUCE, 100, 100, 7))

    assert graph.collectives[0].transfer_ns is None


def test_a_process_group_of_few_is_complete_without_the_other_ranks(tmp_path: Path) -> None:
    groups = {"0": [0, 1, 2, 3], "1": [0, 1]}
    group: dict[str, Any] = {"Process Group Name": "1"}

    graph = graph_of(
        tmp_path,
        rank(0, 4, groups=groups).kernel(ALL_REDUCE, 100, 100, 7, **group),
        rank(1, 4, groups=groups).kernel(ALL_REDUCE, 150, 50, 7, **group),
    )

    assert (graph.collectives[0].group, graph.collectives[0].transfer_ns) == ("1", 50_000)


def test_groups_are_not_matched_with_each_other(tmp_path: Path) -> None:
    groups = {"1": [0, 2], "2": [1, 3]}
    one: dict[str, Any] = {"Process Group Name": "1"}
    two: dict[str, Any] = {"Process Group Name": "2"}

    graph = graph_of(
        tmp_path,
        rank(0, 4, groups=groups).kernel(ALL_REDUCE, 100, 100, 7, **one),
        rank(1, 4, groups=groups).kernel(ALL_REDUCE, 150, 50, 7, **two),
    )

    assert [(c.group, c.ranks, c.transfer_ns) for c in graph.collectives] == [("1", (0,), None), ("2", (1,), None)]


def test_a_recorded_group_makes_the_edges_recorded(tmp_path: Path) -> None:
    group: dict[str, Any] = {"Process Group Name": "0"}

    with_group = graph_of(tmp_path, rank(0, 1).kernel(ALL_REDUCE, 100, 100, 7, **group))
    without = graph_of(tmp_path, rank(0, 1).kernel(ALL_REDUCE, 100, 100, 7))

    assert with_group.coverage.edges["collective"] == {"recorded": 2, "inferred": 0}
    assert without.coverage.edges["collective"] == {"recorded": 0, "inferred": 2}


@pytest.mark.parametrize(
    ("args", "size"),
    [
        ({"In msg nelems": 1000, "dtype": "BFloat16"}, 2000),
        ({"In msg nelems": 1000, "dtype": "Unknown"}, None),
        ({"Input Dims": [[64, 10]], "Input type": ["float"]}, 2560),
        ({"Input Dims": [[64, 10]], "Input type": ["who knows"]}, None),
        ({"Input Dims": [[[2], [3]]], "Input type": ["float"]}, 20),
        ({"Input Dims": [[[183297]]], "Input type": ["TensorList"], "dtype": "Float"}, None),
        ({"Input Dims": [[[183297]], []], "Input type": ["TensorList", "float"]}, 733188),
        ({"Input Dims": [[[183297]]], "Input type": ["TensorList"]}, None),
        ({"Input Dims": [], "Input type": []}, None),
        ({}, None),
    ],
)
def test_bytes_are_those_that_the_row_records(tmp_path: Path, args: dict[str, Any], size: int | None) -> None:
    graph = graph_of(tmp_path, rank(0, 1).kernel(ALL_REDUCE, 100, 100, 7, **args))

    assert graph.collectives[0].bytes == size


def test_ranks_of_different_hosts_are_joined_by_scale_out(tmp_path: Path) -> None:
    near = rank(0, host_name="node0").kernel(ALL_REDUCE, 100, 100, 7)
    far = rank(1, host_name="node1").kernel(ALL_REDUCE, 150, 50, 7)

    assert graph_of(tmp_path, near, far).collectives[0].scale_out is True


def test_ranks_of_one_host_are_joined_by_scale_up(tmp_path: Path) -> None:
    near = rank(0, host_name="node0").kernel(ALL_REDUCE, 100, 100, 7)
    also_near = rank(1, host_name="node0").kernel(ALL_REDUCE, 150, 50, 7)

    assert graph_of(tmp_path, near, also_near).collectives[0].scale_out is False


def grouped(world: int, groups: list[tuple[int, ...]], times: list[int]) -> list[TraceFile]:
    """All-reduces without args: each group runs one at each time, the second group 50 µs after the first, in one step."""
    traces = [TraceFile(rank, world, host_name="node").step(1, 0, 2000).op("aten::mm", 1, 2) for rank in range(world)]
    for number, group in enumerate(groups):
        for rank in group:
            for place, time in enumerate(times):
                at = time + 50 * number
                traces[rank].call("cudaLaunchKernel", at - 10 - rank, 2, 10 * place + number + 1)
                traces[rank].kernel("ncclDevKernel_AllReduce_Sum", at - rank, 30 + rank, 20 + number, 10 * place + number + 1)
    return traces


def test_groups_that_no_recording_names_show_by_their_ends(tmp_path: Path) -> None:
    # Rank 0 and 1 are one group, 2 and 3 another: by kind and order alone the four would be taken for one.
    graph = graph_of(tmp_path, *grouped(4, [(0, 1), (2, 3)], [100, 400, 700]))

    assert [c.ranks for c in graph.collectives] == [(0, 1), (2, 3)] * 3
    assert {c.transfer_ns for c in graph.collectives} == {30_000, 32_000}
    assert any("whose ends lie together" in warning for warning in graph.warnings)


def test_one_group_of_all_ranks_is_left_to_kind_and_order(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, *grouped(4, [(0, 1, 2, 3)], [100, 400, 700]))

    assert [c.ranks for c in graph.collectives] == [(0, 1, 2, 3)] * 3
    assert not any("whose ends lie together" in warning for warning in graph.warnings)
