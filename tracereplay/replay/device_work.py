"""What the tasks of a graph do: in, a graph; out, work (flops, bytes, shapes) of each task that an operator explains.

A kernel does the work of the operator that launched it: the innermost around the launch whose name has a formula
(``hardware/operators/names.py``) and whose shapes and types were recorded. Where an operator launches several kernels of its
class its work is shared out by their durations. A kernel of another class than the operator's (a bias before a product) and
one under no such operator is known by its class alone. Copies between host and device have the bytes of their own row.
"""

import json
from dataclasses import dataclass

import numpy as np

from tracereplay.errors import UsageError
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.graph.numbering import numbered
from tracereplay.hardware.operators.names import Call, work_of
from tracereplay.hardware.operators.work import OperatorClass, Work
from tracereplay.trace.classify import WorkClass
from tracereplay.trace.table import EventTable
from tracereplay.trace.times import Int64s

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
_ACROSS = ("Memcpy HtoD", "Memcpy DtoH", "MemcpyHtoD", "MemcpyDtoH", "CopyHostToDevice", "CopyDeviceToHost")


@dataclass(frozen=True, slots=True)
class TaskWork:
    """Work of tasks: ``node`` in order; ``work`` the place in ``works`` (-1: known by its class alone), ``share`` the part of
    that work that the task does, ``kind`` its class. ``across``: a copy between host and device.
    """

    node: Int64s
    work: Int64s
    share: "np.ndarray[tuple[int], np.dtype[np.float64]]"
    kind: tuple[OperatorClass, ...]
    across: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    works: tuple[Work, ...]


def task_work(graph: DependencyGraph) -> TaskWork:
    """The work of the device tasks of a graph; where it has none, of the operators on its host threads."""
    nodes = graph.nodes
    if graph.host_carries_classes:
        chosen = np.flatnonzero((nodes.kind == NodeKind.HOST) & graph.is_operator & (nodes.dur_ns > 0))
        under = nodes.row[chosen]
    else:
        chosen = np.flatnonzero(nodes.kind == NodeKind.DEVICE)
        under = nodes.owner_row[chosen]
    asked = _Asked(graph)
    place = np.full(chosen.size, -1, np.int64)
    doer = np.full(chosen.size, -1, np.int64)
    for at, (node, row) in enumerate(zip(chosen.tolist(), under.tolist(), strict=True)):
        place[at], doer[at] = asked.of(int(nodes.rank[node]), row, WorkClass(nodes.work_class[node]))
    known = place >= 0
    group = numbered(nodes.rank[chosen], doer)
    total = np.bincount(group[known], weights=nodes.dur_ns[chosen][known], minlength=int(group.max(initial=0)) + 1)
    share = np.ones(chosen.size)
    positive = known & (total[group] > 0)
    share[positive] = nodes.dur_ns[chosen][positive] / total[group][positive]
    kinds = tuple(
        asked.works[p].kind if p >= 0 else _UNSHAPED.get(WorkClass(c), OperatorClass.OTHER)
        for p, c in zip(place.tolist(), nodes.work_class[chosen].tolist(), strict=True)
    )
    across = np.array([graph.name_of(node).startswith(_ACROSS) for node in chosen.tolist()], np.bool_)
    return TaskWork(chosen, place, share, kinds, across, tuple(asked.works))


class _Asked:
    """The work of operators, each row asked once and each distinct call worked out once."""

    def __init__(self, graph: DependencyGraph) -> None:
        self.tables = graph.tables
        self.works: list[Work] = []
        self._of_row: dict[tuple[int, int], int] = {}
        self._of_call: dict[str, int] = {}

    def of(self, rank: int, row: int, work_class: WorkClass) -> tuple[int, int]:
        """The place of the work of the innermost operator from ``row`` outwards that has a formula and fits the class, and that
        operator's row; -1 twice where there is none.
        """
        table = self.tables[rank]
        while row >= 0:
            place = self._at(rank, table, row)
            if place >= 0:
                fits = work_class is WorkClass.OTHER or self.works[place].kind.contract == work_class.name.lower()
                return (place, row) if fits else (-1, -1)
            row = int(table.column("parent_row")[row])
        return -1, -1

    def _at(self, rank: int, table: EventTable, row: int) -> int:
        if (rank, row) not in self._of_row:
            self._of_row[rank, row] = self._of_args(table.name_of(row), table.args_of(row))
        return self._of_row[rank, row]

    def _of_args(self, name: str, args: dict[str, object]) -> int:
        shapes, types = args.get("Input Dims"), args.get("Input type")
        if not isinstance(shapes, list) or not isinstance(types, list):
            return -1
        values = args.get("Concrete Inputs")
        key = json.dumps([name, shapes, types, values])
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
        return json.loads(text.replace("True", "true").replace("False", "false")) if text else None
    except ValueError:
        return None
