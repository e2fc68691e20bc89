from pathlib import Path

import pytest

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tracereplay.graph.kinds import Why
from tracereplay.replay.engine import replay
from tracereplay.replay.steps import step_times
from tracereplay.replay.whatif import apply, parse_scale


def far_ahead(launches: int, depth: int, kernel_us: float) -> TraceFile:
    """A host that launches every 6 µs into a queue of a depth: a call returns 1 µs after the work that makes room ended."""
    trace = TraceFile()
    ends: list[float] = []
    now, free = 10.0, 0.0
    for number in range(launches):
        back = max(now + 4, ends[number - depth] + 1 if number >= depth else 0.0)
        begin = max(free + 1.5, now + 6)
        free = begin + kernel_us
        ends.append(free)
        trace.call("cudaLaunchKernel", now, round(back - now, 3), number + 1)
        trace.kernel("k", round(begin, 3), kernel_us, 7, number + 1)
        now = round(back + 2, 3)
    trace.call("cudaDeviceSynchronize", now, round(free + 5 - now, 3), launches + 1)
    return trace.step(1, 0, round(free + 20, 3))


@pytest.mark.parametrize("launches", [400, 4000])
def test_a_host_that_waits_for_room_goes_as_fast_as_the_device(tmp_path: Path, launches: int) -> None:
    graph = graph_of(tmp_path, far_ahead(launches, depth=100, kernel_us=100))
    faster = graph_of(tmp_path, far_ahead(launches, depth=100, kernel_us=50))

    times = step_times(graph, replay(graph, apply(graph, [parse_scale("kernel:k=0.5x")]).timing))

    (truth,) = faster.steps
    assert times[0].dur_ns == pytest.approx(truth.end_ns - truth.start_ns, rel=0.002)
    assert (graph.edges.why == Why.FULL_QUEUE).sum() == launches - 100


def test_launches_that_are_long_for_other_reasons_wait_for_no_room(tmp_path: Path) -> None:
    # Every tenth call is long, at any number of outstanding launches.
    trace = TraceFile()
    now = 10
    for number in range(600):
        took = 80 + number % 7 if number % 10 == 0 else 4
        trace.call("cudaLaunchKernel", now, took, number + 1).kernel("k", now + took + 300, 3, 7, number + 1)
        now += took + 2
    graph = graph_of(tmp_path, trace.step(1, 0, now + 400))

    assert (graph.edges.why == Why.FULL_QUEUE).sum() == 0
