from pathlib import Path
from typing import Any

import numpy as np

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.workloads import LAUNCH, late_peer
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.likeness import Likeness, find_likeness
from tracereplay.graph.model import DependencyGraph


def dims(*shape: int) -> dict[str, Any]:
    """An operator's args with the shape of its only input."""
    return {"Input Dims": [list(shape)]}


def node_at(graph: DependencyGraph, rank: int, start_us: float) -> int:
    """The node of a rank that starts there and takes time."""
    mine = (graph.nodes.rank == rank) & (graph.nodes.start_ns == round(start_us * 1000)) & (graph.nodes.dur_ns > 0)
    (node,) = np.flatnonzero(mine).tolist()
    return int(node)


def alike(graph: DependencyGraph, one: tuple[int, float], other: tuple[int, float]) -> bool:
    """Whether two tasks, each given by rank and start in µs, have one role."""
    role = find_likeness(graph).role
    return bool(role[node_at(graph, *one)] == role[node_at(graph, *other)])


def test_the_same_operator_on_another_rank_is_the_same_work(tmp_path: Path) -> None:
    one = TraceFile(0, 2).step(1, 0, 100).op("a", 10, 5).op("b", 20, 5)
    other = TraceFile(1, 2).step(1, 0, 100).op("a", 15, 9).op("b", 60, 5)

    graph = graph_of(tmp_path, one, other)

    assert alike(graph, (0, 10), (1, 15))
    assert alike(graph, (0, 20), (1, 60))
    assert not alike(graph, (0, 10), (1, 60))


