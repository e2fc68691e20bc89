"""A stream waits for an event of another stream.

    host        |launch A|   |StreamWaitEvent|   |launch C|
    stream 7    |------A------|
    stream 20                 `-->|--C--|

Traces without ``cuda_sync`` rows name neither the stream nor the event of a wait. Program order does: the next launch of the
thread is what waits, and what it waits for is the last work that the thread launched on another queue. Timing may refute
the pair (the producer ends after the consumer starts); refuted pairs are counted, not drawn.
"""

import re

import numpy as np

from tracereplay.graph.draft import HostThread, RankDraft
from tracereplay.graph.edges import Found, found, make_edges
from tracereplay.graph.kinds import Basis, EdgeKind

_WAIT_CALL = re.compile(r"^(cuda|hip|cu)StreamWaitEvent")


def event_wait(draft: RankDraft) -> Found:
    """Edges from the work before a recorded event to the work that waits for it."""
    codes = [code for code, name in enumerate(draft.table.names) if _WAIT_CALL.match(name)]
    pairs: set[tuple[int, int]] = set()
    refuted = 0
    for number, thread in enumerate(draft.threads):
        waits = np.flatnonzero(np.isin(_codes(draft, thread), codes))
        if waits.size:
            good, bad = _pairs(draft, number, waits)
            pairs |= good
            refuted += bad
    ordered = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    edges = make_edges(
        EdgeKind.EVENT_WAIT, Basis.INFERRED, draft.work_last_node[ordered[:, 0]], draft.work_node[ordered[:, 1]]
    )
    return found(edges, refuted=refuted)


def _codes(draft: RankDraft, thread: HostThread) -> np.ndarray:
    return np.where(thread.rows >= 0, draft.table.codes("name")[thread.rows], -1)


def _pairs(draft: RankDraft, number: int, waits: np.ndarray) -> tuple[set[tuple[int, int]], int]:
    """(producer, consumer) work of each wait of one thread, and how many pairs timing refutes."""
    work = draft.work
    launched = np.flatnonzero((work.call_thread == number) & ~work.on_host)
    launched = launched[np.argsort(work.call_position[launched], kind="stable")]
    positions = work.call_position[launched]
    good: set[tuple[int, int]] = set()
    refuted = 0
    for wait in waits:
        after = int(np.searchsorted(positions, wait, side="right"))
        if after == launched.size:
            continue
        consumer = int(launched[after])
        producer = next((int(w) for w in launched[:after][::-1] if work.queue[w] != work.queue[consumer]), None)
        if producer is None:
            continue
        if work.end_ns[producer] <= work.start_ns[consumer]:
            good.add((producer, consumer))
        else:
            refuted += 1
    return good, refuted
