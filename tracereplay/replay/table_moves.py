"""Tables of a recorded job on accelerators with more or less memory: in, the tables and two platforms; out, what moves, and the
times of the tasks that read and write them.

A task that touches tables outside of a rank's own memory takes its measured time, but for what a kernel takes at least, by the
bytes that its rows move through each memory: there, where they stand then, over here, where they stood. Where both are a rank's
own memory the model of operators has it. What fills a cache goes by the bytes that the cache misses.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracereplay.errors import UsageError
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.memory.held import HeldTables, rank_memories, tiers_on
from tracereplay.hardware.memory.placement import (
    Besides,
    NodeMemory,
    RankMemory,
    Tier,
    local_capacity,
    node_memories,
    refusal,
)
from tracereplay.hardware.memory.placement_file import PlacementFile
from tracereplay.hardware.memory.rates import host_rate, ranks_of_node
from tracereplay.hardware.memory.traffic import Seconds, Traffic, seconds_of
from tracereplay.hardware.operators.fitted import shipped
from tracereplay.hardware.operators.work import CLASSES, OperatorClass
from tracereplay.hardware.platform import Platform
from tracereplay.replay.besides import BesidesBounds, estimated, told
from tracereplay.replay.columns import Columns, Times
from tracereplay.replay.device_work import TaskWork
from tracereplay.replay.held_tables import JobTables, Lookup, ranks_of, tables_of
from tracereplay.replay.places import places
from tracereplay.replay.transfers import hosts_of
from tracereplay.trace.embedding import Access
from tracereplay.trace.times import Int64s
from tracereplay.units import NS_PER_S

CAPACITY = "accelerator.hbm.capacity"
_EMBEDDING = CLASSES.index(OperatorClass.EMBEDDING)
_LEAVE = "--placement auto moves the coldest tables to host memory"
_ALONE = "has no lookups of FBGEMM, whose tables alone are known to stand outside of HBM"


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody says of a job's tables: where they stood, None where the trace has to say it; whether those that do not fit
    leave.
    """

    placement: PlacementFile | None = None
    leave: bool = False


@dataclass(frozen=True, slots=True)
class TableMove:
    """Tables that move together: from which memory to which, their bytes with optimizer state, the rows that a step asks for.
    ``missing_bytes``: what a rank's own memory lacks to take them in, None where they stand there.
    """

    name: str
    rank: int | None
    before: str
    after: str
    bytes: int
    lookups: int
    missing_bytes: int | None


@dataclass(frozen=True, slots=True)
class RankFit:
    """A rank's own memory: its capacity, what tables take of it, and what is left beside the rest, before and after.
    ``estimated``: nobody said how much the rest is, which is then as much as it may be.
    """

    rank: int | None
    capacity_before_bytes: int
    capacity_after_bytes: int
    tables_before_bytes: int
    tables_after_bytes: int
    besides_bytes: int
    estimated: bool
    free_after_bytes: int


