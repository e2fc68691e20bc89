from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from tests.fakes.graphs import Edge, Task, graph_by_hand
from tracereplay.errors import UsageError
from tracereplay.graph.kinds import EdgeKind, NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.contention import Links, links_of, replay_on_links
from tracereplay.replay.engine import replay


def transfers(*spans: tuple[int, int]) -> DependencyGraph:
    """Transfers that wait for nothing, as (start, duration at full rate)."""
    return graph_by_hand([Task(start, dur, NodeKind.TRANSFER, release=start) for start, dur in spans], [])


def ends(graph: DependencyGraph, routes: Mapping[int, Sequence[int]], capacity: Sequence[float]) -> list[int]:
    return [int(end) for end in replay_on_links(graph, links_of(graph, routes, capacity)).end_ns]


ONE_LINK = {0: [0], 1: [0]}


def test_two_equal_transfers_at_once_take_twice_as_long() -> None:
    assert ends(transfers((0, 10), (0, 10)), ONE_LINK, [1]) == [20, 20]


def test_a_transfer_that_comes_later_slows_the_first_from_then_on() -> None:
    # A is alone until 5, then both run at half the rate: A's other 5 take until 15, B's first 5 as well, its rest is alone.
    assert ends(transfers((0, 10), (5, 10)), ONE_LINK, [1]) == [15, 20]


def test_transfers_that_do_not_overlap_do_not_slow_each_other() -> None:
    assert ends(transfers((0, 10), (10, 10)), ONE_LINK, [1]) == [10, 20]


def test_a_link_that_holds_both_slows_neither() -> None:
    assert ends(transfers((0, 10), (5, 10)), ONE_LINK, [2]) == [10, 15]


def test_three_transfers_share_what_two_would_fill() -> None:
    # Two thirds of the rate each.
    assert ends(transfers((0, 10), (0, 10), (0, 10)), {0: [0], 1: [0], 2: [0]}, [2]) == [15, 15, 15]


def test_a_link_slower_than_a_transfer_slows_it_alone() -> None:
    assert ends(transfers((0, 10)), {0: [0]}, [0.5]) == [20]


def test_a_short_transfer_leaves_its_share_to_the_long_one() -> None:
    # Half the rate each until the 4 are through at 8; of the 10 then 6 are left.
    assert ends(transfers((0, 4), (0, 10)), ONE_LINK, [1]) == [8, 14]


def test_a_transfer_over_two_links_runs_at_the_rate_of_the_busier_one() -> None:
    # Link 0: A, B. Link 1: A, C, D: a third each; B takes the two thirds of link 0 that A leaves.
    routes = {0: [0, 1], 1: [0], 2: [1], 3: [1]}

    assert ends(transfers((0, 10), (0, 20), (0, 10), (0, 10)), routes, [1, 1]) == [30, 30, 30, 30]


def test_three_transfers_on_different_links_share_where_they_meet() -> None:
    # Link 0: A, B. Link 1: B, C. Half the rate each until A and B end at 20; C's other 20 run alone.
    assert ends(transfers((0, 10), (0, 10), (0, 30)), {0: [0], 1: [0, 1], 2: [1]}, [1, 1]) == [20, 20, 40]


def test_a_slowed_transfer_frees_a_link_that_it_does_not_fill() -> None:
    # A over links 0 and 1 gets a third of link 0 (A, B, C); D has the rest of link 1: two thirds.
    routes = {0: [0, 1], 1: [0], 2: [0], 3: [1]}

    assert ends(transfers((0, 10), (0, 10), (0, 10), (0, 10)), routes, [1, 1]) == [30, 30, 30, 15]


def test_links_apart_do_not_know_of_each_other() -> None:
    assert ends(transfers((0, 10), (0, 10), (3, 8)), {0: [0], 1: [1], 2: [1]}, [1, 1]) == [10, 17, 18]


def test_a_task_without_links_is_never_slowed() -> None:
    assert ends(transfers((0, 10), (0, 10), (0, 10)), ONE_LINK, [1]) == [20, 20, 10]


def test_a_transfer_of_no_length_takes_no_share() -> None:
    assert ends(transfers((0, 10), (5, 0)), ONE_LINK, [1]) == [10, 5]


def test_an_end_between_two_nanoseconds_is_the_later_one() -> None:
    # Each at a rate of 0.15: 6.67 ns.
    assert ends(transfers((0, 1), (0, 1)), ONE_LINK, [0.3]) == [7, 7]


@pytest.mark.parametrize("count", [3, 49])
def test_a_rate_that_no_float_holds_costs_no_nanosecond(count: int) -> None:
    # 1 / (1 / 49) is more than 49 in floating point.
    assert ends(transfers(*[(0, 1)] * count), {n: [0] for n in range(count)}, [1]) == [count] * count


