from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fakes.graphs import Edge, Task, graph_by_hand
from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.platforms import small_platform
from tracereplay.analyzers.prediction import OtherHardware, predict
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph, StepSpan
from tracereplay.hardware.knobs import parse_setting
from tracereplay.replay.engine import recorded_timing, replay
from tracereplay.replay.move import Move, move
from tracereplay.replay.sharing import Flow, SharedLinks, Sharing, alone, lost, on_links
from tracereplay.replay.site import Site, journey
from tracereplay.replay.whatif import apply, hardware_change

LAUNCH, ALL_REDUCE = "cudaLaunchKernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
ONE_NIC = ('nics = { value = 4, unit = "1"', 'nics = { value = 1, unit = "1"')
OUT = "node0/nic0>rack0/rail0"
STEPS = [StepSpan(rank, 1, rank, 3, 0, 10, None, 0) for rank in range(4)]  # until rank 0's task begins
FIRST, SECOND = frozenset([(0, 0, 1), (1, 0, 1)]), frozenset([(2, 0, 1), (3, 0, 1)])


def two_transfers(second_starts: int = 0) -> DependencyGraph:
    """Two transfers of two ranks each: 10 ns of ranks 0 and 1, 10 ns of ranks 2 and 3, each followed by a task of its own."""
    starts = [0, 0, second_starts, second_starts]
    tasks = [Task(start, 10, NodeKind.TRANSFER, rank, release=start) for rank, start in enumerate(starts)]
    return graph_by_hand([*tasks, Task(10, 7, rank=0), Task(10, 7, rank=2)], [Edge(0, 4), Edge(2, 5)], STEPS)


def flows(*loads: dict[str, float]) -> list[Flow]:
    nodes = [np.array([0, 1]), np.array([2, 3])]
    return [Flow(n, queues, load) for n, queues, load in zip(nodes, (FIRST, SECOND), loads, strict=True)]


def shared(graph: DependencyGraph, *loads: dict[str, float]) -> list[int]:
    sharing = Sharing(np.ones(len(graph)), SharedLinks.of(graph, flows(*loads)))
    timing = sharing.applied(graph, recorded_timing(graph))
    return [int(end) for end in replay(graph, timing).end_ns]


def test_all_reduces_of_two_groups_on_one_nic_take_half_its_rate_each_and_what_follows_waits() -> None:
    assert shared(two_transfers(), {"nic": 1.0}, {"nic": 1.0}) == [20, 20, 20, 20, 27, 27]


def test_transfers_that_overlap_in_part_share_for_that_part() -> None:
    # The first alone until 5, then half the rate until 15; the second half the rate until 15, then alone for its other 5.
    assert shared(two_transfers(5), {"nic": 1.0}, {"nic": 1.0}) == [15, 15, 20, 20, 22, 27]


def test_a_link_that_both_leave_idle_for_long_enough_slows_nobody() -> None:
    assert shared(two_transfers(), {"nic": 0.5}, {"nic": 0.5}) == [10, 10, 10, 10, 17, 17]
    # Together 1.25 of what there is: each at 0.8 of its rate, 12.5 ns, to the next nanosecond.
    assert shared(two_transfers(), {"nic": 0.75}, {"nic": 0.5}) == [13, 13, 13, 13, 20, 20]


def test_transfers_on_links_of_their_own_slow_nobody() -> None:
    assert shared(two_transfers(), {"one": 1.0}, {"other": 1.0}) == [10, 10, 10, 10, 17, 17]


def test_what_runs_on_the_same_queues_never_overlaps_however_clocks_differ() -> None:
    graph = two_transfers(9)  # the second begins 1 ns before the first has ended
    same = [Flow(one.nodes, FIRST, one.loads) for one in flows({"nic": 1.0}, {"nic": 1.0})]

    assert SharedLinks.of(graph, same).begin.size == 0


def test_links_that_are_full_together_count_once() -> None:
    loads = {"nic0>rail0": 1.0, "rail0>nic4": 1.0}

    assert SharedLinks.of(two_transfers(), flows(loads, loads)).links.capacity.tolist() == [1.0]


