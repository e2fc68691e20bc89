"""Graphs that run on several streams: in, a rank's draft; out, in which stream each was launched and what waits for what.

A graph is one piece of work of the stream it was launched into, whatever streams its parts run on (CUDA programming guide,
"CUDA Graphs"; ``cudaGraphLaunch``): all of it waits for what that stream held before, and what comes there later waits for
all of it. The trace does not name the stream: it is taken to be the one on which graphs of that thread begin most often. One
start that contradicts this takes it out of question.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tracereplay.graph.draft import RankDraft
from tracereplay.trace.times import Int64s

# What is recorded in whole microseconds may seem to overlap by one.
_ROUNDING_NS = 1_000
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class GraphLaunches:
    """What is known of a rank's graphs, all as indices of work.

    ``pairs`` are (producer, consumer) at their beginnings and ends, ``refuted`` how many starts contradicted. ``others``
    holds, for the last work of each graph in its own stream, the last work of its other streams; ``ends`` for the last work
    of any of its streams that of all of them.
    """

    pairs: frozenset[Pair]
    refuted: int
    others: dict[int, tuple[int, ...]]
    ends: dict[int, tuple[int, ...]]

    def with_others(self, pairs: Iterable[Pair], draft: RankDraft) -> set[Pair]:
        """Pairs together with those that follow from them: an event behind a graph stands for all of it."""
        start, end = draft.work.start_ns, draft.work.end_ns
        given = set(pairs)
        more = {(other, consumer) for producer, consumer in given for other in self.others.get(producer, ())}
        return given | {(a, b) for a, b in more if a != b and start[b] >= end[a] - _ROUNDING_NS}


@dataclass(frozen=True, slots=True)
class _Graph:
    """A launched graph: its thread, and of each queue that it runs on the number, the first and the last work."""

    thread: int
    queues: Int64s
    first: Int64s
    last: Int64s


def graph_launches(draft: RankDraft) -> GraphLaunches:
    """The graphs of a rank; made once a draft."""
    return draft.remembered("graph launches", lambda: _graph_launches(draft))


def _graph_launches(draft: RankDraft) -> GraphLaunches:
    graphs = _graphs(draft)
    origin = _origins(draft, graphs)
    placed: dict[int, list[tuple[_Graph, int]]] = {}
    for graph in graphs:
        for place in np.flatnonzero(graph.queues == origin[graph.thread]).tolist():
            placed.setdefault(graph.thread, []).append((graph, place))
    pairs: set[Pair] = set()
    others: dict[int, tuple[int, ...]] = {}
    ends: dict[int, tuple[int, ...]] = {}
    refuted = 0
    for of_thread in placed.values():
        found = {pair for graph, place in of_thread for pair in _around(draft, graph, place)}
        if any(draft.work.start_ns[b] < draft.work.end_ns[a] - _ROUNDING_NS for a, b in found):
            refuted += len(found)
            continue
        pairs |= found
        for graph, place in of_thread:
            last = tuple(graph.last.tolist())
            others[last[place]] = (*last[:place], *last[place + 1 :])
            ends |= dict.fromkeys(last, last)
    return GraphLaunches(frozenset(pairs), refuted, others, ends)


def _graphs(draft: RankDraft) -> list[_Graph]:
    """The graphs that run on several queues."""
    work = draft.work
    members = np.flatnonzero(work.launched_together & ~work.on_host)
    members = members[np.lexsort((members, work.call_position[members], work.call_thread[members]))]
    borders = np.flatnonzero(np.diff(work.call_position[members]) | np.diff(work.call_thread[members])) + 1
    graphs = []
    for part in np.split(members, borders) if members.size else ():
        queues, first = np.unique(work.queue[part], return_index=True)
        if queues.size > 1:
            last = np.append(first[1:], part.size) - 1
            graphs.append(_Graph(int(work.call_thread[part[0]]), queues, part[first], part[last]))
    return graphs


def _origins(draft: RankDraft, graphs: list[_Graph]) -> dict[int, int]:
    """The queue on which the graphs of each thread begin most often."""
    begins: dict[int, Counter[int]] = {}
    for graph in graphs:
        earliest = int(np.argmin(draft.work.start_ns[graph.first]))
        begins.setdefault(graph.thread, Counter())[int(graph.queues[earliest])] += 1
    return {thread: counts.most_common(1)[0][0] for thread, counts in begins.items()}


def _around(draft: RankDraft, graph: _Graph, origin: int) -> list[Pair]:
    """What stands before a graph in its stream with its parts elsewhere; these with what stands behind it."""
    work, queue = draft.work, graph.queues[origin]
    before, behind = int(graph.first[origin]) - 1, int(graph.last[origin]) + 1
    elsewhere = np.delete(np.arange(graph.queues.size), origin)
    pairs = []
    if before >= 0 and work.queue[before] == queue:
        pairs += [(before, first) for first in graph.first[elsewhere].tolist()]
    if behind < len(work) and work.queue[behind] == queue:
        pairs += [(last, behind) for last in graph.last[elsewhere].tolist()]
    return pairs
