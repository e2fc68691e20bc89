"""Work behind a graph waits for all of the graph, and the graph for all that its stream held before.

    host        |GraphLaunch|      |launch C|
    stream 7    |--A--|--graph a--|          `-->|--C--|
    stream 20         `->|------graph b-------|--^

Such an edge is mostly slack: it shows once the longer branch grows. Inside a graph the trace tells no more than timing does.
"""

import numpy as np

from tracereplay.graph.draft import RankDraft
from tracereplay.graph.edges import Found, found, make_edges
from tracereplay.graph.graph_launches import graph_launches
from tracereplay.graph.kinds import Basis, Why


def graph_end(draft: RankDraft) -> Found:
    """Edges into and out of graphs that run on several streams."""
    launches = graph_launches(draft)
    columns = np.array(sorted(launches.pairs), np.int64).reshape(-1, 2)
    src, dst = draft.work_last_node[columns[:, 0]], draft.work_node[columns[:, 1]]
    return found(make_edges(Why.GRAPH_END, Basis.INFERRED, src, dst), refuted=launches.refuted)
