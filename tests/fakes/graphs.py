"""Dependency graphs written down task by task: in, tasks and edges; out, a DependencyGraph without a trace behind it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracereplay.graph.kinds import REASONS, Basis, EdgeKind, NodeKind, Why
from tracereplay.graph.model import NO_RELEASE, Coverage, DependencyGraph, EdgeArrays, Nodes, StepSpan
from tracereplay.graph.topology import topological_order
from tracereplay.trace.schema import COLUMNS
from tracereplay.trace.table import EventTable, Header, HeldText, Quality


@dataclass(frozen=True, slots=True)
class Task:
    """A task with its recorded start and its own time in ns; ``release`` pins it."""

    start: int
    dur: int
    kind: NodeKind = NodeKind.HOST
    rank: int = 0
    step: int = 0
    residue: int = 0
    release: int = NO_RELEASE


@dataclass(frozen=True, slots=True)
class Edge:
    """A reason to wait between two tasks, by number."""

    src: int
    dst: int
    lag: int = 0
    from_start: bool = False
    kind: EdgeKind = EdgeKind.THREAD_ORDER


def graph_by_hand(tasks: Sequence[Task], edges: Sequence[Edge], steps: Sequence[StepSpan] = ()) -> DependencyGraph:
    """The graph of tasks and edges; edges stand in order of destination, kind and source."""
    count = len(tasks)
    ordered = sorted(edges, key=lambda e: (e.dst, e.kind, e.src))
    src, dst = _ints([e.src for e in ordered]), _ints([e.dst for e in ordered])
    nothing, none = np.zeros(count, np.int64), np.full(count, -1, np.int64)
    ranks = 1 + max(t.rank for t in tasks)
    return DependencyGraph(
        tables=tuple(_empty_table(f"rank{r}.json") for r in range(ranks)),
        rank_numbers=tuple(range(ranks)),
        nodes=Nodes(
            rank=_ints([t.rank for t in tasks]),
            kind=np.array([int(t.kind) for t in tasks], np.int8),
            work_class=nothing.astype(np.int8),
            row=none,
            start_ns=_ints([t.start for t in tasks]),
            dur_ns=_ints([t.dur for t in tasks]),
            release_ns=_ints([t.release for t in tasks]),
            residue_ns=_ints([t.residue for t in tasks]),
            step=_ints([t.step for t in tasks]),
            collective=none,
            owner_row=none,
            population=nothing,
        ),
        edges=EdgeArrays(
            first=np.searchsorted(dst, np.arange(count + 1)).astype(np.int64),
            src=src,
            dst=dst,
            kind=np.array([int(e.kind) for e in ordered], np.int8),
            basis=np.full(len(ordered), int(Basis.RECORDED), np.int8),
            from_start=np.array([e.from_start for e in ordered], np.bool_),
            lag_ns=_ints([e.lag for e in ordered]),
            why=np.array([next(int(w) for w in Why if REASONS[w].kind == e.kind) for e in ordered], np.int8),
        ),
        replay_order=topological_order(count, src, dst),
        steps=tuple(steps),
        collectives=(),
        coverage=Coverage({}, 0, 0, 0, 0, 0, 0, 0, 0),
        host_carries_classes=False,
    )


def _empty_table(path: str) -> EventTable:
    return EventTable(path, COLUMNS.empty_table(), Header(), Quality(), 0, HeldText(()))


def _ints(values: Sequence[int]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array(values, np.int64).reshape(-1)
