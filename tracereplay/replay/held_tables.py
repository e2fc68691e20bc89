"""Embedding tables that a recorded job held: in, a graph and, where somebody gives it, a placement file; out, the tables by
lookup, where they stood, and the device tasks that read and write them.

A lookup is what calls of one name and the same recorded weights read in each step; where a step has several of them they are
several lookups. All tables of a lookup move together unless a placement file names them one by one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tracereplay.errors import NotComparableError, UsageError
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.memory.cache import hit_rate
from tracereplay.hardware.memory.held import HeldTables
from tracereplay.hardware.memory.placement import Tier, placed_in
from tracereplay.hardware.memory.placement_file import PlacementFile, TableEntry
from tracereplay.hardware.memory.tables import EmbeddingTable, Optimizer, Shard, Sharding, state_bytes
from tracereplay.trace.embedding import Access, RecordedLookup, TableCall, table_calls, touches_tables
from tracereplay.trace.times import Int64s

# FBGEMM's rows are multiples of 4 elements wide (D % 4 == 0 in split_table_batched_embeddings_ops).
_NARROWEST = 4
_HINT = "write a placement file and give it with --placement; docs/how-to/other-hardware.md shows the form"


@dataclass(frozen=True, slots=True)
class Lookup:
    """One lookup of a rank: its number there in the order of first calls, its tables (places in ``JobTables.held``), its device
    tasks by what they do, and how many calls those are of. ``unknown``: why nobody knows where its tables stood.
    """

    rank: int
    number: int
    held: tuple[int, ...]
    tasks: Mapping[Access, Int64s]
    calls: Mapping[Access, int]
    unknown: str | None = None


@dataclass(frozen=True, slots=True)
class JobTables:
    """The lookups of a job and the tables that are known of them; ``assumed``: what was assumed of them, in words."""

    lookups: tuple[Lookup, ...]
    held: tuple[HeldTables, ...]
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Called:
    """A lookup as it was called: its name, what its shapes say, rows asked for in a step, its calls by what they do."""

    number: int
    name: str
    optimizer: str | None
    lookup: RecordedLookup | None
    indices: int
    rows: Mapping[Access, frozenset[int]]

    @property
    def replicated(self) -> bool:
        """Of a data-parallel table."""
        return self.optimizer is None

    def owns(self, fill: TableCall) -> bool:
        """Whether a call may fill its cache: that of the same number of weights, or one that has none recorded."""
        if self.lookup is None or fill.host_elements is None:
            return not self.replicated
        return fill.host_elements == self.lookup.host_elements


def tables_of(graph: DependencyGraph, placement: PlacementFile | None = None) -> JobTables:
    """The tables of all ranks.

    Raises:
        UsageError: a placement file that names lookups or ranks that are not there, or says too little of a table.
        NotComparableError: a placement file whose tables are not those that the trace recorded.
    """
    found: list[Lookup] = []
    held: list[HeldTables] = []
    assumed: list[str] = []
    for rank in range(len(graph.tables)):
        called = _called(graph, rank)
        tasks = _tasks(graph, rank, called)
        given = _given(graph, rank, called, placement)
        for one in called:
            entries = given.get(one.number, ())
            shards, unknown = _told(graph, rank, one, entries, placement) if entries and placement else _recorded(rank, one)
            assumed += _assumed(one, shards) if not entries else []
            places = tuple(range(len(held), len(held) + len(shards)))
            held += shards
            calls = {access: len(rows) for access, rows in one.rows.items()}
            found.append(Lookup(rank, one.number, places, tasks.get(one.number, {}), calls, unknown))
    return JobTables(tuple(found), tuple(held), tuple(dict.fromkeys(assumed)))


def _called(graph: DependencyGraph, rank: int) -> list[_Called]:
    """The lookups of a rank in the order of their first calls."""
    table = graph.tables[rank]
    calls = table_calls(table)
    began = table.column("ts_ns")
    starts = np.array(sorted(step.start_ns for step in graph.steps if step.rank == rank), np.int64)
    same: dict[object, list[TableCall]] = defaultdict(list)
    for call in sorted((c for c in calls if c.access is Access.LOOKUP), key=lambda c: int(began[c.row])):
        same[_signature(call)].append(call)
    groups = [group for one in same.values() for group in _split(one, [int(began[c.row]) for c in one], starts)]
    groups.sort(key=lambda group: int(began[group[0].row]))
    of = {call.row: number for number, group in enumerate(groups) for call in group}
    made = [_one(number, group, _backwards(calls, of, number)) for number, group in enumerate(groups)]
    return [_with_fills(one, calls) for one in made]


def _signature(call: TableCall) -> object:
    one = call.lookup
    return (call.name, one and (one.device_elements, one.host_elements, one.cached_elements, one.tables))


def _split(calls: list[TableCall], began: list[int], starts: Int64s) -> list[list[TableCall]]:
    """Equal calls as the lookups that they are: as many as a step has of them."""
    steps = len(set(np.searchsorted(starts, began, "right").tolist()))
    many = max(round(len(calls) / steps), 1)
    return [calls[first::many] for first in range(many)]


def _backwards(calls: Sequence[TableCall], of: Mapping[int, int], number: int) -> frozenset[int]:
    return frozenset(c.row for c in calls if c.access is Access.BACKWARD and c.of is not None and of.get(c.of) == number)


def _one(number: int, group: list[TableCall], backwards: frozenset[int]) -> _Called:
    recorded = [call.lookup for call in group if call.lookup is not None]
    indices = round(sum(one.indices for one in recorded) / len(recorded)) if recorded else 0
    rows = {Access.LOOKUP: frozenset(call.row for call in group), Access.BACKWARD: backwards}
    first = group[0]
    return _Called(number, first.name, first.optimizer, recorded[0] if recorded else None, indices, rows)


def _with_fills(one: _Called, calls: Sequence[TableCall]) -> _Called:
    fills = frozenset(call.row for call in calls if call.access is Access.FILL and one.owns(call))
    return replace(one, rows={**one.rows, Access.FILL: fills})


def _tasks(graph: DependencyGraph, rank: int, called: Sequence[_Called]) -> dict[int, dict[Access, Int64s]]:
    """The device tasks of each lookup: those under its calls that touch tables. What fills the cache of one of several that may
    own it counts for the first.
    """
    if not called:
        return {}
    owner = {row: (one.number, access) for one in reversed(called) for access, rows in one.rows.items() for row in rows}
    parent = graph.tables[rank].column("parent_row")
    nodes = np.flatnonzero((graph.nodes.kind == NodeKind.DEVICE) & (graph.nodes.rank == rank))
    above: dict[int, tuple[int, Access] | None] = {}
    found: dict[int, dict[Access, list[int]]] = defaultdict(lambda: defaultdict(list))
    for node, row in zip(nodes.tolist(), graph.nodes.owner_row[nodes].tolist(), strict=True):
        if row not in above:
            above[row] = _around(row, parent, owner)
        place = above[row]
        if place is not None and touches_tables(place[1], graph.name_of(node)):
            found[place[0]][place[1]].append(node)
    return {number: {a: np.array(n, np.int64) for a, n in kinds.items()} for number, kinds in found.items()}


def _around(row: int, parent: Int64s, owner: Mapping[int, tuple[int, Access]]) -> tuple[int, Access] | None:
    """The innermost call around a row that touches tables."""
    while row >= 0:
        if row in owner:
            return owner[row]
        row = int(parent[row])
    return None


# -- as the trace has it ---------------------------------------------------------------------------------------------------


def _recorded(rank: int, one: _Called) -> tuple[list[HeldTables], str | None]:
    """The tables of a lookup, all together, as its shapes say; without them why they do not."""
    lookup = one.lookup
    if lookup is None:
        return [], "the shapes of its arguments were not recorded"
    if lookup.tier is None:
        return [], "its tables stood in several memories, and which stood where is not recorded"
    weights = (lookup.device_elements + lookup.host_elements) * lookup.element_bytes
    dim = None if lookup.total_dim is None else lookup.total_dim / lookup.tables
    state = _state_of(lookup, dim)
    uncached = 1.0 if not lookup.host_elements else 1 - min(lookup.cached_elements / lookup.host_elements, 1.0)
    held = HeldTables(
        name=_name(one),
        rank=rank,
        tier=Tier(lookup.tier),
        bytes=weights + state,
        lookups=one.indices,
        row_bytes=None if dim is None else dim * lookup.element_bytes,
        state_share=state / max(weights, 1),
        cached_bytes=lookup.cached_elements * lookup.element_bytes,
        missed=uncached if lookup.tier == Tier.CACHED else 1.0,
        stays=lookup.replicated,
    )
    return [held], None


def _name(one: _Called) -> str:
    return f"lookup {one.number}"


def _state_of(lookup: RecordedLookup, dim: float | None) -> int:
    """Bytes of optimizer state beside the tables of a lookup; of a number a row at most where their width is not known."""
    if lookup.replicated:
        return 0
    if lookup.state_elements is not None:
        return lookup.state_elements * lookup.element_bytes
    elements = lookup.device_elements + lookup.host_elements
    optimizer = _optimizer(lookup.optimizer)
    rows = round(elements / (_NARROWEST if dim is None else dim))
    return state_bytes(1, elements, optimizer, lookup.element_bytes) if not optimizer.numbers_a_row else rows * 4


def _optimizer(name: str | None) -> Optimizer:
    """The optimizer in an operator's name by the state that it keeps; one that is not known keeps as much as Adam."""
    kept = {"rowwise_adagrad": Optimizer.ROWWISE_ADAGRAD, "adagrad": Optimizer.ADAGRAD, "sgd": Optimizer.SGD}
    return next((optimizer for part, optimizer in kept.items() if name is not None and part in name), Optimizer.ADAM)


