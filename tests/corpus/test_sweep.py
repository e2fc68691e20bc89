"""Sweeps of eight V100: through the models 1x is the recording, and more is not slower, or the sweep says why."""

from itertools import pairwise
from pathlib import Path

import pytest

from tracereplay.analyzers.sweep import Setup, sweep
from tracereplay.graph.build import build_graph
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.ranges import parse_axis
from tracereplay.replay.move import Mover
from tracereplay.replay.site import goal_of, source_of
from tracereplay.trace.job import read_job


@pytest.fixture(scope="module")
def graph(corpus: Path) -> DependencyGraph:
    return build_graph(read_job([str(corpus / "traces" / "dlrm_v100x8")]))


@pytest.mark.parametrize(
    "text",
    [
        "accelerator.hbm.bandwidth=1x,2x,8x",
        "accelerator.flops=1x,2x,8x",
        "fabric.scale_up.bandwidth=1x,2x,1e9x",
        "fabric.scale_up.latency=1x,0.5x,0.1x",
        "host.speed=1x,2x,8x",
    ],
)
def test_1x_is_the_recording_and_more_is_not_slower_or_says_why(graph: DependencyGraph, text: str) -> None:
    source = source_of(graph, "dgx1-v100")

    found = sweep(graph, [parse_axis(text)], Setup(mover=Mover.of(graph, source), goal=goal_of(source, None)))

    times = [point.predicted_ns or 0 for point in found.points]
    assert times[0] == found.baseline_ns
    assert len(found.slower) == sum(more > less for less, more in pairwise(times))
    assert all("waits in it" in one.why or "the model gives" in one.why for one in found.slower)
    assert all(
        p.interval is not None and p.interval.low_ns <= (p.predicted_ns or 0) <= p.interval.high_ns for p in found.points
    )