def test_the_same_operator_in_another_step_is_the_same_work(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("a", 10, 5).step(2, 100, 100).op("a", 150, 5)

    graph = graph_of(tmp_path, trace)

    assert alike(graph, (0, 10), (0, 150))
    assert find_likeness(graph).step[[node_at(graph, 0, 10), node_at(graph, 0, 150)]].tolist() == [1, 2]


def test_each_role_occurs_once_in_a_step_of_a_rank(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, *late_peer())

    likeness = find_likeness(graph)

    keys = set(zip(graph.nodes.rank.tolist(), likeness.step.tolist(), likeness.role.tolist(), strict=True))
    assert len(keys) == len(graph)


def test_like_named_operators_are_told_apart_by_their_order(tmp_path: Path) -> None:
    one = TraceFile(0, 2).step(1, 0, 100).op("a", 10, 5).op("a", 20, 5)
    other = TraceFile(1, 2).step(1, 0, 100).op("a", 12, 5).op("a", 40, 5)

    graph = graph_of(tmp_path, one, other)

    assert alike(graph, (0, 20), (1, 40))
    assert not alike(graph, (0, 10), (1, 40))


def test_an_operator_that_one_rank_does_more_shifts_nobody_behind_it(tmp_path: Path) -> None:
    # By order alone the extra a (under it lies x) would pair with the second a of the others (under it lies c).
    one = TraceFile(0, 2).step(1, 0, 200).op("a", 10, 9).op("b", 12, 4).op("a", 30, 9).op("c", 32, 4)
    other = TraceFile(1, 2).step(1, 0, 200).op("a", 10, 9).op("b", 12, 4).op("a", 50, 9).op("x", 52, 4)
    other.op("a", 90, 9).op("c", 92, 4)

    graph = graph_of(tmp_path, one, other)

    assert alike(graph, (0, 32), (1, 92))
    assert alike(graph, (0, 30), (1, 90))
    assert not alike(graph, (0, 30), (1, 50))


def test_other_shapes_are_other_work(tmp_path: Path) -> None:
    one = TraceFile(0, 3).step(1, 0, 100).op("a", 10, 5, **dims(2, 3))
    same = TraceFile(1, 3).step(1, 0, 100).op("a", 12, 5, **dims(2, 3))
    larger = TraceFile(2, 3).step(1, 0, 100).op("a", 14, 5, **dims(4, 3))

    graph = graph_of(tmp_path, one, same, larger)

    assert alike(graph, (0, 10), (1, 12))
    assert not alike(graph, (0, 10), (2, 14))


def test_a_call_takes_the_shapes_of_the_operator_around_it(tmp_path: Path) -> None:
    traces = [
        TraceFile(r, 2).step(1, 0, 100).op("a", 10, 20, **dims(size)).call(LAUNCH, 15, 5, 1).kernel("k", 33, 9, 7, 1)
        for r, size in enumerate((2, 3))
    ]

    graph = graph_of(tmp_path, *traces)

    assert not alike(graph, (0, 15), (1, 15))
    assert not alike(graph, (0, 33), (1, 33))


def test_a_gap_is_known_by_its_neighbours(tmp_path: Path) -> None:
    one = TraceFile(0, 2).step(1, 0, 100).op("a", 10, 5).op("b", 20, 5)
    other = TraceFile(1, 2).step(1, 0, 100).op("a", 10, 5).op("x", 40, 5).op("b", 60, 5)

    graph = graph_of(tmp_path, one, other)

    # Before a, and behind b; between a and b lies something else on rank 1.
    assert alike(graph, (0, 0), (1, 0))
    assert alike(graph, (0, 25), (1, 65))
    assert not alike(graph, (0, 15), (1, 15))
    assert not alike(graph, (0, 15), (1, 45))


def test_thread_ids_do_not_matter_but_what_a_thread_is_does(tmp_path: Path) -> None:
    backward = "autograd::engine::evaluate_function: MmBackward0"
    one = TraceFile(0, 2).step(1, 0, 200).op("a", 10, 5).op(backward, 50, 20, tid=7).op("poll", 60, 3, tid=5)
    other = TraceFile(1, 2).step(1, 0, 200).op("a", 10, 5).op("poll", 61, 3, tid=9).op(backward, 80, 20, tid=3)

    graph = graph_of(tmp_path, one, other)

    assert alike(graph, (0, 50), (1, 80))
    assert alike(graph, (0, 60), (1, 61))


def test_device_work_is_known_by_its_operator_its_name_and_its_turn(tmp_path: Path) -> None:
    def trace(rank: int, stream: int, late: int) -> TraceFile:
        made = TraceFile(rank, 2).step(1, 0, 300).op("a", 10, 60)
        made.call(LAUNCH, 20, 5, 1).call(LAUNCH, 30, 5, 2).call(LAUNCH, 40, 5, 3)
        made.kernel("k", 50 + late, 10, stream, 1).kernel("other", 70 + late, 10, stream, 2)
        return made.kernel("k", 90 + late, 10, stream, 3)

    graph = graph_of(tmp_path, trace(0, 7, 0), trace(1, 11, 100))

    assert alike(graph, (0, 50), (1, 150))
    assert alike(graph, (0, 90), (1, 190))
    assert not alike(graph, (0, 50), (1, 190))
    assert not alike(graph, (0, 50), (1, 170))


def test_work_from_before_the_recording_is_counted_from_its_end(tmp_path: Path) -> None:
    # Rank 1 enters later: one of the two kernels that were still to come has ended by then.
    one = TraceFile(0, 2).step(1, 0, 100).op("a", 60, 5).kernel("k", 5, 10, 7).kernel("k", 20, 10, 7)
    other = TraceFile(1, 2).step(1, 18, 82).op("a", 60, 5).kernel("k", 21, 10, 7)

    graph = graph_of(tmp_path, one, other)

    assert alike(graph, (0, 20), (1, 21))
    assert not alike(graph, (0, 5), (1, 21))


def test_addresses_in_names_do_not_matter(tmp_path: Path) -> None:
    name = "<built-in method zero_ of Tensor object at 0x7f{:04x}>"
    traces = [TraceFile(r, 2).step(1, 0, 100).op(name.format(r), 10, 5) for r in range(2)]

    assert alike(graph_of(tmp_path, *traces), (0, 10), (1, 10))


def test_a_rendezvous_belongs_to_the_step_and_the_role_of_its_arrivals(tmp_path: Path) -> None:
    traces = [TraceFile(r, 2) for r in range(2)]
    for trace in traces:
        for number in (1, 2):
            begin = 100 * number
            trace.step(number, begin, 100).call(LAUNCH, begin + 10, 5, number)
            trace.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin + 20, 30, 7, number)

    graph = graph_of(tmp_path, *traces)

    likeness: Likeness = find_likeness(graph)
    meeting = np.flatnonzero(graph.nodes.kind == NodeKind.RENDEZVOUS)
    assert likeness.step[meeting].tolist() == [1, 2]
    assert len(set(likeness.role[meeting].tolist())) == 1


def test_edges_between_the_same_work_have_one_role(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, *late_peer())

    likeness = find_likeness(graph)

    launches = [likeness.edge_role[graph.edges.dst == n].tolist() for n in graph.collectives[0].arrivals]
    assert launches[0] == launches[1]


def test_gaps_of_threads_that_carry_no_steps_are_no_work(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("a", 10, 5).op("poll", 20, 1, tid=5).op("poll", 60, 1, tid=5)

    graph = graph_of(tmp_path, trace)

    work = find_likeness(graph).work
    assert [bool(work[node_at(graph, 0, t)]) for t in (0, 10, 20, 21, 60)] == [True, True, True, False, True]
