"""A host thread does one thing after another; its gaps are host time.

thread   |--seg 0--|--seg 1--|--seg 2--|        seg 0 → seg 1 → seg 2, no lag: the tiling has no holes
"""

import numpy as np

from tracereplay.graph.draft import RankDraft
from tracereplay.graph.edges import Found, concat_edges, found, make_edges
from tracereplay.graph.kinds import Basis, Why


def thread_order(draft: RankDraft) -> Found:
    """Edges between consecutive segments of each host thread."""
    parts = [make_edges(Why.THREAD_ORDER, Basis.RECORDED, [], [])]
    for thread in draft.threads:
        nodes = np.arange(thread.first_node, thread.first_node + thread.node_count - 1)
        parts.append(make_edges(Why.THREAD_ORDER, Basis.RECORDED, nodes, nodes + 1, lag_ns=0))
    return found(concat_edges(parts))
