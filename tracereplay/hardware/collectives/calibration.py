"""Measured times in the model: in, two measured sizes, or one recorded transfer; out, a calibration, or its time elsewhere.

Two sizes decide two numbers, by which all latencies and the time of all bytes are multiplied. What lies between the two sizes
is then NCCL's choice of algorithms and protocols under these numbers, no further fit.
"""

from dataclasses import dataclass
from itertools import product
from math import log
from typing import Final, NamedTuple

import numpy as np

from tracereplay.errors import UsageError
from tracereplay.hardware.collectives.fabric import Fabric
from tracereplay.hardware.collectives.model import Calibration, CollectiveTime, Offered, Ranks, collective_time, offered
from tracereplay.hardware.collectives.schedules import Kind

# Measured over carried time, 5th percentile over NCCL's sizes from 64 KiB on, from A100 to H100 (`python -m
# benchmarks.collectives`); its inverse for the other way, since nobody says which way a latency moves that the catalogue does
# not hold.
CARRIED_WITHIN: Final = (0.65, 1 / 0.65)


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
) -> Carried:
    """A recorded transfer's time on other hardware.

    The model splits the measured time into latency and bytes as it does its own, and each part is multiplied by how much
    longer or shorter the model has it on the target. On the hardware of the recording that is the measured time.
    ``target_ranks``: which endpoints take part on the target, where it is not the same ones.

    Raises:
        UsageError: a measured time below 0; as ``collective_time``.
        HardwareError: as ``collective_time``.
    """
    if not 0 <= measured_ns < np.inf:
        raise UsageError(f"a transfer of {measured_ns} ns", hint="give a time of at least 0")
    before, after = (
        collective_time(source, kind, size, ranks),
        collective_time(target, kind, size, ranks if target_ranks is None else target_ranks),
    )
    if not before.time_ns:  # a single rank sends nothing, here or there
        same = round(measured_ns)
        return Carried(same, same, same, same, 0, before, after)
    scale = measured_ns / before.time_ns
    latency, total = after.latency_ns * scale, after.time_ns * scale
    low, high = CARRIED_WITHIN if source is not target else (1.0, 1.0)
    return Carried(
        round(total), round(total * low), round(total * high), round(latency), round(total) - round(latency), before, after
    )
