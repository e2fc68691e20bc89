"""Hit rates of a cache of rows: known cases, laws, and a simulated least-recently-used cache."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracereplay.hardware.memory.cache import hit_rate, popularity

ROWS, SKEWS = st.integers(2, 200_000), st.floats(0, 2)


def test_without_skew_the_hit_rate_is_the_cached_share() -> None:
    assert hit_rate(1_000, 250, 0) == pytest.approx(0.25, rel=1e-9)
    assert hit_rate(1_000_000, 200_000, 0) == pytest.approx(0.2, rel=1e-9)


@pytest.mark.parametrize(("cached", "expected"), [(0, 0.0), (10, 1.0), (11, 1.0)])
def test_nothing_cached_is_never_hit_and_everything_cached_always(cached: int, expected: float) -> None:
    assert hit_rate(10, cached, 1.0) == expected


def test_two_rows_of_which_one_is_cached() -> None:
    # Zipf exponent 1 over two rows: p = 2/3, 1/3. 1 = (1 - x**2) + (1 - x) with x = exp(-t/3) gives x = (sqrt 5 - 1) / 2;
    # the hit rate is 2/3 (1 - x**2) + 1/3 (1 - x).
    x = (5**0.5 - 1) / 2

    assert hit_rate(2, 1, 1.0) == pytest.approx(2 / 3 * (1 - x**2) + 1 / 3 * (1 - x), rel=1e-9)


@pytest.mark.parametrize(("skew", "cached"), [(0.6, 400), (1.0, 100), (1.0, 1_000), (1.3, 50)])
def test_a_simulated_cache_is_hit_as_often(skew: float, cached: int) -> None:
    rows = 4_000
    weights = np.arange(1, rows + 1) ** -skew
    asked = np.random.default_rng(1).choice(rows, 120_000, p=weights / weights.sum())
    held: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for place, row in enumerate(asked.tolist()):
        hits += row in held and place >= 40_000
        held.pop(row, None)
        held[row] = None
        if len(held) > cached:
            held.popitem(last=False)

    assert hit_rate(rows, cached, skew) == pytest.approx(hits / 80_000, abs=0.01)


def test_large_tables_in_groups_are_as_if_taken_row_by_row() -> None:
    probability, count = popularity(100_000, 0.9)
    weights = np.arange(1, 100_001) ** -0.9

    assert count.sum() == 100_000
    assert probability[0] == pytest.approx(weights[0] / weights.sum(), rel=1e-4)


@given(ROWS, st.floats(0, 1), st.floats(0, 1), SKEWS)
def test_a_larger_cache_is_hit_at_least_as_often(rows: int, one: float, other: float, skew: float) -> None:
    small, large = sorted((int(one * rows), int(other * rows)))

    assert 0 <= hit_rate(rows, small, skew) <= hit_rate(rows, large, skew) + 1e-9 <= 1 + 1e-9


@given(ROWS, st.floats(0, 1), SKEWS)
def test_skew_never_makes_a_cache_worse_than_its_share(rows: int, share: float, skew: float) -> None:
    cached = int(share * rows)

    assert hit_rate(rows, cached, skew) >= cached / rows - 1e-6
