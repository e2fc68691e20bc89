"""What a DLRM recording is asked to do: in, the numbers of a run; out, frozen and checked dataclasses.

This module knows no torch, so that a wrong value is refused before a second is spent on importing it.
"""

from dataclasses import asdict, dataclass
from math import inf
from typing import Any, Literal

from tracereplay.errors import UsageError


@dataclass(frozen=True, slots=True)
class DlrmConfig:
    """The architecture of a DLRM (Naumov et al. 2019, arXiv:1906.00091).

    ``bottom`` starts with the number of dense features and ends with ``dim``; ``top`` lists the widths after the
    interaction, whose own width follows from the tables, and ends with one logit. ``interaction``: the dot product of each pair
    of vectors beside the dense one (``dot``), or all vectors one after the other (``cat``).
    """

    bottom: tuple[int, ...]
    top: tuple[int, ...]
    dim: int
    table_rows: tuple[int, ...]
    poolings: tuple[int, ...]
    interaction: Literal["dot", "cat"] = "dot"

    def __post_init__(self) -> None:
        positive = {"bottom": self.bottom, "top": self.top, "rows": self.table_rows, "pooling": self.poolings}
        for name, values in positive.items():
            if not values or min(values) < 1:
                raise UsageError(f"{name} holds {values}", hint="every number must be at least 1")
        if len(self.bottom) < 2:
            raise UsageError(f"bottom has {len(self.bottom)} width", hint="give the dense features and at least one layer")
        if self.bottom[-1] != self.dim:
            raise UsageError(
                f"bottom ends with {self.bottom[-1]}, but the embedding dimension is {self.dim}",
                hint="the interaction needs both equal: change --bottom or --dim",
            )
        if self.top[-1] != 1:
            raise UsageError(f"top ends with {self.top[-1]}", hint="the model gives one logit: end --top with 1")
        if len(self.poolings) != len(self.table_rows):
            raise UsageError(f"{len(self.poolings)} pooling factors for {len(self.table_rows)} tables")

    @property
    def tables(self) -> int:
        """The number of embedding tables."""
        return len(self.table_rows)

    @property
    def interaction_width(self) -> int:
        """What the top MLP reads: the dense vector and the dot product of each pair of the tables + 1 vectors, or all."""
        vectors = self.tables + 1
        if self.interaction == "cat":
            return vectors * self.dim
        return self.dim + vectors * (vectors - 1) // 2


@dataclass(frozen=True, slots=True)
class SlowPeer:
    """A rank whose host sleeps before each forward pass: a straggler with a known answer."""

    rank: int
    delay_ms: float


@dataclass(frozen=True, slots=True)
class DlrmJob:
    """One recording: the model, how it is spread, how long it runs and how much of that is traced."""

    config: DlrmConfig
    ranks: int
    batch_per_rank: int
    warmup_steps: int
    steps: int
    seed: int
    learning_rate: float = 0.1
    slow_peer: SlowPeer | None = None

    def __post_init__(self) -> None:
        for name in ("ranks", "batch_per_rank", "warmup_steps", "steps"):
            value = getattr(self, name)
            if value < 1:
                raise UsageError(f"{name.replace('_', ' ')} is {value}", hint="it must be at least 1")
        if self.ranks > self.config.tables:
            raise UsageError(
                f"{self.ranks} ranks for {self.config.tables} tables", hint="each rank needs a table: raise --tables"
            )
        if self.slow_peer is not None and not 0 <= self.slow_peer.rank < self.ranks:
            raise UsageError(
                f"the slow rank is {self.slow_peer.rank}, but the ranks are 0 to {self.ranks - 1}",
                hint="choose one of them for --slow-rank",
            )
        if self.slow_peer is not None and not 0 < self.slow_peer.delay_ms < inf:
            raise UsageError(f"the delay is {self.slow_peer.delay_ms} ms", hint="give --slow-ms a positive number")

    @property
    def plan(self) -> tuple[int, ...]:
        """The rank that owns each table: contiguous blocks, the first ranks own one more where it does not divide."""
        each, extra = divmod(self.config.tables, self.ranks)
        return tuple(rank for rank in range(self.ranks) for _ in range(each + (rank < extra)))

    def delay_of(self, rank: int) -> float:
        """Seconds that the host of ``rank`` sleeps before each forward pass."""
        if self.slow_peer is None or self.slow_peer.rank != rank:
            return 0.0
        return self.slow_peer.delay_ms / 1_000

    def to_json(self) -> dict[str, Any]:  # Any: the nested shape is this dataclass, read back by from_json only
        """The job as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "DlrmJob":
        """The job that ``to_json`` wrote."""
        config: dict[str, Any] = {  # JSON turned the tuples into lists
            name: tuple(value) if isinstance(value, list) else value for name, value in raw["config"].items()
        }
        slow = raw["slow_peer"]
        rest = {name: value for name, value in raw.items() if name not in {"config", "slow_peer"}}
        return cls(config=DlrmConfig(**config), slow_peer=None if slow is None else SlowPeer(**slow), **rest)