def test_hours_at_a_shared_rate_are_exact() -> None:
    hours = 3_600_000_000_001

    assert ends(transfers((0, hours), (0, hours)), ONE_LINK, [1]) == [2 * hours, 2 * hours]


def test_times_since_the_epoch_are_exact() -> None:
    now = 1_700_000_000_123_456_789

    assert ends(transfers((now, 10), (now + 5, 10)), ONE_LINK, [1]) == [now + 15, now + 20]


#   transfers A and B at once on one link; C waits for A's end (lag 3), D for A's start (lag 2)
A, B, C, D = range(4)


def followed(c: Task) -> DependencyGraph:
    tasks = [Task(0, 10, NodeKind.TRANSFER, release=0), Task(0, 10, NodeKind.TRANSFER, release=0), c, Task(2, 5)]
    edges = [Edge(A, C, 3), Edge(A, D, 2, from_start=True, kind=EdgeKind.LAUNCH)]
    return graph_by_hand(tasks, edges)


def test_what_waits_for_a_slowed_transfer_starts_later_and_what_waits_for_its_start_does_not() -> None:
    graph = followed(Task(13, 1))

    schedule = replay_on_links(graph, links_of(graph, ONE_LINK, [1]))

    assert schedule.start_ns.tolist() == [0, 0, 23, 2]
    assert schedule.end_ns.tolist() == [20, 20, 24, 7]
    assert [None if e < 0 else int(graph.edges.src[e]) for e in schedule.waited_for] == [None, None, A, A]


def test_no_residue_starts_a_task_before_the_slowed_transfer_that_it_waits_for() -> None:
    graph = followed(Task(13, 1, residue=-15))

    assert replay_on_links(graph, links_of(graph, ONE_LINK, [1])).start_ns[C] == 20


def test_a_release_outlasts_a_slowed_transfer() -> None:
    graph = followed(Task(13, 1, release=40))

    schedule = replay_on_links(graph, links_of(graph, ONE_LINK, [1]))

    assert (schedule.start_ns[C], schedule.waited_for[C]) == (40, -1)


def test_a_transfer_that_waits_for_another_joins_when_it_ends() -> None:
    #  A 10 and B 30 share a link until A ends at 20; then C takes A's place: B has 20 left, C 10: C until 40, B until 50.
    tasks = [Task(0, 10, release=0), Task(0, 30, release=0), Task(10, 10)]
    graph = graph_by_hand(tasks, [Edge(0, 2)])

    assert ends(graph, {0: [0], 1: [0], 2: [0]}, [1]) == [20, 50, 40]


def test_the_order_of_links_in_a_route_changes_nothing() -> None:
    graph = transfers((0, 10), (2, 20), (3, 10), (5, 10))
    routes = {0: [0, 1, 2], 1: [0, 2], 2: [1], 3: [2, 1]}

    assert ends(graph, routes, [1, 1.5, 1.25]) == ends(graph, {n: r[::-1] for n, r in routes.items()}, [1, 1.5, 1.25])


def test_without_links_the_schedule_is_the_compiled_pass_s() -> None:
    graph = followed(Task(13, 1, residue=-2))

    alone, shared = replay(graph), replay_on_links(graph, links_of(graph, {}, []))

    np.testing.assert_array_equal(alone.start_ns, shared.start_ns)
    np.testing.assert_array_equal(alone.end_ns, shared.end_ns)
    np.testing.assert_array_equal(alone.waited_for, shared.waited_for)


@pytest.mark.parametrize("capacity", [0.0, -1.0, float("nan"), float("inf")])
def test_a_capacity_that_is_no_number_above_0_is_refused(capacity: float) -> None:
    with pytest.raises(UsageError, match="give finite numbers above 0"):
        links_of(transfers((0, 10)), {0: [0]}, [capacity])


@pytest.mark.parametrize("route", [[1], [-1], [0, 0]])
def test_a_route_over_links_that_are_not_there_or_twice_is_refused(route: list[int]) -> None:
    with pytest.raises(UsageError, match="task 0 has the links"):
        links_of(transfers((0, 10)), {0: route}, [1])


def test_a_route_for_a_task_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="a route for task 7"):
        links_of(transfers((0, 10)), {7: [0]}, [1])


def test_links_of_another_graph_are_refused() -> None:
    with pytest.raises(UsageError, match="links of 3 tasks, the graph has 1"):
        replay_on_links(transfers((0, 10)), Links(np.zeros(4, np.int64), np.zeros(0, np.int64), np.zeros(0)))
