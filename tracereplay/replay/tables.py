"""Embedding tables of a recorded job on another memory: in, a graph and two sites; out, where they stand, lookups re-timed.

FBGEMM's operators record where their tables stood (``trace/embedding``). A lookup whose tables stood in host memory is as fast
as the way there (``hardware/memory/rates``): on another platform it takes the ratio of the two ways, and in HBM the ratio of
the way to the memory's own rate, with everything else that the model of lookups says of the two accelerators. A cache before
host memory answers lookups at HBM's rate; what it misses is fetched before, by tasks of their own, which then have nothing to
do.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import log

import numpy as np

from tracereplay.errors import HardwareError
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.memory.banks import Bank, Holdings, MovedBank, hold
from tracereplay.hardware.memory.placement import Tier
from tracereplay.hardware.memory.rates import host_rate
from tracereplay.hardware.memory.tables import Optimizer
from tracereplay.hardware.operators.fitted import shipped
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.schema import Accelerator
from tracereplay.replay.columns import Columns
from tracereplay.trace.embedding import RecordedLookup, backward_optimizer, lookups_by_row
from tracereplay.trace.schema import Role
from tracereplay.trace.table import EventTable
from tracereplay.trace.times import Int64s

# FBGEMM's operators that look a cache up, and fill it from host memory before the lookup.
_CACHE = re.compile(r"^fbgemm::(lxu_cache_|lru_cache_|lfu_cache_|linearize_cache_|emulate_cache_)")
# Numbers of a dense weight: itself, its gradient, and Adagrad's state.
_DENSE_NUMBERS = 3
_FP32_BYTES = 4
# What lookups at random rows reach of a memory's bandwidth: likely, fast, slow. Wide rows come near to what streams reach, rows
# of one sector fall short by half (owensgroup/ml_perf_model, arXiv 2201.07821); the middle is this project's choice.
_REACHED = (0.8, 0.95, 0.5)


@dataclass(frozen=True, slots=True)
class _RecordedBank:
    """A bank with its tasks: those of its lookups forward and backward, and of its cache."""

    bank: Bank
    lookups: Int64s
    cache: Int64s


@dataclass(frozen=True)
class RecordedTables:
    """The tables of a job as they were recorded."""

    graph: DependencyGraph

    @cached_property
    def banks(self) -> tuple[_RecordedBank, ...]:
        """All banks, rank by rank; none where the recording has no lookups of FBGEMM with their shapes."""
        return tuple(bank for rank in range(len(self.graph.tables)) for bank in _of_rank(self.graph, rank))

    @cached_property
    def dense_bytes(self) -> dict[int, int | None]:
        """By rank the bytes of dense weights, their gradients and Adagrad's state, from what its all-reduces of a step sum up;
        an estimate. None where it has none of known size.
        """
        found: dict[int, int | None] = {}
        for index, number in enumerate(self.graph.rank_numbers):
            of_steps: dict[int, int] = {}
            for c in self.graph.collectives:
                if c.name == "all_reduce" and index in c.ranks and c.bytes is not None:
                    of_steps[c.step] = of_steps.get(c.step, 0) + c.bytes
            found[number or 0] = max(of_steps.values()) * _DENSE_NUMBERS if of_steps else None
        return found

    def on(self, source: Platform, target: Platform, made: Columns) -> Holdings | None:
        """Where the tables stand on the target, their lookups re-timed in ``made``; None where nothing is recorded of them.

        Raises:
            DoesNotFitError: they do not fit.
            HardwareError: a figure that this depends on is unknown.
        """
        if not self.banks or source.accelerator is None or target.accelerator is None:
            return None
        holdings = hold([one.bank for one in self.banks], self.dense_bytes, source, target)
        for recorded, there in zip(self.banks, _in_order(self.banks, holdings), strict=True):
            _retime_lookups(self.graph, recorded, there.tier, (source, target), made)
        for rank in {one.bank.rank for one in holdings.banks}:
            _retime_caches(self.banks, [one for one in holdings.banks if one.bank.rank == rank], (source, target), made)
        return holdings


def assumed_of(holdings: Holdings | None, source: Platform, target: Platform) -> list[str]:
    """What the answer rests on that is assumed, in words."""
    if holdings is None or all(one.bank.tier is Tier.HBM for one in holdings.banks):
        return []
    likely, fast, slow = _REACHED
    words = ["way to host memory: shared by all accelerators of a node"]
    if holdings.moved:
        words.append(f"lookups in HBM reach {likely:.0%} of its bandwidth ({slow:.0%} to {fast:.0%}): this project's choice")
        if any(rank.dense_bytes for rank in holdings.ranks):
            words.append("dense weights with gradients and Adagrad's state: what the all-reduces of a step sum up, three times")
    unknown = [key for one in (source, target) for key in host_rate(one, _sharers(one)).unknown]
    return [*words, *(f"{key} is unknown and taken not to bind" for key in dict.fromkeys(unknown))]


def _in_order(banks: tuple[_RecordedBank, ...], holdings: Holdings) -> list[MovedBank]:
    placed = {(one.bank.rank, one.bank.name): one for one in holdings.banks}
    return [placed[one.bank.rank, one.bank.name] for one in banks]


def _retime_lookups(
    graph: DependencyGraph, recorded: _RecordedBank, tier: Tier, sides: tuple[Platform, Platform], made: Columns
) -> None:
    """Lookups of a bank that stood in host memory: by the two ways there, or by the way there and HBM."""
    source, target = sides
    if recorded.bank.tier is not Tier.HOST or source.accelerator is None:
        return
    tasks = recorded.lookups
    here = host_rate(source, _sharers(source)).bytes_per_s
    if tier is not Tier.HBM:
        ratio = np.full(tasks.size, here / host_rate(target, _sharers(target)).bytes_per_s)
        made.low[tasks] = made.high[tasks] = 0.0
    else:
        likely, fast, slow = _rates(source.accelerator)
        ratio = made.factor[tasks] * here / likely
        made.low[tasks] += log(likely / fast)
        made.high[tasks] += log(likely / slow)
    dur_ns = np.maximum(graph.nodes.dur_ns[tasks].astype(np.float64), 1.0)
    floor_ns = np.minimum(shipped().floor_ns, dur_ns)
    made.factor[tasks] = (floor_ns + (dur_ns - floor_ns) * ratio) / dur_ns


def _retime_caches(
    banks: tuple[_RecordedBank, ...], of_rank: list[MovedBank], sides: tuple[Platform, Platform], made: Columns
) -> None:
    """The tasks that fill the caches of a rank: none are left where all of its cached banks moved in. Which of several banks
    one fills is not recorded, so that all stay where one does, and go by the ways to host memory.
    """
    cached = [one for one in of_rank if one.bank.tier is Tier.CACHED]
    if not cached:
        return
    tasks = np.unique(np.concatenate([one.cache for one in banks if one.bank.rank == cached[0].bank.rank]))
    if all(one.tier is Tier.HBM for one in cached):
        made.factor[tasks] = 0.0
        return
    here, there = (host_rate(one, _sharers(one)).bytes_per_s for one in sides)
    made.factor[tasks] = here / there
    made.low[tasks] = made.high[tasks] = 0.0


def _rates(accelerator: Accelerator) -> tuple[float, float, float]:
    """Bytes a second of lookups in an accelerator's memory: likely, fast, slow.

    Raises:
        HardwareError: its bandwidth is unknown.
    """
    peak = accelerator.hbm.bandwidth.base
    if peak is None:
        raise HardwareError(
            "hbm.bandwidth: its memory bandwidth is unknown",
            where=accelerator.name,
            hint="give it with --set accelerator.hbm.bandwidth=...",
        )
    likely, fast, slow = (peak * share for share in _REACHED)
    return likely, fast, slow


def _sharers(platform: Platform) -> int:
    slots = platform.description.accelerator
    return 1 if slots is None or slots.count.value is None else int(slots.count.value)


def _of_rank(graph: DependencyGraph, rank: int) -> list[_RecordedBank]:
    """The banks of a rank: lookups of the same module, told by what their tensors hold."""
    table = graph.tables[rank]
    found = lookups_by_row(table)
    groups: dict[tuple[object, ...], list[tuple[int, RecordedLookup]]] = {}
    for row, lookup in found:
        key = (lookup.name, lookup.device_elements, lookup.host_elements, lookup.cached_elements, lookup.tables)
        groups.setdefault(key, []).append((row, lookup))
    backward = _backward_rows(graph, rank, found)
    cache = _rows_named(table, lambda name: _CACHE.match(name) is not None)
    steps = max(len([span for span in graph.steps if span.rank == rank]), 1)
    banks = []
    for number, members in enumerate(groups.values()):
        lookup = members[0][1]
        rows = [row for row, _ in members]
        tasks = _tasks_under(graph, rank, [*rows, *(back for row in rows for back in backward.get(row, ()))])
        of_cache = _tasks_under(graph, rank, cache) if lookup.tier == "cached" else np.zeros(0, np.int64)
        asked = sum(one.indices for _, one in members) // steps
        # Modules alike are one bank: as many as it is asked in a step.
        bank = _bank(graph.rank_numbers[rank] or 0, f"{lookup.name}#{number}", lookup, max(round(len(members) / steps), 1))
        banks.append(_RecordedBank(replace(bank, lookups=asked), tasks, of_cache))
    return banks


def _bank(rank: int, name: str, lookup: RecordedLookup, modules: int) -> Bank:
    """The bank of so many modules alike. Where some tables stood in HBM and some outside, what stood there stays there and the
    others where they were: it moves as one with tables in HBM, and holds no more than their bytes.
    """
    size, state = lookup.element_bytes, _state_numbers(lookup) * _FP32_BYTES
    mixed = lookup.tier is None
    elsewhere = 0 if mixed else lookup.host_elements
    device = (lookup.device_elements + lookup.cached_elements) * size
    return Bank(
        rank=rank,
        name=f"{name}, partly in host memory" if mixed else name,
        tier=Tier(lookup.tier or "hbm"),
        tables=lookup.tables * modules,
        whole_bytes=((lookup.device_elements + elsewhere) * size + round(state * (lookup.device_elements + elsewhere)))
        * modules,
        local_bytes=(device + round(state * lookup.device_elements)) * modules,
        lookups=0,
    )


def _state_numbers(lookup: RecordedLookup) -> float:
    """Numbers of optimizer state a weight: row-wise ones have one a row, whose width is the tables' mean where recorded."""
    optimizer = next((one for one in Optimizer if one.value == lookup.optimizer), None)
    if optimizer is None:
        return 0.0
    if optimizer.numbers_a_row:
        return 0.0 if not lookup.total_dim else optimizer.numbers_a_row * lookup.tables / lookup.total_dim
    return float(optimizer.numbers_a_weight)


