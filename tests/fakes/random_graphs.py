"""Random dependency graphs for laws: any shape that the engine takes, every edge running from a lower to a higher number."""

from hypothesis import strategies as st

from tests.fakes.graphs import Edge, Task, graph_by_hand
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import NO_RELEASE, DependencyGraph

_KINDS = st.sampled_from([NodeKind.HOST, NodeKind.DEVICE, NodeKind.TRANSFER])


@st.composite
def graphs(draw: st.DrawFn, longest_ns: int = 50) -> DependencyGraph:
    """Up to 20 tasks with lags and residues of either sign, releases, edges from starts and ends, and several an edge."""
    count = draw(st.integers(1, 20))
    edges = [] if count == 1 else draw(st.lists(_edge(count), max_size=3 * count))
    waiting = {e.dst for e in edges}
    tasks = [
        Task(
            0,
            draw(st.integers(0, longest_ns)),
            draw(_KINDS),
            residue=draw(st.integers(-10, 10)),
            release=draw(st.integers(0, 60) if n not in waiting else st.sampled_from([NO_RELEASE, 30, 90])),
        )
        for n in range(count)
    ]
    return graph_by_hand(tasks, edges)


@st.composite
def _edge(draw: st.DrawFn, count: int) -> Edge:
    dst = draw(st.integers(1, count - 1))
    return Edge(draw(st.integers(0, dst - 1)), dst, draw(st.integers(-5, 10)), from_start=draw(st.booleans()))
