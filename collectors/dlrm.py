"""A hybrid-parallel DLRM and its training step: in, a DlrmJob and a rank of an initialised process group; out, losses.

Embedding tables are sharded table-wise and exchanged by all-to-all, MLPs are copies kept equal by DDP's all-reduce:
the scheme of Naumov et al. 2020 (arXiv:2003.09518), in the smallest form that trains for real.
"""

import random
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function

from tracereplay.collectors.exchange import ExchangeLayout, start_exchange
from tracereplay.collectors.job import DlrmConfig, DlrmJob


@dataclass(frozen=True, slots=True)
class Batch:
    """What one rank reads in one step: its slice of the dense side, the global batch for its own tables."""

    dense: Tensor
    labels: Tensor
    indices: list[Tensor]
    offsets: list[Tensor]


def seeded_generator(seed: int, kind: str, index: int) -> torch.Generator:
    """A generator of its own for each table or rank, so that a table's content does not depend on who owns it."""
    mixed = random.Random(f"{seed}/{kind}/{index}").getrandbits(63)
    return torch.Generator().manual_seed(mixed)


def own_tables(job: DlrmJob, rank: int) -> tuple[int, ...]:
    """The tables that ``rank`` owns, in the order of the model."""
    return tuple(table for table, owner in enumerate(job.plan) if owner == rank)


class BatchSource:
    """An endless seeded stream of one rank's batches."""

    def __init__(self, job: DlrmJob, rank: int) -> None:
        self._config = job.config
        self._local = job.batch_per_rank
        self._global = job.batch_per_rank * job.ranks
        self._dense = seeded_generator(job.seed, "dense", rank)
        self._tables = {table: seeded_generator(job.seed, "indices", table) for table in own_tables(job, rank)}

    def draw(self) -> Batch:
        """The next batch."""
        dense = torch.randn(self._local, self._config.bottom[0], generator=self._dense)
        labels = torch.randint(2, (self._local,), generator=self._dense).float()
        indices, offsets = [], []
        for table, generator in self._tables.items():
            pooling = self._config.poolings[table]
            indices.append(torch.randint(self._config.table_rows[table], (self._global * pooling,), generator=generator))
            offsets.append(torch.arange(0, self._global * pooling, pooling))
        return Batch(dense, labels, indices, offsets)


def build_mlp(widths: tuple[int, ...], generator: torch.Generator) -> nn.Sequential:
    """Linear layers with ReLU between them and none after the last; weights are Xavier's, biases zero."""
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(widths):
        linear = nn.Linear(fan_in, fan_out)
        nn.init.xavier_uniform_(linear.weight, generator=generator)
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def build_table(config: DlrmConfig, table: int, seed: int) -> nn.EmbeddingBag:
    """One embedding table with sum pooling and sparse gradients."""
    rows = config.table_rows[table]
    bag = nn.EmbeddingBag(rows, config.dim, mode="sum", sparse=True)
    bound = rows**-0.5  # the reference model's initialisation (arXiv:1906.00091, its published code)
    nn.init.uniform_(bag.weight, -bound, bound, generator=seeded_generator(seed, "table", table))
    return bag


class ShardedDlrm(nn.Module):
    """One rank's part of the model: its tables, and its copy of both MLPs."""

    def __init__(self, job: DlrmJob, rank: int) -> None:
        super().__init__()
        config = job.config
        self.tables = nn.ModuleList(build_table(config, table, job.seed) for table in own_tables(job, rank))
        bottom = build_mlp(config.bottom, seeded_generator(job.seed, "mlp", 0))
        top = build_mlp((config.interaction_width, *config.top), seeded_generator(job.seed, "mlp", 1))
        self.bottom = DistributedDataParallel(bottom)
        self.top = DistributedDataParallel(top)
        self._layout = ExchangeLayout(
            tables_per_rank=tuple(job.plan.count(peer) for peer in range(job.ranks)),
            batch_per_rank=job.batch_per_rank,
            dim=config.dim,
            rank=rank,
        )
        self._interaction = config.interaction
        pairs = torch.tril_indices(config.tables + 1, config.tables + 1, offset=-1)
        self.register_buffer("_pairs", pairs, persistent=False)

    def forward(self, batch: Batch) -> Tensor:
        """The logits of the own slice of the batch."""
        bags = zip(self.tables, batch.indices, batch.offsets, strict=True)
        lookups = [bag(indices, offsets) for bag, indices, offsets in bags]
        arrival = start_exchange(lookups, self._layout)
        dense = self.bottom(batch.dense)
        logits: Tensor = self.top(self._interact(dense, arrival.wait()))
        return logits.squeeze(1)

    def _interact(self, dense: Tensor, sparse: Tensor) -> Tensor:
        vectors = torch.cat([dense.unsqueeze(1), sparse], dim=1)
        if self._interaction == "cat":
            return vectors.flatten(1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        first, second = self.get_buffer("_pairs")
        return torch.cat([dense, products[:, first, second]], dim=1)


class Trainer:
    """One rank's training state; each ``step`` is one whole iteration."""

    def __init__(self, job: DlrmJob, rank: int) -> None:
        self.model = ShardedDlrm(job, rank)
        self._source = BatchSource(job, rank)
        self._loss = nn.BCEWithLogitsLoss()
        self._optimizer = torch.optim.SGD(self.model.parameters(), lr=job.learning_rate)

    def draw(self) -> Batch:
        """The next input."""
        with record_function("## input ##"):
            return self._source.draw()

    def step(self, batch: Batch) -> float:
        """Forward, backward and update; the loss is that of the own slice, before the update."""
        self._optimizer.zero_grad()
        with record_function("## forward ##"):
            loss = self._loss(self.model(batch), batch.labels)
        with record_function("## backward ##"):
            loss.backward()
        self._optimizer.step()
        return float(loss.item())
