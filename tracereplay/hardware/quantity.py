"""Numbers with units: in, ``3.35`` and ``TB/s`` or ``"3.35 TB/s"``; out, the number in the base unit of its dimension.

Case counts: ``B`` is a byte and ``b`` a bit, ``GB`` is 10^9 bytes and ``GiB`` 2^30. Base units: bytes, bytes a second, FLOP a
second, watt, hertz, nanosecond, nanometre, and 1 for counts.
"""

import math
import re
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_TIMES = {"ns": 1, "µs": 10**3, "us": 10**3, "ms": 10**6, "s": 10**9}
_TEXT = re.compile(r"^\s*(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(?P<unit>[^\d\s].*?)?\s*$")


class Dimension(StrEnum):
    """What a unit measures, in the words of its base unit."""

    BYTES = "bytes"
    RATE = "bytes a second"
    FLOPS = "FLOP a second"
    POWER = "watts"
    FREQUENCY = "hertz"
    TIME = "nanoseconds"
    LENGTH = "nanometres"
    COUNT = "a count"


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: its sign, what it measures, and how many base units it is. ``bits``: written in bits."""

    sign: str
    dimension: Dimension
    factor: Fraction
    bits: bool = False


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number and its unit."""

    number: int | float
    unit: Unit

    @property
    def base(self) -> int | float:
        """The number in base units: an int where it is whole, so that bytes are counted exactly."""
        return _in_base(self.number, self.unit.factor)


@lru_cache(maxsize=4096)
def _in_base(number: int | float, factor: Fraction) -> int | float:
    """Remembered: a platform's few numbers are asked for again for every collective and operator."""
    exact = Fraction(repr(number)) * factor
    return exact.numerator if exact.denominator == 1 else float(exact)


def _units() -> list[Unit]:
    sizes = [Unit(f"{p}B", Dimension.BYTES, Fraction(n)) for p, n in (_DECIMAL | _BINARY).items()]
    rates = [Unit(f"{size.sign}/s", Dimension.RATE, size.factor) for size in sizes]
    bits = [Unit(f"{p}{bit}/s", Dimension.RATE, Fraction(n, 8), bits=True) for bit in ("b", "bit") for p, n in _DECIMAL.items()]
    flops = [Unit(f"{p}FLOP/s", Dimension.FLOPS, Fraction(n)) for p, n in _DECIMAL.items()]
    power = [Unit("W", Dimension.POWER, Fraction(1)), Unit("kW", Dimension.POWER, Fraction(1000))]
    clocks = [Unit(f"{p}Hz", Dimension.FREQUENCY, Fraction(n)) for p, n in _DECIMAL.items() if p not in {"T", "P"}]
    times = [Unit(sign, Dimension.TIME, Fraction(n)) for sign, n in _TIMES.items()]
    others = [Unit("nm", Dimension.LENGTH, Fraction(1)), Unit("1", Dimension.COUNT, Fraction(1))]
    return [*sizes, *rates, *bits, *flops, *power, *clocks, *times, *others]


UNITS = {unit.sign: unit for unit in _units()}


def unit_of(sign: str, dimension: Dimension) -> Unit:
    """The unit that a sign names.

    Raises:
        ValueError: no such sign, or one of another dimension; the message says what may stand there.
    """
    unit = UNITS.get(sign)
    if unit is None:
        near = sorted(known for known in UNITS if known.lower() == sign.lower().replace("ps", "/s"))
        advice = f"write {' or '.join(near)}" if near else _choices(dimension)
        both = " (B is bytes, b is bits)" if len({known.lower() for known in near}) < len(near) else ""
        raise ValueError(f"no unit {sign!r}; {advice}{both}")
    if unit.dimension is not dimension:
        raise ValueError(f"{sign!r} measures {unit.dimension}, not {dimension}; {_choices(dimension)}")
    return unit


def parse_quantity(text: str, dimension: Dimension) -> Quantity:
    """The quantity that ``"3.35 TB/s"`` says; the space may be left out, and a count has no unit.

    Raises:
        ValueError: it is no positive number with a unit of that dimension.
    """
    found = _TEXT.match(text)
    if found is None:
        raise ValueError(f"{text!r} is no number with a unit; {_choices(dimension)}")
    number = float(found["number"])
    if not (0 < number < math.inf):
        raise ValueError(f"{text!r} is not a positive number")
    sign = found["unit"] or ("1" if dimension is Dimension.COUNT else "")
    if not sign:
        raise ValueError(f"{text!r} has no unit; {_choices(dimension)}")
    return Quantity(int(number) if number.is_integer() else number, unit_of(sign, dimension))


def _choices(dimension: Dimension) -> str:
    return f"units of {dimension} are {', '.join(u.sign for u in UNITS.values() if u.dimension is dimension)}"
