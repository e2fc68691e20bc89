"""Where tables stand: in, shards of tables, a platform and what else a rank holds; out, the tier of each shard, what a rank's
memories then hold, and where that does not fit, the bytes missing and the nearest ways out.

Tiers: ``hbm`` is a rank's own memory (on a platform without accelerators, the memory of its socket), ``host`` the node's memory
behind the accelerator's link, ``cached`` host memory with a part of the rows cached in HBM, ``ssd`` disks of the node.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tracereplay.errors import HardwareError
from tracereplay.hardware.memory.rates import ranks_of_node, sockets_of
from tracereplay.hardware.memory.tables import Optimizer, Shard
from tracereplay.hardware.platform import Platform

# FBGEMM's default for cached tables: this part of the rows is cached (cache_load_factor).
CACHE_LOAD_FACTOR = 0.2
# Bookkeeping of such a table, a row and a cached row (torchrec planner, shard_estimators.py: rows * (4 + 16 * load factor)).
_AUX_A_ROW, _AUX_A_CACHED_ROW = 4, 16


class Tier(StrEnum):
    """Where a shard stands."""

    HBM = "hbm"
    HOST = "host"
    CACHED = "cached"
    SSD = "ssd"


@dataclass(frozen=True, slots=True)
class Besides:
    """What a rank holds besides tables, in bytes: dense weights, their gradients, their optimizer state, and activations, which
    are an estimate.
    """

    dense_weights: int
    gradients: int
    dense_state: int
    activations: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.dense_weights + self.gradients + self.dense_state + self.activations


@dataclass(frozen=True, slots=True)
class PlacedShard:
    """A shard in its tier: bytes of it and of its optimizer state in the rank's own memory, in host memory and on disks."""

    shard: Shard
    tier: Tier
    local_bytes: int
    host_bytes: int
    ssd_bytes: int
    cached_rows: int = 0


@dataclass(frozen=True, slots=True)
class RankMemory:
    """A rank's own memory: what its tables and the rest take of it; capacity and free bytes, negative where it does not fit."""

    rank: int
    tables: int
    besides: Besides
    capacity: int

    @property
    def used(self) -> int:
        """Bytes taken."""
        return self.tables + self.besides.total

    @property
    def free(self) -> int:
        """Bytes left, negative where they are missing."""
        return self.capacity - self.used


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """A node's shared memory or disks: bytes that its ranks' tables take, and its capacity (None: unknown)."""

    node: int
    tier: Tier
    used: int
    capacity: int | None

    @property
    def free(self) -> int | None:
        """Bytes left, negative where they are missing; None where the capacity is unknown."""
        return None if self.capacity is None else self.capacity - self.used


@dataclass(frozen=True, slots=True)
class Placement:
    """All shards with their tiers, and what the memories then hold."""

    shards: tuple[PlacedShard, ...]
    ranks: tuple[RankMemory, ...]
    nodes: tuple[NodeMemory, ...]
    optimizer: Optimizer

    @property
    def missing(self) -> int:
        """Bytes that the fullest memory lacks, 0 where everything fits."""
        free = [memory.free for memory in self.ranks] + [node.free for node in self.nodes if node.free is not None]
        return max(0, -min(free))

    @property
    def fits(self) -> bool:
        """True where no memory is known to be too small."""
        return self.missing == 0

    def of_rank(self, rank: int) -> tuple[PlacedShard, ...]:
        """The shards of a rank, in order."""
        return tuple(placed for placed in self.shards if placed.shard.rank == rank)


@dataclass(frozen=True, slots=True)
class Policy:
    """What decides where shards go: the optimizer, whose state goes with them; ``tiers``: one tier for all, a tier by name of
    table (HBM for others), or None: HBM for the shards with the most lookups a byte as long as they fit, host memory for the
    others; ``load_factor``: which part of its rows a cached table has in HBM.
    """

    optimizer: Optimizer
    tiers: Tier | Mapping[str, Tier] | None = None
    load_factor: float = CACHE_LOAD_FACTOR


