"""What a step of a DLRM moves and computes: in, an architecture, its plan and a batch; out, elements, bytes and operations.

Symbols: ``B_l`` samples a rank, ``R`` ranks, ``B = B_l R``. Table-wise tables (TorchRec):

- pooled all-to-all forward: rank ``r`` sends ``B * sum of D_t on r`` numbers, ``B_l * sum of D_t on r`` to each rank, and the
  gradients the same way back;
- three all-to-alls of indices before: one split a table (int64), ``B_l`` lengths a table, then the indices, of which rank ``r``
  gets ``B_l * sum of L_t on r`` from each rank;
- all-reduce: all dense parameters and all weights of data-parallel tables.

Row-wise tables send their indices to the ranks that hold the rows; the partial sums come back by a reduce-scatter, their
gradients by an all-gather. Of hybrid tables the rows that are not frequent go through the pooled all-to-all, one by one, and
the frequent ones through the all-reduce; every rank reads the indices of the whole batch by itself.
"""

from dataclasses import dataclass

from tracereplay.errors import UsageError
from tracereplay.hardware.memory.tables import Sharding
from tracereplay.synth.architecture import Architecture
from tracereplay.synth.hybrid import frequent
from tracereplay.synth.sharding import Plan


@dataclass(frozen=True, slots=True)
class Volumes:
    """One rank's part of a step. ``*_split`` are numbers by destination rank, forward; the pooled one goes back by the
    transposed split. FLOPs are those of forward.
    """

    rank: int
    pooled_split: tuple[int, ...]
    pooled_received: int
    splits_elements: int
    lengths_elements: int
    index_split: tuple[int, ...]
    row_wise_elements: int
    all_reduce_elements: int
    lookup_bytes: int
    mlp_flops: int
    interaction_flops: int

    @property
    def pooled_elements(self) -> int:
        """Numbers in the rank's pooled all-to-all, its own part included."""
        return sum(self.pooled_split)

    @property
    def index_elements(self) -> int:
        """Indices in the rank's all-to-all, its own part included."""
        return sum(self.index_split)

    @property
    def lookup_backward_bytes(self) -> int:
        """Rows read and written by the backward with the optimizer fused in: twice the forward."""
        return 2 * self.lookup_bytes

    @property
    def mlp_training_flops(self) -> int:
        """Layers forward and backward: three times the forward."""
        return 3 * self.mlp_flops


def volumes(architecture: Architecture, plan: Plan, batch_per_rank: int) -> tuple[Volumes, ...]:
    """The volumes of every rank.

    Raises:
        UsageError: a batch below 1, or a plan for other tables.
    """
    if batch_per_rank < 1:
        raise UsageError(f"a batch of {batch_per_rank} a rank", hint="give at least one sample a rank")
    if tuple(p.table for p in plan.tables) != architecture.tables:
        raise UsageError("the plan is for other tables", hint="make it for this architecture")
    return tuple(_of_rank(architecture, plan, batch_per_rank, rank) for rank in range(plan.ranks))


def _of_rank(architecture: Architecture, plan: Plan, batch: int, rank: int) -> Volumes:
    own, replicated = plan.of(Sharding.TABLE_WISE, rank), plan.of(Sharding.DATA_PARALLEL)
    dealt, spread, mixed = plan.of(Sharding.ROW_WISE), plan.of(Sharding.TABLE_WISE), plan.of(Sharding.HYBRID)
    everywhere = batch * plan.ranks
    often = [frequent(table, everywhere, plan.ranks) for table in mixed]
    # Of rows dealt out a rank answers 1/R of the lookups of all ranks, of rows that it has as a copy its own.
    at_home = sum(table.pooling * table.row_bytes for table in (*dealt, *replicated, *mixed)) * batch
    lookup_bytes = sum(table.pooling * table.row_bytes for table in own) * everywhere + at_home
    rare = sum(table.pooling * (1 - part.share) * table.dim for table, part in zip(mixed, often, strict=True))
    to_each = batch * sum(table.dim for table in own) + round(batch * rare / plan.ranks)
    return Volumes(
        rank=rank,
        pooled_split=(to_each,) * plan.ranks,
        pooled_received=batch * sum(table.dim for table in spread) + round(batch * rare / plan.ranks) * plan.ranks,
        splits_elements=len(spread) + len(dealt) * plan.ranks,
        lengths_elements=batch * (len(spread) + len(dealt) * plan.ranks),
        index_split=tuple(
            batch * sum(table.pooling for table in plan.of(Sharding.TABLE_WISE, peer)) + part
            for peer, part in enumerate(_dealt(batch * sum(table.pooling for table in dealt), plan.ranks))
        ),
        row_wise_elements=everywhere * sum(table.dim for table in dealt),
        all_reduce_elements=architecture.dense_parameters
        + sum(table.rows * table.dim for table in replicated)
        + sum(part.rows * table.dim for table, part in zip(mixed, often, strict=True)),
        lookup_bytes=lookup_bytes,
        mlp_flops=sum(layer.flops(batch) for layer in architecture.dense_layers),
        interaction_flops=architecture.interaction_flops(batch),
    )


def _dealt(indices: int, ranks: int) -> list[int]:
    """Indices of row-wise tables by the rank that holds their row: evenly, the first ranks one more."""
    return [indices // ranks + (rank < indices % ranks) for rank in range(ranks)]
