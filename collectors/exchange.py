"""The all-to-all between table owners and batch owners: in, lookups of own tables; out, all tables of the own batch.

Theory of operation. Rank r owns some tables and looks them up for the global batch; then each rank needs every table
for its own slice of that batch. The transfer is started before the bottom MLP and waited for behind it, and the
gradients go back the same way, so that both directions hide behind the bottom MLP:

    forward    lookup | start ~~~~~ bottom MLP ~~~~~ wait | interaction | top MLP
    backward   lookup | wait' ~~~~~ bottom MLP ~~~~~ start' | interaction | top MLP     (read from right to left)

The backward order is autograd's own: among ready nodes it runs the one made last in the forward pass, and ``wait``
was made after the bottom MLP, ``start`` before it.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True, slots=True)
class ExchangeLayout:
    """Who sends how much: numbers that are fixed for the whole run."""

    tables_per_rank: tuple[int, ...]
    batch_per_rank: int
    dim: int
    rank: int

    @property
    def send_splits(self) -> list[int]:
        """Elements to each rank: its slice of the batch for the tables owned here."""
        own = self.batch_per_rank * self.tables_per_rank[self.rank] * self.dim
        return [own] * len(self.tables_per_rank)

    @property
    def receive_splits(self) -> list[int]:
        """Elements from each rank: the own slice of the batch for the tables owned there."""
        return [self.batch_per_rank * tables * self.dim for tables in self.tables_per_rank]


class _Flight:
    """One step's transfer in the air; lives from the start of the forward pass to the end of the backward pass."""

    def __init__(self, layout: ExchangeLayout) -> None:
        self.layout = layout
        self._work: dist.Work | None = None
        self._gradients = torch.empty(0)

    def launch(self, pooled: Tensor) -> Tensor:
        received = pooled.new_empty(sum(self.layout.receive_splits))
        self._work = dist.all_to_all_single(
            received, pooled, self.layout.receive_splits, self.layout.send_splits, async_op=True
        )
        return received

    def launch_back(self, gradient: Tensor) -> None:
        self._gradients = gradient.new_empty(sum(self.layout.send_splits))
        self._work = dist.all_to_all_single(
            self._gradients, gradient, self.layout.send_splits, self.layout.receive_splits, async_op=True
        )

    def land(self) -> None:
        if self._work is not None:
            self._work.wait()
            self._work = None

    def land_back(self) -> Tensor:
        self.land()
        # Each rank's loss is a mean over its own slice and the slices' gradients were summed by the lookup: dividing
        # by the ranks gives the gradient of the mean over the global batch, as DDP does for the MLPs.
        return self._gradients.div_(len(self.layout.tables_per_rank))


class _Start(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pooled: Tensor, flight: _Flight) -> Tensor:  # Any: autograd's context has no public type
        ctx.flight = flight
        return flight.launch(pooled)

    @staticmethod
    def backward(ctx: Any, *_unsent: Tensor) -> tuple[Tensor, None]:
        return ctx.flight.land_back(), None


class _Wait(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, received: Tensor, flight: _Flight) -> Tensor:
        ctx.flight = flight
        flight.land()
        return received.view_as(received)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,) = gradients
        ctx.flight.launch_back(gradient.contiguous())
        return gradient, None


class Arrival:
    """Lookups on their way here; ``wait`` gives them as (own batch, tables, dim)."""

    def __init__(self, received: Tensor, flight: _Flight) -> None:
        self._received = received
        self._flight = flight

    def wait(self) -> Tensor:
        """Block until every rank's part is here."""
        layout = self._flight.layout
        landed: Tensor = _Wait.apply(self._received, self._flight)  # type: ignore[no-untyped-call]
        parts = torch.split(landed, layout.receive_splits)
        shaped = [part.view(layout.batch_per_rank, -1, layout.dim) for part in parts]
        return torch.cat(shaped, dim=1)


def start_exchange(lookups: list[Tensor], layout: ExchangeLayout) -> Arrival:
    """Send the own tables' lookups of the global batch, each (global batch, dim), to the ranks that need them."""
    pooled = torch.cat(lookups, dim=1).view(-1)  # (global batch, own tables x dim): rows of one rank lie together
    flight = _Flight(layout)
    received: Tensor = _Start.apply(pooled, flight)  # type: ignore[no-untyped-call]
    return Arrival(received, flight)
