"""What a DLRM is made of: in, an architecture string or the name of a preset; out, a frozen and checked Architecture.

The string is ``BOTTOM/TOP/TABLES``, with ``/cat`` or ``/dcn:LAYERS:RANK`` behind it where the interaction is no dot product:

    13-512-256-128/1024-1024-512-256-1/8x1000000:10,40000000:3

``BOTTOM`` starts with the number of dense features and ends with the embedding dimension; ``TOP`` lists the widths after
the interaction and ends with 1; a table is ``[COUNTx]ROWS[:POOLING]``. Widths are those of ``--arch-mlp-bot`` and
``--arch-mlp-top`` of facebookresearch/dlrm, whose top leaves out the interaction's width as well.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from tracereplay.errors import UsageError
from tracereplay.hardware.memory.tables import EmbeddingTable

Interaction = Literal["dot", "cat", "dcn"]

_TABLE = re.compile(r"(?:(?P<count>[0-9]{1,9})x)?(?P<rows>[0-9]{1,15})(?::(?P<pooling>[0-9]{1,9}))?")
_WIDTHS = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})*")
_MOST_TABLES = 100_000
_FORM = "write BOTTOM/TOP/TABLES such as 13-512-256-128/1024-512-1/26x1000000:10, with /cat or /dcn:3:512 behind it"


@dataclass(frozen=True, slots=True)
class Layer:
    """One fully connected layer, ``inputs`` to ``outputs`` features; ``bias`` adds ``outputs`` parameters."""

    inputs: int
    outputs: int
    bias: bool = True

    @property
    def parameters(self) -> int:
        """Weights, and the bias."""
        return self.inputs * self.outputs + (self.outputs if self.bias else 0)

    def flops(self, samples: int) -> int:
        """Floating point operations forward: a multiplication and an addition a weight and sample."""
        return 2 * self.inputs * self.outputs * samples


@dataclass(frozen=True, slots=True)
class Cross:
    """A low-rank cross network (DCN v2, Wang et al. 2020, arXiv:2008.13535): ``layers`` times down to ``rank`` and up again."""

    layers: int
    rank: int


@dataclass(frozen=True, slots=True)
class Architecture:
    """A DLRM (Naumov et al. 2019, arXiv:1906.00091). ``cross`` is given where the interaction is ``dcn``.

    ``bottom`` starts with the number of dense features and ends with the embedding dimension; ``top`` lists the widths after
    the interaction, whose own width follows from the tables, and ends with one logit.
    """

    name: str
    bottom: tuple[int, ...]
    top: tuple[int, ...]
    tables: tuple[EmbeddingTable, ...]
    interaction: Interaction = "dot"
    cross: Cross | None = None

    def __post_init__(self) -> None:
        positive = {"bottom": self.bottom, "top": self.top}
        for name, values in positive.items():
            if not values or min(values) < 1:
                raise UsageError(f"{name} holds {values}", hint="every number must be at least 1")
        if len(self.bottom) < 2:
            raise UsageError(f"bottom has {len(self.bottom)} width", hint="give the dense features and at least one layer")
        if not self.tables:
            raise UsageError("no tables", hint=_FORM)
        if self.top[-1] != 1:
            raise UsageError(f"top ends with {self.top[-1]}", hint="the model gives one logit: end it with 1")
        other = next((table for table in self.tables if table.dim != self.dim and self.interaction == "dot"), None)
        if other is not None:
            raise UsageError(
                f"bottom ends with {self.dim}, but table {other.name} has dimension {other.dim}",
                hint="the dot interaction needs both equal",
            )
        if (self.cross is None) == (self.interaction == "dcn"):
            raise UsageError("a dcn interaction, and no other, has layers and a rank", hint=_FORM)

    @property
    def dim(self) -> int:
        """The width of the dense vector that meets the tables' vectors."""
        return self.bottom[-1]

    @property
    def table_width(self) -> int:
        """The widths of all tables together: what one sample's pooled lookups are."""
        return sum(table.dim for table in self.tables)

    @property
    def interaction_width(self) -> int:
        """What the top MLP reads: with ``dot`` the dense vector and the dot product of each pair of the tables + 1 vectors,
        else all vectors side by side.
        """
        if self.interaction != "dot":
            return self.dim + self.table_width
        vectors = len(self.tables) + 1
        return self.dim + vectors * (vectors - 1) // 2

    @property
    def bottom_layers(self) -> tuple[Layer, ...]:
        """The bottom MLP."""
        return tuple(Layer(a, b) for a, b in pairwise(self.bottom))

    @property
    def top_layers(self) -> tuple[Layer, ...]:
        """The top MLP."""
        return tuple(Layer(a, b) for a, b in pairwise((self.interaction_width, *self.top)))

    @property
    def cross_layers(self) -> tuple[Layer, ...]:
        """The matrices of the cross network, none with another interaction: down without a bias, up with one (torchrec's
        LowRankCrossNet).
        """
        if self.cross is None:
            return ()
        width, rank = self.interaction_width, self.cross.rank
        return (Layer(width, rank, bias=False), Layer(rank, width)) * self.cross.layers

    @property
    def dense_layers(self) -> tuple[Layer, ...]:
        """All layers in the order in which a sample meets them."""
        return (*self.bottom_layers, *self.cross_layers, *self.top_layers)

    @property
    def dense_parameters(self) -> int:
        """Numbers that every rank holds and gradients of which are summed over the ranks."""
        return sum(layer.parameters for layer in self.dense_layers)

    def interaction_flops(self, samples: int) -> int:
        """Forward: ``2 (T+1)^2 D`` a sample with ``dot`` (the whole square is computed), none with ``cat``; a cross network's
        matrices are layers, its elementwise products three operations a feature and layer.
        """
        if self.interaction == "dot":
            return 2 * (len(self.tables) + 1) ** 2 * self.dim * samples
        return 0 if self.cross is None else 3 * self.cross.layers * self.interaction_width * samples

    def with_tables(self, element_bytes: int | None = None, skew: float | None = None) -> "Architecture":
        """The same with another number format or skew of its tables."""
        changed = tuple(
            replace(
                table,
                element_bytes=table.element_bytes if element_bytes is None else element_bytes,
                skew=table.skew if skew is None else skew,
            )
            for table in self.tables
        )
        return replace(self, tables=changed)