def test_the_sharing_of_the_recording_is_taken_out_and_that_of_the_target_put_in() -> None:
    graph = two_transfers()  # 10 ns each, together on one link: alone they would have taken 5
    here = SharedLinks.of(graph, flows({"nic": 1.0}, {"nic": 1.0}))
    part = alone(graph, here)

    assert part.tolist() == [0.5, 0.5, 0.5, 0.5, 1, 1]
    recorded = recorded_timing(graph)
    assert Sharing(part, here).applied(graph, recorded).dur_ns.tolist() == recorded.dur_ns.tolist()
    apart = Sharing(part, SharedLinks.of(graph, flows({"one": 1.0}, {"other": 1.0})))
    assert replay(graph, apart.applied(graph, recorded)).end_ns.tolist() == [5, 5, 5, 5, 12, 12]


def test_what_is_lost_is_said_with_the_link_that_has_most_to_carry() -> None:
    graph = two_transfers()
    sharing = Sharing(np.ones(len(graph)), SharedLinks.of(graph, flows({"nic": 1.0, "a": 0.5}, {"nic": 1.0})))
    recorded = recorded_timing(graph)

    found = lost(graph, sharing, recorded, sharing.applied(graph, recorded))

    # 10 ns each; the link has 20 ns to carry of the 27 that the schedule lasts.
    assert (found.slowed, found.lost_ns, found.step_lost_ns, found.recorded_lost_ns) == (2, 20, 10, 0)
    assert found.busiest_link == "nic"
    assert found.busiest_share == pytest.approx(20 / 27)


# -- from traces ---------------------------------------------------------------------------------------------------------


def two_groups(tmp_path: Path, second_starts: int = 100) -> DependencyGraph:
    """Four ranks on two hosts: all-reduces of ranks 0 and 2 and of ranks 1 and 3, 5 MB in 4 ms each, at the same time."""
    traces = []
    for rank in range(4):
        begin = 100 if rank in (0, 2) else second_starts
        args: dict[str, Any] = {
            "Collective name": "allreduce", "In msg nelems": 1_250_000, "dtype": "Float", "Seq": 1, "Group size": 2,
            "Process Group Name": f"g{rank % 2}", "Process Group Ranks": f"[{rank % 2}, {rank % 2 + 2}]",
        }  # fmt: skip
        trace = TraceFile(rank, 4, host_name=f"n{rank // 2}").step(1, 0, 20_000).call(LAUNCH, begin - 20, 5, 1)
        traces.append(trace.kernel(ALL_REDUCE, begin, 4_000, 7, 1, **args).call("cudaDeviceSynchronize", begin, 4_010))
    return graph_of(tmp_path, *traces)


def site(folder: Path, *changes: tuple[str, str]) -> Site:
    """Nodes of two of the small platform's accelerators."""
    folder.mkdir()
    slots = '"./fast.toml", unit = "name", kind = "spec", source = "a sheet" }\ncount = { value ='
    return Site(small_platform(folder, (f"{slots} 4", f"{slots} 2"), *changes), 1.0)


def transfers_ns(graph: DependencyGraph, found: Move) -> list[int]:
    scenario = on_links(graph, apply(graph, [hardware_change("hardware", found.factor)]), found.sharing)
    return [int(scenario.timing.dur_ns[c.transfers[0]]) for c in graph.collectives]


def test_groups_that_share_a_nic_on_the_target_alone_slow_each_other_down_there(tmp_path: Path) -> None:
    graph = two_groups(tmp_path)
    wide, narrow = site(tmp_path / "wide"), site(tmp_path / "narrow", ONE_NIC)

    found = move(graph, wide, narrow)

    assert found.sharing is not None
    assert (found.sharing.alone == 1).all()
    carried_ns = [wire.after_ns for wire in found.wires]
    both = sum(flow.loads[OUT] for flow in found.sharing.there.flows)
    assert both > 1.5
    # They begin together, each at 1 / both of its rate; when the shorter one has ended the other one has all of it.
    shorter, longer = sorted(carried_ns)
    expected = sorted([shorter * both, shorter * both + longer - shorter])
    assert sorted(transfers_ns(graph, found)) == pytest.approx(expected, abs=2)