def _assumed(one: _Called, shards: Sequence[HeldTables]) -> list[str]:
    lines = []
    if any(held.tier is Tier.CACHED for held in shards):
        lines.append("rows of cached lookups are asked for alike: the skew is not recorded; --placement FILE says it")
    narrow = one.lookup is not None and one.lookup.total_dim is None and one.lookup.state_elements is None
    if shards and narrow and not one.replicated and _optimizer(one.optimizer).numbers_a_row:
        lines.append(f"rows of {_NARROWEST} elements, for the optimizer's number a row: the width of tables is not recorded")
    return lines


# -- as a placement file has it --------------------------------------------------------------------------------------------


def _given(
    graph: DependencyGraph, rank: int, called: Sequence[_Called], placement: PlacementFile | None
) -> dict[int, list[TableEntry]]:
    """The entries of a file that are about each lookup of a rank."""
    entries = [] if placement is None else [one for one in placement.table if _is_on(graph, rank, one)]
    by_number: dict[int, list[TableEntry]] = defaultdict(list)
    own = [one.number for one in called if not one.replicated]
    for entry in entries:
        if not called or (entry.lookup is None and len(own) != 1) or (entry.lookup or 0) >= len(called):
            which = ", ".join(f"{one.number} ({one.name})" for one in called) or "none"
            raise UsageError(
                f"which lookup of rank {_number(graph, rank)} reads table {entry.name!r} is not clear",
                hint=f"give its lookup; they are {which}",
            )
        by_number[own[0] if entry.lookup is None else entry.lookup].append(entry)
    return by_number


