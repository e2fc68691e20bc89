"""What ranks of a recorded job hold besides their tables: in, a graph and the work of its tasks; out, bytes, in bounds.

Traces do not say how much memory was taken. At least, there are the gradients that a step sums over ranks and the weights that
they are of. At most, an optimizer keeps two numbers a weight, and all that the operators of a step write is kept to its
end; and no more than what the tables leave of the memory in which the job did run.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.memory.placement import Besides
from tracereplay.hardware.operators.work import CLASSES, OperatorClass
from tracereplay.replay.columns import Floats
from tracereplay.replay.device_work import TaskWork
from tracereplay.trace.times import Int64s

# Adam's two moments are the most that optimizers in use keep beside a weight.
_MOST_STATES = 2
# What they write are weights and their state, which stand there anyway.
_IN_PLACE = [CLASSES.index(kind) for kind in (OperatorClass.EMBEDDING, OperatorClass.OPTIMIZER)]


@dataclass(frozen=True, slots=True)
class BesidesBounds:
    """What each rank holds at least and at most; ``estimated``: nobody said it, so that the two differ."""

    least: tuple[Besides, ...]
    most: tuple[Besides, ...]
    estimated: bool


def told(besides: Besides, ranks: int) -> BesidesBounds:
    """What somebody said of each of so many ranks."""
    return BesidesBounds((besides,) * ranks, (besides,) * ranks, estimated=False)


def estimated(graph: DependencyGraph, work: TaskWork, room: list[int]) -> BesidesBounds:
    """The bounds of each rank; ``room``: what tables leave of its memory where the job ran, in bytes."""
    gradients, written = _gradients(graph), _written(graph, work)
    least, most = [], []
    for rank, free in enumerate(room):
        dense = min(gradients[rank], max(free, 0) // 2)
        least.append(Besides(dense, dense, 0, 0))
        left = max(free, 0) - 2 * dense
        state = min(_MOST_STATES * dense, left)
        left -= state
        most.append(Besides(dense, dense, state, min(written.get(rank, left), left)))
    return BesidesBounds(tuple(least), tuple(most), estimated=True)


def _gradients(graph: DependencyGraph) -> list[int]:
    """Bytes that the all-reduces of a step sum up on each rank, the most of all steps; 0 where no size is recorded."""
    sums: dict[tuple[int, int], int] = defaultdict(int)
    for c in graph.collectives:
        for rank in c.ranks if c.name == "all_reduce" and c.bytes is not None else ():
            sums[rank, c.step] += c.bytes or 0
    return [max((size for (r, _), size in sums.items() if r == rank), default=0) for rank in range(len(graph.tables))]


def _written(graph: DependencyGraph, work: TaskWork) -> dict[int, int]:
    """Bytes that the operators of a step write on each rank, the most of all steps; without ranks of which no shapes tell."""
    chosen = np.flatnonzero((work.work >= 0) & ~np.isin([CLASSES.index(kind) for kind in work.kind], _IN_PLACE))
    node = work.node[chosen]
    size = np.array([work.works[p].bytes_written for p in work.work[chosen].tolist()], np.float64) * work.share[chosen]
    rank, step = graph.nodes.rank[node], graph.nodes.step[node]
    return {int(r): _most_of_a_step(step[rank == r], size[rank == r]) for r in np.unique(rank)}


def _most_of_a_step(step: Int64s, size: Floats) -> int:
    return int(np.bincount(step + 1, weights=size).max())
