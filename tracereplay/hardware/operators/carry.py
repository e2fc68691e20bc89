"""A measured time on other hardware: in, work, its time on one accelerator and two data sheets; out, the time on the other.

    time there = model there x (measured here / model here)^p

On one architecture p is 1: the same kernel runs, and what sets it apart from the model it keeps. On another architecture
other kernels are chosen, and only a part of the deviation recurs: p is the fitted persistence, weighted by the part of the
model's time that is not the floor. An accelerator that is at least as fast in every figure that the work uses is never
slower, and the floor is never undercut by more than the measurement did.

A product recorded as ``float`` that ran faster than the source's fp32 peak allows ran in tf32, which PyTorch records nowhere
else. It is carried over as such; on a target without tf32 it runs in fp32. A product in a format that neither data sheet has,
such as int64, goes by its class alone. ``Basis`` says so row by row.

Nothing is fitted to a pair of accelerators, and none has a constant of its own.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from tracereplay.errors import UsageError
from tracereplay.hardware.operators.fitted import Fitted, Residuals, shipped
from tracereplay.hardware.operators.model import PRODUCTS, Sheet, modelled_ns, sheet_of, sustained
from tracereplay.hardware.operators.work import CLASSES, Floats, OperatorClass, Work, Works
from tracereplay.hardware.schema import Accelerator

# The share of held-out predictions that lies between low and high.
LEVEL: Final = 0.9
# On one architecture the known errors come in by and by: in full where a figure differs by this factor.
_FULL_ERROR: Final = 2.0

Mask = npt.NDArray[np.bool_]


class Basis(IntEnum):
    """How a row was carried over: by the model, by the model in tf32 though recorded as fp32, by its class alone."""

    MODEL = 0
    IN_TF32 = 1
    BY_CLASS = 2


@dataclass(frozen=True, slots=True)
class Carried:
    """A time on other hardware: the prediction, the bounds that hold for nine of ten held-out ones, and how it was got."""

    time_ns: int
    low_ns: int
    high_ns: int
    basis: str


@dataclass(frozen=True, slots=True)
class CarriedTimes:
    """Columns of times on other hardware, in nanoseconds, and of how each was got (``Basis``)."""

    time_ns: Floats
    low_ns: Floats
    high_ns: Floats
    basis: npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class _Run:
    """Work as it runs on an accelerator: in the formats that it takes there."""

    works: Works
    sheet: Sheet

    def on_matrix_units(self) -> Mask:
        """Which rows are products on matrix units."""
        formats = [number for number in np.unique(self.works.format) if self.sheet.on_matrix_units(str(number))]
        return self.works.is_kind(*PRODUCTS) & np.isin(self.works.format, formats)


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
        times = carry_over_class(work, measured, source, target, coefficients)
        how = f"class alone, {work}: ratio of data sheets"
        how = "not modelled: kept as measured" if work is OperatorClass.OTHER else how
    else:
        times = carry_over_all(Works.of([work]), measured, source, target, coefficients)
        how = {
            Basis.MODEL: f"calibrated roofline, {work.kind}",
            Basis.IN_TF32: f"calibrated roofline, {work.kind}, in tf32: faster than the source's fp32 peak",
            Basis.BY_CLASS: f"class alone, {work.kind}: neither data sheet has its format",
        }[Basis(times.basis[0])]
    there = "same data sheet" if _same_figures(sheet_of(source), sheet_of(target)) else how
    return _first(times, there)


def carry_over_all(  # noqa: PLR0913 - as carry_over, and what is known of the kernels
    works: Works,
    measured_ns: Floats,
    source: Accelerator,
    target: Accelerator,
    fitted: Fitted | None = None,
    *,
    in_fp32: Mask | bool = False,
) -> CarriedTimes:
    """``carry_over`` for columns of work of known shape. ``in_fp32``: rows of which the kernel says that it ran in fp32; of the
    others a product recorded as float ran in tf32 where it was faster than the source's fp32 peak.

    Raises:
        UsageError: a measured time is negative.
        HardwareError: a figure that the work needs is unknown on one of them.
    """
    coefficients = shipped() if fitted is None else fitted
    here, there = sheet_of(source), sheet_of(target)
    if len(measured_ns) and float(measured_ns.min()) < 0:
        raise UsageError(f"a measured time is negative: {measured_ns.min()} ns", hint="times are not negative")
    if _same_figures(here, there):
        return _kept(measured_ns)
    basis = _basis(works, measured_ns, here, there, in_fp32)
    columns, modelled = np.empty((3, len(works))), basis != Basis.BY_CLASS
    in_tf32, known = basis[modelled] == Basis.IN_TF32, works.take(modelled)
    source_run, target_run = (_Run(_in_tf32(known, in_tf32, sheet), sheet) for sheet in (here, there))
    columns[:, modelled] = _by_model(measured_ns[modelled], source_run, target_run, coefficients)
    for code in np.unique(works.kind[~modelled]):
        rows = ~modelled & (works.kind == code)
        columns[:, rows] = _by_class(CLASSES[code], measured_ns[rows], here, there, coefficients)
    return CarriedTimes(columns[0], columns[1], columns[2], basis)


def _kept(measured_ns: Floats) -> CarriedTimes:
    return CarriedTimes(measured_ns, measured_ns, measured_ns, np.full(len(measured_ns), Basis.MODEL, np.int8))


def _basis(works: Works, measured_ns: Floats, here: Sheet, there: Sheet, in_fp32: Mask | bool) -> npt.NDArray[np.int8]:
    """How each row is carried over. A format that one sheet has does not go by class: the other can be given it."""
    found = np.full(len(works), Basis.MODEL, np.int8)
    products = works.is_kind(*PRODUCTS)
    nowhere = [number for number in np.unique(works.format) if not (here.has(str(number)) or there.has(str(number)))]
    found[products & np.isin(works.format, nowhere)] = Basis.BY_CLASS
    if here.has("tf32") and here.has("fp32"):
        beyond = works.flops > here.rate("fp32") * measured_ns / 1e9
        found[products & (works.format == "fp32") & beyond & (measured_ns > 0) & np.logical_not(in_fp32)] = Basis.IN_TF32
    return found


def _in_tf32(works: Works, rows: Mask, sheet: Sheet) -> Works:
    return replace(works, format=np.where(rows, "tf32", works.format)) if sheet.has("tf32") else works


def _first(times: CarriedTimes, basis: str) -> Carried:
    """The first row in whole nanoseconds."""
    time, low, high = (round(float(column[0])) for column in (times.time_ns, times.low_ns, times.high_ns))
    return Carried(time, low, high, basis)


def analytic_times(works: Works, accelerator: Accelerator, fitted: Fitted | None = None) -> CarriedTimes:
    """The times of columns of work that nobody measured: the model's, with its known errors.

    Raises:
        HardwareError: a figure that the work needs is unknown.
    """
    coefficients = shipped() if fitted is None else fitted
    sheet = sheet_of(accelerator)
    time = modelled_ns(works, sheet, coefficients)
    low, high = _spans(_Run(works, sheet), coefficients.residuals)
    return CarriedTimes(time, time * np.exp(low), time * np.exp(high), np.full(len(works), Basis.MODEL, np.int8))


def _by_model(measured_ns: Floats, source: _Run, target: _Run, fitted: Fitted) -> tuple[Floats, Floats, Floats]:
    """Time, low and high of work whose formats both sheets have."""
    time = _carried(measured_ns, source, target, fitted)
    here, there = _figures(source, fitted), _figures(target, fitted)
    apart = source.on_matrix_units() != target.on_matrix_units()
    left_out = apart[:, None] & _SUSTAINED
    at_least, at_most = (np.all(better | left_out, axis=1) for better in (there >= here, there <= here))
    time = np.where(at_least, np.minimum(time, measured_ns), time)
    time = np.where(at_most, np.maximum(time, measured_ns), time)
    low, high = _spans(target, fitted.residuals)
    weight = np.ones(len(time))
    if source.sheet.architecture == target.sheet.architecture:
        weight = _weight(np.abs(np.log(there / here)).max(axis=1, initial=0.0))
    return time, time * np.exp(low * weight), time * np.exp(high * weight)


def _carried(measured_ns: Floats, source: _Run, target: _Run, fitted: Fitted) -> Floats:
    here, there = (modelled_ns(run.works, run.sheet, fitted) for run in (source, target))
    if source.sheet.architecture == target.sheet.architecture:
        recurring = np.ones(len(here))
    else:
        recurring = 1 - (1 - fitted.persistence) * (1 - fitted.floor_ns / here)
    carried = there * (measured_ns / here) ** recurring
    return np.maximum(carried, np.minimum(measured_ns, fitted.floor_ns))


def _weight(apart: Floats) -> Floats:
    """What part of the known errors comes in where the figures that the work uses are that far apart (natural logarithm)."""
    weight: Floats = np.minimum(1.0, apart / np.log(_FULL_ERROR))
    return weight


def _same_figures(here: Sheet, there: Sheet) -> bool:
    """Whether two sheets agree in all that the model uses: everything but the name."""
    return all(getattr(here, name) == getattr(there, name) for name in Sheet.__slots__ if name != "name")


# Of the columns of ``_figures`` the one that compares units of one kind alone: what they sustain is fitted by kind.
_SUSTAINED: Final = np.array([True, False, False, False])


def _figures(run: _Run, fitted: Fitted) -> Floats:
    """What the work of each row uses of an accelerator, one column a figure, 1 where it is unknown or not used: sustained
    FLOP/s, peak FLOP/s, peak FLOP/s of one unit, bytes a second.
    """
    works, sheet = run.works, run.sheet
    figures = np.ones((len(works), 4))
    figures[:, 3] = sheet.bandwidth
    products = works.is_kind(*PRODUCTS)
    for number in np.unique(works.format[products]).astype(str):
        for kind in PRODUCTS:
            rows = works.is_kind(kind) & (works.format == number)
            if rows.any():
                unit = 1.0 if sheet.units is None else sheet.unit_rate(number)
                figures[rows, :3] = sustained(sheet, fitted, number, kind), sheet.rate(number), unit
    if np.isfinite(sheet.vector_rate()):
        figures[~products & (works.flops > 0), :2] = sheet.vector_rate()
    return figures


def _spans(run: _Run, known: Residuals) -> tuple[Floats, Floats]:
    """The known errors of each row: natural logarithms below and above."""
    kinds = np.where(run.on_matrix_units(), 0, np.where(run.works.is_kind(*PRODUCTS), 1, 2))
    spans = (known.matrix, known.vector, known.memory)
    low, high = (np.array([getattr(span, side) for span in spans])[kinds] for side in ("low", "high"))
    return low, high


def carry_over_class(
    kind: OperatorClass, measured_ns: Floats, source: Accelerator, target: Accelerator, fitted: Fitted | None = None
) -> CarriedTimes:
    """``carry_over`` for columns of work of unknown shape and one class.

    Its time beyond the floor goes by the ratio of the resource that its class is bound by. A product may be bound by memory or
    by arithmetic, in the source's fastest format that both have: its ratio is the geometric mean of the two, and the bounds
    hold both. Work of no class that is modelled keeps its time.

    Raises:
        UsageError: a measured time is negative.
        HardwareError: a figure that the work needs is unknown on one of them.
    """
    coefficients = shipped() if fitted is None else fitted
    here, there = sheet_of(source), sheet_of(target)
    if len(measured_ns) and float(measured_ns.min()) < 0:
        raise UsageError(f"a measured time is negative: {measured_ns.min()} ns", hint="times are not negative")
    if _same_figures(here, there):
        return _kept(measured_ns)
    columns = _by_class(kind, measured_ns, here, there, coefficients)
    return CarriedTimes(*columns, np.full(len(measured_ns), Basis.BY_CLASS, np.int8))


def _by_class(
    kind: OperatorClass, measured_ns: Floats, here: Sheet, there: Sheet, fitted: Fitted
) -> tuple[Floats, Floats, Floats]:
    """Time, low and high of work of a class."""
    ratios = [here.bandwidth / there.bandwidth]
    shared = sorted(number for number in here.peak if there.has(number))
    if shared and kind in {*PRODUCTS, OperatorClass.OTHER}:
        fastest = max(shared, key=here.rate)
        ratios.append(sustained(here, fitted, fastest, kind) / sustained(there, fitted, fastest, kind))
    ratio = 1.0 if kind is OperatorClass.OTHER else float(np.exp(np.mean(np.log(ratios))))
    fixed = np.minimum(measured_ns, fitted.floor_ns)
    low, time, high = (fixed + (measured_ns - fixed) * by for by in (min(*ratios, ratio), ratio, max(*ratios, ratio)))
    apart = np.abs(np.log(ratios)).max()
    weight = float(_weight(apart)) if here.architecture == there.architecture else 1.0
    spread = fitted.residuals.memory
    return time, low * np.exp(spread.low * weight), high * np.exp(spread.high * weight)
