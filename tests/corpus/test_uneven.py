"""The uneven all-to-all of the recorded DLRM job: its splits make the matrix, and both sides of a move use it."""

from pathlib import Path

import numpy as np
import pytest

from tracereplay.graph.build import build_graph
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.move import move
from tracereplay.replay.site import journey, source_of
from tracereplay.replay.transfers import members_of
from tracereplay.replay.uneven import splits_between
from tracereplay.trace.job import Extras, read_job

# facts/dlrm.md: indices that each rank sends to each other one, which has as many tables as that.
INDICES = (96, 224, 288, 1664, 592, 96, 192, 240)


@pytest.fixture(scope="module")
def graph(corpus: Path) -> DependencyGraph:
    extras = Extras(execution_traces=(str(corpus / "execution_traces" / "dlrm_v100x8"),))
    return build_graph(read_job([str(corpus / "traces" / "dlrm_v100x8")], extras=extras))


def test_the_recorded_splits_of_all_ranks_make_the_matrix(graph: DependencyGraph) -> None:
    uneven = [c for c in graph.collectives if c.is_uneven]

    assert [(c.name, c.bytes) for c in uneven] == [("all_to_all", 4 * 3_392)]
    splits = splits_between(graph, uneven[0], members_of(graph, uneven[0]))
    np.testing.assert_array_equal(splits, [[4 * count for count in INDICES]] * 8)


def test_both_sides_of_a_move_use_it_and_at_home_nothing_changes(graph: DependencyGraph) -> None:
    source = source_of(graph, "dgx1-v100")

    same, there = (move(graph, source, journey(source, name, []).target) for name in (None, "dgx-a100"))

    assert [wire.uneven for wire in there.wires].count(True) == 1
    transfers = [n for c in graph.collectives for n in c.transfers]
    assert (same.factor[transfers] == 1).all()
    assert (there.factor[transfers] != 1).all()