def _is_on(graph: DependencyGraph, rank: int, entry: TableEntry) -> bool:
    if entry.sharding in {Sharding.ROW_WISE, Sharding.DATA_PARALLEL}:
        return True
    if entry.sharding is Sharding.HYBRID:
        raise UsageError(f"table {entry.name!r}: a recorded job has no hybrid tables", hint="name its parts one by one")
    if entry.rank is None and len(graph.tables) > 1:
        raise UsageError(f"table {entry.name!r} has no rank", hint="give the rank that holds it, or its sharding")
    if entry.rank is not None and entry.rank >= _world(graph):
        raise UsageError(f"table {entry.name!r} is on rank {entry.rank}", hint=f"the job's ranks are 0 to {_world(graph) - 1}")
    return entry.rank is None or entry.rank == _number(graph, rank)


def _number(graph: DependencyGraph, rank: int) -> int:
    return graph.rank_numbers[rank] or 0


def ranks_of(graph: DependencyGraph) -> Iterable[int]:
    """The numbers of all ranks that the job is known to have, those that are not here included."""
    return range(_world(graph))


def _world(graph: DependencyGraph) -> int:
    told = [table.header.world_size or 0 for table in graph.tables]
    absent = [rank for c in graph.collectives for rank in c.absent]
    return max(*told, *(number + 1 for number in absent), *(_number(graph, r) + 1 for r in range(len(graph.tables))))


