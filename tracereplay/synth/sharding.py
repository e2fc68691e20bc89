"""Which rank holds which table: in, an architecture and ranks; out, a Plan with the shards of every rank.

Table-wise, a table stands whole on one rank; row-wise, its rows are dealt out over all ranks; data-parallel, every rank has all
of it and gradients are summed (names of TorchRec); hybrid, its frequent rows are on every rank and the others dealt out
(HugeCTR, see ``hybrid``).
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from tracereplay.errors import UsageError
from tracereplay.hardware.memory.tables import EmbeddingTable, Shard, Sharding
from tracereplay.synth.architecture import Architecture


@dataclass(frozen=True, slots=True)
class TablePlan:
    """One table's sharding; ``rank`` is the one that holds it where it is table-wise, None elsewhere."""

    table: EmbeddingTable
    sharding: Sharding
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The sharding of every table, in the architecture's order."""

    ranks: int
    tables: tuple[TablePlan, ...]

    def __post_init__(self) -> None:
        if self.ranks < 1:
            raise UsageError(f"{self.ranks} ranks", hint="give at least 1")
        for plan in self.tables:
            if (plan.rank is None) == (plan.sharding is Sharding.TABLE_WISE):
                raise UsageError(f"table {plan.table.name}", hint="a table-wise table, and no other, stands on one rank")
            if plan.rank is not None and not 0 <= plan.rank < self.ranks:
                raise UsageError(f"table {plan.table.name} is on rank {plan.rank}", hint=f"the ranks are 0 to {self.ranks - 1}")

    def of(self, sharding: Sharding, rank: int | None = None) -> tuple[EmbeddingTable, ...]:
        """Tables of one sharding, on one rank where it is given."""
        return tuple(p.table for p in self.tables if p.sharding is sharding and (rank is None or p.rank == rank))

    def shards(self) -> tuple[Shard, ...]:
        """What every rank holds, rank by rank, tables in order. Rows dealt out: the first ranks have one more. Of a hybrid
        table the copies of frequent rows, which depend on the batch, are not counted.
        """
        return tuple(shard for rank in range(self.ranks) for shard in self._shards_of(rank))

    def _shards_of(self, rank: int) -> list[Shard]:
        shards = []
        for plan in self.tables:
            rows = plan.table.rows
            if plan.sharding in {Sharding.ROW_WISE, Sharding.HYBRID}:
                rows = rows // self.ranks + (rank < rows % self.ranks)
            elif plan.sharding is Sharding.TABLE_WISE and plan.rank != rank:
                rows = 0
            if rows:
                shards.append(Shard(plan.table, rank, rows))
        return shards


def plan_on(architecture: Architecture, ranks: int, holders: Sequence[int | None]) -> Plan:
    """Table-wise on the given ranks, data-parallel where None."""
    plans = tuple(
        TablePlan(table, Sharding.DATA_PARALLEL if rank is None else Sharding.TABLE_WISE, rank)
        for table, rank in zip(architecture.tables, holders, strict=True)
    )
    return Plan(ranks, plans)


def balanced(architecture: Architecture, ranks: int, replicate_rows: int = 0) -> Plan:
    """Table-wise, largest cost first on the rank with the least so far: the cost of a table is the bytes that a sample's
    lookups read. Tables of at most ``replicate_rows`` rows are data-parallel.
    """
    plans: dict[int, TablePlan] = {}
    loads = [(0, 0, rank) for rank in range(ranks)]
    cost = [table.pooling * table.row_bytes for table in architecture.tables]
    sizes = [table.weight_bytes for table in architecture.tables]
    for i in sorted(range(len(cost)), key=lambda i: (-cost[i], -sizes[i], i)):
        table = architecture.tables[i]
        if table.rows <= replicate_rows:
            plans[i] = TablePlan(table, Sharding.DATA_PARALLEL)
            continue
        load, size, rank = heapq.heappop(loads)
        plans[i] = TablePlan(table, Sharding.TABLE_WISE, rank)
        heapq.heappush(loads, (load + cost[i], size + sizes[i], rank))
    return Plan(ranks, tuple(plans[i] for i in range(len(cost))))


def row_wise(architecture: Architecture, ranks: int, replicate_rows: int = 0) -> Plan:
    """Every table's rows dealt out over all ranks; tables of at most ``replicate_rows`` rows are data-parallel."""
    return _spread(architecture, ranks, Sharding.ROW_WISE, replicate_rows)


def hybrid(architecture: Architecture, ranks: int) -> Plan:
    """Every table hybrid."""
    return _spread(architecture, ranks, Sharding.HYBRID, 0)


def _spread(architecture: Architecture, ranks: int, sharding: Sharding, replicate_rows: int) -> Plan:
    plans = tuple(
        TablePlan(table, Sharding.DATA_PARALLEL if table.rows <= replicate_rows else sharding) for table in architecture.tables
    )
    return Plan(ranks, plans)
