"""Measured times in the model: in, two measured sizes, or one recorded transfer; out, a calibration, or its time elsewhere.

Two sizes decide two numbers, by which all latencies and the time of all bytes are multiplied. What lies between the two sizes
is then NCCL's choice of algorithms and protocols under these numbers, no further fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import exp, log
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tracereplay.errors import UsageError
from tracereplay.hardware.collectives.fabric import FAST, LIKELY, SLOW, Fabric, apart, levels_of, narrowed
from tracereplay.hardware.collectives.model import (
    MODEL_WITHIN,
    Ranks,
    collective_time,
    offered,
    times_by_case,
    uneven_all_to_all_time,
)
from tracereplay.hardware.collectives.schedules import Kind
from tracereplay.hardware.collectives.times import Calibration, CollectiveTime, Offered

# Measured over carried time, 5th percentile over NCCL's sizes from 64 KiB on, from A100 to H100 (`python -m
# benchmarks.collectives`); its inverse for the other way, since nobody says which way a latency moves that the catalogue does
# not hold.
CARRIED_WITHIN: Final = (0.65, 1 / 0.65)
# How far the model of a transfer between hosts may be off before anything was recorded, as standard deviations of logarithms:
# its latency and what the network stacks take are within a factor of 3 (``library``: the ends of their ranges, 1.6 sigma). The
# wire's is chosen: it carries its rate less frames' headers and some per cent that a shaper or switch loses, and one direction
# of a ring waits for the other now and then.
_PART_ERRORS: Final = (0.67, 0.67, 0.15)
# Nine of ten lie within this many standard deviations.
_TIMES_SIGMA: Final = 1.645
# exp of this is beyond any ratio of times; halving a range of floats ends after so many.
_STEEPEST: Final = 60.0
_HALVINGS: Final = 2_000
# That error comes in by and by: in full where a figure that the transfer uses differs by this factor, as for operators.
_FULL_ERROR: Final = 2.0


class Measured(NamedTuple):
    """A size in bytes (as in ``schedules``) and the time that it took in ns."""

    size: float
    ns: float


@dataclass(frozen=True, slots=True)
class Carried:
    """A recorded transfer on other hardware, in ns, with the ends of its interval; ``latency_ns`` and ``bytes_ns`` are the
    recorded time's two parts there; ``source`` and ``target``: what the model says of both.
    """

    time_ns: int
    low_ns: int
    high_ns: int
    latency_ns: int
    bytes_ns: int
    source: CollectiveTime
    target: CollectiveTime


def calibrate(fabric: Fabric, kind: Kind, ranks: Ranks, small: Measured, large: Measured) -> Calibration:
    """The calibration under which the model gives both measured times.

    Each size may be run by any algorithm and protocol on offer. For each pair of them two linear equations give the two
    numbers; the pair counts under whose numbers they are indeed the fastest. Of several the numbers nearest to 1 are taken.

    Raises:
        UsageError: sizes or times that are not in order, or that no positive numbers explain; as ``collective_time``.
    """
    if not (0 < small.size < large.size and small.ns > 0 and large.ns > 0):
        raise UsageError(
            f"sizes {small.size} and {large.size}", hint="give a smaller and a larger size, both above 0, with their times"
        )
    sides = [offered(fabric, kind, one.size, ranks) for one in (small, large)]
    found = []
    for first, last in product(*sides):
        made = _solved(first, last, small.ns, large.ns)
        if made is not None and _is_chosen(first, sides[0], made) and _is_chosen(last, sides[1], made):
            found.append(made)
    if not found:
        raise UsageError(
            f"{small.ns:.0f} ns for {small.size:.0f} bytes and {large.ns:.0f} ns for {large.size:.0f} fit no {kind} here",
            hint="measure sizes that lie further apart",
        )
    return min(found, key=lambda c: abs(log(c.latency)) + abs(log(c.bytes_time)))


def _solved(first: Offered, last: Offered, small_ns: float, large_ns: float) -> Calibration | None:
    """The numbers under which these two take these times; None where there are no positive ones."""
    equations = np.array([[first.latency_ns, first.bytes_ns], [last.latency_ns, last.bytes_ns]])
    if abs(np.linalg.det(equations)) <= np.finfo(float).eps * np.abs(equations).max() ** 2:
        return None
    latency, bytes_time = (float(x) for x in np.linalg.solve(equations, [small_ns, large_ns]))
    return Calibration(latency, bytes_time) if latency > 0 and bytes_time > 0 else None


def _is_chosen(one: Offered, all_of_them: tuple[Offered, ...], calibration: Calibration) -> bool:
    fastest = min(other.ns(calibration) for other in all_of_them)
    return one.ns(calibration) <= fastest * (1 + 1e-9)


def carry_over_collective(  # noqa: PLR0913, PLR0917 - a transfer, what it took, from where, to where
    kind: Kind,
    size: float,
    ranks: Ranks,
    measured_ns: float,
    source: Fabric,
    target: Fabric,
    *,
    target_ranks: Ranks | None = None,
    splits: npt.ArrayLike | None = None,
) -> Carried:
    """A recorded transfer's time on other hardware. ``splits``: of an uneven all-to-all the bytes from rank *i* to rank *j*, in
    place of ``size``.

    The model splits the measured time into latency and bytes as it does its own, and each part is multiplied by how much
    longer or shorter the model has it on the target. On the hardware of the recording that is the measured time.
    ``target_ranks``: which endpoints take part on the target, where it is not the same ones.

    The interval is ``CARRIED_WITHIN``, weighted by how far the figures that the transfer uses differ, times what the ranges of
    assumed figures make of the ratio, as far as the recording does not refute them. A figure that both files assume alike is
    taken at the same end of its range in both.

    Raises:
        UsageError: a measured time below 0, splits of something else than an all-to-all; as ``collective_time``.
        HardwareError: as ``collective_time``.
    """
    if not 0 <= measured_ns < np.inf:
        raise UsageError(f"a transfer of {measured_ns} ns", hint="give a time of at least 0")
    if splits is not None and kind != "all_to_all":
        raise UsageError(f"splits of a transfer that is {kind}", hint="only an all_to_all has them")
    here = _Sent(kind, size, ranks, splits)
    there = here if target_ranks is None else here._replace(ranks=target_ranks)
    before, after = here.on(source), there.on(target)
    if not before.time_ns:  # a single rank sends nothing, here or there
        same = round(measured_ns)
        return Carried(same, same, same, same, 0, before, after)
    if before.stack_ns or after.stack_ns:
        correction = correction_of((before,), measured_ns)
        total, spread = measured_ns * correction.ratio(before, after), correction.spread(before, after)
        ends = (round(total / spread), round(total * spread))
        return Carried(round(total), *ends, after.latency_ns, round(total) - after.latency_ns, before, after)
    scale = measured_ns / before.time_ns
    latency, total = after.latency_ns * scale, after.time_ns * scale
    low, high = _bounds((here, there), source, target, measured_ns, _known_error(source, target, before, after))
    return Carried(
        round(total), round(total * low), round(total * high), round(latency), round(total) - round(latency), before, after
    )


@dataclass(frozen=True, slots=True)
class Correction:
    """What a recording says of the model of transfers between hosts: by what it multiplies each part of a time, and what stays
    unknown of them (joint errors of their logarithms).
    """

    parts: npt.NDArray[np.float64]
    left: npt.NDArray[np.float64]

    def ratio(self, before: CollectiveTime, after: CollectiveTime) -> float:
        """By what a transfer's time is multiplied elsewhere; 1 on the same hardware."""
        here = float(_parts(before) @ self.parts)
        return float(_parts(after) @ self.parts) / here if here else 1.0

    def spread(self, before: CollectiveTime, after: CollectiveTime) -> float:
        """Within which factor of that it lies in nine of ten cases; 1 on the same hardware."""
        there = _parts(after) * self.parts
        if not there.sum():
            return 1.0
        # What differs between both sides is what the errors count on.
        way = (there - _parts(before) * self.parts) / there.sum()
        return exp(_TIMES_SIGMA * float(np.sqrt(max(way @ self.left @ way, 0.0))))


