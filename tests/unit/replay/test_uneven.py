from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.collectives.calibration import carry_over_collective
from tracereplay.hardware.collectives.of_platform import fabric_of
from tracereplay.hardware.load import load_platform
from tracereplay.replay.move import move
from tracereplay.replay.site import Site, journey, source_of
from tracereplay.replay.transfers import members_of
from tracereplay.replay.uneven import splits_between
from tracereplay.replay.whatif import apply, hardware_change

LAUNCH, SEND_RECV = "cudaLaunchKernel", "ncclDevKernel_SendRecv"
# Rows of 4 bytes: rank 0 keeps 1,000 and sends 3,000 and 6,000, and so on.
ROWS = ((1_000, 3_000, 6_000), (0, 5_000, 5_000), (2_000, 2_000, 6_000))


def job(folder: Path, ranks: tuple[int, ...] = (0, 1, 2), **changes: Any) -> DependencyGraph:
    traces = []
    for rank in ranks:
        args: dict[str, Any] = {
            "Collective name": "all_to_allv", "In msg nelems": sum(ROWS[rank]), "dtype": "Int", "Seq": 1, "Group size": 3,
            "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2]", "In split size": str(list(ROWS[rank])),
            "Out split size": str([row[rank] for row in ROWS]),
        }  # fmt: skip
        trace = TraceFile(rank, 3, host_name="n").step(1, 0, 1_000).call(LAUNCH, 10, 5, 1)
        traces.append(trace.kernel(SEND_RECV, 20, 100, 7, 1, **args | changes.get(f"rank{rank}", {})))
    return graph_of(folder, *traces)


def matrix(graph: DependencyGraph) -> list[list[float]]:
    (c,) = graph.collectives
    found = splits_between(graph, c, members_of(graph, c))
    assert found is not None
    return (found / 4).tolist()  # type: ignore[no-any-return]


def test_the_in_splits_of_all_ranks_make_the_matrix(tmp_path: Path) -> None:
    assert matrix(job(tmp_path)) == [list(row) for row in ROWS]


def test_of_a_rank_without_in_splits_the_others_say_what_they_received(tmp_path: Path) -> None:
    # Its own bytes to itself only it could say: what is left of them.
    graph = job(tmp_path, rank1={"In split size": "[0, ..., 5000]", "Out split size": ""})

    assert matrix(graph) == [list(row) for row in ROWS]


def test_what_no_record_tells_of_a_rank_goes_to_all_alike(tmp_path: Path) -> None:
    cut = {"In split size": "[..., 1]", "Out split size": "[..., 1]"}
    graph = job(tmp_path, rank1=cut, rank2={"Out split size": "[]"})

    # Of rank 1's 10,000 rows rank 0 received none; the rest in halves.
    assert matrix(graph)[1] == [0, 5_000, 5_000]


def test_of_a_rank_that_is_missing_those_here_say_what_they_received_and_the_rest_is_the_mean(tmp_path: Path) -> None:
    graph = job(tmp_path, (0, 1))

    # Recorded between two ranks: 3,000, 6,000, 0, 5,000, and 2,000 twice from the one that is missing: 18,000 / 6.
    assert graph.collectives[0].absent == (2,)
    assert matrix(graph) == [list(ROWS[0]), list(ROWS[1]), [2_000, 2_000, 3_000]]


def test_an_even_or_an_unrecorded_split_is_none(tmp_path: Path) -> None:
    for text in ("[]", "", "[10000, ..., 1]"):
        none = {"In split size": text, "Out split size": text}
        graph = job(tmp_path, rank0=none, rank1=none, rank2=none)
        assert splits_between(graph, graph.collectives[0], (0, 1, 2)) is None
        assert not graph.collectives[0].is_uneven


def test_an_uneven_all_to_all_is_carried_over_by_its_splits_and_says_so(tmp_path: Path) -> None:
    graph = job(tmp_path)
    way = journey(source_of(graph, "dgx1-v100"), "dgx-h100", [])
    fabrics = [fabric_of(load_platform(name)) for name in ("dgx1-v100", "dgx-h100")]
    expected = carry_over_collective(
        "all_to_all", 40_000, (0, 1, 2), 100_000, fabrics[0], fabrics[1], splits=np.array(ROWS) * 4
    )
    even = carry_over_collective("all_to_all", 40_000, (0, 1, 2), 100_000, fabrics[0], fabrics[1])

    found = move(graph, way.source, way.target)

    (wire,) = found.wires
    assert (wire.uneven, wire.after_ns) == (True, expected.time_ns)
    assert expected.time_ns != even.time_ns
    moved = apply(graph, [hardware_change("there", found.factor)]).moved
    assert moved["all_to_all"].basis == "model, uneven splits"


def test_the_links_of_who_sends_most_are_the_busiest(tmp_path: Path) -> None:
    graph, platform = job(tmp_path), load_platform("dgx-h100")
    found = move(graph, Site(platform, 1.0), Site(platform, 1.0))

    assert found.sharing is not None
    (flow,) = found.sharing.there.flows
    # Out of each 9,000, 5,000 and 4,000 rows; into each 2,000, 5,000 and 11,000.
    rows = {name: load for name, load in flow.loads.items() if "accelerator" in name}
    out = {end: sum(load for name, load in rows.items() if name.startswith(f"accelerator{end}>")) for end in range(3)}
    into = {end: sum(load for name, load in rows.items() if name.endswith(f">accelerator{end}")) for end in range(3)}
    most = into[2] / 11_000
    assert [out[end] / most for end in range(3)] == pytest.approx([9_000, 5_000, 4_000])
    assert [into[end] / most for end in range(3)] == pytest.approx([2_000, 5_000, 11_000])
