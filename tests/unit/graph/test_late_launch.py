from pathlib import Path

import numpy as np

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.labels import edges_of, tasks_of
from tracereplay.graph.kinds import EdgeKind
from tracereplay.graph.late_launch import Launched, launch_times

LAUNCH = "cudaLaunchKernel"


def launched(*works: tuple[int, int, int, int], queue: int = 0) -> Launched:
    """Work as (call, end of the call, start, end) in µs, all on one queue."""
    call, call_end, start, end = (np.array(column, np.int64) * 1_000 for column in zip(*works, strict=True))
    count = call.size
    return Launched(start, end, np.full(count, queue), call, call_end, np.ones(count, np.bool_))


def times_us(found: Launched) -> list[int]:
    return [int(time) // 1_000 for time in launch_times(found)]


def test_an_ordinary_launch_happens_at_the_start_of_its_call() -> None:
    assert times_us(launched((0, 5, 8, 20), (100, 105, 108, 120), (200, 205, 208, 220))) == [0, 100, 200]


def test_a_call_that_works_before_it_launches_is_cut_one_latency_before_its_work() -> None:
    # Two launches take 8 µs; the third call lasts 3 ms and its work starts at its very end.
    assert times_us(launched((0, 5, 8, 20), (100, 105, 108, 120), (200, 3200, 3195, 3210))) == [0, 100, 3187]


def test_work_that_waited_for_its_stream_was_not_launched_late() -> None:
    assert times_us(launched((0, 5, 8, 3190), (100, 105, 3195, 3200), (4000, 4005, 4008, 4020))) == [0, 100, 4000]


def test_work_that_starts_right_after_other_work_was_not_launched_late() -> None:
    # The copy at 3195 follows work of another queue that ended at 3190: it waited for that inside its call.
    first, second = launched((0, 5, 8, 20), (50, 55, 58, 3190)), launched((200, 3250, 3195, 3240), queue=1)
    both = Launched(*(np.concatenate([getattr(p, n) for p in (first, second)]) for n in Launched.__slots__))

    assert times_us(both) == [0, 50, 200]


def test_the_time_before_a_late_launch_is_the_host_s(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 5000).call(LAUNCH, 10, 5, 1).kernel("a", 18, 10, 7, 1).call(LAUNCH, 100, 5, 2)
    trace.kernel("b", 108, 10, 7, 2).call(LAUNCH, 200, 3000, 3).kernel("first_use", 3195, 10, 7, 3)

    graph = graph_of(tmp_path, trace)

    assert edges_of(graph, EdgeKind.LAUNCH)[-1] == "cudaLaunchKernel@3187 -> first_use@3195"
    assert tasks_of(graph)["cudaLaunchKernel@200"] == 2_987_000
    assert graph.nodes.residue_ns.max() == 0
