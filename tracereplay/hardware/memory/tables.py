"""Embedding tables and what they occupy: in, rows, width and optimizer; out, bytes of weights and of optimizer state."""

from dataclasses import dataclass
from enum import StrEnum

from tracereplay.errors import UsageError

_FP32_BYTES = 4
# Beyond this a handful of rows takes every lookup.
_STEEPEST = 8.0


class Optimizer(StrEnum):
    """Optimizers by the state that they keep beside each weight."""

    SGD = "sgd"
    ADAGRAD = "adagrad"
    ROWWISE_ADAGRAD = "rowwise_adagrad"
    ADAM = "adam"

    @property
    def numbers_a_weight(self) -> int:
        """Numbers of state beside a weight (torchrec planner, shard_estimators.py): none, the sum of squares, both moments."""
        return {"adagrad": 1, "adam": 2}.get(self.value, 0)

    @property
    def numbers_a_row(self) -> int:
        """Numbers of state a row: row-wise Adagrad keeps one (FBGEMM)."""
        return 1 if self is Optimizer.ROWWISE_ADAGRAD else 0


class Sharding(StrEnum):
    """How one table is spread over ranks."""

    TABLE_WISE = "table-wise"
    ROW_WISE = "row-wise"
    DATA_PARALLEL = "data-parallel"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True)
class EmbeddingTable:
    """One table. ``pooling`` is how many of its rows a sample sums up; ``skew`` the exponent of the Zipf law by which rows are
    asked for, 0 where all are equally likely.
    """

    name: str
    rows: int
    dim: int
    pooling: int
    element_bytes: int = _FP32_BYTES
    skew: float = 0.0

    def __post_init__(self) -> None:
        for name in ("rows", "dim", "pooling", "element_bytes"):
            value = getattr(self, name)
            if value < 1:
                raise UsageError(f"{name} of table {self.name} is {value}", hint="it must be at least 1")
        if not 0 <= self.skew < _STEEPEST:
            raise UsageError(f"skew of table {self.name} is {self.skew}", hint=f"a Zipf exponent lies in 0 to {_STEEPEST:g}")

    @property
    def row_bytes(self) -> int:
        """Bytes of one row's weights."""
        return self.dim * self.element_bytes

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights."""
        return self.rows * self.row_bytes


@dataclass(frozen=True, slots=True)
class Shard:
    """The rows of a table that one rank holds: all of them, or its part where rows are dealt out."""

    table: EmbeddingTable
    rank: int
    rows: int

    @property
    def share(self) -> float:
        """The part of the table's rows, and with rows dealt out at random of its lookups, that is here."""
        return self.rows / self.table.rows

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights that are here."""
        return self.rows * self.table.row_bytes

    def state_bytes(self, optimizer: Optimizer) -> int:
        """Bytes of optimizer state that are here: ``rows * dim * m`` numbers, row-wise Adagrad ``rows`` numbers."""
        return state_bytes(self.rows, self.table.dim, optimizer, self.table.element_bytes)


def state_bytes(rows: int, dim: int, optimizer: Optimizer, element_bytes: int = _FP32_BYTES) -> int:
    """Bytes of optimizer state beside ``rows`` rows of ``dim`` weights; ``rows=1`` for a dense parameter of ``dim`` numbers."""
    return rows * (dim * optimizer.numbers_a_weight + optimizer.numbers_a_row) * element_bytes
