"""Sharding and tiers of tables from a file: in, a placement file (``hardware.memory.placement_file``) and an architecture; out,
a Plan and the tier of each table. A table that no entry names is table-wise on the rank with the least to read, in HBM; a later
entry overrides an earlier one.
"""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracereplay.errors import UsageError
from tracereplay.hardware.memory.placement import Tier
from tracereplay.hardware.memory.placement_file import TableEntry, read_placement_file
from tracereplay.hardware.memory.tables import Sharding
from tracereplay.synth.architecture import Architecture
from tracereplay.synth.sharding import Plan, TablePlan

_HINT = "leave them out: an architecture has its own; docs/how-to/synth.md shows the form"


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
    content = read_placement_file(path)
    if any(entry.of_recorded for entry in content.table) or content.besides is not None:
        raise UsageError(
            "rows, dim, pooling, skew, optimizer, lookup and besides are of a recorded job", where=str(path), hint=_HINT
        )
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
