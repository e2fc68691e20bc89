import numpy as np

from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.lags import Alike, populations
from tracereplay.trace.classify import WorkClass


def alike(kind: list[NodeKind], work: list[WorkClass], queue: list[int], dur: list[int], graph: list[bool]) -> Alike:
    return Alike(
        np.zeros(len(kind), np.int64),
        np.array(kind, np.int8),
        np.array(work, np.int8),
        np.array(dur, np.int64),
        np.array(queue, np.int64),
        np.array(graph, np.bool_),
    )


def device(count: int, work: WorkClass = WorkClass.GEMM, queue: int = 0, dur: int = 5_000, graph: bool = False) -> Alike:
    return alike([NodeKind.DEVICE] * count, [work] * count, [queue] * count, [dur] * count, [graph] * count)


def together(*parts: Alike) -> Alike:
    names = ("rank", "kind", "work_class", "dur_ns", "queue", "in_graph")
    return Alike(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def sizes(found: np.ndarray) -> list[int]:
    return sorted(np.unique(found, return_counts=True)[1].tolist())


def test_queues_with_enough_work_are_populations_of_their_own() -> None:
    found = populations(together(device(40, queue=0), device(50, queue=1)))

    assert sizes(found) == [40, 50]


def test_queues_with_little_work_share_one() -> None:
    found = populations(together(device(40, queue=0), device(5, queue=1), device(6, queue=2)))

    assert sizes(found) == [11, 40]


def test_copies_are_told_apart_by_length_and_kernels_are_not() -> None:
    short, long = device(40, WorkClass.COPY, dur=5_000), device(41, WorkClass.COPY, dur=5_000_000)
    kernels = together(device(42, dur=5_000), device(43, dur=5_000_000))

    assert sizes(populations(together(short, long))) == [40, 41]
    assert sizes(populations(kernels)) == [85]


def test_what_a_graph_launched_is_apart_from_what_was_launched_alone() -> None:
    assert sizes(populations(together(device(4), device(5, graph=True)))) == [4, 5]


def test_a_rendezvous_of_no_rank_is_in_no_population_of_a_rank() -> None:
    meeting = alike([NodeKind.RENDEZVOUS], [WorkClass.COLLECTIVE], [-1], [0], [False])
    meeting = Alike(np.array([-1]), meeting.kind, meeting.work_class, meeting.dur_ns, meeting.queue, meeting.in_graph)
    host = alike([NodeKind.HOST], [WorkClass.HOST], [-1], [0], [False])

    found = populations(together(meeting, host))

    assert found[0] != found[1]
    assert found.min() >= 0
