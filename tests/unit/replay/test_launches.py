"""Between what a step lies when operators of a job of CPUs are launched on accelerators, worked out by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tracereplay.analyzers.prediction import OtherHardware, predict
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.knobs import parse_setting
from tracereplay.replay.launches import LaunchBounds, launch_bounds
from tracereplay.replay.move import Move, move
from tracereplay.replay.site import journey, source_of
from tracereplay.replay.whatif import apply, hardware_change

MM: dict[str, Any] = {"Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["float", "float"]}
ADD: dict[str, Any] = {"Input Dims": [[1000], [1000], []], "Input type": ["float", "float", "Scalar"]}


def moved(graph: DependencyGraph, *texts: str, hardware: str = "zion") -> Move:
    way = journey(source_of(graph, None), hardware, [one for text in texts for one in parse_setting(text)])
    return move(graph, way.source, way.target)


def bounds(graph: DependencyGraph, found: Move) -> LaunchBounds:
    timing = apply(graph, [hardware_change("there", found.factor, afresh=found.afresh)]).timing
    result = launch_bounds(graph, timing, found)
    assert result is not None
    return result


def two_operators(tmp_path: Path) -> DependencyGraph:
    """22 ms: a product of 9 ms and an addition of 1 ms, and 12 ms of the host's own."""
    trace = TraceFile(0).step(1, 0, 22_000).op("aten::mm", 10, 9_000, **MM).op("aten::add", 12_000, 1_000, **ADD)
    return graph_of(tmp_path, trace)


def device_ns(graph: DependencyGraph, found: Move) -> int:
    """What both operators take on the accelerator, by the move's factors."""
    placed = (found.group >= 0) & (found.factor != 1)
    return int(np.rint(graph.nodes.dur_ns[placed] * found.factor[placed]).sum())


def test_the_step_lies_between_the_longer_chain_and_both_one_after_the_other(tmp_path: Path) -> None:
    graph = two_operators(tmp_path)
    found = moved(graph, "host.overhead=10us")
    device = device_ns(graph, found)

    # The host's 12 ms with two launches of 10 µs; the device alone; launched, then run.
    assert bounds(graph, found) == LaunchBounds(12_020_000, device, 12_020_000 + device)
    assert bounds(graph, found).low_ns == 12_020_000
    assert 100_000 < device < 12_000_000


def test_where_the_device_has_more_to_do_it_is_the_longer_chain(tmp_path: Path) -> None:
    trace = TraceFile(0).step(1, 0, 9_100).op("aten::mm", 10, 9_000, **MM)
    graph = graph_of(tmp_path, trace)
    found = moved(graph, "host.overhead=10us")

    result = bounds(graph, found)

    assert (result.host_ns, result.device_ns) == (110_000, device_ns(graph, found))
    assert result.low_ns == result.device_ns > result.host_ns


def test_pieces_of_an_operator_are_launched_once(tmp_path: Path) -> None:
    # Another operator in the midst of the product leaves two pieces of it; that other one stays on the host.
    trace = TraceFile(0).step(1, 0, 20_000).op("aten::mm", 10, 9_000, **MM).op("aten::view", 4_000, 1_000)
    graph = graph_of(tmp_path, trace)

    found = moved(graph, "host.overhead=10us")

    assert np.count_nonzero((found.group >= 0) & (found.factor != 1)) == 2
    assert bounds(graph, found).host_ns == 12_000_000 + 10_000


def test_a_launch_that_nobody_measured_is_taken_at_the_ends_of_its_range(tmp_path: Path) -> None:
    graph = two_operators(tmp_path)
    found = moved(graph)
    device = device_ns(graph, found)

    # Two of 3 µs at least, two of 7 µs at most.
    assert bounds(graph, found) == LaunchBounds(12_006_000, device, 12_014_000 + device)


def test_the_answer_lies_within_but_for_the_launches_and_says_so(tmp_path: Path) -> None:
    graph = two_operators(tmp_path)
    found = moved(graph)

    answer = predict(graph, [hardware_change("zion", found.factor, afresh=True)], hardware=OtherHardware(found, samples=4))

    device = device_ns(graph, found)
    assert answer.predicted_ns == 12_000_000 + device
    (line,) = [text for text in answer.assumed if text.startswith("no launches")]
    assert "5 µs an operator (3 … 7)" in line
    assert "lies between 12.006 ms (the longer of the host with its launches, 12.006 ms, and the device" in line


@pytest.mark.parametrize("hardware", ["cpu-8s"])
def test_on_cpus_nothing_is_launched(hardware: str, tmp_path: Path) -> None:
    graph = two_operators(tmp_path)
    found = moved(graph, hardware=hardware)

    assert not found.afresh
    assert launch_bounds(graph, apply(graph, []).timing, found) is None
