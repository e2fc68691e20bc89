"""Groups of tables that a lookup reads together: in, what is recorded of them and two platforms; out, where they stand there.

FBGEMM reads all tables of one module with one operator, a *bank* here. Where a bank stood is recorded, which of its tables
stood where is not, so that it moves as a whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from tracereplay.errors import HardwareError
from tracereplay.hardware.memory.placement import Tier, local_capacity
from tracereplay.hardware.platform import Platform


class DoesNotFitError(HardwareError):
    """What a rank is known to hold is more than its memory."""


@dataclass(frozen=True, slots=True)
class Bank:
    """A bank on a rank. ``tier``: where it was recorded; bytes of its weights and optimizer state in all (``whole_bytes``) and
    on the device as it was (``local_bytes``); ``lookups``: rows asked for a step.
    """

    rank: int
    name: str
    tier: Tier
    tables: int
    whole_bytes: int
    local_bytes: int
    lookups: int


@dataclass(frozen=True, slots=True)
class MovedBank:
    """A bank and its tier on the target."""

    bank: Bank
    tier: Tier

    @property
    def local_bytes(self) -> int:
        """Bytes in the device's memory on the target."""
        return self.bank.whole_bytes if self.tier is Tier.HBM else self.bank.local_bytes


@dataclass(frozen=True, slots=True)
class RankHolds:
    """What is known of a rank's memory on the target: its banks' bytes there, dense weights with gradients and optimizer state
    (``dense_bytes``, an estimate; None where nothing tells), capacity.
    """

    rank: int
    table_bytes: int
    dense_bytes: int | None
    capacity: int

    @property
    def free(self) -> int:
        """Bytes left for activations and what else is not recorded; negative where they are missing."""
        return self.capacity - self.table_bytes - (self.dense_bytes or 0)


@dataclass(frozen=True, slots=True)
class Holdings:
    """The banks of all ranks on the target, and what each rank's memory then holds."""

    banks: tuple[MovedBank, ...]
    ranks: tuple[RankHolds, ...]

    @property
    def moved(self) -> tuple[MovedBank, ...]:
        """The banks that stand elsewhere than they were recorded."""
        return tuple(one for one in self.banks if one.tier is not one.bank.tier)


def hold(banks: Sequence[Bank], dense_bytes: dict[int, int | None], source: Platform, target: Platform) -> Holdings:
    """The banks on the target. Where its memory is larger than the source's, banks outside HBM move in, those with the most
    lookups a byte first, as long as they fit beside what the rank is known to hold. Memory as large as that of the recording
    holds what was recorded there, whatever estimates say.

    Raises:
        DoesNotFitError: what a rank is known to hold is more than its memory: the bytes missing and the ways out.
        HardwareError: a capacity is unknown.
    """
    capacity, before = local_capacity(target), local_capacity(source)
    grows = capacity > before
    moved: list[MovedBank] = []
    ranks = []
    for rank in sorted({bank.rank for bank in banks}):
        mine = [bank for bank in banks if bank.rank == rank]
        estimate = dense_bytes.get(rank)
        room = max(before - sum(bank.local_bytes for bank in mine), 0)
        dense = None if estimate is None else min(estimate, room)
        free = capacity - (dense or 0) - sum(bank.local_bytes for bank in mine)
        inside = set()
        for bank in sorted(mine, key=lambda b: (-b.lookups / max(b.whole_bytes, 1), b.name)):
            more = bank.whole_bytes - bank.local_bytes
            if grows and bank.tier is not Tier.HBM and more <= free:
                free -= more
                inside.add(bank.name)
        here = [MovedBank(bank, Tier.HBM if bank.name in inside else bank.tier) for bank in mine]
        moved += here
        ranks.append(RankHolds(rank, sum(one.local_bytes for one in here), dense, capacity))
    holdings = Holdings(tuple(moved), tuple(ranks))
    return holdings if capacity >= before else _fitting(holdings, target)


def _fitting(holdings: Holdings, target: Platform) -> Holdings:
    fullest = min(holdings.ranks, key=lambda rank: rank.free, default=None)
    if fullest is None or fullest.free >= 0:
        return holdings
    needed = fullest.capacity - fullest.free
    dense = "" if fullest.dense_bytes is None else f", {fullest.dense_bytes:,} of dense weights with what goes with them"
    raise DoesNotFitError(
        f"rank {fullest.rank} needs at least {needed:,} bytes ({fullest.table_bytes:,} of tables{dense}) of "
        f"{fullest.capacity:,}: {-fullest.free:,} bytes are missing, activations not counted",
        where=target.description.name,
        hint=f"--set accelerator.hbm.capacity={ceil(needed / 1e7) / 100:g}GB is the least; or record the job with tables in "
        "host memory or over more ranks",
    )
