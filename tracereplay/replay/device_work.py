"""What the tasks of a graph do: in, a graph; out, work (flops, bytes, shapes) of each task that an operator explains.

A kernel does the work of the operator that launched it: the innermost around the launch whose name has a formula
(``hardware/operators/names.py``) and whose shapes and types were recorded. Where an operator launches several kernels of its
class its work is shared out by their durations. A kernel of another class than the operator's (a bias before a product) and
one under no such operator is known by its class alone.

On a job of CPUs an operator's own time is its work, shared out over the pieces that its children leave of it. An operator that
calls another one which does most of its work, or that would have done its work faster than any host can, is host time: a
wrapper, a view.
"""

import ast
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracereplay.errors import UsageError
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.graph.numbering import numbered
from tracereplay.hardware.operators.names import Call, work_of
from tracereplay.hardware.operators.work import OperatorClass, Work
from tracereplay.trace.classify import WorkClass
from tracereplay.trace.times import Int64s

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_UNSHAPED = {
    WorkClass.GEMM: OperatorClass.GEMM,
    WorkClass.ATTENTION: OperatorClass.ATTENTION,
    WorkClass.CONV: OperatorClass.CONV,
    WorkClass.EMBEDDING: OperatorClass.EMBEDDING,
    WorkClass.ELEMENTWISE: OperatorClass.ELEMENTWISE,
    WorkClass.REDUCTION: OperatorClass.REDUCTION,
    WorkClass.COPY: OperatorClass.COPY,
    WorkClass.MEMSET: OperatorClass.MEMSET,
}
# More than one thread, or a socket, of a host of today moves and computes in a nanosecond.
_HOST_BYTES_PER_NS, _HOST_FLOPS_PER_NS = 1_000, 20_000
# cuBLAS names what computes in fp32 alone ``ampere_sgemm_128x64_tn``; with tf32 it is ``ampere_sgemm`` no more but
# ``ampere_s1688gemm`` or ``cutlass_80_tensorop_s1688gemm``.
_IN_FP32 = re.compile(r"(?<![a-z0-9])sgemm")
_ACROSS = ("Memcpy HtoD", "Memcpy DtoH", "MemcpyHtoD", "MemcpyDtoH", "CopyHostToDevice", "CopyDeviceToHost")


@dataclass(frozen=True, slots=True)
class TaskWork:
    """Work of tasks: ``node`` in order; ``work`` the place in ``works`` (-1: known by its class alone), ``share`` the part of
    that work that the task does, ``kind`` its class. ``across``: a copy between host and device; ``in_fp32``: a kernel whose
    name says that it computes in fp32.
    """

    node: Int64s
    work: Int64s
    share: Floats
    kind: tuple[OperatorClass, ...]
    across: Mask
    in_fp32: Mask
    works: tuple[Work, ...]


def task_work(graph: DependencyGraph) -> TaskWork:
    """The work of the device tasks of a graph; where it has none, of the operators on its host threads."""
    nodes = graph.nodes
    asked = _Asked(graph)
    if graph.host_carries_classes:
        chosen = np.flatnonzero((nodes.kind == NodeKind.HOST) & graph.is_operator & (nodes.dur_ns > 0))
        doer = nodes.row[chosen]
        place = _of_operators(graph, asked, chosen)
    else:
        chosen = np.flatnonzero(nodes.kind == NodeKind.DEVICE)
        place, doer = np.full(chosen.size, -1, np.int64), np.full(chosen.size, -1, np.int64)
        for at, node in enumerate(chosen.tolist()):
            row, work_class = int(nodes.owner_row[node]), WorkClass(nodes.work_class[node])
            place[at], doer[at] = asked.around(int(nodes.rank[node]), row, work_class)
    share = _shares(nodes.dur_ns[chosen], numbered(nodes.rank[chosen], doer), place >= 0)
    kinds = tuple(
        asked.works[p].kind if p >= 0 else _UNSHAPED.get(WorkClass(c), OperatorClass.OTHER)
        for p, c in zip(place.tolist(), nodes.work_class[chosen].tolist(), strict=True)
    )
    across = np.array([graph.name_of(node).startswith(_ACROSS) for node in chosen.tolist()], np.bool_)
    in_fp32 = np.array([_IN_FP32.search(graph.name_of(node)) is not None for node in chosen.tolist()], np.bool_)
    return TaskWork(chosen, place, share, kinds, across, in_fp32, tuple(asked.works))


