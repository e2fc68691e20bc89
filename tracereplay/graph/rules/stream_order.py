"""Work of one queue runs in order.

stream   |--A--|gap|--B--|              A → B with the gap's typical length as lag
stream   |--A--|                        legal overlap (programmatic dependent launch): B waits for A's start,
|--B--|                    with the recorded distance as lag
"""

import numpy as np

from tracereplay.graph.draft import RankDraft
from tracereplay.graph.edges import Found, concat_edges, found, make_edges
from tracereplay.graph.kinds import Basis, Why


def stream_order(draft: RankDraft) -> Found:
    """Edges between consecutive pieces of work of each queue."""
    work = draft.work
    same = work.queue[1:] == work.queue[:-1]
    overlap = same & (work.start_ns[1:] < work.end_ns[:-1])
    host = work.on_host[1:]
    before, after = draft.work_last_node[:-1], draft.work_node[1:]
    plain = same & ~overlap
    device = make_edges(Why.STREAM_ORDER, Basis.RECORDED, before[plain & ~host], after[plain & ~host])
    # A communication thread takes its next collective when it has done the last one.
    threads = make_edges(Why.THREAD_ORDER, Basis.RECORDED, before[plain & host], after[plain & host])
    distance = np.maximum((work.start_ns[1:] - work.start_ns[:-1])[overlap], 0)
    overlapped = make_edges(
        Why.STREAM_ORDER,
        Basis.RECORDED,
        draft.work_node[:-1][overlap],
        after[overlap],
        from_start=True,
        lag_ns=distance,
    )
    return found(concat_edges([device, threads, overlapped]))