def _backward_rows(graph: DependencyGraph, rank: int, found: tuple[tuple[int, RecordedLookup], ...]) -> dict[int, list[int]]:
    """The rows of the backward pass of each lookup, by its row: in a step they come in the opposite order of the lookups with
    the same optimizer.
    """
    table = graph.tables[rank]
    ts = table.column("ts_ns")
    rows = _rows_named(table, lambda name: backward_optimizer(name) is not None)
    backward = [(row, backward_optimizer(table.name_of(row))) for row in rows]
    pairs: dict[int, list[int]] = {}
    for span in graph.steps:
        if span.rank != rank:
            continue
        for name in {optimizer for _, optimizer in backward}:
            there = [row for row, optimizer in backward if optimizer == name and span.start_ns <= ts[row] < span.end_ns]
            here = [row for row, one in found if (one.optimizer or "") == name and span.start_ns <= ts[row] < span.end_ns]
            if len(there) == len(here):
                ordered = sorted(there, key=lambda row: -ts[row])
                for row, back in zip(sorted(here, key=lambda row: ts[row]), ordered, strict=True):
                    pairs.setdefault(row, []).append(back)
    return pairs


def _rows_named(table: EventTable, is_wanted: Callable[[str], bool]) -> list[int]:
    """The operators whose name is wanted."""
    rows = table.rows_of(Role.CPU_OP)
    codes = [code for code, name in enumerate(table.names) if is_wanted(name)]
    return [int(row) for row in rows[np.isin(table.codes("name")[rows], codes)]]


def _tasks_under(graph: DependencyGraph, rank: int, rows: list[int]) -> Int64s:
    """The device tasks that an operator, or one that it calls, launched."""
    if not rows:
        return np.zeros(0, np.int64)
    nodes, parents = graph.nodes, graph.tables[rank].column("parent_row")
    wanted = set(rows)
    known: dict[int, bool] = {}

    def under(row: int) -> bool:
        chain = []
        while row >= 0 and row not in known and row not in wanted:
            chain.append(row)
            row = int(parents[row])
        answer = row in wanted or (row >= 0 and known[row])
        known.update(dict.fromkeys(chain, answer))
        return answer

    mine = np.flatnonzero((nodes.kind == NodeKind.DEVICE) & (nodes.rank == rank))
    return mine[[under(row) for row in nodes.owner_row[mine].tolist()]]
