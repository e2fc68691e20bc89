"""A launch waits for room where the queue of launched work is full.

    host     |launch 1025 ··············|launch 1026 ··········|      each returns when one more piece of work has ended
    stream       |--- 1 ---|--- 2 ---|--- 3 ---|                      so many are in the queue at most: its depth

A host that runs far ahead of its device ends up here, and is as fast as the device from then on. The trace names neither the
queue nor its depth. They show by launch calls that last many times as long as usual and that return, nearly all of them,
when the same number of launches is outstanding.
"""

import re
from collections import Counter

import numpy as np

from tracereplay.graph.draft import RankDraft
from tracereplay.graph.edges import Found, concat_edges, found, make_edges
from tracereplay.graph.kinds import Basis, Why
from tracereplay.trace.times import Int64s

_LAUNCH_CALL = re.compile(r"^(cuda|hip|cu)\w*(Launch|Memcpy|Memset)")
# Launches scatter by a few times their usual length.
_UNUSUAL_TIMES = 5
_UNUSUAL_NS = 20_000
# What is believed: so many calls that wait, nearly all at one depth, far from the few that are outstanding in any program.
_FEWEST, _SHARE, _SHALLOWEST = 20, 0.8, 64
# The end of work and the return of the call that waited for it are recorded on two clocks: one piece more or less.
_ABOUT = 1


def launch_queue(draft: RankDraft) -> Found:
    """Edges from work to the launch calls that wait for its place in a full queue."""
    work = draft.work
    parts = [make_edges(Why.FULL_QUEUE, Basis.INFERRED, [], [])]
    waits: list[tuple[int, int]] = []
    launched = np.flatnonzero((work.call_thread >= 0) & ~work.on_host)
    for queue in np.unique(work.queue[launched]):
        members = launched[work.queue[launched] == queue]
        members = members[np.argsort(draft.enqueued_ns[members], kind="stable")]
        if members.size > _SHALLOWEST + _FEWEST:
            src, dst, waited = _of_queue(draft, members)
            parts.append(make_edges(Why.FULL_QUEUE, Basis.INFERRED, src, dst))
            waits += waited
    return found(concat_edges(parts), waits)


def _of_queue(draft: RankDraft, members: Int64s) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Sources, destinations and waits of one queue, whose work is in the order of its launches."""
    rows = draft.call_row[members]
    table = draft.table
    names = np.array([_LAUNCH_CALL.match(name) is not None for name in table.names], np.bool_)
    durations = table.column("dur_ns")[rows]
    returned = table.column("ts_ns")[rows] + durations
    own = _least(durations)
    long = np.flatnonzero(names[table.codes("name")[rows]] & (durations > max(_UNUSUAL_TIMES * own, _UNUSUAL_NS)))
    depth = _depth(draft.work.end_ns[members], returned, long)
    if depth is None:
        return [], [], []
    waiting = np.arange(depth, members.size)
    nodes = [
        int(draft.threads[draft.work.call_thread[w]].node_at_end(draft.work.call_position[w]))
        for w in members[waiting].tolist()
    ]
    before = members[waiting - depth]
    fits = draft.work.end_ns[before] <= returned[waiting]
    src = draft.work_last_node[before][fits].tolist()
    dst = np.array(nodes, np.int64)[fits].tolist()
    stood = set(long.tolist())
    waits = [(node - 1, own) for place, node, fit in zip(waiting.tolist(), nodes, fits, strict=True) if fit and place in stood]
    return src, dst, waits


def _least(durations: Int64s) -> int:
    """What a launch costs that waits for nothing: the first percentile, since nearly all may wait."""
    return int(np.percentile(durations, 1))


def _depth(end_ns: Int64s, returned_ns: Int64s, long: Int64s) -> int | None:
    """How many launches are outstanding when the long calls return; None where they do not agree."""
    if long.size < _FEWEST:
        return None
    outstanding = long + 1 - np.searchsorted(np.maximum.accumulate(end_ns), returned_ns[long], side="right")
    depth, _ = max(Counter(outstanding.tolist()).items(), key=lambda item: (item[1], -item[0]))
    agreeing = np.count_nonzero(np.abs(outstanding - depth) <= _ABOUT)
    return int(depth) if depth >= _SHALLOWEST and agreeing >= _SHARE * long.size else None
