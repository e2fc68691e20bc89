"""Exact decimal text of microseconds to int64 nanoseconds, never through a float.

A double holds 15-17 digits; microseconds since 1970 with three decimals need 19. ``1783322452123456.100`` read as a
double is off by a quarter of a microsecond (kineto, nanosecond timestamps since 2024).
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Any

import msgspec
import numba
import numpy as np
import numpy.typing as npt

_MISSING = np.iinfo(np.int64).min
_INT64_MAX = 2**63 - 1
_MOST_DIGITS = 19
# Ten times this and one more digit still fit 64 bits.
_LAST_SAFE = (2**63 - 10) // 10
_NS_DIGITS = 3


def parse_us_to_ns(texts: Sequence[bytes | msgspec.Raw]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Nanoseconds and validity of JSON number texts that hold microseconds.

    Plain decimals go through a compiled loop; exponents, quoted numbers and long fractions through ``decimal``
    (rounded half to even). A text that holds no finite number of 64 bits is invalid.
    """
    if not texts:
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    text = b"\n".join(texts) + b"\n"
    if text.count(b"\n") != len(texts):
        # A list or an object stands where a number should, over several lines: no number.
        texts = [t if b"\n" not in bytes(t) else b"" for t in texts]
        text = b"\n".join(texts) + b"\n"
    joined = np.frombuffer(text, np.uint8)
    result: npt.NDArray[np.int64] = _parse_plain(joined, len(texts))
    for row in np.flatnonzero(result == _MISSING):
        text = bytes(texts[int(row)])
        if text:
            result[row] = _parse_any(text)
    return result, result != _MISSING


def _parse_any(text: bytes) -> int:
    try:
        value = Decimal(text.decode("ascii", "replace").strip().strip('"').strip())
        if not value.is_finite() or value.adjusted() > _MOST_DIGITS:
            return _MISSING
        number = int((value * 1000).to_integral_value(ROUND_HALF_EVEN))
    except InvalidOperation:
        return _MISSING
    return number if abs(number) <= _INT64_MAX else _MISSING


@numba.njit(cache=True)
def _parse_plain(buffer: Any, count: Any) -> Any:  # numba infers the types
    """int64 nanoseconds of each line ``-?digits(.digits)?``; the minimum where a line is anything else."""
    out = np.empty(count, np.int64)
    position = 0
    for i in range(count):
        value = np.int64(0)
        digits = 0
        fraction = -1
        negative = buffer[position] == 45
        if negative:
            position += 1
        plain = True
        while buffer[position] != 10:
            c = buffer[position]
            position += 1
            if c == 46 and fraction < 0:
                fraction = 0
            elif 48 <= c <= 57 and fraction < _NS_DIGITS and value < _LAST_SAFE:
                value = value * 10 + (c - 48)
                digits += 1
                fraction += 1 if fraction >= 0 else 0
            else:
                plain = False
        position += 1
        for _ in range(_NS_DIGITS - max(fraction, 0)):
            if value >= _LAST_SAFE:
                plain = False
            value *= 10
        if not plain or digits == 0:
            out[i] = _MISSING
        else:
            out[i] = -value if negative else value
    return out