def correction_of(before: Sequence[CollectiveTime], measured_ns: float) -> Correction:
    """The correction that transfers between hosts, recorded as ``measured_ns`` together, ask for; ``before``: what the model
    says of each of them. Hosts' network stacks take their time whatever the link.

    How far each part of the model's time may be off is known beforehand (``_PART_ERRORS``); the recording says how far they are
    off together, and each part takes of it what its error and its weight make likely: it is multiplied by ``exp(k * error**2 *
    share)``, with the one ``k`` under which the parts are the recorded time (the most likely errors, to first order).
    """
    here, error = np.sum([_parts(time) for time in before], axis=0), np.array(_PART_ERRORS)
    if not here.sum() or not measured_ns:
        return Correction(np.ones(error.size), np.diag(error**2))
    share = here / here.sum()
    weight = error**2 * share
    left = np.diag(error**2) - np.outer(weight, weight) / float((share * weight).sum())
    return Correction(np.exp(_multiplier(here, weight, measured_ns) * weight), left)


def _parts(time: CollectiveTime) -> npt.NDArray[np.float64]:
    """A time's latency, what the hosts' stacks take, and what the wire takes."""
    wire_ns = max(time.time_ns - time.latency_ns - time.stack_ns, 0)
    return np.array([time.latency_ns, time.stack_ns, wire_ns], np.float64)


def _multiplier(parts: npt.NDArray[np.float64], weight: npt.NDArray[np.float64], sum_ns: float) -> float:
    """``k`` with ``sum(parts * exp(k * weight)) == sum_ns``; by halving."""
    least = float(weight[parts > 0].min())
    low, high = (-_STEEPEST / least, _STEEPEST / least)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        with np.errstate(over="ignore"):
            low, high = (middle, high) if float((parts * np.exp(middle * weight)).sum()) < sum_ns else (low, middle)
    return high