def place(
    shards: Sequence[Shard],
    platform: Platform,
    besides: Sequence[Besides],
    policy: Policy,
    ranks_per_node: int | None = None,
) -> Placement:
    """Every shard in its tier. ``besides`` has one entry a rank; ``ranks_per_node``: how many ranks share a node's memory, by
    default as many as it has accelerators (or sockets). Whether it fits is in the result; ``required`` refuses what does not.

    Raises:
        HardwareError: the capacity of a rank's memory is unknown.
    """
    width = ranks_of_node(platform) if ranks_per_node is None else ranks_per_node
    capacity, tiers, optimizer = local_capacity(platform), policy.tiers, policy.optimizer
    if tiers is None:
        wanted = _filled(shards, besides, optimizer, capacity)
    elif isinstance(tiers, Tier):
        wanted = [tiers for _ in shards]
    else:
        wanted = [tiers.get(shard.table.name, Tier.HBM) for shard in shards]
    placed = tuple(placed_in(shard, tier, optimizer, policy.load_factor) for shard, tier in zip(shards, wanted, strict=True))
    local = [0] * len(besides)
    for one in placed:
        local[one.shard.rank] += one.local_bytes
    ranks = tuple(RankMemory(r, local[r], besides[r], capacity) for r in range(len(besides)))
    return Placement(placed, ranks, tuple(_nodes(placed, platform, width)), optimizer)


def required(placement: Placement, platform: Platform) -> Placement:
    """The placement itself where it fits.

    Raises:
        HardwareError: it does not: the fullest memory, the bytes missing and the nearest ways out.
    """
    if placement.fits:
        return placement
    hot = {one.shard.rank for one in placement.shards if one.tier is Tier.HBM} if platform.accelerator is not None else set()
    leave = "--placement auto moves the coldest tables to host memory, cached puts a cache before it"
    raise refusal(placement.ranks, placement.nodes, platform, dict.fromkeys(hot, leave))


def refusal(
    ranks: Sequence[RankMemory], nodes: Sequence[NodeMemory], platform: Platform, leave: Mapping[int, str]
) -> HardwareError:
    """What to say where memories, of which one at least is too small, do not hold what they have to: the fullest one, the bytes
    missing and the nearest ways out; ``leave`` is the way that tables may leave a rank's own memory, where they may.
    """
    name, fullest = platform.description.name, min(ranks, key=lambda memory: memory.free)
    if fullest.free < 0:
        what = (
            f"rank {fullest.rank} needs {fullest.used:,} bytes ({fullest.tables:,} of tables, {fullest.besides.total:,} "
            f"besides) of {fullest.capacity:,}: {-fullest.free:,} bytes are missing"
        )
        ways = [*_ways_out(ranks, fullest), *([leave[fullest.rank]] if fullest.rank in leave else [])]
        return HardwareError(what, where=name, hint="; ".join(ways))
    node = min((n for n in nodes if n.free is not None), key=lambda memory: memory.free or 0)
    what = (
        f"node {node.node} needs {node.used:,} bytes of {node.tier} memory of {node.capacity:,}: {-(node.free or 0):,} bytes "
        "are missing"
    )
    return HardwareError(what, where=name, hint="spread the tables over more nodes, or give fewer rows")


def local_capacity(platform: Platform) -> int:
    """Bytes of a rank's own memory.

    Raises:
        HardwareError: it is unknown.
    """
    if platform.accelerator is not None:
        capacity, key = platform.accelerator.hbm.capacity.base, "accelerator.hbm.capacity"
    else:
        whole, key = platform.description.host.memory.capacity.base, "host.memory.capacity"
        capacity = None if whole is None else whole / sockets_of(platform)
    if capacity is None:
        raise HardwareError(f"{key} is unknown", where=platform.description.name, hint=f"give it in your file or --set {key}=")
    return int(capacity)


