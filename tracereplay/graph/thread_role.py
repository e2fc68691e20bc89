"""Roles of host threads: in, the tables and steps of a job; out, a number that the same thread has on every rank.

Thread ids mean nothing on another rank. The main thread, which carries the steps, is one role; threads of the autograd
engine are another; every other thread is known by what it runs most often at its top. Several of one role are numbered in
the order in which they begin.
"""

from collections import Counter

import numpy as np

from tracereplay.graph.bursts import engine_codes
from tracereplay.graph.model import DependencyGraph
from tracereplay.graph.numbering import numbered
from tracereplay.trace.times import Int64s

_Role = tuple[int, int, int]
_MAIN, _ENGINE = (0, 0), (1, 0)
_OTHER = 2
NO_ROLE = -1


def thread_roles(graph: DependencyGraph, labels: list[Int64s], roots: list[Int64s]) -> list[Int64s]:
    """The role of the thread of each row, a column a rank; ``NO_ROLE`` where a thread has no host event.

    ``labels`` number the rows' names alike on all ranks, ``roots`` are the host rows that lie in no other, by start.
    """
    threads = [numbered(*(t.codes(c).astype(np.int64) for c in ("pid", "tid"))) for t in graph.tables]
    found = [_of_rank(graph, rank, threads[rank], labels[rank], roots[rank]) for rank in range(len(graph.tables))]
    number = {role: n for n, role in enumerate(sorted({r for roles in found for r in roles.values()}))}
    columns = []
    for thread, roles in zip(threads, found, strict=True):
        known = np.full(int(thread.max(initial=0)) + 1, NO_ROLE, np.int64)
        known[list(roles)] = [number[role] for role in roles.values()]
        columns.append(known[thread])
    return columns


def _of_rank(graph: DependencyGraph, rank: int, thread: Int64s, label: Int64s, roots: Int64s) -> dict[int, _Role]:
    """The role of each thread of a rank: what it is, and which one of those it is."""
    engine = np.isin(graph.tables[rank].codes("name"), engine_codes(graph.tables[rank]))
    main = _main_thread(graph, rank, thread)
    roles: dict[int, _Role] = {}
    seen: Counter[tuple[int, int]] = Counter()
    numbers, begins = np.unique(thread[roots], return_index=True)
    for number in numbers[np.argsort(begins)].tolist():
        own = roots[thread[roots] == number]
        kind = _ENGINE if engine[own].any() else (_OTHER, int(np.bincount(label[own]).argmax()))
        kind = _MAIN if number == main else kind
        roles[number] = (*kind, seen[kind])
        seen[kind] += 1
    return roles


def _main_thread(graph: DependencyGraph, rank: int, thread: Int64s) -> int | None:
    """The thread whose segments a rank's steps are."""
    for span in graph.steps:
        if span.rank == rank and span.first_node >= 0:
            rows = graph.nodes.row[span.first_node : span.last_node + 1]
            return int(thread[rows[rows >= 0][0]]) if (rows >= 0).any() else None
    return None
