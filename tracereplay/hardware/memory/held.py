"""Tables that a job holds, on memory of another size: in, what stands where and what else a rank holds; out, the tier of each.

More memory of a rank takes tables in, those with the most lookups a byte first, as long as they fit beside the rest. Less moves
none, unless asked: then the coldest leave for host memory until the rest fits.

Law: of one rank, more capacity never leaves more traffic outside of its own memory: where the larger memory takes tables that
the smaller one has no room for, they are hotter and larger than all that the smaller one then takes instead.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tracereplay.hardware.memory.placement import Besides, RankMemory, Tier
from tracereplay.hardware.memory.traffic import Traffic


@dataclass(frozen=True, slots=True)
class HeldTables:
    """Tables of one rank that stand, and move, together. ``bytes``: of weights and optimizer state; ``lookups``: rows that a
    step asks for, of ``row_bytes`` on average (None: not known); ``state_share``: numbers of optimizer state a weight;
    ``cached_bytes``: what their cache takes of the rank's own memory and ``missed`` which part of the lookups it does not
    answer, as long as they are cached; ``stays``: they do not move.
    """

    name: str
    rank: int
    tier: Tier
    bytes: int
    lookups: int
    row_bytes: float | None
    state_share: float = 0.0
    cached_bytes: int = 0
    missed: float = 1.0
    stays: bool = False

    @property
    def reads(self) -> int:
        """Bytes of the rows that a step asks for; how many rows where their size is not known."""
        return round(self.lookups * (1.0 if self.row_bytes is None else self.row_bytes))

    def local_bytes(self, tier: Tier) -> int:
        """What they take of the rank's own memory in a tier."""
        if tier is Tier.HBM:
            return self.bytes
        return self.cached_bytes if tier is Tier.CACHED else 0

    def traffic(self, tier: Tier) -> Traffic:
        """What a step's lookups move in a tier (``traffic.forward_traffic``)."""
        if tier is Tier.HBM:
            return Traffic(local_bytes=self.reads)
        if tier is Tier.HOST:
            return Traffic(host_bytes=self.reads)
        if tier is Tier.SSD:
            return Traffic(local_bytes=self.reads, ssd_bytes=self.reads)
        return Traffic(local_bytes=self.reads, host_bytes=round(self.reads * self.missed))


def tiers_on(
    held: Sequence[HeldTables], besides: Sequence[Besides], before: int, after: int, *, leave: bool = False
) -> tuple[Tier, ...]:
    """The tier of each on ranks whose own memory has ``after`` bytes instead of ``before``; ``besides`` has one entry a rank.
    With ``leave`` tables leave where they do not fit.
    """
    tiers = [one.tier for one in held]
    free = [after - rest.total for rest in besides]
    mine: dict[int, list[int]] = defaultdict(list)
    for at, one in enumerate(held):
        free[one.rank] -= one.local_bytes(one.tier)
        mine[one.rank].append(at)
    for rank, places in mine.items():
        if after > before:
            _take_in(held, tiers, _by_heat(held, places), free[rank])
        if leave:
            _let_out(held, tiers, _by_heat(held, places), free[rank])
    return tuple(tiers)


def _by_heat(held: Sequence[HeldTables], places: Sequence[int]) -> list[int]:
    """The hottest first: bytes that lookups move from where they stand, over bytes that moving them takes; lookups over bytes
    where the size of somebody's rows is not known.
    """
    sized = all(held[at].row_bytes is not None for at in places)

    def heat(at: int) -> float:
        one = held[at]
        asked = one.reads if sized else one.lookups
        return asked * one.missed / max(one.bytes - (one.cached_bytes if one.tier is Tier.CACHED else 0), 1)

    return sorted((at for at in places if not held[at].stays), key=lambda at: (-heat(at), at))


def _take_in(held: Sequence[HeldTables], tiers: list[Tier], order: Sequence[int], free: int) -> None:
    for at in order:
        need = held[at].bytes - held[at].local_bytes(tiers[at])
        if tiers[at] is not Tier.HBM and need <= free:
            tiers[at] = Tier.HBM
            free -= need


def _let_out(held: Sequence[HeldTables], tiers: list[Tier], order: Sequence[int], free: int) -> None:
    for at in reversed(order):
        if free >= 0:
            return
        if tiers[at] is Tier.HBM and held[at].tier is Tier.HBM:
            tiers[at] = Tier.HOST
            free += held[at].bytes


def rank_memories(
    held: Sequence[HeldTables], tiers: Sequence[Tier], besides: Sequence[Besides], capacity: int
) -> tuple[RankMemory, ...]:
    """What each rank's own memory then holds."""
    tables = [0] * len(besides)
    for one, tier in zip(held, tiers, strict=True):
        tables[one.rank] += one.local_bytes(tier)
    return tuple(RankMemory(rank, taken, besides[rank], capacity) for rank, taken in enumerate(tables))
