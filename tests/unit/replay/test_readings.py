"""What the time of a collective may be whose other ranks are not here, on other hardware: worked out by hand."""

import numpy as np

from tests.fakes.graphs import Edge, Task, graph_by_hand
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import Timing, recorded_timing, replay
from tracereplay.replay.whatif import Scenario, apply, hardware_change, parse_scale


def rank_of_cpus(tiny: int = 2) -> DependencyGraph:
    """|100 of an operator|tiny one|50 of a collective|20 of host|, of one rank of several."""
    tasks = [Task(0, 100, release=0), Task(100, tiny), Task(100 + tiny, 50, NodeKind.UNSPLIT), Task(150 + tiny, 20)]
    return graph_by_hand(tasks, [Edge(n, n + 1) for n in range(3)])


def end_ns(graph: DependencyGraph, timing: Timing) -> int:
    return int(replay(graph, timing).end_ns[-1])


def moved(graph: DependencyGraph, factors: list[float], *, afresh: bool) -> Scenario:
    return apply(graph, [hardware_change("there", np.array(factors), afresh=afresh)])


def test_afresh_ranks_that_are_not_here_come_later_by_what_was_waited_for() -> None:
    graph = rank_of_cpus()

    # The operator takes 10, the tiny one a kernel's 20 (ten times as long), the transfer 5.
    found = moved(graph, [0.1, 10, 0.1, 1], afresh=True)

    assert found.surplus
    (surplus,) = found.unsplit
    # All transfer: 10 + 20 + 5 + 20.
    assert end_ns(graph, found.timing) == 55
    # All waiting: what is made slower is multiplied by (100 + 10 x 2 + 50 + 20) / 172 on the whole, so 50 by 1.1047; then the
    # transfer of 5.
    assert surplus.dur_ns.tolist() == [10, 20, 55 + 5, 20]
    assert end_ns(graph, surplus) == 110


def test_the_recorded_job_stays_the_bound_where_the_recorded_transfer_is_carried_over() -> None:
    graph = rank_of_cpus()

    found = moved(graph, [0.1, 10, 0.5, 1], afresh=False)

    # The others come as they did (the collective ends at 152), at once, moved by the transfer (25 less), or later by no more
    # than the time of a rank as a whole: by 1.1047. A tenfold time is nobody's.
    assert not found.surplus
    assert max(end_ns(graph, reading) for reading in found.unsplit) == round(152 * 190 / 172) + 20


def test_a_class_that_gets_slower_on_the_whole_bounds_what_other_ranks_do() -> None:
    graph = rank_of_cpus(tiny=100)

    found = moved(graph, [2.0, 2.0, 0.5, 2.0], afresh=True)

    # Everything that these hosts do takes twice as long, so may the 50 that were waited for; the transfer takes 25.
    assert found.unsplit[0].dur_ns.tolist() == [200, 200, 100 + 25, 40]


def test_a_factor_that_is_asked_for_holds_for_single_operators() -> None:
    graph = rank_of_cpus()
    scaled = apply(graph, [parse_scale("host=3x"), hardware_change("there", np.array([1, 1, 0.5, 1]), afresh=True)])

    # Not afresh alone: the others are taken to have done nothing but what is scaled, three times their 152.
    assert not scaled.surplus
    assert max(end_ns(graph, reading) for reading in scaled.unsplit) == 3 * 152 + 60


def test_a_job_with_all_ranks_has_one_reading() -> None:
    graph = graph_by_hand([Task(0, 100, release=0), Task(100, 50)], [Edge(0, 1)])

    assert moved(graph, [0.1, 10], afresh=True).unsplit == ()
    assert recorded_timing(graph).dur_ns.tolist() == [100, 50]
