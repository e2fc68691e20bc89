"""Hybrid tables: rows that are asked for often are on every rank, the others dealt out; in, tables and a batch; out, shares.

HugeCTR holds a row on every rank where that costs less than sending it: where a batch asks for it more often than

    (all-to-all bandwidth / all-reduce bandwidth) * R / (R - 1)

times (hybrid embedding, ``max_all_to_all_bandwidth`` and ``max_all_reduce_bandwidth``; its defaults are 190 and 130 GB/s).
The rows of the first kind are looked up at home and their gradients summed over the ranks, those of the second go through the
pooled all-to-all. How often rows are asked for is the table's Zipf law.
"""

from dataclasses import dataclass

from tracereplay.hardware.memory.cache import popularity
from tracereplay.hardware.memory.tables import EmbeddingTable

# HugeCTR's defaults in bytes a second: all-to-all over all-reduce.
_ALL_TO_ALL_PER_S = 1.9e11
_ALL_REDUCE_PER_S = 1.3e11


@dataclass(frozen=True, slots=True)
class Frequent:
    """The rows of one table that are on every rank: how many, and what share of the lookups asks for them."""

    rows: int
    share: float


def frequent(table: EmbeddingTable, samples: int, ranks: int) -> Frequent:
    """The rows that a batch of ``samples`` over all ranks asks for more often than the threshold; all of them on one rank."""
    if ranks == 1:
        return Frequent(table.rows, 1.0)
    least = _ALL_TO_ALL_PER_S / _ALL_REDUCE_PER_S * ranks / (ranks - 1)
    probability, count = popularity(table.rows, table.skew)
    often = probability * samples * table.pooling > least
    return Frequent(int(count[often].sum()), float((probability * count)[often].sum()))
