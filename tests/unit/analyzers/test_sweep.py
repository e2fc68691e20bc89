from pathlib import Path

import pytest

from tests.fakes.jobs import graph_of
from tests.fakes.workloads import late_peer, waits_longer
from tracereplay.analyzers.prediction import OtherHardware, predict
from tracereplay.analyzers.sweep import Setup, Sweep, SweptKnob, notes, sweep
from tracereplay.graph.build import build_graph
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.knobs import parse_setting
from tracereplay.hardware.ranges import parse_axis
from tracereplay.replay.move import Mover, move
from tracereplay.replay.site import goal_of, journey, source_of
from tracereplay.replay.whatif import hardware_change, parse_scale
from tracereplay.trace.job import read_job


def swept(graph: DependencyGraph, *texts: str, scale: str | None = None) -> Sweep:
    return sweep(graph, [parse_axis(text) for text in texts], Setup(() if scale is None else (parse_scale(scale),)))


def test_each_point_is_the_step_under_its_ratio(tmp_path: Path) -> None:
    # 50 of 200 µs are the transfer: 25 of them at 2x.
    found = swept(graph_of(tmp_path, *late_peer()), "fabric.scale_up.bandwidth=1x,2x,5x")

    assert [(p.settings, p.predicted_ns) for p in found.points] == [
        (("fabric.scale_up.bandwidth=1x",), 200_000),
        (("fabric.scale_up.bandwidth=2x",), 175_000),
        (("fabric.scale_up.bandwidth=5x",), 160_000),
    ]
    assert [p.speedup for p in found.points] == [1.0, 200 / 175, 200 / 160]
    assert (found.baseline_ns, found.samples, found.level, found.slower) == (200_000, 0, None, ())


def test_where_another_part_binds_the_point_is_marked(tmp_path: Path) -> None:
    # Host time 135 and transfer 50 µs: at 4x the host's are 33.75.
    found = swept(graph_of(tmp_path, *late_peer()), "host.speed=1x,2x,4x,8x")

    assert [(p.binds, p.bottleneck_moves) for p in found.points] == [
        ("host", False),
        ("host", False),
        ("collective_transfer", True),
        ("collective_transfer", False),
    ]
    assert found.points[0].binds_share == 0.675


def test_two_knobs_give_a_point_for_each_pair_the_second_fastest(tmp_path: Path) -> None:
    found = swept(graph_of(tmp_path, *late_peer()), "host.speed=1x,2x", "fabric.scale_up.bandwidth=1x,2x")

    assert [p.predicted_ns for p in found.points] == [200_000, 175_000, 132_500, 107_500]
    assert found.points[1].settings == ("host.speed=1x", "fabric.scale_up.bandwidth=2x")


def test_fixed_changes_hold_at_each_point(tmp_path: Path) -> None:
    found = swept(graph_of(tmp_path, *late_peer()), "host.speed=1x,2x", scale="collective:*=0.5x")

    assert [p.predicted_ns for p in found.points] == [175_000, 107_500]


def test_a_knob_that_moves_nothing_says_so(tmp_path: Path) -> None:
    found = swept(graph_of(tmp_path, *late_peer()), "fabric.scale_out.bandwidth=1x,2x", "host.speed=1x,2x")

    assert [knob.moved for knob in found.knobs] == [False, True]
    assert found.knobs[0] == SweptKnob("fabric.scale_out.bandwidth", ("1x", "2x"), moved=False)
    assert notes(found) == ["fabric.scale_out.bandwidth moved nothing in this job"]


def test_missing_ranks_give_intervals_instead_of_numbers(tmp_path: Path) -> None:
    found = swept(graph_of(tmp_path, late_peer()[0]), "fabric.scale_up.bandwidth=1x,2x")

    assert [p.predicted_ns for p in found.points] == [200_000, None]
    assert found.points[1].interval is not None
    assert (found.points[1].interval.low_ns, found.points[1].interval.high_ns) == (150_000, 200_000)
    assert "add the ranks that are missing" in notes(found)[-1]


def test_more_that_is_slower_is_listed_with_the_rank_that_waits(tmp_path: Path) -> None:
    # At 2x rank 0 enters step 2 at 50 instead of 100 and still waits for the kernel of rank 1.
    found = swept(graph_of(tmp_path, *waits_longer()), "host.speed=1x,2x")

    before, after = found.points
    assert (before.predicted_ns, found.baseline_ns) == (140_000, 140_000)
    assert after.predicted_ns is not None
    assert after.predicted_ns > 140_000
    (one,) = found.slower
    assert (one.knob, one.less, one.more) == ("host.speed", ("host.speed=1x",), ("host.speed=2x",))
    assert one.added_ns == after.predicted_ns - 140_000
    assert one.why == (
        "no task takes longer; rank 0, the longest of step 2 (as before), enters it 50.0 µs earlier and waits in it"
    )
    assert notes(found)[0].startswith(f"host.speed=2x is {one.added_ns / 1000:.1f} µs slower than host.speed=1x: no task")


def test_less_of_a_resource_may_be_slower_without_a_word(tmp_path: Path) -> None:
    found = swept(graph_of(tmp_path, *late_peer()), "fabric.scale_up.latency=1x,2x", "fabric.scale_up.bandwidth=1x,0.5x")

    assert [p.predicted_ns for p in found.points] == [200_000, 250_000, 200_000, 250_000]
    assert found.slower == ()


@pytest.mark.parametrize("setting", ["accelerator.flops=2x", "fabric.scale_up.bandwidth=2x", "host.speed=2x"])
def test_a_point_is_what_whatif_predicts_with_as_many_samples(samples: Path, setting: str) -> None:
    graph = build_graph(read_job([str(samples / "dlrm_2rank")]))
    source = source_of(graph, "cpu-2s")
    knob, _, value = setting.partition("=")
    way = journey(source, "zion", parse_setting(setting))
    moved = move(graph, way.source, way.target)
    alone = predict(graph, [hardware_change("zion", moved.factor)], hardware=OtherHardware(moved, samples=16))

    found = sweep(graph, [parse_axis(f"{knob}=1x,{value}")], Setup(mover=Mover.of(graph, source), goal=goal_of(source, "zion")))

    point = found.points[1]
    assert (point.predicted_ns, point.interval, point.speedup) == (alone.predicted_ns, alone.interval, alone.speedup)
    assert (found.samples, found.level) == (16, 0.9)