def parse_architecture(text: str, name: str = "") -> Architecture:
    """The architecture that a string names.

    Raises:
        UsageError: the string is none.
    """
    parts = text.strip().split("/")
    if len(parts) not in {3, 4}:
        raise UsageError(f"{text!r} is no architecture", hint=_FORM)
    bottom, top = _widths(parts[0]), _widths(parts[1])
    interaction, cross = _interaction(parts[3] if len(parts) == 4 else "dot")
    return Architecture(name or text, bottom, top, tuple(_tables(parts[2], bottom[-1])), interaction, cross)


def _widths(text: str) -> tuple[int, ...]:
    if not _WIDTHS.fullmatch(text):
        raise UsageError(f"{text!r} are no layer widths", hint=_FORM)
    return tuple(int(width) for width in text.split("-"))


def _tables(text: str, dim: int) -> Iterator[EmbeddingTable]:
    number = 0
    for part in text.split(","):
        match = _TABLE.fullmatch(part)
        if match is None:
            raise UsageError(f"{part!r} is no table", hint=f"a table is [COUNTx]ROWS[:POOLING]; {_FORM}")
        count = int(match["count"] or 1)
        if number + count > _MOST_TABLES:
            raise UsageError(f"{text!r} has more than {_MOST_TABLES:,} tables", hint="give fewer")
        for _ in range(count):
            yield EmbeddingTable(f"t{number}", int(match["rows"]), dim, int(match["pooling"] or 1))
            number += 1


def _interaction(text: str) -> tuple[Interaction, Cross | None]:
    if text in {"dot", "cat"}:
        return ("dot" if text == "dot" else "cat"), None
    match = re.fullmatch(r"dcn:([0-9]{1,4}):([0-9]{1,6})", text)
    if match is None:
        raise UsageError(f"no interaction {text!r}", hint="interactions are dot, cat and dcn:LAYERS:RANK")
    return "dcn", Cross(int(match[1]), int(match[2]))
