"""Laws of collectives, on random topologies and splits."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.fakes.fabrics import fabric, full, nodes_of_two, ring, switched
from tracereplay.hardware.collectives.fabric import Fabric
from tracereplay.hardware.collectives.library import Library
from tracereplay.hardware.collectives.model import collective_time, uneven_all_to_all_time
from tracereplay.hardware.collectives.schedules import KINDS, Kind
from tracereplay.hardware.collectives.times import Calibration, link_loads

LAW = settings(max_examples=120, deadline=None)
LIBRARIES = st.sampled_from(
    [
        Library(ideal=True),
        Library("volta"),
        Library("ampere", "amd"),
        Library("hopper", reduces=True),
    ]
)
MAKERS = st.sampled_from([ring, full, switched])
SIZES = st.integers(0, 1 << 31)
SPLITS = arrays.arrays(np.int64, (4, 4), elements=st.integers(0, 1 << 20))


@st.composite
def topologies(draw: st.DrawFn) -> Any:  # a networkx graph
    if draw(st.booleans()):
        return nodes_of_two(draw(st.integers(2, 4)), draw(st.integers(1, 400)), draw(st.integers(1, 50)), 2_000)
    return draw(MAKERS)(draw(st.integers(4, 8)), draw(st.integers(1, 400)), 700)


def ranks_of(kind: Kind, on: Fabric) -> int:
    return 2 if kind == "send_recv" else len(on.endpoints)


@LAW
@given(topologies(), LIBRARIES, st.sampled_from(KINDS), SIZES, st.data())
def test_more_bandwidth_on_any_link_is_never_slower(
    graph: Any, library: Library, kind: Kind, size: int, data: st.DataObject
) -> None:
    before = fabric(graph, library)
    a, b = data.draw(st.sampled_from(sorted(graph.edges)))
    faster = graph.copy()
    faster.edges[a, b]["bandwidth_bytes_per_s"] *= data.draw(st.floats(1, 100))
    ranks = ranks_of(kind, before)

    assert (
        collective_time(fabric(faster, library), kind, size, ranks).time_ns
        <= collective_time(before, kind, size, ranks).time_ns
    )


@LAW
@given(topologies(), LIBRARIES, st.sampled_from(KINDS))
def test_no_bytes_cost_latency_alone(graph: Any, library: Library, kind: Kind) -> None:
    on = fabric(graph, library)
    time = collective_time(on, kind, 0, ranks_of(kind, on))

    assert time.time_ns == time.latency_ns
    assert (time.bottleneck, time.links, link_loads(time)) == (None, (), {})


@LAW
@given(topologies(), LIBRARIES, st.sampled_from(KINDS), SIZES, st.integers(0, 1 << 31))
def test_more_bytes_are_never_faster(graph: Any, library: Library, kind: Kind, size: int, more: int) -> None:
    on = fabric(graph, library)
    ranks = ranks_of(kind, on)
    few, many = (collective_time(on, kind, s, ranks) for s in (size, size + more))

    # What NCCL corrects trees by jumps from one power of two to the next, upwards too.
    assert few.time_ns <= many.time_ns or "tree" in {few.algorithm, many.algorithm}


@LAW
@given(topologies(), LIBRARIES, st.sampled_from(KINDS), SIZES, st.builds(Calibration, st.floats(0.1, 10), st.floats(0.1, 10)))
def test_an_interval_holds_its_time(graph: Any, library: Library, kind: Kind, size: int, calibration: Calibration) -> None:
    on = fabric(graph, library)
    for scale in (None, calibration):
        time = collective_time(on, kind, size, ranks_of(kind, on), calibration=scale)
        assert 0 <= time.low_ns <= time.time_ns <= time.high_ns
        assert all(0 < link.busy <= 1 and link.bytes > 0 for link in time.links)


@LAW
@given(SPLITS, st.sampled_from(["direct", "hierarchical"]))
def test_what_leaves_the_ranks_arrives(splits: npt.NDArray[np.int64], algorithm: Any) -> None:
    """Into and out of every accelerator go its columns and rows, besides what it passes on for others."""
    on = fabric(nodes_of_two(2, 4, 1))
    links = {link.name: link.bytes for link in uneven_all_to_all_time(on, splits, 4, algorithm=algorithm).links}
    across = splits[:2, 2:].sum(axis=0), splits[2:, :2].sum(axis=0)

    for node, columns in enumerate(across):
        for rail, expected in enumerate(columns):
            assert links.get(f"node{node}/nic{rail}>rack0/rail{rail}", 0) == pytest.approx(float(expected))
            assert links.get(f"rack0/rail{rail}>node{1 - node}/nic{rail}", 0) == pytest.approx(float(expected))
    local = splits - np.diag(np.diag(splits))
    for i, end in enumerate(on.endpoints):
        went, came = (sum(n for name, n in links.items() if name.startswith(f"{end}>")), _into(links, end))
        assert went - came == pytest.approx(float(local[i].sum() - local[:, i].sum()), abs=1e-6)


def _into(links: dict[str, float], end: str) -> float:
    return sum(n for name, n in links.items() if name.endswith(f">{end}"))


@LAW
@given(topologies(), LIBRARIES, st.integers(4, 1 << 31))
def test_even_splits_are_the_even_all_to_all(graph: Any, library: Library, size: int) -> None:
    on = fabric(graph, library)
    count = len(on.endpoints)
    even = collective_time(on, "all_to_all", size, count)
    uneven = uneven_all_to_all_time(on, np.full((count, count), size / count), count)

    assert (even.protocol, even.latency_ns) == (uneven.protocol, uneven.latency_ns)
    assert even.time_ns == pytest.approx(uneven.time_ns, abs=1)


@LAW
@given(MAKERS, st.integers(4, 8), st.sampled_from(KINDS), SIZES, st.randoms())
def test_the_order_of_ranks_changes_no_all_to_all(maker: Any, count: int, kind: Kind, size: int, random: Any) -> None:
    on = fabric(maker(count, 7, 700), Library("ampere"))
    order = list(range(count))
    random.shuffle(order)

    assert collective_time(on, "all_to_all", size, order).time_ns == collective_time(on, "all_to_all", size, count).time_ns
