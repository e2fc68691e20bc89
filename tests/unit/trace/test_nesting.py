import numpy as np
import pytest

from tracereplay.trace.nesting import parent_rows


def parents(*events: tuple[int, int], threads: tuple[int, ...] = ()) -> list[int]:
    """Parents of events given as (start, end) in file order, on one thread unless ``threads`` says otherwise."""
    pairs = np.array(events, np.int64).reshape(-1, 2)
    thread = np.array(threads or [0] * len(events), np.int64)
    return [int(row) for row in parent_rows(thread, pairs[:, 0], pairs[:, 1], np.arange(len(events), dtype=np.int64))]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((), []),
        (((0, 10),), [-1]),
        #  |0 ------------------------- 100|
        #     |10 ------- 50|   |60 -- 70|
        #        |20 - 30|
        (((0, 100), (10, 50), (20, 30), (60, 70)), [-1, 0, 1, 0]),
        (((60, 70), (20, 30), (10, 50), (0, 100)), [3, 2, 3, -1]),
        (((0, 10), (10, 20)), [-1, -1]),
        (((0, 10), (0, 10), (0, 10)), [-1, 0, 1]),
        (((0, 10), (0, 20)), [1, -1]),
        (((0, 20), (10, 20)), [-1, 0]),
        #  |0 -------------------------- 100|
        #     |10 ---- 50|
        #           |40 ------ 60|                 sticks out of the second, lies in the first
        #               |45-48|                    lies in the third
        (((0, 100), (10, 50), (40, 60), (45, 48)), [-1, 0, 0, 2]),
        #  |0 ---- 50|
        #      |40 ------ 60|
        #            |52-58|                       the first has ended
        (((0, 50), (40, 60), (52, 58)), [-1, -1, 1]),
        (((0, 10), (5, 5)), [-1, 0]),
        (((5, 5), (5, 5)), [-1, -1]),
        (((-10, -5), (-9, -6)), [-1, 0]),
    ],
)  # fmt: skip
def test_the_parent_is_the_innermost_event_around(events: tuple[tuple[int, int], ...], expected: list[int]) -> None:
    assert parents(*events) == expected


def test_events_of_different_threads_do_not_nest() -> None:
    assert parents((0, 100), (10, 20), (11, 12), threads=(1, 2, 2)) == [-1, -1, 1]


def test_of_equal_intervals_the_one_recorded_first_is_the_outer() -> None:
    times = np.array([5, 5], np.int64), np.array([9, 9], np.int64)

    assert parent_rows(np.zeros(2, np.int64), *times, np.array([7, 3])).tolist() == [1, -1]


def test_an_event_that_outlives_its_would_be_parent_still_ends_before_the_grandparent() -> None:
    # After the one that sticks out, a later event may still lie in the one that it stuck out of.
    #  |0 --------- 100|
    #    |10 ---------------- 120|
    #       |20 - 30|
    assert parents((0, 100), (10, 120), (20, 30), (110, 115)) == [-1, -1, 1, 1]
