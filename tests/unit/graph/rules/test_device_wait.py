import random
from pathlib import Path

import pytest

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.labels import edges_of, tasks_of
from tracereplay.graph.kinds import EdgeKind

LAUNCH = "cudaLaunchKernel"


def forward(trace: TraceFile, at: int, correlation: int, lasts: int = 900) -> TraceFile:
    """A launch, an annotation that covers nothing for ``lasts`` µs, a call: work ends 20 µs before the annotation goes on."""
    trace.call(LAUNCH, at, 5, correlation).kernel("backward_kernel", at + 10, lasts - 30, 7, correlation)
    return trace.annotation("forward", at + 5, lasts + 15).call("cudaEventElapsedTime", at + lasts, 5)


def test_time_that_ends_with_the_same_work_every_time_is_a_wait_for_it(tmp_path: Path) -> None:
    trace = forward(forward(TraceFile().step(1, 0, 4000), 100, 1), 2000, 2)

    graph = graph_of(tmp_path, trace)

    assert edges_of(graph, EdgeKind.SYNC) == [
        "backward_kernel@110 -> cudaEventElapsedTime@1000",
        "backward_kernel@2010 -> cudaEventElapsedTime@2900",
    ]
    assert tasks_of(graph)["forward@105"] == 0


def test_once_is_no_pattern(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, forward(TraceFile().step(1, 0, 4000), 100, 1))

    assert edges_of(graph, EdgeKind.SYNC) == []
    assert tasks_of(graph)["forward@105"] == 895_000


def test_work_that_was_enqueued_after_the_time_began_is_not_waited_for(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 4000)
    for at, correlation in ((100, 1), (2000, 2)):
        trace.annotation("forward", at + 5, 915).call("cudaEventElapsedTime", at + 900, 5)
        trace.call(LAUNCH, at + 300, 5, correlation, tid=9).kernel("k", at + 310, 570, 7, correlation)

    assert edges_of(graph_of(tmp_path, trace), EdgeKind.SYNC) == []


def test_among_many_short_pieces_of_work_the_last_one_shows_nothing(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 4000)
    for at, correlation in ((100, 100), (2000, 200)):
        for number in range(44):
            trace.call(LAUNCH, at - 90 + number, 1, correlation + number)
            trace.kernel("short", at + 20 * number, 15, 7, correlation + number)
        trace.annotation("forward", at + 5, 915).call("cudaEventElapsedTime", at + 900, 5)

    assert edges_of(graph_of(tmp_path, trace), EdgeKind.SYNC) == []


@pytest.mark.parametrize("seed", range(3))
def test_gaps_over_a_backlog_of_one_kernel_are_waits_for_none_of_them(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    trace = TraceFile().call(LAUNCH, 5, 1, 999)
    for number in range(150):
        trace.call(LAUNCH, 10 + number, 1, number + 1).kernel("k", 200 + 212 * number, 210, 7, number + 1)
    now = 400
    while now < 30_000:
        trace.op("aten::mm", now, 20)
        now += 20 + rng.randrange(600, 1500)

    assert edges_of(graph_of(tmp_path, trace.step(1, 0, 33_000)), EdgeKind.SYNC) == []