def _filled(shards: Sequence[Shard], besides: Sequence[Besides], optimizer: Optimizer, capacity: int) -> list[Tier]:
    """HBM for the shards with the most lookups a byte, rank by rank, as long as they fit; host memory for the others."""
    free = [capacity - rest.total for rest in besides]
    tiers = [Tier.HOST for _ in shards]
    for i in sorted(range(len(shards)), key=lambda i: (-shards[i].table.pooling / shards[i].table.rows, i)):
        size = shards[i].weight_bytes + shards[i].state_bytes(optimizer)
        if size <= free[shards[i].rank]:
            free[shards[i].rank] -= size
            tiers[i] = Tier.HBM
    return tiers


def placed_in(shard: Shard, tier: Tier, optimizer: Optimizer, load_factor: float) -> PlacedShard:
    """A shard in a tier; ``load_factor``: which part of its rows a cached one has in HBM."""
    state = shard.state_bytes(optimizer)
    size = shard.weight_bytes + state
    if tier is Tier.HBM:
        return PlacedShard(shard, tier, size, 0, 0)
    if tier is Tier.HOST:
        return PlacedShard(shard, tier, 0, size, 0)
    if tier is Tier.SSD:
        return PlacedShard(shard, tier, 0, 0, size)
    cached = max(int(shard.rows * load_factor), 1)
    # The cache holds weights; the state of a cached row stays with it in HBM (FBGEMM caches momentum the same way).
    local = cached * size // shard.rows + shard.rows * _AUX_A_ROW + cached * _AUX_A_CACHED_ROW
    return PlacedShard(shard, tier, local, size, 0, cached)


def _nodes(placed: Iterable[PlacedShard], platform: Platform, width: int) -> list[NodeMemory]:
    """Host memories and disks that are used, by node of ``width`` ranks."""
    sides = ((Tier.HOST, "host_bytes"), (Tier.SSD, "ssd_bytes"))
    return node_memories(
        ((one.shard.rank // width, tier, getattr(one, name)) for one in placed for tier, name in sides), platform
    )


def node_memories(taken: Iterable[tuple[int, Tier, int]], platform: Platform) -> list[NodeMemory]:
    """Host memories and disks that are used; ``taken``: node, memory and bytes of whatever stands there."""
    used: dict[tuple[int, Tier], int] = {}
    for node, tier, size in taken:
        if size:
            used[node, tier] = used.get((node, tier), 0) + size
    return [NodeMemory(node, tier, size, _shared_capacity(platform, tier)) for (node, tier), size in sorted(used.items())]


def _shared_capacity(platform: Platform, tier: Tier) -> int | None:
    host = platform.description.host
    if tier is Tier.HOST:
        return None if host.memory.capacity.base is None else int(host.memory.capacity.base)
    if host.ssd is None or host.ssd.capacity.base is None or host.ssd.count.value is None:
        return None
    return int(host.ssd.capacity.base) * int(host.ssd.count.value)


def _ways_out(ranks: Sequence[RankMemory], fullest: RankMemory) -> list[str]:
    """What would make it fit, nearest first: rows, ranks, capacity."""
    room = fullest.capacity - fullest.besides.total
    ways = []
    if room > 0 and fullest.tables:
        ways.append(f"with {_floor(room / fullest.tables):.1%} of the rows it fits")
        total, most = sum(memory.tables for memory in ranks), len(ranks)
        least = max(-(-total // room), most + 1)
        ways.append(f"at best {least:,} ranks hold it, if the tables are spread evenly")
    ways.append(f"--set accelerator.hbm.capacity={_ceiling(fullest.used / fullest.capacity):.2f}x")
    return ways


def _floor(share: float) -> float:
    return int(share * 1_000) / 1_000


def _ceiling(factor: float) -> float:
    return -(-int(factor * 10_000) // 100) / 100 + 0.01
