import pytest

from tracereplay.graph.edges import NO_LAG, concat_edges, found, make_edges
from tracereplay.graph.kinds import Basis, EdgeKind, Why


def test_edges_of_one_call_share_kind_basis_and_lag() -> None:
    edges = make_edges(Why.SYNC, Basis.INFERRED, [1, 2], [3, 4], from_start=True, lag_ns=7)

    assert (edges.src.tolist(), edges.dst.tolist()) == ([1, 2], [3, 4])
    assert (edges.kind.tolist(), edges.basis.tolist()) == ([EdgeKind.SYNC] * 2, [Basis.INFERRED] * 2)
    assert (edges.from_start.tolist(), edges.lag_ns.tolist()) == ([True, True], [7, 7])


def test_a_lag_that_the_rule_does_not_fix_is_left_to_the_population() -> None:
    assert make_edges(Why.LAUNCH, Basis.RECORDED, [1], [2]).lag_ns.tolist() == [NO_LAG]


def test_edges_are_joined_in_order() -> None:
    first = make_edges(Why.LAUNCH, Basis.RECORDED, [1], [2])
    second = make_edges(Why.SYNC, Basis.INFERRED, [3], [4])

    edges = concat_edges([first, second])

    assert (len(edges), edges.src.tolist(), edges.kind.tolist()) == (2, [1, 3], [EdgeKind.LAUNCH, EdgeKind.SYNC])


@pytest.mark.parametrize("waits", [None, []])
def test_a_rule_may_find_no_waits(waits: list[tuple[int, int]] | None) -> None:
    result = found(make_edges(Why.SYNC, Basis.INFERRED, [], []), waits)

    assert (len(result.edges), result.own_node.size, result.own_ns.size) == (0, 0, 0)


def test_waits_are_nodes_with_their_own_time() -> None:
    result = found(make_edges(Why.SYNC, Basis.INFERRED, [], []), [(4, 10), (6, 20)], 1, 5)

    assert (result.own_node.tolist(), result.own_ns.tolist(), result.refuted, result.uncovered_ns) == ([4, 6], [10, 20], 1, 5)
