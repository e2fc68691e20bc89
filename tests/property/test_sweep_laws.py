"""The laws of sweeps: 1x is the baseline; where only waits can change more is never slower; a resource saves no more than the
path has of it; an infinite fabric leaves the waiting."""

import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.simulated import jobs, wild_jobs
from tests.property.test_brute_force import brute_step_ns, one_step
from tracereplay.analyzers.attribution import attribute
from tracereplay.analyzers.sweep import Setup, sweep
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.knobs import parse_setting
from tracereplay.hardware.ranges import parse_axis
from tracereplay.replay.engine import replay
from tracereplay.replay.whatif import apply, setting_change

LAW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
KNOBS = st.sampled_from(["host.speed", "fabric.*.bandwidth", "accelerator.flops", "accelerator.hbm.bandwidth"])
PARTS = {
    "fabric.scale_up.bandwidth": ("collective_transfer",),
    "host.memory.bandwidth": ("embedding", "elementwise", "reduction", "copy"),
}


def build(traces: list[TraceFile]) -> DependencyGraph:
    with tempfile.TemporaryDirectory() as folder:
        return graph_of(Path(folder), *traces)


@LAW
@given(jobs() | wild_jobs(), KNOBS)
def test_at_1x_every_point_is_the_baseline(traces: list[TraceFile], knob: str) -> None:
    found = sweep(build(traces), [parse_axis(f"{knob}=1x,1.0x")], Setup())

    assert [p.predicted_ns for p in found.points] == [found.baseline_ns] * 2
    assert (found.slower, [k.moved for k in found.knobs]) == ((), [False])


@LAW
@given(jobs(), KNOBS)
def test_more_never_ends_a_task_later(traces: list[TraceFile], knob: str) -> None:
    graph = build(traces)
    changes = [[setting_change(s) for s in parse_setting(f"{knob}={ratio}x")] for ratio in (0.5, 1, 2, 8)]

    ends = [replay(graph, apply(graph, change).timing).end_ns for change in changes]

    assert all((more <= less).all() for less, more in pairwise(ends))


@LAW
@given(jobs(), KNOBS)
def test_a_single_step_with_more_is_never_slower_or_the_sweep_says_who_waits(traces: list[TraceFile], knob: str) -> None:
    found = sweep(build(traces), [parse_axis(f"{knob}=0.5x,1x,2x,8x")], Setup())

    times = [p.predicted_ns for p in found.points]
    assert all(time is not None for time in times)
    slower = [(a, b) for a, b in pairwise(times) if a is not None and b is not None and b > a]
    assert len(found.slower) == len(slower)
    assert all("waits in it" in one.why for one in found.slower)


@LAW
@given(jobs())
def test_twice_the_fabric_saves_no_more_than_half_of_the_path_s_transfers(traces: list[TraceFile]) -> None:
    graph = build(traces)
    found = sweep(graph, [parse_axis("fabric.*.bandwidth=1x,2x")], Setup())

    path_ns = sum(p.ns for p in attribute(graph).parts if p.name == "collective_transfer")
    assert 0 <= found.baseline_ns - (found.points[1].predicted_ns or 0) <= path_ns / 2 + len(graph.collectives) + 1


@pytest.mark.parametrize("number", [10, 12, 15])
@pytest.mark.parametrize("knob", PARTS)
def test_on_the_sample_a_resource_saves_no_more_than_its_share_of_the_path_and_what_brute_force_says(
    samples: Path, number: int, knob: str
) -> None:
    graph = one_step(samples, number)
    found = sweep(graph, [parse_axis(f"{knob}=1x,2x")], Setup())

    path_ns = sum(p.ns for p in attribute(graph).parts if p.name in PARTS[knob])
    brute = brute_step_ns(graph, apply(graph, [setting_change(s) for s in parse_setting(f"{knob}=2x")]).timing)
    predicted = found.points[1].predicted_ns or 0
    assert predicted == brute
    # Each task that is halved may be rounded up by half a nanosecond.
    assert 0 <= found.baseline_ns - predicted <= path_ns / 2 + len(graph) / 2
    assert (found.baseline_ns > predicted) == (path_ns > 0)


@LAW
@given(jobs())
def test_an_infinite_fabric_leaves_the_waiting_alone(traces: list[TraceFile]) -> None:
    graph = build(traces)
    timing = apply(graph, [setting_change(s) for s in parse_setting("fabric.*.bandwidth=1e12x")]).timing
    schedule = replay(graph, timing)

    assert (timing.dur_ns[graph.nodes.kind == NodeKind.TRANSFER] == 0).all()
    for c in graph.collectives:
        if c.transfer_ns is not None:
            last = schedule.start_ns[[*c.arrivals]].max()
            np.testing.assert_array_less(last - 1, schedule.end_ns[[*c.transfers]])
    found = sweep(graph, [parse_axis("fabric.*.bandwidth=1x,1e12x")], Setup())
    assert found.points[1].binds != "collective_transfer" or found.points[1].binds_share == 0
