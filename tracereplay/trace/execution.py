"""Execution traces (PyTorch's ``ExecutionTraceObserver``, Chakra) beside Kineto traces: in, a file; out, its collectives and
its embedding lookups.

Older Kineto traces name neither sizes nor groups of NCCL collectives; the execution trace of the same run does, in its
``record_param_comms`` nodes. They are matched by rank, then by kind and order.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tracereplay.errors import TraceError
from tracereplay.trace.classify import collective_of
from tracereplay.trace.container import Source
from tracereplay.trace.embedding import RecordedLookup, lookup_of
from tracereplay.trace.table import EventTable, ExecutedCollective

_RANK_IN_NAME = re.compile(r"(?:^|[^a-zA-Z])(?:rank|worker|eg|et)[_-]?(\d+)", re.IGNORECASE)
_SPLIT = re.compile(r"\[(\d{1,18}(?:, ?\d{1,18})*)\]")
_TYPE = re.compile(r"Tensor\(([^)]*)\)")
# Where the arguments of record_param_comms are (torch/csrc/distributed/c10d/ParamCommsUtils.hpp): the tensors, the sequence
# number, the process group, then rank, name, in and out split sizes.
_SEQUENCE, _GROUP, _NAME, _IN_SPLIT, _OUT_SPLIT = 1, 2, 4, 5, 6
_NOT_COLLECTIVE = frozenset({"wait", "init", "barrier"})


@dataclass(frozen=True, slots=True)
class ExecutionTrace:
    """The collectives and the FBGEMM lookups of one rank's execution trace, each in order."""

    path: str
    rank: int | None
    collectives: tuple[ExecutedCollective, ...]
    lookups: tuple[RecordedLookup, ...] = ()


class _Node(msgspec.Struct, gc=False):
    name: str = ""
    op_schema: Any = ""
    inputs: Any = None
    input_shapes: Any = None
    input_types: Any = None
    rf_id: int = 0


class _Document(msgspec.Struct):
    nodes: list[_Node]


def read_execution_trace(path: Path) -> ExecutionTrace:
    """What one execution trace records; its rank is read from the file name.

    Raises:
        TraceError: unreadable, damaged, or not an execution trace.
    """
    source = Source(path)
    text = b"".join(source.blocks)
    if source.damage is not None:
        raise TraceError(source.damage, where=str(path), hint="copy the file again")
    try:
        nodes = msgspec.json.decode(text, type=_Document).nodes
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(
            f"not an execution trace ({error})", where=str(path), hint="pass what ExecutionTraceObserver wrote"
        ) from error
    match = _RANK_IN_NAME.search(path.name)
    nodes.sort(key=lambda n: n.rf_id)
    found = [c for node in nodes if node.name == "record_param_comms" and (c := _collective(node))]
    lookups = [
        lookup for node in nodes if (lookup := lookup_of(node.name, node.input_shapes, str(node.op_schema or ""), node.inputs))
    ]
    return ExecutionTrace(str(path), int(match.group(1)) if match else None, tuple(found), tuple(lookups))


def attach(
    tables: Sequence[tuple[EventTable, int | None]], traces: Sequence[ExecutionTrace]
) -> tuple[list[EventTable], dict[str, int]]:
    """The tables with the collectives of the execution traces of their ranks, and how many traces found a rank."""
    by_rank = {trace.rank: trace for trace in traces}
    attached = [
        table if rank is None or rank not in by_rank else table.with_executed(by_rank[rank].collectives)
        for table, rank in tables
    ]
    matched = sum(1 for _, rank in tables if rank is not None and rank in by_rank)
    return attached, {"matched": matched, "unmatched": len(traces) - matched}


def matching(names: Sequence[str], executed: Sequence[ExecutedCollective]) -> list[ExecutedCollective | None]:
    """For each recorded collective, by name in order, the executed one of that kind and order; None where counts differ."""
    queues: dict[str, list[ExecutedCollective]] = defaultdict(list)
    for c in executed:
        queues[c.name].append(c)
    counts = Counter(names)
    usable = {name for name in counts if counts[name] == len(queues[name])}
    seen: Counter[str] = Counter()
    result: list[ExecutedCollective | None] = []
    for name in names:
        result.append(queues[name][seen[name]] if name in usable else None)
        seen[name] += 1
    return result


def _collective(node: _Node) -> ExecutedCollective | None:
    inputs = node.inputs if isinstance(node.inputs, list) else []
    if len(inputs) <= _NAME or not isinstance(inputs[_NAME], str) or inputs[_NAME] in _NOT_COLLECTIVE:
        return None
    name = collective_of(f"nccl:{inputs[_NAME]}")
    if name is None:
        return None
    elements = elements_of(node.input_shapes[0]) if isinstance(node.input_shapes, list) and node.input_shapes else None
    types = _TYPE.findall(str(node.input_types[0])) if isinstance(node.input_types, list) and node.input_types else []
    return ExecutedCollective(
        name=name,
        seq=inputs[_SEQUENCE] if isinstance(inputs[_SEQUENCE], int) else None,
        # Before schema 1.1 this is the address of the group in its own process, which names it on no other rank.
        group=inputs[_GROUP] if isinstance(inputs[_GROUP], str) else None,
        elements=elements,
        dtype=types[0] if types else None,
        in_split=_split(inputs, _IN_SPLIT),
        out_split=_split(inputs, _OUT_SPLIT),
    )


def elements_of(shape: Any) -> int | None:
    """Elements of a tensor's shape, one without dimensions has one; of a list of shapes the sum; None for anything else."""
    if not isinstance(shape, list):
        return None
    if all(isinstance(d, int) for d in shape):
        return math.prod(shape)
    parts = [elements_of(part) for part in shape]
    return None if None in parts else sum(part or 0 for part in parts)


def _split(inputs: list[Any], place: int) -> tuple[int, ...]:
    return split_sizes(inputs[place] if len(inputs) > place else None)


def split_sizes(recorded: Any) -> tuple[int, ...]:
    """The sizes of a split as a list, or as its text in a Kineto trace (``"[96, 224]"``); empty for one that is cut (``...``),
    holds anything else, or is none: a part of a split is not a split.
    """
    if isinstance(recorded, str):
        match = _SPLIT.fullmatch(recorded.strip())
        recorded = [int(number) for number in match[1].split(",")] if match else None
    if not isinstance(recorded, list) or not all(type(size) is int and size >= 0 for size in recorded):
        return ()
    return tuple(recorded)
