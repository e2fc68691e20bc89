"""Two measured sizes decide a calibration; a recorded transfer is carried over to other hardware."""

import pytest

from tests.fakes.fabrics import fabric, switched
from tests.fakes.graphs import Edge, Task, graph_by_hand
from tracereplay.errors import UsageError
from tracereplay.hardware.collectives.calibration import Measured, calibrate, carry_over_collective
from tracereplay.hardware.collectives.fabric import Fabric
from tracereplay.hardware.collectives.library import Library
from tracereplay.hardware.collectives.model import collective_time
from tracereplay.hardware.collectives.of_platform import fabric_of
from tracereplay.hardware.collectives.schedules import Kind
from tracereplay.hardware.collectives.times import Calibration, link_loads
from tracereplay.hardware.knobs import parse_setting
from tracereplay.hardware.load import load_platform
from tracereplay.hardware.settings import adjusted
from tracereplay.replay.contention import links_of, replay_on_links

KIB, MIB = 1 << 10, 1 << 20


def test_the_calibration_of_ideal_links_by_hand() -> None:
    """All-gather of 4 at 1 byte a ns with 10 ns a step: 30 + 3/4 S. Measured 90 + 3/2 S: latency 3 times, bytes twice."""
    on = fabric(switched(4, 1, latency_ns=10))

    found = calibrate(on, "all_gather", 4, Measured(100, 240), Measured(1000, 1590))

    assert [found.latency, found.bytes_time] == pytest.approx([3.0, 2.0])


@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "all_to_all"])
def test_a_calibration_is_found_again(kind: Kind) -> None:
    on, truth = fabric_of(load_platform("dgx-h100")), Calibration(1.7, 1.2)
    sizes = (64 * KIB, 512 * MIB)

    measured = [Measured(size, collective_time(on, kind, size, 8, calibration=truth).time_ns) for size in sizes]
    found = calibrate(on, kind, 8, *measured)

    assert [found.latency, found.bytes_time] == pytest.approx([1.7, 1.2], rel=1e-3)
    again = [collective_time(on, kind, size, 8, calibration=found) for size in sizes]
    assert [time.time_ns for time in again] == pytest.approx([one.ns for one in measured], rel=1e-6)
    assert {time.basis for time in again} == {"calibrated"}


@pytest.mark.parametrize(
    ("small", "large", "says"),
    [
        (Measured(1000, 100), Measured(100, 200), "a smaller and a larger size"),
        (Measured(0, 100), Measured(100, 200), "both above 0"),
        (Measured(100, 0), Measured(1000, 200), "with their times"),
        (Measured(100, 200), Measured(1000, 100), "measure sizes that lie further apart"),
    ],
)
def test_measurements_that_nothing_explains_are_refused(small: Measured, large: Measured, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        calibrate(fabric(switched(4, 1, latency_ns=10)), "all_gather", 4, small, large)


def test_a_transfer_carried_to_where_it_was_recorded_stays_as_it_was() -> None:
    on = fabric_of(load_platform("dgx1-v100"))

    carried = carry_over_collective("all_to_all", 24_576, 8, 17_123, on, on)

    assert (carried.time_ns, carried.low_ns, carried.high_ns) == (17_123, 17_123, 17_123)
    assert carried.latency_ns + carried.bytes_ns == 17_123


def test_latency_and_bytes_are_carried_apart() -> None:
    """All-gather of 4: here 30 ns and 3/4 S, there 60 ns and 3/8 S. Recorded twice the 330 ns of 400 bytes."""
    here, there = fabric(switched(4, 1, latency_ns=10)), fabric(switched(4, 2, latency_ns=20))

    carried = carry_over_collective("all_gather", 400, 4, 660, here, there)

    assert (carried.latency_ns, carried.bytes_ns, carried.time_ns) == (2 * 60, 2 * 150, 420)
    assert carried.low_ns < 420 < carried.high_ns


def test_a_small_transfer_gains_nothing_from_more_bandwidth() -> None:
    slow, fast = (fabric(switched(8, rate, latency_ns=600), Library("ampere")) for rate in (100, 1000))

    assert carry_over_collective("all_reduce", 64, 8, 20_000, slow, fast).time_ns == pytest.approx(20_000, rel=1e-4)


def test_one_rank_keeps_its_time() -> None:
    on = fabric(switched(4, 1))

    assert carry_over_collective("all_reduce", 400, 1, 5_000, on, fabric(switched(4, 2))).time_ns == 5_000


def test_a_time_below_0_is_refused() -> None:
    on = fabric(switched(4, 1))

    with pytest.raises(UsageError, match="a transfer of -1 ns"):
        carry_over_collective("all_reduce", 400, 4, -1, on, on)


def test_two_collectives_that_overlap_on_their_links_take_turns() -> None:
    """The links that a collective keeps busy go into the replay: two all-to-alls at one switch halve each other's rate."""
    on = fabric(switched(4, 3))
    time = collective_time(on, "all_to_all", 1200, 4)
    names = sorted(link_loads(time))
    graph = graph_by_hand([Task(0, 0, release=0), Task(0, time.time_ns), Task(0, time.time_ns)], [Edge(0, 1), Edge(0, 2)])

    route = [names.index(name) for name in link_loads(time)]
    schedule = replay_on_links(graph, links_of(graph, {1: route, 2: route}, [1.0] * len(names)))

    assert len(names) == 8
    assert schedule.end_ns.tolist() == [0, 600, 600]


def changed(name: str, *settings: str) -> Fabric:
    """The fabric of a platform under settings of the command line."""
    return fabric_of(adjusted(load_platform(name), [one for text in settings for one in parse_setting(text)]))


@pytest.mark.parametrize("setting", ["fabric.scale_up.bandwidth=1x", "accelerator.hbm.bandwidth=2x", "host.memory.capacity=2x"])
def test_what_does_not_touch_the_fabric_leaves_a_transfer_as_it_was(setting: str) -> None:
    carried = carry_over_collective("all_reduce", 64 * MIB, 8, 900_000, changed("zion"), changed("zion", setting))

    assert (carried.time_ns, carried.low_ns, carried.high_ns) == (900_000, 900_000, 900_000)


def test_the_ranges_of_the_target_widen_the_interval() -> None:
    """140 GB/s of zion may be 91 to 367.4: a transfer of bytes alone ends at 140 / 367.4 and 140 / 91 of its likely time."""
    carried = carry_over_collective("all_to_all", 1 << 30, 8, 5_000_000, changed("dgx1-v100"), changed("zion"))

    assert carried.low_ns / carried.time_ns < 0.65 * 140 / 367.4 * 1.05
    assert carried.high_ns / carried.time_ns > 140 / 91 / 0.65 * 0.95


def test_splits_decide_an_uneven_all_to_all() -> None:
    """One pair has 900 bytes over a link of 1 byte a ns here and 3 there."""
    splits = [[0, 900], [0, 0]]
    here, there = fabric(switched(2, 1)), fabric(switched(2, 3))

    assert carry_over_collective("all_to_all", 0, 2, 1_800, here, there, splits=splits).time_ns == 600
    with pytest.raises(UsageError, match="only an all_to_all has them"):
        carry_over_collective("all_reduce", 0, 2, 1_800, here, there, splits=splits)


@pytest.mark.parametrize(("name", "words"), [("cpu-2s", "gloo"), ("mi300x-node", "RCCL"), ("dgx1-v100", "")])
def test_constants_that_stand_in_for_another_library_are_said(name: str, words: str) -> None:
    told = " ".join(fabric_of(load_platform(name)).stand_ins)

    assert (words in told) if words else not told