def _told(
    graph: DependencyGraph, rank: int, one: _Called, entries: Sequence[TableEntry], placement: PlacementFile
) -> tuple[list[HeldTables], None]:
    """The tables of a lookup one by one.

    Raises:
        NotComparableError: their weights are not those that were recorded.
    """
    held, elements = [], {Tier.HBM: 0, Tier.HOST: 0}
    for entry in entries:
        shard = _shard(graph, rank, one, entry)
        if not shard.rows:
            continue
        elements[Tier.HBM if entry.tier is Tier.HBM else Tier.HOST] += shard.rows * shard.table.dim
        held.append(_held(one, entry, shard, placement.load_factor))
    lookup = one.lookup
    if lookup is not None and (elements[Tier.HBM], elements[Tier.HOST]) != (lookup.device_elements, lookup.host_elements):
        raise NotComparableError(
            f"{_name(one)} of rank {_number(graph, rank)} had {lookup.device_elements:,} weights on the device and "
            f"{lookup.host_elements:,} in host memory, the placement file gives it {elements[Tier.HBM]:,} and "
            f"{elements[Tier.HOST]:,}",
            hint="name all of its tables with their rows, dim and tier",
        )
    return held, None


def _shard(graph: DependencyGraph, rank: int, one: _Called, entry: TableEntry) -> Shard:
    """What of a table the rank holds; rows are dealt out in blocks, of which the last is shorter (TorchRec,
    ``calculate_rw_shard_hash_sizes``).
    """
    if entry.rows is None or entry.dim is None:
        raise UsageError(f"table {entry.name!r} of a recorded job has no rows or no dim", hint="give both")
    if entry.tier is Tier.SSD:
        raise UsageError(f"table {entry.name!r} is on disks", hint="lookups on disks are not FBGEMM's: leave it out")
    size = 4 if one.lookup is None else one.lookup.element_bytes
    table = EmbeddingTable(entry.name, entry.rows, entry.dim, entry.pooling or 1, size, entry.skew or 0.0)
    if entry.sharding is not Sharding.ROW_WISE:
        return Shard(table, rank, entry.rows)
    block = -(-entry.rows // _world(graph))
    return Shard(table, rank, min(max(entry.rows - block * _number(graph, rank), 0), block))


def _held(one: _Called, entry: TableEntry, shard: Shard, load_factor: float) -> HeldTables:
    optimizer = entry.optimizer or (Optimizer.SGD if one.replicated else _optimizer(one.optimizer))
    placed = placed_in(shard, entry.tier, optimizer, load_factor)
    cached = entry.tier is Tier.CACHED
    samples = 1 if one.lookup is None else one.lookup.samples
    return HeldTables(
        name=f"{_name(one)}: {entry.name}",
        rank=shard.rank,
        tier=entry.tier,
        bytes=shard.weight_bytes + shard.state_bytes(optimizer),
        lookups=max(round(samples * shard.table.pooling * shard.share), 1),
        row_bytes=float(shard.table.row_bytes),
        state_share=shard.state_bytes(optimizer) / shard.weight_bytes,
        cached_bytes=placed.local_bytes if cached else 0,
        missed=1 - hit_rate(shard.rows, placed.cached_rows, shard.table.skew) if cached else 1.0,
        stays=one.replicated or entry.sharding is Sharding.DATA_PARALLEL,
    )
