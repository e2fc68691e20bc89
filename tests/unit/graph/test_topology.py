import numpy as np

from tracereplay.graph.topology import topological_order


def order(count: int, edges: list[tuple[int, int]]) -> list[int]:
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    return [int(node) for node in topological_order(count, pairs[:, 0], pairs[:, 1])]


def test_every_edge_runs_forward() -> None:
    assert order(4, [(3, 1), (3, 2), (1, 0), (2, 0)]) == [3, 1, 2, 0]


def test_tasks_without_edges_stand_by_number() -> None:
    assert order(3, []) == [0, 1, 2]


def test_parallel_edges_count_once() -> None:
    assert order(2, [(0, 1), (0, 1)]) == [0, 1]


def test_a_circle_and_what_follows_it_is_left_out() -> None:
    assert order(5, [(0, 1), (1, 2), (2, 1), (2, 3)]) == [0, 4]