def _of_operators(graph: DependencyGraph, asked: "_Asked", chosen: Int64s) -> Int64s:
    """The place of the work of each operator on a host thread, -1 where it is host time."""
    nodes = graph.nodes
    rank, row = nodes.rank[chosen], nodes.row[chosen]
    place = np.array([asked.at(r, o) for r, o in zip(rank.tolist(), row.tolist(), strict=True)], np.int64)
    called: dict[tuple[int, int], set[int]] = {}
    for r, o, p in {(r, o, p) for r, o, p in zip(rank.tolist(), row.tolist(), place.tolist(), strict=True) if p >= 0}:
        above = int(graph.tables[r].column("parent_row")[o])
        while above >= 0:
            called.setdefault((r, above), set()).add(p)
            above = int(graph.tables[r].column("parent_row")[above])
    whole = numbered(rank, row)
    own_ns = np.bincount(whole, weights=nodes.dur_ns[chosen])[whole]
    for at in np.flatnonzero(place >= 0).tolist():
        work = asked.works[place[at]]
        fastest_ns = max(work.bytes_moved / _HOST_BYTES_PER_NS, work.flops / _HOST_FLOPS_PER_NS)
        inner = [asked.works[p] for p in called.get((int(rank[at]), int(row[at])), ())]
        passed_on = any(2 * one.bytes_moved > work.bytes_moved and 2 * one.flops >= work.flops for one in inner)
        if passed_on or own_ns[at] < fastest_ns:
            place[at] = -1
    return place


def _shares(dur_ns: Int64s, group: Int64s, known: Mask) -> Floats:
    """The part of its group's time that each known task has; 1 where it has none."""
    total = np.bincount(group[known], weights=dur_ns[known], minlength=int(group.max(initial=0)) + 1)
    share = np.ones(dur_ns.size)
    positive = known & (total[group] > 0)
    share[positive] = dur_ns[positive] / total[group][positive]
    return share


class _Asked:
    """The work of operators, each row asked once and each distinct call worked out once."""

    def __init__(self, graph: DependencyGraph) -> None:
        self.tables = graph.tables
        self.works: list[Work] = []
        self._of_row: dict[tuple[int, int], int] = {}
        self._of_call: dict[str, int] = {}

    def around(self, rank: int, row: int, work_class: WorkClass) -> tuple[int, int]:
        """The place of the work of the innermost operator from ``row`` outwards that has a formula and fits the class, and that
        operator's row; -1 twice where there is none.
        """
        table = self.tables[rank]
        while row >= 0:
            place = self.at(rank, row)
            if place >= 0:
                fits = work_class is WorkClass.OTHER or self.works[place].kind.contract == work_class.name.lower()
                return (place, row) if fits else (-1, -1)
            row = int(table.column("parent_row")[row])
        return -1, -1

    def at(self, rank: int, row: int) -> int:
        """The place of the work of one operator, -1 where it has no formula or no shapes."""
        table = self.tables[rank]
        if (rank, row) not in self._of_row:
            self._of_row[rank, row] = self._of_args(table.name_of(row), table.args_of(row))
        return self._of_row[rank, row]

    def _of_args(self, name: str, args: dict[str, object]) -> int:
        shapes, types = args.get("Input Dims"), args.get("Input type")
        if not isinstance(shapes, list) or not isinstance(types, list):
            return -1
        values = args.get("Concrete Inputs")
        key = repr((name, shapes, types, values))
        if key not in self._of_call:
            self._of_call[key] = self._worked_out(name, shapes, types, values)
        return self._of_call[key]

    def _worked_out(self, name: str, shapes: list[object], types: list[object], values: object) -> int:
        dtypes = tuple(one if isinstance(one, str) else "" for one in types)
        given = tuple(_value(one) for one in values) if isinstance(values, list) else ()
        try:
            work = work_of(Call(name, tuple(_tupled(shape) for shape in shapes), dtypes, given))
        except UsageError:
            return -1  # shapes that contradict each other, a type without a size: its class is all that is known
        if work is None:
            return -1
        self.works.append(work)
        return len(self.works) - 1


def _tupled(shape: object) -> tuple[object, ...]:
    return tuple(_tupled(part) if isinstance(part, list) else part for part in shape) if isinstance(shape, list) else ()


def _value(text: object) -> object:
    """A scalar input as recorded: ``"[2, 2]"``, ``"True"``, ``"1.5"``, ``""``."""
    if not isinstance(text, str):
        return text
    try:
        return ast.literal_eval(text) if text else None
    except (ValueError, SyntaxError):  # a name, such as that of a device
        return None
