"""What lookups move through which memory: in, a placed shard and a batch; out, bytes by memory.

Forward a lookup reads ``pooling * row`` bytes a sample; backward with the optimizer fused in it reads and writes the same rows
and their optimizer state. Pooled rows are not counted here.
"""

from dataclasses import dataclass

from tracereplay.hardware.memory.cache import hit_rate
from tracereplay.hardware.memory.placement import PlacedShard, Tier
from tracereplay.hardware.memory.rates import hbm_rate, host_rate, ssd_rate
from tracereplay.hardware.memory.tables import Optimizer, state_bytes
from tracereplay.hardware.platform import Platform

# Disks are read in blocks: a row that is shorter costs a block.
_BLOCK_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that cross a rank's own memory, its way to host memory, and disks."""

    local_bytes: int = 0
    host_bytes: int = 0
    ssd_bytes: int = 0

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(
            self.local_bytes + other.local_bytes, self.host_bytes + other.host_bytes, self.ssd_bytes + other.ssd_bytes
        )

    def times(self, factor: float) -> "Traffic":
        """That many times the traffic."""
        return Traffic(round(self.local_bytes * factor), round(self.host_bytes * factor), round(self.ssd_bytes * factor))


@dataclass(frozen=True, slots=True)
class Seconds:
    """A time, and the least and the most that it may be over the ranges of what it rests on."""

    likely: float
    least: float
    most: float

    def __add__(self, other: "Seconds") -> "Seconds":
        return Seconds(self.likely + other.likely, self.least + other.least, self.most + other.most)


def seconds_of(traffic: Traffic, platform: Platform, sharers: int) -> Seconds:
    """How long traffic keeps its memories busy, one after the other, while ``sharers`` accelerators of a node do the same.

    Raises:
        HardwareError: the bandwidth of a memory that is used is unknown.
    """
    ways = []  # a rate that nobody needs may be unknown
    if traffic.local_bytes:
        ways.append((traffic.local_bytes, hbm_rate(platform)))
    if traffic.host_bytes:
        ways.append((traffic.host_bytes, host_rate(platform, sharers)))
    if traffic.ssd_bytes:
        ways.append((traffic.ssd_bytes, ssd_rate(platform, sharers)))
    total = Seconds(0.0, 0.0, 0.0)
    for size, rate in ways:
        likely, (low, high) = size / rate.bytes_per_s, rate.spread(platform)
        total += Seconds(likely, likely / high, likely / low)
    return total


def lookups_of(placed: PlacedShard, samples: int) -> int:
    """How many rows ``samples`` samples ask of the shard: with rows dealt out, its share of them."""
    return round(samples * placed.shard.table.pooling * placed.shard.share)


def forward_traffic(placed: PlacedShard, samples: int) -> Traffic:
    """Rows read by the lookups of ``samples`` samples of all ranks."""
    lookups, row = lookups_of(placed, samples), placed.shard.table.row_bytes
    if placed.tier is Tier.HBM:
        return Traffic(local_bytes=lookups * row)
    if placed.tier is Tier.HOST:
        return Traffic(host_bytes=lookups * row)
    if placed.tier is Tier.SSD:
        return Traffic(local_bytes=lookups * row, ssd_bytes=lookups * max(row, _BLOCK_BYTES))
    missed = lookups - round(lookups * hit_rate(placed.shard.rows, placed.cached_rows, placed.shard.table.skew))
    return Traffic(local_bytes=lookups * row, host_bytes=missed * row)


def backward_traffic(placed: PlacedShard, samples: int, optimizer: Optimizer) -> Traffic:
    """Rows and their optimizer state, read and written by the gradients with the optimizer fused in: twice the forward bytes
    with SGD, four times with Adagrad. A cached row that was missed is in the cache by then; it is written back when it makes
    room, once.
    """
    forward, table = forward_traffic(placed, samples), placed.shard.table
    moved = 2 * (1 + state_bytes(1, table.dim, optimizer, table.element_bytes) / table.row_bytes)
    if placed.tier is Tier.CACHED:
        return Traffic(local_bytes=round(moved * forward.local_bytes), host_bytes=round(moved / 2 * forward.host_bytes))
    return forward.times(moved)
