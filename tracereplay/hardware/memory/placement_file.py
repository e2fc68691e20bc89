"""A file that says where tables stand: in, TOML; out, its entries as written. Of a job that is built from an architecture
(``synth.placement_file``) or of one that was recorded (``replay.held_tables``), which needs to know more of a table.

schema = "tracereplay/placement/1"

[[table]]                      # of any job
name = "t0"                    # a name; of a job from an architecture also a shell pattern such as "t1?"
sharding = "table-wise"        # or "row-wise", "data-parallel"
rank = 3                       # of a table-wise one
tier = "cached"                # "hbm", "host", "cached", "ssd"; left out: "hbm"
                               # of a recorded job alone:
rows = 1_000_000               # of the whole table
dim = 64
pooling = 20                   # rows that a sample sums up; left out: 1
skew = 1.0                     # Zipf exponent by which rows are asked for; left out: 0
optimizer = "rowwise_adagrad"  # or "sgd", "adagrad", "adam"; left out: what the recorded lookup is called for
lookup = 0                     # which of its rank's lookups reads it, in the order of their first calls

[besides]                      # what a rank of a recorded job holds besides, in bytes; what is left out is 0
dense_weights = 8_000_000
gradients = 8_000_000
dense_state = 16_000_000
activations = 1_000_000_000
"""

import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tracereplay.errors import UsageError
from tracereplay.hardware.memory.placement import CACHE_LOAD_FACTOR, Tier
from tracereplay.hardware.memory.tables import Optimizer, Sharding

_Positive = Annotated[int, Field(ge=1)]
_NotNegative = Annotated[int, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TableEntry(_Strict):
    """One ``[[table]]``."""

    name: str
    sharding: Sharding | None = None
    rank: _NotNegative | None = None
    tier: Tier = Tier.HBM
    rows: _Positive | None = None
    dim: _Positive | None = None
    pooling: _Positive | None = None
    skew: Annotated[float, Field(ge=0, lt=8)] | None = None
    optimizer: Optimizer | None = None
    lookup: _NotNegative | None = None

    @property
    def of_recorded(self) -> bool:
        """Whether it says what only a recorded job's file may."""
        said = (self.rows, self.dim, self.pooling, self.skew, self.optimizer, self.lookup)
        return any(one is not None for one in said)

    @model_validator(mode="after")
    def _rank_fits(self) -> Self:
        if self.rank is not None and self.sharding not in {None, Sharding.TABLE_WISE}:
            raise ValueError(f"a {self.sharding} table is on every rank; leave out rank")
        return self


class BesidesEntry(_Strict):
    """``[besides]``: bytes of a rank."""

    dense_weights: _NotNegative = 0
    gradients: _NotNegative = 0
    dense_state: _NotNegative = 0
    activations: _NotNegative = 0


class PlacementFile(_Strict):
    """The file. ``load_factor``: which part of its rows a cached table has in HBM."""

    schema_: Annotated[Literal["tracereplay/placement/1"], Field(alias="schema")]
    load_factor: Annotated[float, Field(gt=0, le=1)] = CACHE_LOAD_FACTOR
    table: tuple[TableEntry, ...] = ()
    besides: BesidesEntry | None = None


def read_placement_file(path: Path) -> PlacementFile:
    """The entries of a file as written.

    Raises:
        UsageError: unreadable or wrong.
    """
    try:
        return PlacementFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")), strict=False)
    except OSError as error:
        raise UsageError(f"cannot read the placement file ({error.strerror})", where=str(path)) from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{key}: {first['msg']}", where=str(path), hint="docs/how-to/synth.md shows the form") from error
    except (ValueError, RecursionError) as error:  # wrong TOML or wrong UTF-8
        raise UsageError(f"not TOML: {error}", where=str(path)) from error
