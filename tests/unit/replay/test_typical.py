import numpy as np
import pytest

from tests.fakes.graphs import Edge, Task, graph_by_hand
from tracereplay.replay.typical import Alike, typical_times


def alike(group: list[int], source: list[bool] | None = None, known: list[bool] | None = None) -> Alike:
    every = np.ones(len(group), np.bool_)
    return Alike(
        np.array(group, np.int64),
        every if source is None else np.array(source, np.bool_),
        every if known is None else np.array(known, np.bool_),
    )


@pytest.mark.parametrize(
    ("values", "median"),
    [([7], 7), ([1, 9], 5), ([9, 1, 2], 2), ([10, 1, 100, 4], 7), ([1, 2], 1), ([-3, -2], -3)],
    ids=["one", "two", "three", "four", "rounded_down", "rounded_down_below_zero"],
)
def test_a_median_is_the_middle_or_the_mean_of_the_middle_two(values: list[int], median: int) -> None:
    assert alike([0] * len(values)).median(np.array(values)).tolist() == [median] * len(values)


def test_each_group_has_its_own_median() -> None:
    assert alike([1, 0, 1, 0, 1]).median(np.array([5, 10, 6, 20, 100])).tolist() == [6, 15, 6, 15, 6]


def test_medians_are_those_of_the_sources_and_for_the_known() -> None:
    tasks = alike([0, 0, 0, 1], source=[False, True, True, False], known=[True, True, False, True])

    # The third is not known, the fourth has no source: both keep their own.
    assert tasks.median(np.array([1000, 4, 6, 9])).tolist() == [5, 5, 6, 9]


def test_the_lag_of_the_same_work_is_the_median_whatever_its_parts() -> None:
    # Three pairs of tasks: 1, 3 and 5 start 10, 12 and 30 ns after 0, 2 and 4. The typical lags of their edges differ.
    tasks = [Task(0, 5), Task(10, 5, residue=2), Task(0, 5), Task(12, 5, residue=0), Task(0, 5), Task(30, 5, residue=24)]
    edges = [Edge(0, 1, 8, True), Edge(2, 3, 12, True), Edge(4, 5, 6, True)]

    typical = typical_times(graph_by_hand(tasks, edges), alike([0, 1, 0, 1, 0, 1]), alike([0, 0, 0]))

    assert typical.lag_ns.tolist() == [8, 8, 8]
    assert (typical.lag_ns + typical.residue_ns[[1, 3, 5]]).tolist() == [12, 12, 12]


def test_a_task_without_peers_keeps_its_start_under_the_lags_of_others() -> None:
    # Task 1 starts 10 ns after task 0: 6 of lag and 4 of residue become 9 and 1.
    tasks = [Task(0, 5), Task(10, 5, residue=4), Task(0, 5), Task(12, 5, residue=0)]

    typical = typical_times(
        graph_by_hand(tasks, [Edge(0, 1, 6, True), Edge(2, 3, 12, True)]),
        alike([0, 1, 0, 2], known=[True, False, True, False]),
        alike([0, 0]),
    )

    assert (typical.lag_ns.tolist(), typical.residue_ns.tolist()) == ([9, 9], [0, 1, 0, 3])
