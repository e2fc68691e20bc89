import numpy as np
import pytest

from tracereplay.trace.clock import RankClock, contradictions, fit_clock

# Ends of collectives on the reference clock, 1 ms apart.
ENDS = [1_000_000 * i for i in range(1, 12)]


def fitted(differences: list[int], *, apply: bool = True) -> RankClock:
    """The clock of rank 1 whose ends are later than the reference's by ``differences``."""
    reference = ENDS[: len(differences)]
    return fit_clock(1, [r + d for r, d in zip(reference, differences, strict=True)], reference, apply=apply)


def test_without_an_anchor_nothing_is_known() -> None:
    clock = fitted([])

    assert clock == RankClock(1, None, None, None, None, 0)
    assert clock.corrected(np.array([7], np.int64)).tolist() == [7]


def test_one_anchor_gives_a_constant() -> None:
    # The interval is 1.96 * 1.2533 of half a nanosecond of deviation at least: 2 ns.
    assert fitted([500_000]) == RankClock(1, 500_000, 0.0, 0, 2, 1, 1_500_000, True)


def test_equal_differences_are_a_constant_without_residual() -> None:
    assert fitted([500_000] * 4) == RankClock(1, 500_000, 0.0, 0, 1, 4, 1_500_000, True)


@pytest.mark.parametrize("offset", [-3_000_000_000, -500, 0, 7_000_000_000_000_000])
def test_an_offset_of_any_size_is_found(offset: int) -> None:
    assert (fitted([offset] * 3).offset_ns, fitted([offset] * 3).residual_ns) == (offset, 0)


def test_the_skew_of_aligned_clocks_is_a_residual_and_no_drift() -> None:
    clock = fitted([1_000, 3_000, -2_000, 8_000, 0, 1_500, 2_000])

    assert (clock.offset_ns, clock.drift_ppm, clock.residual_ns) == (1_500, 0.0, 6_500)


def test_a_single_late_end_moves_nothing() -> None:
    clock = fitted([500_000] * 10 + [9_500_000])

    assert (clock.offset_ns, clock.drift_ppm, clock.residual_ns) == (500_000, 0.0, 9_000_000)


def test_a_drift_is_found_where_a_line_explains_what_a_constant_does_not() -> None:
    # The clock gains 20 µs a millisecond of its own: 20000 / 1020000.
    clock = fitted([500_000 + 20_000 * i for i in range(10)])

    assert (clock.offset_ns, clock.residual_ns, clock.anchors, clock.reference_ns) == (500_000, 0, 10, 1_500_000)
    assert clock.drift_ppm == pytest.approx(1e6 * 20_000 / 1_020_000)


def test_two_anchors_of_different_offset_make_a_line() -> None:
    # Q23b.
    clock = fitted([500_000, 520_000])

    assert (clock.offset_ns, clock.residual_ns) == (500_000, 0)
    assert clock.drift_ppm == pytest.approx(1e6 * 20_000 / 1_020_000)


def test_a_late_end_does_not_bend_the_line() -> None:
    differences = [500_000 + 20_000 * i for i in range(11)]
    differences[4] += 30_000

    clock = fitted(differences)

    assert clock.drift_ppm == pytest.approx(1e6 * 20_000 / 1_020_000)
    assert (clock.offset_ns, clock.residual_ns) == (500_000, 29_412)


def test_anchors_at_one_time_give_a_constant() -> None:
    clock = fit_clock(1, [100, 100, 100], [50, 50_000, 90_000], apply=True)

    assert (clock.offset_ns, clock.drift_ppm) == (-49_900, 0.0)


def test_times_are_corrected_by_the_offset() -> None:
    clock = RankClock(1, 500, 0.0, 0, 0, 3, reference_ns=1_000, applied=True)

    assert clock.corrected(np.array([1_000, 2_000], np.int64)).tolist() == [500, 1_500]


def test_times_are_corrected_by_the_drift_from_its_reference_on() -> None:
    clock = RankClock(1, 500, 100.0, 0, 0, 3, reference_ns=1_000_000, applied=True)

    assert clock.corrected(np.array([0, 1_000_000, 11_000_000], np.int64)).tolist() == [-400, 999_500, 10_998_500]


def test_times_at_epoch_scale_are_corrected_to_the_nanosecond() -> None:
    start = 1_783_322_452_123_456_789
    clock = RankClock(1, 123_456_789, 0.0, 0, 0, 3, reference_ns=start, applied=True)

    assert clock.corrected(np.array([start, start + 1], np.int64)).tolist() == [
        1_783_322_452_000_000_000,
        1_783_322_452_000_000_001,
    ]


def test_a_clock_that_is_not_applied_leaves_times_as_they_are() -> None:
    assert fitted([500_000] * 3, apply=False).corrected(np.array([7], np.int64)).tolist() == [7]


def test_corrected_ends_are_the_references() -> None:
    clock = fitted([500_000 + 20_000 * i for i in range(11)])

    own = np.array([r + 500_000 + 20_000 * i for i, r in enumerate(ENDS)], np.int64)
    assert np.abs(clock.corrected(own) - np.array(ENDS)).max() <= 1


@pytest.mark.parametrize(
    ("differences", "count"),
    [
        ([], 0),
        ([7_000, -7_000, 6_000, 0], 0),  # as ends scatter on one clock
        ([500_000] * 5, 5),
        ([500_000, 500_000, 501_000, 499_000, 500_000, 0], 5),
        ([0, 0, 0, 0, 0, 900_000], 0),  # one late end is no other clock
        ([90_000 * i - 450_000 for i in range(11)], 10),  # a drift through zero
        ([2_000_000, -1_900_000, 1_800_000, -2_100_000, 500_000, -300_000], 0),  # scattered too widely to tell
    ],
)
def test_collectives_contradict_a_shared_clock_by_more_than_they_scatter(differences: list[int], count: int) -> None:
    reference = [1_000_000 + 20_000_000 * i for i in range(len(differences))]

    assert contradictions([r + d for r, d in zip(reference, differences, strict=True)], reference) == count
