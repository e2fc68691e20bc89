"""A real job whose collectives run over one link: the event loop and the compiled pass agree where both apply."""

from pathlib import Path

import numpy as np
import pytest

from tracereplay.graph.build import build_graph
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.contention import Links, links_of, replay_on_links
from tracereplay.replay.engine import replay
from tracereplay.trace.job import read_job

RANKS = 8


@pytest.fixture(scope="module")
def graph(corpus: Path) -> DependencyGraph:
    return build_graph(read_job([str(corpus / "traces" / "dlrm_v100x8")]))


def one_link(graph: DependencyGraph, capacity: float) -> Links:
    wire = np.flatnonzero(graph.nodes.kind == NodeKind.TRANSFER)
    assert wire.size == RANKS * len(graph.collectives)
    return links_of(graph, {int(n): [0] for n in wire}, [capacity])


@pytest.mark.parametrize("capacity", [None, RANKS, 1e6])
def test_a_link_that_holds_all_ranks_gives_the_compiled_pass_s_schedule(graph: DependencyGraph, capacity: float | None) -> None:
    """Every rank takes part in one collective at a time: eight transfers at most overlap."""
    links = links_of(graph, {}, []) if capacity is None else one_link(graph, capacity)

    alone, shared = replay(graph), replay_on_links(graph, links)

    np.testing.assert_array_equal(alone.start_ns, shared.start_ns)
    np.testing.assert_array_equal(alone.end_ns, shared.end_ns)
    np.testing.assert_array_equal(alone.waited_for, shared.waited_for)


def test_a_link_that_holds_one_rank_takes_the_sum_of_all_transfers(graph: DependencyGraph) -> None:
    shared = replay_on_links(graph, one_link(graph, 1))

    for c in graph.collectives:
        nodes = list(c.transfers)
        work_ns = int(graph.nodes.dur_ns[nodes].sum())
        assert shared.end_ns[nodes].max() - shared.start_ns[nodes].min() == pytest.approx(work_ns, abs=RANKS)
    assert (shared.end_ns >= replay(graph).end_ns).all()
