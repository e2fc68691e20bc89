"""How often a cache of table rows is hit: in, rows, cached rows and skew; out, the share of lookups that it answers.

Rows are asked for independently, row ``i`` with probability ``i**-skew / sum``: Zipf's law, which locality studies of
recommendation models find (Gupta et al. 2020, arXiv:1906.03109). The cache drops the least recently used row. Its hit rate
is that of Che's approximation (Che, Tung, Wang: Hierarchical Web Caching Systems, IEEE JSAC 20(7), 2002; why it holds: Fricker,
Robert, Roberts, ITC 2012): a row is present if it was asked for within a characteristic time ``t``, the same for all rows,
which solves

    cached = sum over rows of (1 - exp(-p * t)),      hit rate = sum over rows of p * (1 - exp(-p * t))

Sets of 32 rows, as FBGEMM has them, cost little beside a fully associative cache and are not modelled.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# Rows are taken one by one up to this place, then in groups whose places grow by this ratio: 40 million rows are 2,700 groups.
_ONE_BY_ONE = 1_000
_RATIO = 1.005
_HALVINGS = 200


def hit_rate(rows: int, cached_rows: int, skew: float) -> float:
    """The share of lookups that a least-recently-used cache of ``cached_rows`` answers; ``cached_rows / rows`` without skew."""
    if cached_rows <= 0:
        return 0.0
    if cached_rows >= rows:
        return 1.0
    probability, count = popularity(rows, skew)
    time = _characteristic_time(probability, count, cached_rows)
    return float(min((count * probability * -np.expm1(-probability * time)).sum(), 1.0))


@lru_cache(maxsize=256)
def popularity(rows: int, skew: float) -> tuple[Floats, Floats]:
    """Groups of equally likely rows, most likely first: the probability of one row, and how many rows the group has."""
    edges = _group_edges(rows)
    count = np.diff(edges).astype(np.float64)
    middle = edges[:-1] + (count - 1) / 2
    weight = middle**-skew
    return weight / (count * weight).sum(), count


def _group_edges(rows: int) -> npt.NDArray[np.int64]:
    """Places at which groups begin, from 1, and ``rows + 1``."""
    single = np.arange(1, min(rows, _ONE_BY_ONE) + 1, dtype=np.int64)
    if rows <= _ONE_BY_ONE:
        return np.append(single, rows + 1)
    steps = math.ceil(math.log(rows / _ONE_BY_ONE) / math.log(_RATIO))
    grown = np.rint(_ONE_BY_ONE * (rows / _ONE_BY_ONE) ** (np.arange(1, steps + 1) / steps)).astype(np.int64)
    return np.unique(np.concatenate([single, grown + 1]))


def _characteristic_time(probability: Floats, count: Floats, cached_rows: int) -> float:
    """The time after which as many rows have been asked for as the cache holds, in lookups; by halving."""

    def held(time: float) -> float:
        return float((count * -np.expm1(-probability * time)).sum())

    low, high = 0.0, float(cached_rows)
    while held(high) < cached_rows:
        low, high = high, high * 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        low, high = (middle, high) if held(middle) < cached_rows else (low, middle)
    return high