@dataclass(frozen=True, slots=True)
class TablesMoved:
    """The tables of a job on a target, rank by rank. ``why``: the reason in words where none moved; ``assumed``: what was
    assumed of them.
    """

    tables: tuple[TableMove, ...]
    ranks: tuple[RankFit, ...]
    why: str | None
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableMover:
    """Moves of one job's tables from where it ran; ``capacity``: bytes of an accelerator there."""

    graph: DependencyGraph
    source: Platform
    job: JobTables
    besides: BesidesBounds
    capacity: int
    leave: bool

    @staticmethod
    def of(graph: DependencyGraph, source: Platform | None, work: TaskWork, wish: Wish) -> "TableMover | None":
        """None for a job without accelerators, or on ones of which nobody knows how much they hold.

        Raises:
            UsageError, NotComparableError: a placement file that does not fit the job.
        """
        known = source is not None and source.accelerator is not None and source.accelerator.hbm.capacity.base is not None
        if not known or source is None or graph.host_carries_classes:
            if wish != Wish():
                raise UsageError(
                    "--placement: the job has no accelerators, or nobody knows how much they hold", hint="leave it out"
                )
            return None
        job, capacity = tables_of(graph, wish.placement), local_capacity(source)
        ranks = len(graph.tables)
        given = None if wish.placement is None else wish.placement.besides
        if given is not None:
            besides = told(Besides(**given.model_dump()), ranks)
        else:
            nothing = [Besides(0, 0, 0, 0)] * ranks
            here = rank_memories(job.held, [one.tier for one in job.held], nothing, capacity)
            besides = estimated(graph, work, [memory.free for memory in here])
        return TableMover(graph, source, job, besides, capacity, wish.leave)

    def to(self, target: Platform, made: Columns, *, refuse: bool = True) -> TablesMoved:
        """Where the tables stand on the target; the times of tasks that touch them go into ``made``. Without ``refuse`` what
        does not fit stays where it stood.

        Raises:
            HardwareError: they do not fit, or a bandwidth that they need is unknown.
        """
        there = target.accelerator
        if there is None or there.hbm.capacity.base is None or not self.job.held:
            return TablesMoved((), (), self._why_nothing(target), self.job.assumed)
        capacity = local_capacity(target)
        held, before = self.job.held, tuple(one.tier for one in self.job.held)
        after = tiers_on(held, self.besides.most, self.capacity, capacity, leave=self.leave)
        if refuse:
            least = rank_memories(held, after, self.besides.least, capacity)
            self._refuse(least, self._nodes(after, target), target, moved=after != before)
        most = rank_memories(held, after, self.besides.most, capacity)
        for lookup in self.job.lookups:
            self._retime(lookup, after, target, made)
        return TablesMoved(
            tables=tuple(self._row(at, after[at], most) for at in range(len(held))),
            ranks=tuple(self._fit(memory, before) for memory in most),
            why=None if after != before else self._why(most, capacity),
            assumed=(
                *self.job.assumed,
                *self._assumed(most, capacity, moved=after != before),
                *self._of_ways(self.source, before),
                *self._of_ways(target, after),
            ),
        )

    def _refuse(self, ranks: Sequence[RankMemory], nodes: Sequence[NodeMemory], target: Platform, *, moved: bool) -> None:
        """Refuse what certainly does not fit. What stays where it stood on the platform that it stood on fits."""
        stays = not moved and target.description.name == self.source.description.name
        full = [] if stays else [node for node in nodes if node.free is not None and node.free < 0]
        if min(memory.free for memory in ranks) < 0 or full:
            numbered = [RankMemory(self._rank(m.rank) or 0, m.tables, m.besides, m.capacity) for m in ranks]
            hot = {self._rank(one.rank) or 0 for one in self.job.held if one.tier is Tier.HBM and not one.stays}
            raise refusal(numbered, full, target, {} if self.leave else dict.fromkeys(hot, _LEAVE))

    def _nodes(self, after: Sequence[Tier], target: Platform) -> list[NodeMemory]:
        """What the tables outside take of the target's shared memories."""
        if all(tier is Tier.HBM for tier in after):
            return []
        width = ranks_of_node(target)
        standing = places(ranks_of(self.graph), hosts_of(self.graph), width)
        return node_memories(
            (
                (standing.endpoint[self._rank(one.rank) or 0] // width, Tier.SSD if tier is Tier.SSD else Tier.HOST, one.bytes)
                for one, tier in zip(self.job.held, after, strict=True)
                if tier is not Tier.HBM
            ),
            target,
        )

    def _rank(self, index: int) -> int | None:
        return self.graph.rank_numbers[index]

    # -- times -------------------------------------------------------------------------------------------------------------

    def _retime(self, lookup: Lookup, after: Sequence[Tier], target: Platform, made: Columns) -> None:
        """The tasks of a lookup of which tables stand, or stood, outside."""
        tables = [(self.job.held[at], after[at]) for at in lookup.held]
        if all(one.tier is Tier.HBM and tier is Tier.HBM for one, tier in tables):
            return
        filled = lookup.tasks.get(Access.FILL, np.zeros(0, np.int64)).size > 0
        for access, nodes in lookup.tasks.items():
            here = sum((_moved(one, one.tier, access, filled=filled) for one, _ in tables), Traffic())
            there = sum((_moved(one, tier, access, filled=filled) for one, tier in tables), Traffic())
            before, after_move = self._time(lookup.rank, here, self.source), self._time(lookup.rank, there, target)
            if before.likely:
                self._put(nodes, self._ratios(lookup, access, (before, after_move), tables, target), made)

    def _ratios(
        self,
        lookup: Lookup,
        access: Access,
        rows: tuple[Seconds, Seconds],
        tables: Sequence[tuple[HeldTables, Tier]],
        target: Platform,
    ) -> tuple[float, float, float]:
        """By what the time of a lookup's tasks, but for what kernels take at least, is multiplied, and its bounds.

        It goes by the times of its ``rows``, after over before. Tables that leave HBM add what their rows take longer: a lookup
        that does not keep HBM busy does not keep a slower memory less busy. Scattered rows reach a part of what HBM gives to
        streams, of slower memory up to all; what of the measured time the rows do not explain may stay.
        """
        (before, after), reached = rows, shipped().memory.embedding
        ratio, least, most = after.likely / before.likely, after.least / before.most, after.most / before.least
        if all(one.tier is tier for one, tier in tables):
            same = self.source.description.name == target.description.name  # what is unsure of it is the same before and after
            return (ratio, ratio, ratio) if same else (ratio, least, most)
        if any(one.tier is Tier.HBM and tier is not Tier.HBM for one, tier in tables):
            added = self._added(lookup, access, (after.likely - before.likely, after.least - before.most, after.most / reached))
            return added or (ratio, max(least * reached, min(ratio, 1.0)), most)
        saved = self._added(lookup, access, (after.most - before.least,) * 3)
        return ratio, least, min(max(most / reached, saved[0] if saved else ratio), max(ratio, 1.0))

    def _added(self, lookup: Lookup, access: Access, seconds: tuple[float, float, float]) -> tuple[float, float, float] | None:
        """The ratios where each call of a lookup takes so much longer; None where nobody knows how wide its rows are."""
        if any(self.job.held[at].row_bytes is None for at in lookup.held):
            return None
        before_ns = self.graph.nodes.dur_ns[lookup.tasks[access]]
        own_ns = float((before_ns - np.minimum(before_ns, shipped().floor_ns)).sum())
        by = lookup.calls[access] * NS_PER_S / own_ns if own_ns else 0.0
        likely, low, high = (max(1 + by * one, 0.0) for one in seconds)
        return likely, low, high

    def _put(self, nodes: Int64s, ratios: tuple[float, float, float], made: Columns) -> None:
        """New times of tasks; what a kernel takes at least stays."""
        before_ns = self.graph.nodes.dur_ns[nodes].astype(np.float64)
        fixed = np.minimum(before_ns, shipped().floor_ns)
        times = [fixed + (before_ns - fixed) * by for by in ratios]
        made.put(nodes, _EMBEDDING, Times(before_ns, *times))
        made.kept[nodes] = False

    def _time(self, rank: int, traffic: Traffic, platform: Platform) -> Seconds:
        return seconds_of(traffic, platform, self._sharers(rank, platform))

    def _sharers(self, rank: int, platform: Platform) -> int:
        """How many ranks of the job stand on the node of one."""
        width = ranks_of_node(platform)
        endpoint = places(ranks_of(self.graph), hosts_of(self.graph), width).endpoint
        node = endpoint[self._rank(rank) or 0] // width
        return sum(1 for at in endpoint.values() if at // width == node)

    # -- words -------------------------------------------------------------------------------------------------------------

    def _row(self, at: int, tier: Tier, ranks: Sequence[RankMemory]) -> TableMove:
        one = self.job.held[at]
        need = one.bytes - one.local_bytes(tier)
        missing = None if tier is Tier.HBM else max(need - ranks[one.rank].free, 0)
        return TableMove(one.name, self._rank(one.rank), one.tier.value, tier.value, one.bytes, one.lookups, missing)

    def _fit(self, memory: RankMemory, before: Sequence[Tier]) -> RankFit:
        held = [(one, tier) for one, tier in zip(self.job.held, before, strict=True) if one.rank == memory.rank]
        return RankFit(
            rank=self._rank(memory.rank),
            capacity_before_bytes=self.capacity,
            capacity_after_bytes=memory.capacity,
            tables_before_bytes=sum(one.local_bytes(tier) for one, tier in held),
            tables_after_bytes=memory.tables,
            besides_bytes=memory.besides.total,
            estimated=self.besides.estimated,
            free_after_bytes=memory.free,
        )

    def _why_nothing(self, target: Platform) -> str:
        """Why nobody knows of tables to move."""
        if target.accelerator is not None and target.accelerator.hbm.capacity.base is None:
            return f"{CAPACITY} of {target.description.name} is unknown: give it with --set {CAPACITY}=..."
        unknown = [lookup for lookup in self.job.lookups if lookup.unknown is not None]
        if not unknown:
            return f"the job {_ALONE}"
        first = unknown[0]
        return (
            f"where the tables of lookup {first.number} of rank {self._rank(first.rank)} stood is not known, {first.unknown}: "
            "give --placement FILE, or record with shapes"
        )

    def _why(self, ranks: Sequence[RankMemory], capacity: int) -> str:
        """Why nothing moved."""
        outside = [one for one in self.job.held if one.tier is not Tier.HBM and not one.stays]
        unknown = any(lookup.unknown is not None for lookup in self.job.lookups)
        if not outside and unknown:
            return self._why_unknown()
        if not outside:
            return "all tables already stand in HBM"
        if capacity <= self.capacity:
            return "tables outside of HBM are taken in where there is more of it alone"
        least = min(outside, key=lambda one: one.bytes - one.local_bytes(one.tier) - ranks[one.rank].free)
        lacking = least.bytes - least.local_bytes(least.tier) - ranks[least.rank].free
        memory, rest = ranks[least.rank], "at most " if self.besides.estimated else ""
        return (
            f"no tables that stand outside of HBM fit: {least.name} of rank {self._rank(least.rank)} lacks {lacking:,} bytes "
            f"({least.bytes:,}, beside {memory.tables:,} of tables and {rest}{memory.besides.total:,} of other things)"
        )

    def _why_unknown(self) -> str:
        first = next(lookup for lookup in self.job.lookups if lookup.unknown is not None)
        return (
            f"all tables that are known already stand in HBM, and those of lookup {first.number} of rank "
            f"{self._rank(first.rank)} are not known, {first.unknown}: give --placement FILE"
        )

    def _of_ways(self, platform: Platform, tiers: Sequence[Tier]) -> list[str]:
        """What of the way to host memory is assumed, or unknown, where tables stand there."""
        ranks = {one.rank for one, tier in zip(self.job.held, tiers, strict=True) if tier in {Tier.HOST, Tier.CACHED}}
        fields, lines = dict(platform.fields()), []
        for rate in (host_rate(platform, self._sharers(rank, platform)) for rank in sorted(ranks)):
            fact = fields.get(rate.binds)
            lines += [platform.described(rate.binds)] if fact is not None and fact.kind == "assumed" else []
            lines += [
                f"{key} of {platform.description.name} is unknown: lookups in host memory do not wait for it"
                for key in rate.unknown
            ]
        return list(dict.fromkeys(lines))

    def _assumed(self, most: Sequence[RankMemory], capacity: int, *, moved: bool) -> list[str]:
        if not self.besides.estimated or (capacity == self.capacity and not moved):
            return []
        fullest = min(most, key=lambda memory: memory.free)
        lines = [
            f"besides its tables rank {self._rank(fullest.rank)} holds at most {fullest.besides.total:,} bytes, estimated from "
            "gradients, shapes and what HBM had left; --placement FILE says it"
        ]
        if fullest.free < 0:
            lines.append(
                f"if that is so, rank {self._rank(fullest.rank)} lacks {-fullest.free:,} bytes; what is known of it fits"
            )
        return lines


def _moved(one: HeldTables, tier: Tier, access: Access, *, filled: bool) -> Traffic:
    """What one call moves of tables in a tier. Where calls ``filled`` their cache before, those moved what it missed."""
    whole = one.traffic(tier)
    if access is Access.FILL:
        return Traffic(host_bytes=whole.host_bytes) if tier is Tier.CACHED else Traffic()
    own = Traffic(local_bytes=whole.local_bytes) if tier is Tier.CACHED and filled else whole
    # Backward reads and writes rows and their state (``traffic.backward_traffic``).
    return own.times(2 * (1 + one.state_share)) if access is Access.BACKWARD else own
