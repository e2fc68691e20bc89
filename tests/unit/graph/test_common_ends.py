import numpy as np

from tracereplay.graph.common_ends import ended_together

US = 1_000


def numbers(*entries: tuple[int, int, int]) -> list[int]:
    """Of entries (rank, queue, end in µs), all of one kind, renumbered in the order of their first entry."""
    rank, queue, end = (np.array(column, np.int64) for column in zip(*entries, strict=True))
    found = ended_together(rank, queue, np.zeros(rank.size, np.int64), end * US).tolist()
    order = list(dict.fromkeys(found))
    return [order.index(number) for number in found]


def test_ends_within_microseconds_are_one_collective_and_later_ones_another() -> None:
    assert numbers((0, 0, 100), (1, 0, 104), (0, 0, 200), (1, 0, 203)) == [0, 0, 1, 1]


def test_a_rank_takes_part_once() -> None:
    assert numbers((0, 0, 100), (1, 0, 101), (0, 1, 102), (1, 1, 103)) == [0, 0, 1, 1]


def test_other_kinds_are_never_together() -> None:
    ends = np.array([100, 100], np.int64) * US

    assert ended_together(np.array([0, 1]), np.array([0, 0]), np.array([0, 1]), ends).tolist() == [0, 1]


def test_groups_that_end_together_once_by_accident_are_told_apart_by_the_other_times() -> None:
    alone = [(0, 5, 100), (1, 5, 101), (2, 5, 300), (3, 5, 301), (0, 5, 500), (1, 5, 501), (2, 5, 700), (3, 5, 701)]
    at_once = [(0, 5, 900), (1, 5, 901), (2, 5, 902), (3, 5, 903)]

    assert numbers(*alone, *at_once) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_groups_in_lock_step_are_told_apart_by_gaps_that_recur() -> None:
    # {0, 1} ends 5 µs before {2, 3}, twice; inside the groups ends agree.
    first = [(0, 5, 100), (1, 5, 100), (2, 5, 105), (3, 5, 105)]
    second = [(0, 5, 300), (1, 5, 300), (2, 5, 305), (3, 5, 305)]

    assert numbers(*first, *second) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_one_group_whose_ends_scatter_stays_one() -> None:
    assert numbers((0, 5, 100), (1, 5, 103), (2, 5, 105), (3, 5, 107)) == [0, 0, 0, 0]
