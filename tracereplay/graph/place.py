"""Places of host events: in, the event tables and steps of a job; out, a number for where each event stands in the program.

Theory of operation. The host events of a thread are a tree. An event's place is its parent's place, its own label and a
number that tells it from its like-labelled siblings; roots stand under the role of their thread and begin anew in every
step. Two events on two ranks, or in two steps of one rank, have one place exactly when they are the same call:

    main thread / ProfilerStep / ## forward ## / aten::linear (second) / aten::addmm (first)

Which of the like-labelled siblings is which follows from their order where every instance of the parent has the same
number of them. Where one has more, the sequences of all instances are aligned first (``alignment``): work that one rank
does in the middle shifts nobody's ordinals.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tracereplay.graph.alignment import merge
from tracereplay.graph.model import DependencyGraph
from tracereplay.graph.numbering import numbered, ordinals, runs
from tracereplay.graph.thread_role import thread_roles
from tracereplay.trace.schema import HOST_ROLES
from tracereplay.trace.shapes import input_shapes
from tracereplay.trace.times import Int64s

# What differs between ranks and steps in the name of one and the same thing: a step mark's number, addresses.
_OWN_TO_ONE_RUN = re.compile(r"(?<=^ProfilerStep)#\d+$|\b0x[0-9a-fA-F]+")
# Odd constants of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))

NO_PLACE = -1


@dataclass(frozen=True, slots=True)
class HostPlaces:
    """The rows of all tables in one numbering: those of rank ``r`` begin at ``first[r]``.

    ``label`` is a number for the normalised name, ``parent`` the row around, ``shape`` a number for the shapes of the
    innermost operator around that records them (-1: none), ``thread`` the place of the row's thread, ``place`` the row's own
    (``NO_PLACE`` for what is no host event). Places of threads and of events are one numbering.
    """

    first: Int64s
    label: Int64s
    parent: Int64s
    shape: Int64s
    thread: Int64s
    place: Int64s


@dataclass(frozen=True, slots=True)
class _Tree:
    """The rows as ``HostPlaces`` numbers them, with what places are found from; ``branch`` is each row's own thread,
    ``signature`` a hash of all that lies in it, ``levels`` the host rows by depth.
    """

    first: Int64s
    label: Int64s
    parent: Int64s
    shape: Int64s
    start_ns: Int64s
    step: Int64s
    thread: Int64s
    branch: Int64s
    signature: Int64s
    levels: list[Int64s]


@dataclass(frozen=True, slots=True)
class _Siblings:
    """Events of one depth, sorted by their instance (one parent, one step) and start."""

    above: Int64s
    instance: Int64s
    label: Int64s
    signature: Int64s


def find_places(graph: DependencyGraph) -> HostPlaces:
    """The places of all host events of a job. Linear in events times their log, but for what must be aligned."""
    tree = _tree(graph)
    place = np.full(tree.label.size, NO_PLACE, np.int64)
    free = int(tree.thread.max(initial=NO_PLACE)) + 1
    for depth, level in enumerate(tree.levels):
        instance = numbered(tree.parent[level] if depth else tree.branch[level], tree.step[level])
        order = np.lexsort((level, tree.start_ns[level], instance))
        rows = level[order]
        above = place[tree.parent[rows]] if depth else tree.thread[rows]
        siblings = _Siblings(above, instance[order], tree.label[rows], tree.signature[rows])
        place[rows] = free + numbered(above, siblings.label, _which(siblings))
        free = int(place[rows].max(initial=free)) + 1
    return HostPlaces(tree.first, tree.label, tree.parent, _inherited(tree), tree.thread, place)


def _tree(graph: DependencyGraph) -> _Tree:
    tables = graph.tables
    first = np.concatenate([[0], np.cumsum([len(t) for t in tables])]).astype(np.int64)
    labels = _labels(graph)
    label, shape = _joined(labels), _joined(_shapes(graph))
    above = [t.column("parent_row") for t in tables]
    parent = _joined([np.where(rows >= 0, rows + f, -1) for rows, f in zip(above, first, strict=False)])
    start_ns = _joined([t.column("ts_ns") for t in tables])
    lasted = [np.isin(t.column("role"), HOST_ROLES) & (t.column("dur_ns") >= 0) for t in tables]
    levels = _levels(np.flatnonzero(_joined([one.astype(np.int64) for one in lasted])), parent)
    thread = _joined(thread_roles(graph, labels, _roots(levels, first, start_ns)))
    rank = np.repeat(np.arange(len(tables)), np.diff(first))
    step = _joined([last_step_begun(graph, r, t.column("ts_ns")) for r, t in enumerate(tables)])
    signature = _signatures(label, shape, parent, levels)
    return _Tree(first, label, parent, shape, start_ns, step, thread, numbered(rank, thread), signature, levels)


def _inherited(tree: _Tree) -> Int64s:
    """The shapes of the innermost operator around each row that records them, itself included."""
    shape = tree.shape.copy()
    for rows in tree.levels[1:]:
        shape[rows] = np.where(shape[rows] >= 0, shape[rows], shape[tree.parent[rows]])
    return shape


def last_step_begun(graph: DependencyGraph, rank: int, times_ns: Int64s) -> Int64s:
    """The number of the step of a rank that had begun last at each time, -1 before the first."""
    spans = [s for s in graph.steps if s.rank == rank]
    starts = np.array([s.start_ns for s in spans], np.int64)
    numbers = np.array([-1, *(s.number for s in spans)], np.int64)
    return numbers[np.searchsorted(starts, times_ns, side="right")]


def _joined(parts: list[Int64s]) -> Int64s:
    return np.concatenate([*parts, np.empty(0, np.int64)]).astype(np.int64)


def _labels(graph: DependencyGraph) -> list[Int64s]:
    """A number for each row's normalised name, the same on all ranks."""
    known = [[_OWN_TO_ONE_RUN.sub("", name) for name in table.names] for table in graph.tables]
    number = {name: n for n, name in enumerate(sorted({name for names in known for name in names}))}
    return [
        np.array([number[n] for n in names], np.int64)[table.codes("name")]
        for names, table in zip(known, graph.tables, strict=True)
    ]


