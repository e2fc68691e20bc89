"""Device work starts after the call that launched it; collectives of a CPU backend after the c10d call that enqueued them.

host     |call|                       the lag counts from the start of the call: work may start before it returns
queue      `--lag--|work|

host     |----- first use -----|call|     a call that loads a module or stages a copy first launches late inside itself
queue                            `--lag--|work|
"""

import numpy as np

from tracereplay.graph.draft import RankDraft
from tracereplay.graph.edges import Found, concat_edges, found, make_edges
from tracereplay.graph.kinds import Basis, Why
from tracereplay.trace.times import Int64s


def launch(draft: RankDraft) -> Found:
    """Edges from launching calls to their work: ``launch`` for devices, ``thread_handoff`` for communication threads."""
    work = draft.work
    linked = np.flatnonzero(work.call_thread >= 0)
    src, dst = call_nodes(draft, linked), draft.work_node[linked]
    host = work.on_host[linked]
    together = work.launched_together[linked]
    parts = [
        make_edges(why, Basis.RECORDED, src[chosen], dst[chosen], from_start=True)
        for why, chosen in ((Why.LAUNCH, ~host & ~together), (Why.GRAPH_LAUNCH, ~host & together))
    ]
    handed = make_edges(Why.HOST_COLLECTIVE, Basis.INFERRED, src[host], dst[host], from_start=True)
    return found(concat_edges([*parts, handed]))


def call_nodes(draft: RankDraft, linked: Int64s) -> Int64s:
    """The node at which the launching call of each linked piece of work begins or, where it launches late, launches."""
    work = draft.work
    nodes = np.empty(linked.size, np.int64)
    for number, thread in enumerate(draft.threads):
        mine = work.call_thread[linked] == number
        places = linked[mine]
        late = work.launch_ns[places] > draft.call_ns[places]
        begin = thread.node_at_begin(work.call_position[places])
        nodes[mine] = np.where(late, thread.node_from(work.launch_ns[places]), begin)
    return nodes
