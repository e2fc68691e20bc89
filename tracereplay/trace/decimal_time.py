"""Exact decimal text of microseconds to int64 nanoseconds, never through a float.

A double holds 15-17 digits; microseconds since 1970 with three decimals need 19. ``1783322452123456.100`` read as a
double is off by a quarter of a microsecond (kineto, nanosecond timestamps since 2024).
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

import numba
import numpy as np
import numpy.typing as npt

_MISSING = np.iinfo(np.int64).min
_MAX_PLAIN_DIGITS = 18
_NS_DIGITS = 3


def parse_us_to_ns(texts: Sequence[bytes]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Nanoseconds and validity of JSON number texts that hold microseconds.

    Plain decimals go through a compiled loop; exponents, quoted numbers and long fractions through ``decimal``
    (rounded half to even). A text that holds no finite number is invalid.
    """
    if not texts:
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    fixed = np.array(texts, dtype=bytes)
    width = fixed.dtype.itemsize
    result: npt.NDArray[np.int64] = _parse_plain(fixed.view(np.uint8).reshape(len(texts), width))
    for row in np.flatnonzero(result == _MISSING):
        result[row] = _parse_any(texts[int(row)])
    return result, result != _MISSING


def _parse_any(text: bytes) -> int:
    try:
        value = Decimal(text.decode("ascii", "replace").strip().strip('"'))
        return int((value * 1000).to_integral_value(ROUND_HALF_EVEN)) if value.is_finite() else _MISSING
    except InvalidOperation:
        return _MISSING


@numba.njit(cache=True)
def _parse_plain(rows):  # type: ignore[no-untyped-def]  # numba infers the types
    """int64 nanoseconds of each row ``-?digits(.digits)?`` padded with zero bytes; the minimum where it is not plain."""
    count, width = rows.shape
    out = np.empty(count, np.int64)
    for i in range(count):
        value = np.int64(0)
        digits = 0
        fraction = -1
        start = 1 if width > 0 and rows[i, 0] == 45 else 0
        plain = True
        for j in range(start, width):
            c = rows[i, j]
            if c == 0:
                break
            if c == 46 and fraction < 0:
                fraction = 0
            elif 48 <= c <= 57 and fraction < _NS_DIGITS and digits <= _MAX_PLAIN_DIGITS:
                value = value * 10 + (c - 48)
                digits += 1
                fraction += 1 if fraction >= 0 else 0
            else:
                plain = False
                break
        if not plain or digits == 0 or digits > _MAX_PLAIN_DIGITS + 1 - _NS_DIGITS + max(fraction, 0):
            out[i] = _MISSING
            continue
        for _ in range(_NS_DIGITS - max(fraction, 0)):
            value *= 10
        out[i] = -value if start == 1 else value
    return out
