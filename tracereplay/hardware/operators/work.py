"""What one operator or kernel has to do: in, numbers from a formula; out, a frozen ``Work``, or columns of many of them.

Nothing here depends on where the work runs. Bytes are those that reach the memory when each operand is read and each result
written once; flops are those of the arithmetic as written, a multiply-add counting two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from tracereplay.errors import UsageError

Floats = npt.NDArray[np.float64]


class OperatorClass(StrEnum):
    """Classes of operators: the contract's, with two kinds apart that the contract counts elsewhere (``contract``)."""

    GEMM = "gemm"
    ATTENTION = "attention"
    CONV = "conv"
    EMBEDDING = "embedding"
    ELEMENTWISE = "elementwise"
    REDUCTION = "reduction"
    NORMALISATION = "normalisation"
    OPTIMIZER = "optimizer"
    COPY = "copy"
    MEMSET = "memset"
    OTHER = "other"

    @property
    def contract(self) -> str:
        """The contract's name of the class."""
        return {"normalisation": "reduction", "optimizer": "elementwise"}.get(self.value, self.value)


CLASSES: Final = tuple(OperatorClass)

# Names of element types as torch prints them, c10 registers them and data sheets have them: (name of the format, bytes).
_TYPES: Final = {
    ("fp64", 8): ("double", "float64", "fp64"),
    ("fp32", 4): ("float", "float32", "fp32"),
    ("tf32", 4): ("tf32",),
    ("bf16", 2): ("bfloat16", "bf16"),
    ("fp16", 2): ("half", "float16", "fp16"),
    ("fp8", 1): ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "fp8"),
    ("int8", 1): ("signed char", "unsigned char", "int8", "uint8", "char", "byte"),
    ("int64", 8): ("long", "long int", "int64"),
    ("int32", 4): ("int", "int32"),
    ("int16", 2): ("short", "short int", "int16"),
    ("bool", 1): ("bool",),
}
_BY_NAME: Final = {name: kind for kind, names in _TYPES.items() for name in names}


def _kind(dtype: str) -> tuple[str, int]:
    found = _BY_NAME.get(dtype.rpartition("::")[2].removeprefix("torch.").lower())
    if found is None:
        raise UsageError(f"no element type {dtype!r}", hint=f"write one of {', '.join(sorted(_BY_NAME))}")
    return found


def element_bytes(dtype: str) -> int:
    """Bytes of one element; ``float``, ``c10::Half``, ``torch.bfloat16`` and ``bf16`` are all understood.

    Raises:
        UsageError: no such type.
    """
    return _kind(dtype)[1]


def format_of(dtype: str) -> str:
    """The data sheets' name of the format, such as ``fp32`` for ``float``.

    Raises:
        UsageError: no such type.
    """
    return _kind(dtype)[0]


@dataclass(frozen=True, slots=True)
class Work:
    """One operator or kernel: its class, floating-point operations, bytes read and written, element type; for a GEMM (and a
    convolution as the implicit GEMM that it is) ``batch`` products of an m x k with a k x n matrix, else zeros.

    Raises:
        UsageError: a negative number or an unknown element type.
    """

    kind: OperatorClass
    flops: int
    bytes_read: int
    bytes_written: int
    dtype: str
    m: int = 0
    n: int = 0
    k: int = 0
    batch: int = 0

    def __post_init__(self) -> None:
        counts = (self.flops, self.bytes_read, self.bytes_written, self.m, self.n, self.k, self.batch)
        if min(counts) < 0:
            raise UsageError(f"work of class {self.kind} has a negative amount: {counts}", hint="shapes are not negative")
        format_of(self.dtype)

    @property
    def bytes_moved(self) -> int:
        """Bytes read and written."""
        return self.bytes_read + self.bytes_written


@dataclass(frozen=True, slots=True)
class Works:
    """Columns of many operators, one row each: code of the class (its place in ``CLASSES``), flops, bytes moved, format of the
    elements, and m, n, k, batch (zeros where it is no GEMM).
    """

    kind: npt.NDArray[np.int8]
    flops: Floats
    bytes_moved: Floats
    format: npt.NDArray[np.str_]
    m: Floats
    n: Floats
    k: Floats
    batch: Floats

    @classmethod
    def of(cls, works: Sequence[Work]) -> "Works":
        """The columns of a list."""
        columns = [
            np.array([getattr(work, name) for work in works], np.float64)
            for name in ("flops", "bytes_moved", "m", "n", "k", "batch")
        ]
        flops, moved, m, n, k, batch = columns
        kinds = np.array([CLASSES.index(work.kind) for work in works], np.int8)
        formats = np.array([format_of(work.dtype) for work in works], np.str_)
        return cls(kinds, flops, moved, formats, m, n, k, batch)

    def take(self, rows: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> "Works":
        """The chosen rows, in the order in which they are chosen."""
        m, n, k, batch = (column[rows] for column in (self.m, self.n, self.k, self.batch))
        return Works(self.kind[rows], self.flops[rows], self.bytes_moved[rows], self.format[rows], m, n, k, batch)

    def is_kind(self, *kinds: OperatorClass) -> npt.NDArray[np.bool_]:
        """Which rows are of one of these classes."""
        return np.isin(self.kind, [CLASSES.index(kind) for kind in kinds])

    def __len__(self) -> int:
        return len(self.kind)
