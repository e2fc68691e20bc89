import numpy as np

from tracereplay.graph.tiling import Tiling, tile


def tiles(events: list[tuple[int, int]], low: int, high: int) -> Tiling:
    pairs = np.array(events, np.int64).reshape(-1, 2)
    return tile(pairs[:, 0], pairs[:, 1], low, high)


def segments(tiling: Tiling) -> list[tuple[int, int, int]]:
    return list(zip(tiling.start_ns.tolist(), tiling.end_ns.tolist(), tiling.owner.tolist(), strict=True))


def test_the_innermost_event_owns_the_time() -> None:
    tiling = tiles([(0, 10), (2, 5)], 0, 10)

    assert segments(tiling) == [(0, 2, 0), (2, 5, 1), (5, 10, 0), (10, 10, -1)]
    assert tiling.parent.tolist() == [-1, 0]


def test_boundaries_number_the_segment_that_starts_where_an_event_begins_or_ends() -> None:
    tiling = tiles([(0, 10), (2, 5)], 0, 10)

    assert (tiling.begin_boundary.tolist(), tiling.end_boundary.tolist()) == ([0, 1], [3, 2])


def test_time_that_no_event_covers_is_a_gap() -> None:
    tiling = tiles([(2, 4), (6, 8)], 0, 10)

    assert segments(tiling) == [(0, 2, -1), (2, 4, 0), (4, 6, -1), (6, 8, 1), (8, 10, -1), (10, 10, -1)]
    assert (tiling.begin_boundary.tolist(), tiling.end_boundary.tolist()) == ([1, 3], [2, 4])


def test_an_event_of_no_length_cuts_and_owns_nothing() -> None:
    tiling = tiles([(0, 10), (4, 4)], 0, 10)

    assert segments(tiling) == [(0, 4, 0), (4, 10, 0), (10, 10, -1)]
    assert (tiling.begin_boundary.tolist(), tiling.end_boundary.tolist()) == ([0, 1], [2, 1])


def test_two_events_that_begin_together_nest_the_shorter_in_the_longer() -> None:
    tiling = tiles([(0, 10), (0, 4)], 0, 10)

    assert segments(tiling) == [(0, 4, 1), (4, 10, 0), (10, 10, -1)]
    assert tiling.begin_boundary.tolist() == [0, 0]


def test_an_event_that_sticks_out_of_its_parent_keeps_its_time_and_is_counted() -> None:
    tiling = tiles([(0, 10), (5, 15)], 0, 20)

    assert segments(tiling) == [(0, 5, 0), (5, 15, 1), (15, 20, -1), (20, 20, -1)]
    assert (tiling.parent.tolist(), tiling.overlaps) == ([-1, 0], 1)


def test_nested_events_are_no_overlap() -> None:
    assert tiles([(0, 10), (5, 10), (10, 20)], 0, 20).overlaps == 0


def test_events_are_cut_to_the_window() -> None:
    tiling = tiles([(-5, 30), (-3, 2), (8, 40)], 0, 10)

    assert segments(tiling) == [(0, 2, 1), (2, 8, 0), (8, 10, 2), (10, 10, -1)]


def test_a_thread_without_events_is_one_gap() -> None:
    assert segments(tiles([], 3, 9)) == [(3, 9, -1), (9, 9, -1)]


def test_an_empty_window_is_one_segment_of_no_length() -> None:
    assert segments(tiles([], 3, 3)) == [(3, 3, -1)]
