"""Embedding lookups of FBGEMM as recorded: in, an operator's name and the shapes of its arguments; out, where its tables stood.

``SplitTableBatchedEmbeddingBags`` keeps the weights of all its tables in three tensors: ``dev_weights`` on the device,
``uvm_weights`` in host memory, and ``lxu_cache_weights``, the device's cache of the second. Their shapes are recorded, so the
placement is, as far as all of a call's tables share it: which of several tables stands where is in the values of
``weights_placements``, which no trace has. An execution trace names the arguments in the operator's schema; a Kineto trace has
their shapes in the same order.

What reads and writes the tables on the device are kernels under three kinds of calls: the lookup itself; its backward, which
has the optimizer fused in; and what fills the cache (``lru_cache_populate``), whose first argument is ``uvm_weights``.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from tracereplay.trace.schema import Role
from tracereplay.trace.table import EventTable

_LOOKUP = re.compile(r"fbgemm::(?P<kind>split|dense)_embedding_codegen_lookup_(?:(?P<optimizer>\w+?)_)?function(?:_pt2)?$")
_ARGUMENT = re.compile(r"(\w+)(?:=[^,()]*)?\s*(?:,|\)\s*->)")
# The node of PyTorch's autograd that calls a lookup's backward (FBGEMM codegen, embedding_backward_split_host_template.cpp).
_BACKWARD = re.compile(
    r"torch::autograd::CppNode<(?:\w+::)*Split(?:NoBag)?(?:VBE)?LookupFunction_(?P<optimizer>\w+?)_Op(?:_pt2)?>$", re.IGNORECASE
)
# FBGEMM, split_embeddings_cache_ops.cu; "fb" is the name space of 2021.
_FILL = re.compile(r"fb(?:gemm)?::(?:lru|lfu)_cache_populate(?:_byte)?$")
_FILLS = re.compile(r"l[rf]u_cache_insert|Memcpy ?(?:HtoD|DtoH)")
# Kernels of a lookup's backward that order indices and touch no table.
_ORDERS = re.compile(r"find_long_segments|linearize_index|sort|cumsum|bounds_check", re.IGNORECASE)
_TABLES = re.compile(r"embedding\w*_(?:forward|backward|grad)", re.IGNORECASE)
_ELEMENT_BYTES = {"c10::Half": 2, "c10::BFloat16": 2, "unsigned char": 1, "double": 8}
# FBGEMM codegen (embedding_forward_split_host.cpp), the first arguments of both operators; later ones differ by optimizer.
_SPLIT = (
    "placeholder_autograd_tensor", "dev_weights", "uvm_weights", "lxu_cache_weights", "weights_placements", "weights_offsets",
    "D_offsets", "total_D", "max_D", "hash_size_cumsum", "total_hash_size_bits", "indices", "offsets",
)  # fmt: skip
_DENSE = (
    "dev_weights", "weights_offsets", "D_offsets", "total_D", "max_D", "hash_size_cumsum", "total_hash_size_bits", "indices",
    "offsets",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RecordedLookup:
    """One lookup of several tables. Numbers of weights on the device, in host memory and in the device's cache; how many tables
    and indices, the latter for all samples. ``total_dim`` is the sum of the tables' dimensions, ``state_elements`` the numbers
    of optimizer state on the device; both None where not recorded. ``replicated``: a data-parallel lookup, which has no
    optimizer fused in.
    """

    name: str
    optimizer: str | None
    replicated: bool
    device_elements: int
    host_elements: int
    cached_elements: int
    tables: int
    indices: int
    samples: int
    total_dim: int | None
    state_elements: int | None
    element_bytes: int = 4

    @property
    def tier(self) -> str | None:
        """Where all of its tables stand: ``hbm``, ``host`` or ``cached``; None where they differ."""
        if self.device_elements and self.host_elements:
            return None
        if not self.host_elements:
            return "hbm"
        return "cached" if self.cached_elements else "host"


def is_lookup(name: str) -> bool:
    """True for the lookup operators of FBGEMM."""
    return _LOOKUP.match(name) is not None


class Access(Enum):
    """What a call does with tables."""

    LOOKUP = "lookup"
    BACKWARD = "backward"
    FILL = "fill"


@dataclass(frozen=True, slots=True)
class TableCall:
    """A call of a Kineto trace that reads or writes tables: its row, and the optimizer in its name (None: dense). ``lookup``:
    of a lookup what shapes say, its backward's included, None where they were not recorded; ``of``: of a backward the row of
    its lookup, None where nothing tells; ``host_elements``: of a fill the numbers of weights behind the cache.
    """

    row: int
    access: Access
    name: str
    optimizer: str | None = None
    lookup: RecordedLookup | None = None
    of: int | None = None
    host_elements: int | None = None


def table_calls(table: EventTable) -> tuple[TableCall, ...]:
    """The calls of a Kineto trace that touch tables, in file order. A backward names its lookup by their sequence number. Where
    lookups have none, backwards of one optimizer in the order of theirs are the lookups in order, if there are as many.
    """
    rows = table.rows_of(Role.CPU_OP)
    known = [(at, name) for at, name in enumerate(table.names) if any(p.match(name) for p in (_LOOKUP, _BACKWARD, _FILL))]
    codes = table.codes("name")[rows]
    chosen = sorted(int(row) for code, _ in known for row in rows[codes == code])
    args = {row: table.args_of(row) for row in chosen}
    calls = [_call(row, table.name_of(row), args[row]) for row in chosen]
    began = table.column("ts_ns")
    of = _paired(sorted(calls, key=lambda c: int(began[c.row])), {row: args[row].get("Sequence number") for row in chosen})
    gradients = {lookup: args[row].get("Input Dims") for row, lookup in of.items()}
    return tuple(replace(call, of=of.get(call.row), lookup=_widened(call.lookup, gradients.get(call.row))) for call in calls)


def touches_tables(access: Access, kernel: str) -> bool:
    """True for the device work under a call of that kind that reads or writes rows of tables."""
    if access is Access.FILL:
        return _FILLS.search(kernel) is not None
    return _TABLES.search(kernel) is not None and _ORDERS.search(kernel) is None


def lookup_of(name: str, shapes: Any, schema: str = "", values: Any = (), types: Any = ()) -> RecordedLookup | None:
    """The lookup that an operator was; None for another operator, or where its shapes were not recorded.

    ``shapes`` and ``types`` are those of its arguments as the file has them, ``schema`` its signature, ``values`` they
    themselves.
    """
    match = _LOOKUP.match(name)
    names = _argument_names(schema) or (_SPLIT if match and match["kind"] == "split" else _DENSE)
    if match is None or not isinstance(shapes, list) or len(shapes) < len(_DENSE):
        return None
    size = {argument: _elements(shape) for argument, shape in zip(names, shapes, strict=False)}
    device, tables, indices, offsets = (size.get(key) for key in ("dev_weights", "weights_offsets", "indices", "offsets"))
    if device is None or not tables or indices is None or not offsets:
        return None
    value = dict(zip(names, values, strict=False)) if isinstance(values, list) else {}
    total_dim = value.get("total_D")
    if isinstance(total_dim, str) and total_dim.isdecimal():  # as Kineto writes it
        total_dim = int(total_dim)
    type_of = dict(zip(names, types, strict=False)) if isinstance(types, list) else {}
    return RecordedLookup(
        name=name,
        optimizer=match["optimizer"],
        replicated=match["kind"] == "dense",
        device_elements=device,
        host_elements=size.get("uvm_weights") or 0,
        cached_elements=size.get("lxu_cache_weights") or 0,
        tables=tables,
        indices=indices,
        samples=(offsets - 1) // tables,
        total_dim=total_dim if isinstance(total_dim, int) else None,
        state_elements=size.get("momentum1_dev"),
        element_bytes=_ELEMENT_BYTES.get(str(type_of.get("dev_weights")), 4),
    )


def recorded_lookups(table: EventTable) -> tuple[RecordedLookup, ...]:
    """The lookups of a Kineto trace in file order; empty where it has none or was recorded without shapes."""
    return tuple(call.lookup for call in table_calls(table) if call.lookup is not None)


def _call(row: int, name: str, args: dict[str, Any]) -> TableCall:
    """One call by its name and arguments, before backwards know their lookups."""
    shapes = args.get("Input Dims")
    if _FILL.match(name):
        first = shapes[0] if isinstance(shapes, list) and shapes else None
        return TableCall(row, Access.FILL, name, host_elements=_elements(first))
    backward = _BACKWARD.match(name)
    if backward is not None:
        optimizer = backward["optimizer"]
        return TableCall(row, Access.BACKWARD, name, None if optimizer.lower() == "dense" else optimizer)
    lookup = lookup_of(name, shapes, values=args.get("Concrete Inputs"), types=args.get("Input type"))
    match = _LOOKUP.match(name)
    return TableCall(row, Access.LOOKUP, name, match["optimizer"] if match else None, lookup)


def _paired(calls: list[TableCall], sequence: dict[int, Any]) -> dict[int, int]:
    """The row of the lookup of each backward's row, as far as it is known; calls in the order of time."""
    forward = {sequence[c.row]: c.row for c in calls if c.access is Access.LOOKUP and isinstance(sequence[c.row], int)}
    found = {c.row: forward[sequence[c.row]] for c in calls if c.access is Access.BACKWARD and sequence[c.row] in forward}
    sides: dict[str | None, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    paired = set(found.values())
    for call in calls:
        if call.access is Access.LOOKUP and call.row not in paired:
            sides[call.optimizer][0].append(call.row)
        elif call.access is Access.BACKWARD and call.row not in found and isinstance(sequence[call.row], int):
            sides[call.optimizer][1].append(call.row)
    for lookups, backwards in sides.values():
        if len(lookups) == len(backwards):
            found |= zip(sorted(backwards, key=lambda row: sequence[row]), lookups, strict=True)
    return found


def _widened(lookup: RecordedLookup | None, gradients: Any) -> RecordedLookup | None:
    """A lookup with its tables' dimensions summed, where only the gradient of what it gave has them: samples x dimensions."""
    shape = gradients[0] if isinstance(gradients, list) and gradients else None
    if lookup is None or lookup.total_dim is not None or not isinstance(shape, list) or len(shape) != 2:
        return lookup
    samples, width = shape
    known = samples == lookup.samples and isinstance(width, int) and width > 0
    return replace(lookup, total_dim=width) if known else lookup


def _argument_names(schema: str) -> tuple[str, ...]:
    """The names in ``op(Tensor a, int b=0) -> Tensor``; empty without a schema."""
    inside = schema.partition("(")[2]
    return tuple(_ARGUMENT.findall(inside)) if inside else ()


def _elements(shape: Any) -> int | None:
    """Elements of a recorded shape; an empty one is a scalar or nothing, which is None here."""
    if not isinstance(shape, list) or not shape or not all(isinstance(d, int) for d in shape):
        return None
    count = 1
    for d in shape:
        count *= d
    return count