class _Sent(NamedTuple):
    """A transfer: what ``collective_time`` or ``uneven_all_to_all_time`` takes."""

    kind: Kind
    size: float
    ranks: Ranks
    splits: npt.ArrayLike | None

    def on(self, fabric: Fabric) -> CollectiveTime:
        """Its time on a fabric."""
        if self.splits is not None:
            return uneven_all_to_all_time(fabric, self.splits, self.ranks)
        return _even_time(fabric, self.kind, self.size, self._members)

    def cases(self, fabric: Fabric) -> npt.NDArray[np.float64]:
        """Its likely, fast and slow time there."""
        if self.splits is not None:
            return times_by_case(fabric, *self)
        return _even_cases(fabric, self.kind, self.size, self._members)

    @property
    def _members(self) -> int | tuple[int, ...]:
        return self.ranks if isinstance(self.ranks, int) else tuple(self.ranks)


# Of many moves from one place the times there are the same, as are those of a collective that a job runs again and again.
@lru_cache(maxsize=4096)
def _even_time(fabric: Fabric, kind: Kind, size: float, ranks: int | tuple[int, ...]) -> CollectiveTime:
    return collective_time(fabric, kind, size, ranks)


@lru_cache(maxsize=4096)
def _even_cases(fabric: Fabric, kind: Kind, size: float, ranks: int | tuple[int, ...]) -> npt.NDArray[np.float64]:
    return times_by_case(fabric, kind, size, ranks)


def _known_error(source: Fabric, target: Fabric, before: CollectiveTime, after: CollectiveTime) -> float:
    """How much of ``CARRIED_WITHIN`` counts: for latency and for bytes by how far their figures differ, each by its share of
    the time, on the side where that is larger.
    """
    latency, rate = apart(source, target, _levels(source, before) | _levels(target, after))
    shares = [time.latency_ns / time.time_ns for time in (before, after) if time.time_ns]
    weights = [min(1.0, one / log(_FULL_ERROR)) for one in (latency, rate)]
    return min(1.0, weights[0] * max(shares) + weights[1] * (1 - min(shares)))


def _bounds(
    sent: tuple[_Sent, _Sent], source: Fabric, target: Fabric, measured_ns: float, weight: float
) -> tuple[float, float]:
    """By what the carried time is multiplied at the ends of its interval."""
    alike, other = _shared_figures(source, target)
    low, high = (end**weight for end in CARRIED_WITHIN)
    here, there = (one.cases(narrowed(fabric, other)) for one, fabric in zip(sent, (source, target), strict=True))
    ratios = [
        (there[case] / there[LIKELY] * here[LIKELY] / here[case]) ** _left(here, case, measured_ns) for case in (FAST, SLOW)
    ]
    low, high = low * min(1.0, *ratios), high * max(1.0, *ratios)
    here, there = (one.cases(narrowed(fabric, alike)) for one, fabric in zip(sent, (source, target), strict=True))
    fast, slow = ((here[case] / here[LIKELY]) ** _left(here, case, measured_ns) for case in (FAST, SLOW))
    return low * min(1.0, there[FAST] / there[LIKELY] / slow), high * max(1.0, there[SLOW] / there[LIKELY] / fast)


def _left(here: npt.NDArray[np.float64], case: int, measured_ns: float) -> float:
    """The part of the way from the likely to the fast or slow case that the recording does not refute: with the figures there
    the model would be further from the measured time than it is known to be.
    """
    way = log(here[case] / here[LIKELY])
    if not way or not measured_ns:
        return 1.0
    error = MODEL_WITHIN[0] if way > 0 else MODEL_WITHIN[1]
    return min(1.0, max(0.0, log(measured_ns / error / here[LIKELY]) / way))


def _levels(fabric: Fabric, time: CollectiveTime) -> frozenset[str]:
    """The levels whose links a transfer uses; all where it has no bytes that show them."""
    return levels_of(fabric, [link.name for link in time.links] or fabric.links)


@lru_cache(maxsize=64)
def _shared_figures(source: Fabric, target: Fabric) -> tuple[frozenset[tuple[str, str]], frozenset[tuple[str, str]]]:
    """The figures, each a level and ``share`` or ``latency``, whose range is the same in both, and the others: one assumption
    made twice moves both sides together.
    """
    alike: set[tuple[str, str]] = set()
    other: set[tuple[str, str]] = set()
    for level in source.figures.keys() | target.figures.keys():
        one, two = source.figures.get(level), target.figures.get(level)
        for name in ("share", "latency"):
            same = (
                one is not None and two is not None and np.allclose(getattr(one, name), getattr(two, name), rtol=1e-9, atol=0)
            )
            (alike if same else other).add((level, name))
    return frozenset(alike), frozenset(other)
