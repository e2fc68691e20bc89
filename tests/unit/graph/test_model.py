from pathlib import Path

import networkx as nx
import pytest

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tracereplay.graph.model import Collective


def collective(start_ns: tuple[int, ...], end_ns: tuple[int, ...], transfer_ns: int | None) -> Collective:
    return Collective("all_reduce", 1, 0, None, None, False, (0, 1), (0, 2), (1, 3), 4, start_ns, end_ns, transfer_ns)


def test_a_participants_wait_is_its_duration_minus_the_transfer() -> None:
    assert collective((10, 40), (60, 62), 20).wait_ns == (30, 2)


def test_a_wait_is_never_negative() -> None:
    assert collective((10, 40), (60, 50), 15).wait_ns == (35, 0)


def test_a_collective_that_cannot_be_split_has_no_waits() -> None:
    assert collective((10, 40), (60, 60), None).wait_ns is None


def test_recorded_time_is_the_sum_of_the_participants_durations() -> None:
    assert collective((10, 40), (60, 62), 20).recorded_ns == 72


def test_a_step_number_is_known_for_tasks_inside_steps(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, TraceFile().step(4, 0, 50).op("a", 10, 5).step(5, 60, 40).op("b", 70, 5))

    # step, a, step, gap between the steps, step, b, step, closing
    assert graph.step_number.tolist() == [4, 4, 4, -1, 5, 5, 5, -1]


@pytest.fixture
def drawn(tmp_path: Path) -> "nx.DiGraph[int]":
    trace = TraceFile(rank=3).step(1, 0, 100).call("cudaLaunchKernel", 10, 5, 1).kernel("volta_sgemm", 20, 30, 7, 1)
    return graph_of(tmp_path, trace).to_networkx()


def test_a_networkx_node_says_what_when_and_which_event(drawn: "nx.DiGraph[int]") -> None:
    assert drawn.nodes[4] == {
        "name": "volta_sgemm",
        "kind": "device",
        "work_class": "gemm",
        "rank": 3,
        "event": 2,
        "start_ns": 20_000,
        "dur_ns": 30_000,
    }


def test_a_networkx_gap_belongs_to_no_event(drawn: "nx.DiGraph[int]") -> None:
    assert (drawn.nodes[3]["name"], drawn.nodes[3].get("event"), drawn.nodes[3]["rank"]) == ("gap", None, 3)


def test_a_networkx_edge_says_why_and_how_long(drawn: "nx.DiGraph[int]") -> None:
    assert drawn.edges[1, 4] == {
        "kind": "launch",
        "basis": "recorded",
        "lag_ns": 10_000,
        "from_start": True,
        "weight": 10_000,
    }
    assert drawn.edges[1, 2]["weight"] == drawn.nodes[1]["dur_ns"] == 5_000


def test_a_rendezvous_belongs_to_no_rank(tmp_path: Path) -> None:
    kernel = "ncclDevKernel_AllReduce"
    ranks = [TraceFile(r, 2).op("a", 0, 100).kernel(kernel, 10, 20, 7) for r in (0, 1)]

    drawn = graph_of(tmp_path, *ranks).to_networkx()

    assert [d["name"] for _, d in drawn.nodes(data=True) if "rank" not in d] == ["all_reduce"]


def test_the_networkx_graph_has_no_circles(drawn: "nx.DiGraph[int]") -> None:
    assert nx.is_directed_acyclic_graph(drawn)
