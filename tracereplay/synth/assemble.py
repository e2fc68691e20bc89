"""A job ready to be built: in, what a command line says of it; out, the Job with its placement on a platform, or why not."""

from collections.abc import Mapping
from dataclasses import dataclass

from tracereplay.errors import UsageError
from tracereplay.hardware.memory.placement import CACHE_LOAD_FACTOR, Policy, Tier, place, required
from tracereplay.hardware.memory.rates import ranks_of_node
from tracereplay.hardware.platform import Platform
from tracereplay.synth.architecture import Architecture
from tracereplay.synth.footprint import besides_tables
from tracereplay.synth.sharding import Plan
from tracereplay.synth.software import Software
from tracereplay.synth.step import Job


@dataclass(frozen=True, slots=True)
class Spread:
    """How ranks stand on nodes: so many ranks on each of so many nodes."""

    nodes: int
    ranks_per_node: int

    @property
    def ranks(self) -> int:
        """All ranks."""
        return self.nodes * self.ranks_per_node

    def endpoints(self, platform: Platform) -> tuple[int, ...]:
        """The ranks as numbers of the accelerators (or sockets) of all nodes: the first ones of each node."""
        width = ranks_of_node(platform)
        return tuple(node * width + place for node in range(self.nodes) for place in range(self.ranks_per_node))


def spread_over(ranks: int, nodes: int | None, platform: Platform) -> Spread:
    """Ranks on nodes: the fewest nodes that hold them, or the given number, evenly.

    Raises:
        UsageError: the ranks do not fit on the nodes, or not evenly.
    """
    width = ranks_of_node(platform)
    if ranks < 1:
        raise UsageError(f"{ranks} ranks", hint="give at least 1")
    count = -(-ranks // width) if nodes is None else nodes
    if count < 1 or ranks % count or ranks // count > width:
        raise UsageError(
            f"{ranks} ranks on {count} nodes of {platform.description.name}",
            hint=f"a node has {width} and all nodes have equally many: change --ranks or --nodes",
        )
    return Spread(count, ranks // count)


def batch_of_rank(batch: int, ranks: int) -> int:
    """Samples of one rank.

    Raises:
        UsageError: the batch cannot be dealt out evenly.
    """
    if batch < 1 or batch % ranks:
        raise UsageError(
            f"a batch of {batch:,} over {ranks} ranks", hint="--batch counts the samples of all ranks: give a multiple of them"
        )
    return batch // ranks


@dataclass(frozen=True, slots=True)
class Wish:
    """What a job is to be: its model, its batch over all ranks, its software, and where its tables stand (``Policy``)."""

    architecture: Architecture
    batch: int
    software: Software
    tiers: Tier | Mapping[str, Tier] | None = Tier.HBM
    load_factor: float = CACHE_LOAD_FACTOR


def assemble(wish: Wish, plan: Plan, spread: Spread, platform: Platform) -> Job:
    """The job of a wish under a plan.

    Raises:
        UsageError: the batch cannot be dealt out evenly.
        HardwareError: the tables do not fit, or a capacity is unknown.
    """
    batch = batch_of_rank(wish.batch, plan.ranks)
    rest = besides_tables(wish.architecture, wish.software, batch)
    policy = Policy(wish.software.optimizer, wish.tiers, wish.load_factor)
    placed = place(plan.shards(), platform, [rest] * plan.ranks, policy, spread.ranks_per_node)
    placement = required(placed, platform)
    return Job(wish.architecture, plan, batch, wish.software, placement, spread.ranks_per_node)
