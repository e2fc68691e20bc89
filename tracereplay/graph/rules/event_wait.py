"""A stream waits for an event of another stream.

    host        |launch A|   |StreamWaitEvent|   |launch C|
    stream 7    |------A------|
    stream 20                 `-->|--C--|

Traces without ``cuda_sync`` rows name neither the stream nor the event of a wait. Program order does: the next launch of the
program is what waits, and what it waits for is the last work that the program launched on another queue; several waits
before one launch are for as many other queues, the ones launched on most recently. The forward
thread and the backward threads that it hands over to are one program; every other thread is its own. Timing may refute
the pair (the producer ends after the consumer starts); refuted pairs are counted, not drawn.
"""

import re
from collections import Counter

import numpy as np

from tracereplay.graph.draft import RankDraft
from tracereplay.graph.edges import Found, found, make_edges
from tracereplay.graph.kinds import Basis, EdgeKind
from tracereplay.graph.rules.autograd import engine_codes
from tracereplay.trace.times import Int64s

_WAIT_CALL = re.compile(r"^(cuda|hip|cu)StreamWaitEvent")


def event_wait(draft: RankDraft) -> Found:
    """Edges from the work before a recorded event to the work that waits for it."""
    codes = np.array([code for code, name in enumerate(draft.table.names) if _WAIT_CALL.match(name)], np.int64)
    pairs: set[tuple[int, int]] = set()
    refuted = 0
    for program in _programs(draft):
        good, bad = _pairs(draft, program, codes)
        pairs |= good
        refuted += bad
    ordered = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    edges = make_edges(EdgeKind.EVENT_WAIT, Basis.INFERRED, draft.work_last_node[ordered[:, 0]], draft.work_node[ordered[:, 1]])
    return found(edges, refuted=refuted)


def _programs(draft: RankDraft) -> list[list[int]]:
    """Threads that take turns: the main thread with the engine's threads, every other thread by itself."""
    engine = engine_codes(draft.table)
    codes = draft.table.codes("name")
    together: list[int] = []
    alone: list[int] = []
    for number, thread in enumerate(draft.threads):
        is_engine = np.isin(codes[thread.rows[thread.rows >= 0]], engine).any()
        (together if number == draft.main or is_engine else alone).append(number)
    return [together, *([n] for n in alone)]


def _pairs(draft: RankDraft, program: list[int], codes: Int64s) -> tuple[set[tuple[int, int]], int]:
    """(producer, consumer) work of each wait of a program, and how many pairs timing refutes."""
    work, ts = draft.work, draft.table.column("ts_ns")
    rows = np.concatenate([draft.threads[n].rows for n in program]) if program else np.empty(0, np.int64)
    rows = rows[rows >= 0]
    waits = np.sort(ts[rows[np.isin(draft.table.codes("name")[rows], codes)]])
    launched = np.flatnonzero(np.isin(work.call_thread, program) & ~work.on_host)
    called = draft.call_ns[launched]
    order = np.argsort(called, kind="stable")
    launched, called = launched[order], called[order]
    counts = Counter(np.searchsorted(called, waits, side="right").tolist())
    good: set[tuple[int, int]] = set()
    refuted = 0
    last: dict[int, int] = {}  # the last launch on each queue so far, in the order of these launches
    for place, consumer in enumerate(launched.tolist()):
        queue = int(work.queue[consumer])
        for producer in _last_on_other_queues(last, queue, counts.get(place, 0)):
            if work.end_ns[producer] <= work.start_ns[consumer]:
                good.add((producer, consumer))
            else:
                refuted += 1
        last.pop(queue, None)
        last[queue] = consumer
    return good, refuted


def _last_on_other_queues(last: dict[int, int], queue: int, wanted: int) -> list[int]:
    """The last launches on the ``wanted`` other queues that were launched on most recently."""
    if not wanted:
        return []
    return [work for other, work in reversed(last.items()) if other != queue][:wanted]
