import numpy as np
import pytest

from tracereplay.trace.times import TimeClass, classify_times, repair_durations, union_ns

OK, ZERO, UNFINISHED, LOST = TimeClass.OK, TimeClass.ZERO_LENGTH, TimeClass.UNFINISHED, TimeClass.LOST
FAR = 1_783_322_452_000_000_000


def classes(ts_ns: list[int], dur_ns: list[int], base_ns: int = 0) -> list[int]:
    return [int(c) for c in classify_times(np.array(ts_ns, np.int64), np.array(dur_ns, np.int64), base_ns)]


def repaired(*work: tuple[int, int], queues: tuple[int, ...] = ()) -> tuple[list[bool], list[int]]:
    """Impossible ones and durations of work given as (start, duration), on one queue unless ``queues`` says otherwise."""
    pairs = np.array(work, np.int64).reshape(-1, 2)
    impossible, durations = repair_durations(np.array(queues or [0] * len(work), np.int64), pairs[:, 0], pairs[:, 1])
    return impossible.tolist(), durations.tolist()


def test_durations_have_a_class_each() -> None:
    assert classes([FAR, FAR + 1, FAR + 2], [5, 0, -1]) == [OK, ZERO, UNFINISHED]


def test_nothing_has_no_class() -> None:
    assert classes([], []) == []


def test_no_start_and_no_length_among_events_with_starts_is_a_lost_record() -> None:
    assert classes([0, FAR, FAR], [0, 5, 5]) == [LOST, OK, OK]


def test_a_lost_record_of_a_file_with_a_base_starts_at_the_base() -> None:
    assert classes([FAR, FAR + 5_000_000_000, FAR + 6_000_000_000], [0, 5, 5], FAR) == [LOST, OK, OK]


def test_the_first_event_of_a_short_relative_file_may_start_at_zero() -> None:
    assert classes([0, 100, 200], [0, 5, 5]) == [ZERO, OK, OK]


def test_an_event_at_zero_with_a_length_is_not_lost() -> None:
    assert classes([0, FAR, FAR], [3, 5, 5])[0] == OK


@pytest.mark.parametrize(
    ("work", "impossible", "durations"),
    [
        ((), [], []),
        (((0, 10),), [False], [10]),
        (((0, 10), (10, 10)), [False, False], [10, 10]),
        # Q13, legal overlap: each next one ends later.
        (((100, 20), (115, 20), (140, 10)), [False, False, False], [20, 20, 10]),
        # Q14: b holds two whole later ones and is cut where the next begins.
        (((100, 10), (115, 3000), (120, 10), (135, 10)), [False, True, False, False], [10, 5, 10, 10]),
        # A whole later one that does not come next.
        (((0, 100), (10, 200), (50, 20)), [True, True, False], [10, 40, 20]),
        (((135, 10), (120, 10), (115, 3000), (100, 10)), [False, False, True, False], [10, 10, 5, 10]),
        # Ends together: the later one lies whole in the earlier.
        (((0, 10), (5, 5)), [True, False], [5, 5]),
        # Starts together: nobody knows which came first.
        (((0, 10), (0, 5)), [False, False], [10, 5]),
        # A zero-length copy inside.
        (((0, 10), (5, 0)), [True, False], [5, 0]),
        (((0, 10), (10, 0)), [False, False], [10, 0]),
    ],
)
def test_work_that_holds_whole_later_work_is_cut_at_the_next_start(
    work: tuple[tuple[int, int], ...], impossible: list[bool], durations: list[int]
) -> None:
    assert repaired(*work) == (impossible, durations)


def test_work_of_other_queues_makes_nothing_impossible() -> None:
    assert repaired((0, 100), (10, 20), (20, 200), queues=(1, 2, 1)) == ([False, False, False], [100, 20, 200])


@pytest.mark.parametrize(
    ("intervals", "length"),
    [
        ([], 0),
        ([(0, 10)], 10),
        ([(0, 10), (5, 15)], 15),
        ([(0, 10), (2, 4)], 10),
        ([(0, 10), (10, 20)], 20),
        ([(30, 40), (0, 10)], 20),
        ([(0, 100), (10, 20), (50, 120)], 120),
        ([(5, 5)], 0),
    ],
)
def test_length_of_a_union(intervals: list[tuple[int, int]], length: int) -> None:
    pairs = np.array(intervals, np.int64).reshape(-1, 2)

    assert union_ns(pairs[:, 0], pairs[:, 1]) == length
