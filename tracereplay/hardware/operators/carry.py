"""A measured time on other hardware: in, work, its time on one accelerator and two data sheets; out, the time on the other.

    time there = model there x (measured here / model here)^p

On one architecture p is 1: the same kernel runs, and what sets it apart from the model it keeps. On another architecture
other kernels are chosen, and only a part of the deviation recurs: p is the fitted persistence, weighted by the part of the
model's time that is not the floor. An accelerator that is at least as fast in every figure that the work uses is never
slower, and the floor is never undercut by more than the measurement did.

Nothing is fitted to a pair of accelerators, and none has a constant of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tracereplay.errors import UsageError
from tracereplay.hardware.operators.fitted import Fitted, Residuals, Span, shipped
from tracereplay.hardware.operators.model import PRODUCTS, Sheet, modelled_ns, sheet_of, sustained
from tracereplay.hardware.operators.work import Floats, OperatorClass, Work, Works
from tracereplay.hardware.schema import Accelerator

# The share of held-out predictions that lies between low and high.
LEVEL: Final = 0.9
# On one architecture the known errors come in by and by: in full where a figure differs by this factor.
_FULL_ERROR: Final = 2.0


@dataclass(frozen=True, slots=True)
class Carried:
    """A time on other hardware: the prediction, the bounds that hold for nine of ten held-out ones, and how it was got."""

    time_ns: int
    low_ns: int
    high_ns: int
    basis: str


@dataclass(frozen=True, slots=True)
class CarriedTimes:
    """Columns of times on other hardware, in nanoseconds."""

    time_ns: Floats
    low_ns: Floats
    high_ns: Floats


def carry_over(
    work: Work | OperatorClass, measured_ns: float, source: Accelerator, target: Accelerator, fitted: Fitted | None = None
) -> Carried:
    """The time on ``target`` of work that took ``measured_ns`` on ``source``; a class alone stands for work of unknown shape.

    Raises:
        UsageError: the measured time is negative.
        HardwareError: a figure that the work needs is unknown on one of them.
    """
    coefficients = shipped() if fitted is None else fitted
    measured = np.array([measured_ns], np.float64)
    if isinstance(work, OperatorClass):
        times, how = (
            carry_over_class(work, measured, source, target, coefficients),
            f"class alone, {work}: ratio of data sheets",
        )
        how = "not modelled: kept as measured" if work is OperatorClass.OTHER else how
    else:
        times, how = (
            carry_over_all(Works.of([work]), measured, source, target, coefficients),
            f"calibrated roofline, {work.kind}",
        )
    there = "same data sheet" if _same_figures(sheet_of(source), sheet_of(target)) else how
    return _first(times, there)


def carry_over_all(
    works: Works, measured_ns: Floats, source: Accelerator, target: Accelerator, fitted: Fitted | None = None
) -> CarriedTimes:
    """``carry_over`` for columns of work of known shape.

    Raises:
        UsageError: a measured time is negative.
        HardwareError: a figure that the work needs is unknown on one of them.
    """
    coefficients = shipped() if fitted is None else fitted
    here, there = sheet_of(source), sheet_of(target)
    if len(measured_ns) and float(measured_ns.min()) < 0:
        raise UsageError(f"a measured time is negative: {measured_ns.min()} ns", hint="times are not negative")
    if _same_figures(here, there):
        return CarriedTimes(measured_ns, measured_ns, measured_ns)
    time = _carried(works, measured_ns, here, there, coefficients)
    faster, slower = _compared(works, here, there, coefficients)
    time = np.where(faster, np.minimum(time, measured_ns), time)
    time = np.where(slower, np.maximum(time, measured_ns), time)
    low, high = _known_errors(works, here, there, coefficients)
    return CarriedTimes(time, time * np.exp(low), time * np.exp(high))


def analytic_time(
    work: Work, accelerator: Accelerator, efficiency: Mapping[str, float] | None = None, fitted: Fitted | None = None
) -> Carried:
    """The time of work that nobody measured: the model's. ``efficiency`` says by class (its name) how much faster than the
    fitted coefficients the work runs, the floor apart; a class that it leaves out runs as fitted.

    Raises:
        UsageError: an efficiency is not positive.
        HardwareError: a figure that the work needs is unknown.
    """
    coefficients = shipped() if fitted is None else fitted
    scale = 1.0 if efficiency is None else efficiency.get(work.kind.value, 1.0)
    if scale <= 0:
        raise UsageError(f"the efficiency of {work.kind} is {scale}", hint="give a positive number")
    times = analytic_times(Works.of([work]), accelerator, coefficients)
    floor = coefficients.floor_ns
    by = (floor + (float(times.time_ns[0]) - floor) / scale) / float(times.time_ns[0])
    return _first(times, f"calibrated roofline without a measurement, {work.kind}", by)


def _first(times: CarriedTimes, basis: str, by: float = 1.0) -> Carried:
    """The first row, multiplied, in whole nanoseconds."""
    time, low, high = (round(float(column[0]) * by) for column in (times.time_ns, times.low_ns, times.high_ns))
    return Carried(time, low, high, basis)


def analytic_times(works: Works, accelerator: Accelerator, fitted: Fitted | None = None) -> CarriedTimes:
    """The times of columns of work that nobody measured: the model's, with its known errors.

    Raises:
        HardwareError: a figure that the work needs is unknown.
    """
    coefficients = shipped() if fitted is None else fitted
    sheet = sheet_of(accelerator)
    time = modelled_ns(works, sheet, coefficients)
    spans = _span(works, sheet, coefficients.residuals)
    low, high = np.array([span.low for span in spans]), np.array([span.high for span in spans])
    return CarriedTimes(time, time * np.exp(low), time * np.exp(high))


def _carried(works: Works, measured_ns: Floats, here: Sheet, there: Sheet, fitted: Fitted) -> Floats:
    source, target = modelled_ns(works, here, fitted), modelled_ns(works, there, fitted)
    if here.architecture == there.architecture:
        recurring = np.ones(len(works))
    else:
        recurring = 1 - (1 - fitted.persistence) * (1 - fitted.floor_ns / source)
    carried = target * (measured_ns / source) ** recurring
    return np.maximum(carried, np.minimum(measured_ns, fitted.floor_ns))


def _same_figures(here: Sheet, there: Sheet) -> bool:
    """Whether two sheets agree in all that the model uses: everything but the name."""
    return all(getattr(here, name) == getattr(there, name) for name in Sheet.__slots__ if name != "name")


def _figures(works: Works, sheet: Sheet, fitted: Fitted) -> Floats:
    """What the work of each row can use of an accelerator, one column a figure: sustained FLOP/s, FLOP/s of one unit (1 where
    unknown), bytes a second.
    """
    figures = np.ones((len(works), 3))
    figures[:, 2] = sheet.bandwidth
    products = works.is_kind(*PRODUCTS)
    for number in np.unique(works.format[products]):
        for kind in PRODUCTS:
            rows = works.is_kind(kind) & (works.format == number)
            figures[rows, 0] = sustained(sheet, fitted, str(number), kind) if rows.any() else 1.0
            figures[rows, 1] = sheet.unit_rate(str(number)) if sheet.units is not None and rows.any() else 1.0
    single = sheet.vector.get("fp32", sheet.peak.get("fp32", 1.0))
    figures[~products, 0] = single
    return figures


def _compared(works: Works, here: Sheet, there: Sheet, fitted: Fitted) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Rows for which the target is at least as fast in every figure, and at most as fast."""
    source, target = _figures(works, here, fitted), _figures(works, there, fitted)
    return np.all(target >= source, axis=1), np.all(target <= source, axis=1)


