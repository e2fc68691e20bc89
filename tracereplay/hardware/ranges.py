"""Swept knobs: in, ``KNOB=1x,2x,4x`` or ``KNOB=1x:64x:7:log`` of the command line; out, the values in order, each as settings.

A range is first, last and how many values, evenly spaced or, with ``log``, by one factor from each to the next. Its ends are
both ratios, or have one unit.
"""

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracereplay.errors import UsageError
from tracereplay.hardware.knobs import Setting, parse_setting
from tracereplay.hardware.quantity import UNITS, Quantity

MOST: Final = 1_000
_NUMBER = re.compile(r"^(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(?P<unit>[^\d\s].*)?$")
# What less of makes a machine faster; of everything else with a number more does.
_LESS_IS_MORE = ("latency", "process")


@dataclass(frozen=True, slots=True)
class Axis:
    """One knob and its values: as written, as settings (a name with ``*`` is several), as numbers in one unit to compare and
    draw them by. ``amounts`` is None where the values are words, or mix ratios and units.
    """

    knob: str
    values: tuple[str, ...]
    settings: tuple[tuple[Setting, ...], ...]
    amounts: tuple[float, ...] | None
    unit: str

    def __len__(self) -> int:
        return len(self.values)

    def text(self, position: int) -> str:
        """One value as it is written on the command line."""
        return f"{self.knob}={self.values[position]}"

    def upwards(self) -> list[int]:
        """Positions from the least of the resource to the most; none where the values are not numbers."""
        if self.amounts is None:
            return []
        order = sorted(range(len(self)), key=self.amounts.__getitem__)
        return order[::-1] if self.knob.rpartition(".")[2] in _LESS_IS_MORE else order


def is_swept(text: str) -> bool:
    """Whether ``KNOB=VALUE`` has several values."""
    return any(sign in text.partition("=")[2] for sign in ",:")


def parse_axis(text: str) -> Axis:
    """The axis of ``KNOB=V1,V2,...`` or ``KNOB=FIRST:LAST:COUNT[:log]``.

    Raises:
        UsageError: no such knob, a range that is none, one value twice, more than ``MOST`` values.
    """
    name, _, given = text.partition("=")
    values = _range(text, given) if ":" in given else tuple(value.strip() for value in given.split(","))
    if not all(values) or len(set(values)) < len(values) or len(values) > MOST:
        raise UsageError(f"--set {text!r} has empty or equal values, or more than {MOST}", hint="write KNOB=1x,2x,4x")
    settings = tuple(tuple(parse_setting(f"{name}={value}")) for value in values)
    amounts, unit = _amounts(values)
    return Axis(name, values, settings, amounts, unit)


def _range(text: str, given: str) -> tuple[str, ...]:
    first, last, count, *way = [part.strip() for part in given.split(":")] + [""] * (3 - len(given.split(":")))
    ends = [_NUMBER.match(end) for end in (first, last)]
    hint = "write KNOB=1x:8x:8 for 8 values from 1x to 8x, or KNOB=1x:64x:7:log for equal factors"
    if ends[0] is None or ends[1] is None or ends[0]["unit"] != ends[1]["unit"] or way not in ([], ["log"]):
        raise UsageError(f"--set {text!r} is no range", hint=hint)
    low, high = (float(end["number"]) for end in ends if end is not None)
    if not (count.isdecimal() and 2 <= int(count) <= MOST) or min(low, high) <= 0:
        raise UsageError(f"--set {text!r}: a range has at least 2 values and at most {MOST}, above 0", hint=hint)
    numbers = (np.geomspace if way else np.linspace)(low, high, int(count))
    return _written(numbers.tolist(), ends[0]["unit"] or "")


def _written(numbers: list[float], unit: str) -> tuple[str, ...]:
    """Numbers with as few digits as tell them apart, the ends in full."""
    ends = {0: f"{numbers[0]:.12g}", len(numbers) - 1: f"{numbers[-1]:.12g}"}
    for digits in (3, 4, 6, 12):
        texts = tuple(f"{ends.get(k, f'{number:.{digits}g}')}{unit}" for k, number in enumerate(numbers))
        if len(set(texts)) == len(texts):
            break
    return texts


def _amounts(values: tuple[str, ...]) -> tuple[tuple[float, ...] | None, str]:
    """The values in the unit of the first, and that unit; no amounts where they cannot be compared."""
    found = [_NUMBER.match(value) for value in values]
    units = [one["unit"] or "" if one is not None else "" for one in found]
    if any(one is None for one in found):
        return None, ""
    numbers = [float(one["number"]) for one in found if one is not None]
    if len(set(units)) == 1:
        return tuple(numbers), units[0]
    known = [UNITS.get(unit) for unit in units]
    if any(unit is None for unit in known) or len({unit.dimension for unit in known if unit is not None}) > 1:
        return None, ""
    bases = [float(Quantity(number, unit).base) for number, unit in zip(numbers, known, strict=True) if unit is not None]
    first = float(Quantity(1, UNITS[units[0]]).base)
    return tuple(base / first for base in bases), units[0]
