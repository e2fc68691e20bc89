"""Embedding lookups of FBGEMM as recorded: in, an operator's name and the shapes of its arguments; out, where its tables stood.

``SplitTableBatchedEmbeddingBags`` keeps the weights of all its tables in three tensors: ``dev_weights`` on the device,
``uvm_weights`` in host memory, and ``lxu_cache_weights``, the device's cache of the second. Their shapes are recorded, so the
placement is, as far as all of a call's tables share it: which of several tables stands where is in the values of
``weights_placements``, which no trace has. An execution trace names the arguments in the operator's schema; a Kineto trace has
their shapes in the same order.
"""

import re
from dataclasses import dataclass
from typing import Any

from tracereplay.trace.schema import Role
from tracereplay.trace.table import EventTable

_LOOKUP = re.compile(r"fbgemm::(?P<kind>split|dense)_embedding_codegen_lookup_(?:(?P<optimizer>\w+?)_)?function(?:_pt2)?$")
_BACKWARD = re.compile(
    r"^torch::autograd::CppNode<Split(?:NoBag)?(?:VBE)?LookupFunction_(?P<optimizer>\w+?)_Op(?:_pt2)?>$", re.I
)
# What the names of types of weights say of their size; others have 4 bytes.
_SIZES = (("half", 2), ("bfloat16", 2), ("char", 1), ("fp8", 1), ("double", 8))
_ARGUMENT = re.compile(r"(\w+)(?:=[^,()]*)?\s*(?:,|\)\s*->)")
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


def lookup_of(name: str, shapes: Any, schema: str = "", values: Any = (), types: Any = ()) -> RecordedLookup | None:
    """The lookup that an operator was; None for another operator, or where its shapes were not recorded.

    ``shapes`` are those of its arguments as the file has them, ``schema`` its signature, ``values`` its arguments, ``types``
    the types of their elements.
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
        element_bytes=_element_bytes(dict(zip(names, types, strict=False)) if isinstance(types, list) else {}),
    )


def recorded_lookups(table: EventTable) -> tuple[RecordedLookup, ...]:
    """The lookups of a Kineto trace in file order; empty where it has none or was recorded without shapes."""
    return tuple(lookup for _, lookup in lookups_by_row(table))


def lookups_by_row(table: EventTable) -> tuple[tuple[int, RecordedLookup], ...]:
    """The same, each with its row in the table."""
    rows = [row for row in table.rows_of(Role.CPU_OP).tolist() if is_lookup(table.name_of(row))]
    args = {row: table.args_of(row) for row in rows}
    found = [
        (row, lookup_of(table.name_of(row), args[row].get("Input Dims"), types=args[row].get("Input type"))) for row in rows
    ]
    return tuple((row, lookup) for row, lookup in found if lookup is not None)


def backward_optimizer(name: str) -> str | None:
    """The optimizer fused into the backward pass of a lookup that an event is; "" where none is; None for another event."""
    match = _BACKWARD.search(name)
    return None if match is None else (match["optimizer"] if match["optimizer"].lower() != "dense" else "")


def _element_bytes(types: dict[str, Any]) -> int:
    """Bytes of a weight: half of them in half precision."""
    return next((size for word, size in _SIZES if word in str(types.get("dev_weights", "")).lower()), 4)


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
