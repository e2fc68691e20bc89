import numpy as np
import pytest

from tracereplay.graph.array_graph import Adjacency, FrozenDiGraph, numbers_of


def adjacency(count: int, *edges: tuple[int, int]) -> Adjacency:
    src, dst = np.array([s for s, _ in edges], np.int64), np.array([d for _, d in edges], np.int64)
    return Adjacency(count, src, dst, np.argsort(dst, kind="stable"))


DIAMOND = adjacency(5, (0, 1), (0, 2), (1, 3), (2, 3))


def test_generations_are_the_longest_numbers_of_edges_to_a_node() -> None:
    chain = adjacency(4, (0, 1), (1, 2), (0, 2))

    assert (chain.order.tolist(), chain.generation.tolist()) == ([0, 3, 1, 2], [0, 0, 1, 2])


def test_reach_goes_forward_and_backward_without_its_start() -> None:
    assert DIAMOND.reach(1, backward=False).tolist() == [3]
    assert DIAMOND.reach(3, backward=True).tolist() == [0, 1, 2]
    assert DIAMOND.reach(4, backward=False).tolist() == []


def test_the_longest_path_follows_the_largest_sum() -> None:
    assert DIAMOND.longest_path(np.array([1, 1, 1, 5])).tolist() == [0, 2, 3]


def test_a_path_begins_anew_where_its_sum_would_be_negative() -> None:
    assert adjacency(3, (0, 1), (1, 2)).longest_path(np.array([-5, 2])).tolist() == [1, 2]


def test_a_graph_without_nodes_has_an_empty_longest_path() -> None:
    assert adjacency(0).longest_path(np.array([], np.int64)).tolist() == []


def test_sums_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OverflowError, match="64 bits"):
        adjacency(3, (0, 1), (1, 2)).longest_path(np.array([2**62, 2**62]))


def test_the_edges_along_a_path_are_found() -> None:
    assert DIAMOND.edges_along(np.array([0, 2, 3])).tolist() == [1, 3]


def test_a_path_of_one_node_has_no_edges() -> None:
    assert DIAMOND.edges_along(np.array([2])).tolist() == []


def test_nodes_of_a_frozen_graph_are_its_labels() -> None:
    graph = FrozenDiGraph(("a", "b", "c"), adjacency(3, (0, 1), (0, 2)), {"w": (3, 4)})

    assert (list(graph), len(graph), "b" in graph, "z" in graph) == (["a", "b", "c"], 3, True, False)
    assert (list(graph.successors("a")), list(graph.predecessors("c"))) == (["b", "c"], ["a"])
    assert graph.edge_weight("w", 1).tolist() == [3, 4]
    assert graph.edge_weight("other", 7).tolist() == [7, 7]


def test_numbers_stay_whole_where_all_are() -> None:
    assert numbers_of([1, 2]).dtype == np.int64
    assert numbers_of([1, 0.5]).tolist() == [1.0, 0.5]


@pytest.mark.parametrize("values", [[2**70, 1], [float("nan")], [2**53 + 1, 0.5]])
def test_numbers_that_arrays_do_not_hold_exactly_are_refused(values: list[float]) -> None:
    with pytest.raises(OverflowError):
        numbers_of(values)


def test_text_is_no_number() -> None:
    with pytest.raises(TypeError, match="not a number"):
        numbers_of(["a"])
