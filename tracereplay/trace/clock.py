"""Align the clocks of a job's ranks: in, the ends of collectives that end together; out, offset and drift a rank.

Collectives that are the same on two ranks end together, so the difference of their recorded ends is the difference of
the clocks, up to the skew with which participants leave. A rank's clock is taken as ``offset + drift * (t - t0)``
relative to the first rank: a constant (the median difference), or a line (Theil-Sen, robust against single late ends)
where a line explains the differences and a constant does not. The residual is the largest difference left.

dPRO (MLSys 2022) fits constant offsets by a quadratic programme; drift of 50 ppm moves a clock 50 µs a second, which a
constant cannot follow.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracereplay.trace.times import Int64s

# A line must leave at most this share of the constant's spread, and the constant at least this much to explain: ends of
# one collective differ by up to 8 µs on aligned clocks (dlrm_v100x8).
_LINE_SHARE = 0.35
SKEW_NS = 8_000
_MOST = 0.75
_PPM = 1e6
# Quartz drifts by up to some 100 ppm; a clock that gains a twentieth is none, and a line as steep would turn time round.
_STEEPEST = 0.05


@dataclass(frozen=True, slots=True)
class RankClock:
    """A rank's clock against the first rank's: at its time ``t`` it reads ``offset + drift * (t - reference)`` too much.

    ``offset_ns``, ``drift_ppm``, ``residual_ns`` and ``interval_ns`` (half width of the offset's 95 % interval) are None
    without an anchor. ``applied``: times were corrected; ranks of one host share a clock and are left as they are.
    ``contradicted`` counts the collectives that say otherwise (``contradictions``).
    """

    rank: int | None
    offset_ns: int | None
    drift_ppm: float | None
    residual_ns: int | None
    interval_ns: int | None
    anchors: int
    reference_ns: int = 0
    applied: bool = False
    contradicted: int = 0

    def corrected(self, times_ns: Int64s) -> Int64s:
        """Times of this rank on the first rank's clock."""
        if not self.applied or self.offset_ns is None:
            return times_ns
        drift = np.rint((times_ns - self.reference_ns) * ((self.drift_ppm or 0.0) / _PPM)).astype(np.int64)
        return np.asarray(times_ns - self.offset_ns - drift, np.int64)


UNKNOWN_CLOCK = RankClock(None, None, None, None, None, 0)


def fit_clock(rank: int | None, own_ns: Sequence[int], reference_ns: Sequence[int], *, apply: bool) -> RankClock:
    """The clock of a rank from the ends of its anchors on its own and on the reference clock."""
    if not own_ns:
        return RankClock(rank, None, None, None, None, 0)
    own = np.array(own_ns, np.int64)
    difference = own - np.array(reference_ns, np.int64)
    origin = int(own[0])
    constant = int(np.median(difference))
    left = np.abs(difference - constant)
    slope, base = _line(own - origin, difference)
    line_left = np.abs(difference - base - slope * (own - origin))
    if np.quantile(left, _MOST) > SKEW_NS and abs(slope) <= _STEEPEST and _spread(line_left) <= _LINE_SHARE * _spread(left):
        return RankClock(
            rank, round(base), slope * _PPM, round(float(line_left.max())), _interval(line_left), len(own_ns), origin, apply
        )
    return RankClock(rank, constant, 0.0, int(left.max()), _interval(left.astype(np.float64)), len(own_ns), origin, apply)


def contradictions(own_ns: Sequence[int], reference_ns: Sequence[int]) -> int:
    """How many of the collectives that two ranks share contradict that they share a clock: those that ended farther apart than
    ends scatter, where an offset or a drift beyond that scatter shows in all of them together; else 0.
    """
    if not own_ns:
        return 0
    clock = fit_clock(None, own_ns, reference_ns, apply=False)
    own = np.array(own_ns, np.int64)
    drifted = abs(clock.drift_ppm or 0.0) / _PPM * float(own.max() - own.min())
    limit = 2 * (clock.interval_ns or 0) + SKEW_NS
    if max(abs(clock.offset_ns or 0), drifted) <= limit:
        return 0
    return int(np.count_nonzero(np.abs(own - np.array(reference_ns, np.int64)) > limit))


def _line(times: Int64s, values: Int64s) -> tuple[float, float]:
    """Theil-Sen: the median slope over pairs, the median intercept. Pairs of the first and second half of the anchors."""
    half = times.size // 2
    later = times[half : half * 2] if times.size % 2 == 0 else times[half + 1 :]
    first, last = values[: later.size], values[-later.size :] if later.size else values[:0]
    span = later - times[: later.size]
    good = span > 0
    if not good.any():
        return 0.0, float(np.median(values))
    slope = float(np.median((last - first)[good] / span[good]))
    return slope, float(np.median(values - slope * times))


def _spread(left: npt.NDArray[np.float64] | Int64s) -> float:
    """Of the better three quarters: a single late end says nothing about the clock."""
    return float(np.median(left)) + float(np.quantile(left, _MOST))


def _interval(left: npt.NDArray[np.float64]) -> int:
    """Half width of a 95 % interval of a median: 1.96 * 1.2533 * sigma / sqrt(n), sigma from the median deviation."""
    sigma = 1.4826 * float(np.median(left))
    return round(1.96 * 1.2533 * max(sigma, 1.0) / math.sqrt(left.size))
