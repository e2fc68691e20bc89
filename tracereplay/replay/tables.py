"""Embedding tables of a recorded job on another memory: in, a graph and two sites; out, where they stand, lookups re-timed.

FBGEMM's operators record where their tables stood (``trace/embedding``). A lookup whose tables stood in host memory is as fast
as the way there (``hardware/memory/rates``): on another platform it takes the ratio of the two ways, and in HBM the ratio of
the way to the memory's own rate, with everything else that the model of lookups says of the two accelerators. A cache before
host memory answers lookups at HBM's rate; what it misses is fetched before, by tasks of their own, which then have nothing to
do.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
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
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.schema import Accelerator
from tracereplay.replay.columns import Columns
from tracereplay.trace.embedding import RecordedLookup, backward_optimizer, lookups_by_row
from tracereplay.trace.schema import Role
from tracereplay.trace.table import EventTable
from tracereplay.trace.times import Int64s

# FBGEMM's operators that look a cache up, and fill it from host memory before the lookup.
_CACHE = re.compile(r"^fbgemm::(lxu_cache_|lru_cache_|lfu_cache_|linearize_cache_|emulate_cache_)")
# Weights, gradients and optimizer state, in numbers of a dense weight each.
_DENSE_NUMBERS = {"sgd": 2, "adagrad": 3, "adam": 4}
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
            found[number or 0] = max(of_steps.values()) * _DENSE_NUMBERS["adagrad"] if of_steps else None
        return found

    def on(self, source: Platform, target: Platform, made: Columns) -> Holdings | None:
        """Where the tables stand on the target, their lookups re-timed in ``made``; None where nothing is recorded of them.

        Raises:
            HardwareError: they do not fit, or a figure that this depends on is unknown.
        """
        if not self.banks or source.accelerator is None or target.accelerator is None:
            return None
        holdings = hold([one.bank for one in self.banks], self.dense_bytes, source, target)
        for recorded, there in zip(self.banks, _in_order(self.banks, holdings), strict=True):
            _retime(recorded, there.tier, source, target, made)
        return holdings


def _in_order(banks: tuple[_RecordedBank, ...], holdings: Holdings) -> list[MovedBank]:
    placed = {(one.bank.rank, one.bank.name): one for one in holdings.banks}
    return [placed[one.bank.rank, one.bank.name] for one in banks]


def _retime(recorded: _RecordedBank, tier: Tier, source: Platform, target: Platform, made: Columns) -> None:
    was = recorded.bank.tier
    if was is Tier.HBM:
        return
    here = host_rate(source, _sharers(source)).bytes_per_s
    if was is Tier.CACHED and tier is Tier.HBM:
        made.factor[recorded.cache] = 0.0
    elif tier is not Tier.HBM:
        tasks = recorded.lookups if was is Tier.HOST else recorded.cache
        made.factor[tasks] = here / host_rate(target, _sharers(target)).bytes_per_s
    elif source.accelerator is not None:
        likely, fast, slow = _rates(source.accelerator)
        made.factor[recorded.lookups] *= here / likely
        made.low[recorded.lookups] += log(likely / fast)
        made.high[recorded.lookups] += log(likely / slow)


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
            hint="give it with --set hbm.bandwidth=...",
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
        if lookup.tier is None:
            continue
        rows = [row for row, _ in members]
        tasks = _tasks_under(graph, rank, [*rows, *(back for row in rows for back in backward.get(row, ()))])
        of_cache = _tasks_under(graph, rank, cache) if lookup.tier == "cached" else np.zeros(0, np.int64)
        asked = sum(one.indices for _, one in members) // steps
        banks.append(_RecordedBank(_bank(graph, rank, f"{lookup.name}#{number}", lookup, asked), tasks, of_cache))
    return banks


def _bank(graph: DependencyGraph, rank: int, name: str, lookup: RecordedLookup, asked: int) -> Bank:
    size = lookup.element_bytes
    weights = (lookup.device_elements + lookup.host_elements) * size
    device = (lookup.device_elements + lookup.cached_elements) * size
    state = _state_numbers(lookup) * _FP32_BYTES
    return Bank(
        rank=graph.rank_numbers[rank] or 0,
        name=name,
        tier=Tier(lookup.tier or "hbm"),
        tables=lookup.tables,
        whole_bytes=weights + round(state * (lookup.device_elements + lookup.host_elements)),
        local_bytes=device + round(state * lookup.device_elements),
        lookups=asked,
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
