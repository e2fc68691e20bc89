from dataclasses import replace

import numpy as np

from tests.fakes.graphs import Task, graph_by_hand
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import recorded_timing
from tracereplay.replay.move import Move
from tracereplay.replay.uncertainty import sampled


def three_kernels() -> DependencyGraph:
    return graph_by_hand([Task(1_000_000 * n, 1_000_000, NodeKind.DEVICE) for n in range(3)], [])


def a_move(group: list[int], low: float, high: float) -> Move:
    certain = np.array(group) < 0
    columns = [np.where(certain, 0.0, value) for value in (low, high)]
    return Move(np.ones(3), columns[0], columns[1], np.array(group), np.zeros(3, np.bool_), (), (), ())


def durations(move: Move, count: int) -> np.ndarray:
    graph = three_kernels()
    return np.array([timing.dur_ns for timing in sampled(recorded_timing(graph), move, count)])


def test_errors_of_one_group_go_together_and_those_of_two_do_not() -> None:
    drawn = durations(a_move([0, 0, 1], -0.2, 0.2), 200)

    assert (drawn[:, 0] == drawn[:, 1]).all()
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 2])[0, 1]) < 0.2


def test_nine_of_ten_samples_lie_within_the_bounds_each_side_by_its_own() -> None:
    drawn = durations(a_move([0, 0, 0], np.log(0.5), np.log(1.1)), 4_000)[:, 0] / 1_000_000

    assert abs(np.quantile(drawn, 0.05) - 0.5) < 0.02
    assert abs(np.quantile(drawn, 0.95) - 1.1) < 0.01
    assert abs(np.median(drawn) - 1.0) < 0.02


def test_what_is_certain_stays_and_the_same_question_has_the_same_answer() -> None:
    move = a_move([-1, 0, -1], -0.2, 0.2)

    assert (durations(move, 20)[:, [0, 2]] == 1_000_000).all()
    assert (durations(move, 20) == durations(move, 20)).all()


def test_other_accelerators_are_drawn_as_often_as_the_one_in_the_slots() -> None:
    move = replace(a_move([-1, -1, -1], 0, 0), others=(np.full(3, 0.5),))

    drawn = durations(move, 400)[:, 0]

    assert set(drawn.tolist()) == {500_000, 1_000_000}
    assert 150 < (drawn == 500_000).sum() < 250