def _known_errors(works: Works, here: Sheet, there: Sheet, fitted: Fitted) -> tuple[Floats, Floats]:
    """The logarithms by which the bounds lie below and above the prediction."""
    spans = _span(works, there, fitted.residuals)
    low, high = np.array([span.low for span in spans]), np.array([span.high for span in spans])
    if here.architecture != there.architecture:
        return low, high
    apart = np.abs(np.log(_figures(works, there, fitted) / _figures(works, here, fitted))).max(axis=1)
    weight = np.minimum(1.0, apart / np.log(_FULL_ERROR))
    return low * weight, high * weight


def _span(works: Works, sheet: Sheet, known: Residuals) -> list[Span]:
    products = works.is_kind(*PRODUCTS)
    return [
        known.memory if not product else known.matrix if sheet.on_matrix_units(str(number)) else known.vector
        for product, number in zip(products, works.format, strict=True)
    ]


def carry_over_class(
    kind: OperatorClass, measured_ns: Floats, source: Accelerator, target: Accelerator, fitted: Fitted | None = None
) -> CarriedTimes:
    """``carry_over`` for columns of work of unknown shape and one class.

    Its time beyond the floor goes by the ratio of the resource that its class is bound by; where that may be arithmetic or
    memory by the geometric mean, and the bounds hold both. Work of no class that is modelled keeps its time.

    Raises:
        UsageError: a measured time is negative.
        HardwareError: a figure that the work needs is unknown on one of them.
    """
    coefficients = shipped() if fitted is None else fitted
    here, there = sheet_of(source), sheet_of(target)
    if len(measured_ns) and float(measured_ns.min()) < 0:
        raise UsageError(f"a measured time is negative: {measured_ns.min()} ns", hint="times are not negative")
    if _same_figures(here, there):
        return CarriedTimes(measured_ns, measured_ns, measured_ns)
    memory = here.bandwidth / there.bandwidth
    shared = sorted(here.peak.keys() & there.peak.keys())
    arithmetic = [sustained(here, coefficients, number) / sustained(there, coefficients, number) for number in shared]
    bounds = [memory, *arithmetic] if kind in {*PRODUCTS, OperatorClass.OTHER} else [memory]
    ratio = 1.0 if kind is OperatorClass.OTHER else float(np.exp(np.mean(np.log(bounds))))
    fixed = np.minimum(measured_ns, coefficients.floor_ns)
    low, time, high = (fixed + (measured_ns - fixed) * by for by in (min(bounds), ratio, max(bounds)))
    spread = coefficients.residuals.memory
    below, above = np.minimum(low, time) * np.exp(spread.low), np.maximum(high, time) * np.exp(spread.high)
    return CarriedTimes(time, np.minimum(below, time), np.maximum(above, time))
