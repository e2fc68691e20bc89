"""Sharding and tiers of tables from a file: in, TOML; out, a Plan and the tier of each table.

schema = "tracereplay/placement/1"

[[table]]                      # a table that no entry names is table-wise on the rank with the least to read, in HBM
name = "t0"                    # a name, or a shell pattern such as "t1?"; a later entry overrides an earlier one
sharding = "table-wise"        # or "row-wise", "data-parallel"; left out: as it would be without the file
rank = 3                       # of a table-wise one
tier = "cached"                # "hbm", "host", "cached", "ssd"; left out: "hbm"
"""

import fnmatch
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tracereplay.errors import UsageError
from tracereplay.hardware.memory.placement import CACHE_LOAD_FACTOR, Tier
from tracereplay.synth.architecture import Architecture
from tracereplay.synth.sharding import Plan, Sharding, TablePlan


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TableEntry(_Strict):
    """One ``[[table]]``."""

    name: str
    sharding: Sharding | None = None
    rank: Annotated[int, Field(ge=0)] | None = None
    tier: Tier = Tier.HBM

    @model_validator(mode="after")
    def _rank_fits(self) -> Self:
        if self.rank is not None and self.sharding not in {None, Sharding.TABLE_WISE}:
            raise ValueError(f"a {self.sharding} table is on every rank; leave out rank")
        return self


class PlacementFile(_Strict):
    """The file. ``load_factor``: which part of its rows a cached table has in HBM."""

    schema_: Annotated[Literal["tracereplay/placement/1"], Field(alias="schema")]
    load_factor: Annotated[float, Field(gt=0, le=1)] = CACHE_LOAD_FACTOR
    table: tuple[TableEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class ChosenPlacement:
    """What a file chooses: the plan, tiers by table name, and the cached part of rows."""

    plan: Plan
    tiers: dict[str, Tier]
    load_factor: float


def read_placement(path: Path, architecture: Architecture, base: Plan) -> ChosenPlacement:
    """The choices of a file; what it leaves out is as in ``base``.

    Raises:
        UsageError: unreadable, wrong, or about tables and ranks that are not there.
    """
    try:
        content = PlacementFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")), strict=False)
    except OSError as error:
        raise UsageError(f"cannot read the placement file ({error.strerror})", where=str(path)) from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{key}: {first['msg']}", where=str(path), hint="docs/how-to/synth.md shows the form") from error
    except (ValueError, RecursionError) as error:  # wrong TOML or wrong UTF-8
        raise UsageError(f"not TOML: {error}", where=str(path)) from error
    names = [table.name for table in architecture.tables]
    for entry in content.table:
        if not fnmatch.filter(names, entry.name):
            raise UsageError(f"no table {entry.name!r}", where=str(path), hint=f"tables are {names[0]} to {names[-1]}")
    plans = tuple(_planned(plan, content.table) for plan in base.tables)
    tiers = {p.table.name: _tier(p.table.name, content.table) for p in plans}
    return ChosenPlacement(Plan(base.ranks, plans), tiers, content.load_factor)


def _planned(plan: TablePlan, entries: Sequence[TableEntry]) -> TablePlan:
    for entry in entries:
        if not fnmatch.fnmatchcase(plan.table.name, entry.name):
            continue
        sharding = entry.sharding or (Sharding.TABLE_WISE if entry.rank is not None else plan.sharding)
        rank = (plan.rank if entry.rank is None else entry.rank) if sharding is Sharding.TABLE_WISE else None
        if sharding is Sharding.TABLE_WISE and rank is None:
            rank = 0
        plan = TablePlan(plan.table, sharding, rank)
    return plan


def _tier(name: str, entries: Sequence[TableEntry]) -> Tier:
    return next((entry.tier for entry in reversed(entries) if fnmatch.fnmatchcase(name, entry.name)), Tier.HBM)
