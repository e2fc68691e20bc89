"""Arrow columns from numpy and back, through buffers: in, arrays; out, arrays without a copy.

``pa.array``, ``fill_null`` and ``to_pandas`` import pandas by themselves (0.35 s); buffers do not.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_ARROW_TYPES = {np.dtype(np.int64): pa.int64(), np.dtype(np.int32): pa.int32(), np.dtype(np.int8): pa.int8()}


def integer_column(values: npt.NDArray[Any], valid: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """An integer column; entries that are not ``valid`` are null."""
    contiguous = np.ascontiguousarray(values)
    validity = None
    if valid is not None and not valid.all():
        validity = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(_ARROW_TYPES[contiguous.dtype], contiguous.size, [validity, pa.py_buffer(contiguous)])


def coded_column(codes: npt.NDArray[np.int32], values: Sequence[str]) -> pa.Array:
    """A dictionary-encoded text column of codes into ``values``."""
    encoded = [value.encode("utf-8", "surrogatepass") for value in values]
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(value) for value in encoded], out=offsets[1:])
    dictionary = pa.Array.from_buffers(
        pa.string(), len(encoded), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    )
    return pa.DictionaryArray.from_arrays(integer_column(codes), dictionary)


def bytes_column(values: Sequence[bytes]) -> pa.Array:
    """A large-binary column."""
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(value) for value in values], out=offsets[1:])
    return pa.Array.from_buffers(pa.large_binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))])


def numbers(array: pa.Array, null: int) -> npt.NDArray[Any]:
    """The values of an integer array as numpy, ``null`` in place of nulls; a view where there are none."""
    validity, data = array.buffers()
    dtype = np.dtype(array.type.to_pandas_dtype())
    values = np.frombuffer(data, dtype, count=len(array), offset=array.offset * dtype.itemsize)
    if validity is None or array.null_count == 0:
        return values
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")[array.offset : array.offset + len(array)]
    return np.where(bits.astype(np.bool_), values, dtype.type(null))