def _shapes(graph: DependencyGraph) -> list[Int64s]:
    """A number for each row's own shapes, the same on all ranks; -1 where it records none."""
    found = [input_shapes(table) for table in graph.tables]
    number = {text: n for n, text in enumerate(sorted({text for shapes in found for text in shapes.texts}))}
    return [np.array([*(number[t] for t in shapes.texts), -1], np.int64)[shapes.code] for shapes in found]


def _levels(host: Int64s, parent: Int64s) -> list[Int64s]:
    """The host rows by depth, roots first."""
    depth = np.zeros(parent.size, np.int64)
    inner, above = host, parent[host]
    while (above >= 0).any():
        inner, above = inner[above >= 0], above[above >= 0]
        depth[inner] += 1
        above = parent[above]
    by_depth = host[np.argsort(depth[host], kind="stable")]
    return [by_depth[part] for part in runs(depth[by_depth])]


def _roots(levels: list[Int64s], first: Int64s, start_ns: Int64s) -> list[Int64s]:
    """The roots of each rank by their start, as rows of its own table."""
    roots = levels[0] if levels else np.empty(0, np.int64)
    roots = roots[np.argsort(start_ns[roots], kind="stable")]
    return [roots[(roots >= a) & (roots < b)] - a for a, b in pairwise(first.tolist())]


def _signatures(label: Int64s, shape: Int64s, parent: Int64s, levels: list[Int64s]) -> Int64s:
    """A hash of each row's label and shapes and of all that lies in it, whatever its order."""
    with np.errstate(over="ignore"):
        sums = _scrambled(label.astype(np.uint64) * _MIX[0] + shape.astype(np.uint64))
        for rows in reversed(levels[1:]):
            np.add.at(sums, parent[rows], _scrambled(sums[rows]))
    return sums.view(np.int64)


def _scrambled(values: "np.ndarray[tuple[int], np.dtype[np.uint64]]") -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    values = (values ^ (values >> np.uint64(30))) * _MIX[1]
    values = (values ^ (values >> np.uint64(27))) * _MIX[2]
    return values ^ (values >> np.uint64(31))


def _which(siblings: _Siblings) -> Int64s:
    """Which of its label each event is among its siblings."""
    ordinal = ordinals(numbered(siblings.instance, siblings.label))
    wanted = np.flatnonzero(np.isin(siblings.above, _uneven(siblings)))
    wanted = wanted[np.argsort(siblings.above[wanted], kind="stable")]
    for part in runs(siblings.above[wanted]):
        members = wanted[part]
        instances = [members[one] for one in runs(siblings.instance[members])]
        aligned = merge([(siblings.label[m], siblings.signature[m]) for m in instances])
        for one, found in zip(instances, aligned, strict=True):
            if found is not None:
                ordinal[one] = found
    return ordinal


def _uneven(siblings: _Siblings) -> Int64s:
    """Parents' places under which two instances have different numbers, above 0, of one label: order alone misleads there."""
    of_instance = numbered(siblings.instance, siblings.label)
    _, entry, count = np.unique(of_instance, return_index=True, return_counts=True)
    kind = numbered(siblings.above[entry], siblings.label[entry])
    most, least = np.zeros(kind.size, np.int64), np.full(kind.size, np.iinfo(np.int64).max)
    np.maximum.at(most, kind, count)
    np.minimum.at(least, kind, count)
    return np.unique(siblings.above[entry[(most > least)[kind]]])