def test_groups_that_shared_a_nic_in_the_recording_alone_are_faster_apart(tmp_path: Path) -> None:
    graph = two_groups(tmp_path)
    wide, narrow = site(tmp_path / "wide"), site(tmp_path / "narrow", ONE_NIC)

    there, back = move(graph, narrow, wide), move(graph, narrow, narrow)

    assert back.sharing is not None
    both = sum(flow.loads[OUT] for flow in back.sharing.there.flows)
    assert transfers_ns(graph, there) == pytest.approx([wire.after_ns / both for wire in there.wires], abs=2)
    assert transfers_ns(graph, back) == [4_000_000, 4_000_000]


def test_groups_that_come_one_after_the_other_do_not_share(tmp_path: Path) -> None:
    graph = two_groups(tmp_path, second_starts=8_000)

    found = move(graph, site(tmp_path / "wide"), site(tmp_path / "narrow", ONE_NIC))

    assert transfers_ns(graph, found) == [wire.after_ns for wire in found.wires]


def test_a_copy_to_the_device_and_a_collective_share_the_link_of_the_host(tmp_path: Path) -> None:
    traces = []
    for rank in range(2):
        trace = TraceFile(rank, 2, host_name=f"n{rank}").step(1, 0, 20_000).call(LAUNCH, 80, 5, 1)
        size: dict[str, Any] = {"Collective name": "allreduce", "In msg nelems": 1_250_000, "dtype": "Float"}
        trace.kernel(ALL_REDUCE, 100, 4_000, 7, 1, **size)
        trace.call("cudaMemcpyAsync", 90, 5, 2).memcpy("Memcpy HtoD (Pinned -> Device)", 100, 4_000, 9, 2, bytes=100_000_000)
        traces.append(trace.call("cudaDeviceSynchronize", 110, 4_000))
    graph = graph_of(tmp_path, *traces)

    way = journey(site(tmp_path / "node"), None, parse_setting("host.link.bandwidth=0.04x"))
    assert way.source is not None
    found = move(graph, way.source, way.target)

    assert found.sharing is not None
    into = "node0/pcie-switch0>node0/accelerator0"
    collective, copy, _ = (flow.loads for flow in found.sharing.there.flows)
    assert copy == {"node0/socket0>node0/pcie-switch0": 1.0, into: 1.0}
    assert 0.9 < collective[into] < 1
    # Recorded, both lasted as long and had 1 / (1 + the collective's load) of their rates. Moved, the copies outlast the
    # collective, which has that of its load there.
    same = move(graph, way.source, way.source).sharing
    assert same is not None
    alone_ns = found.wires[0].after_ns / (1 + same.there.flows[0].loads[into])
    assert transfers_ns(graph, found) == pytest.approx([alone_ns * (1 + collective[into])], rel=1e-6)


def test_on_the_hardware_of_the_recording_the_prediction_is_the_step_and_says_what_shared(tmp_path: Path) -> None:
    graph = two_groups(tmp_path)
    narrow = site(tmp_path / "narrow", ONE_NIC)

    found = move(graph, narrow, narrow)
    prediction = predict(graph, [hardware_change("same", found.factor)], hardware=OtherHardware(found))

    assert (found.factor == 1).all()
    assert prediction.predicted_ns == prediction.baseline_ns
    assert prediction.interval is not None
    assert prediction.interval.low_ns == prediction.interval.high_ns == prediction.baseline_ns
    assert prediction.sharing is not None
    assert prediction.sharing.slowed == 2
    assert prediction.sharing.lost_ns == prediction.sharing.recorded_lost_ns > 0
    assert "nic0" in (prediction.sharing.busiest_link or "")
