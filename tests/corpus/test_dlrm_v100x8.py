"""The first acceptance input: eight ranks of a real TorchRec DLRM step on V100s, replayed jointly."""

from pathlib import Path

import pytest

from tracereplay.analyzers.accuracy import assess
from tracereplay.analyzers.attribution import attribute
from tracereplay.analyzers.prediction import predict
from tracereplay.graph.build import build_graph
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.knobs import parse_setting
from tracereplay.replay.whatif import parse_scale, setting_change
from tracereplay.trace.job import read_job


@pytest.fixture(scope="module")
def graph(corpus: Path) -> DependencyGraph:
    return build_graph(read_job([str(corpus / "traces" / "dlrm_v100x8")]))


def test_the_job_s_step_is_the_longest_rank_s(graph: DependencyGraph) -> None:
    accuracy = assess(graph)

    assert accuracy.measured_ns == 19_901_000
    assert abs(accuracy.error) <= 0.03
    assert abs(accuracy.unexplained.calibrated_error) <= 0.03


def test_transfer_is_217_microseconds_and_the_rest_is_waiting(graph: DependencyGraph) -> None:
    collectives = attribute(graph).collectives

    assert collectives.count == 8
    assert collectives.transfer_ns == pytest.approx(217_000, rel=0.03)
    assert collectives.wait_share == pytest.approx(0.964, abs=0.005)
    assert collectives.rows[0].last_rank == 7


def test_twice_the_fabric_saves_less_than_a_hundredth_of_the_step(graph: DependencyGraph) -> None:
    prediction = predict(graph, [parse_scale("collective:*=0.5x")])

    assert prediction.predicted_ns is not None
    assert 0 <= prediction.baseline_ns - prediction.predicted_ns <= 0.009 * prediction.baseline_ns
    assert {name: (m.count, m.after_ns / m.before_ns) for name, m in prediction.moved.items()} == {
        "all_to_all": (5, 0.5),
        "all_reduce": (3, 0.5),
    }


def test_the_fabric_knob_says_the_same_as_the_scale(graph: DependencyGraph) -> None:
    by_knob = predict(graph, [setting_change(s) for s in parse_setting("fabric.scale_up.bandwidth=2x")])

    assert by_knob.predicted_ns == predict(graph, [parse_scale("collective:*=0.5x")]).predicted_ns


def test_a_hundred_times_slower_fabric_queues_on_its_stream(graph: DependencyGraph) -> None:
    prediction = predict(graph, [parse_scale("collective:*=100x")])

    assert prediction.predicted_ns is not None
    assert 10_000_000 <= prediction.predicted_ns - prediction.baseline_ns <= 21_500_000


def test_the_parts_tile_the_step_and_name_the_late_rank(graph: DependencyGraph) -> None:
    answer = attribute(graph)

    assert answer.sum_ns == answer.step_ns == 19_901_000
    assert {p.name: p.ns for p in answer.parts}["late_entry"] == 7_513_000
    first = answer.waits[0]
    assert (first.rank, first.caused_by_rank, first.cause, first.op) == (1, 7, "before the recording", "all_to_all#0")


def test_waits_for_other_ranks_are_not_host_time(graph: DependencyGraph) -> None:
    """Rank 0's 1,078 µs cudaStreamSynchronize and 880 µs cudaMemcpyAsync wait for all-to-alls of other ranks."""
    nodes = graph.nodes
    calls = {"cudaStreamSynchronize": 1_078_000, "cudaMemcpyAsync": 880_000}
    own = {}
    for name, recorded_ns in calls.items():
        rows = [
            n
            for n in range(len(graph))
            if nodes.rank[n] == 0
            and nodes.row[n] >= 0
            and graph.name_of(n) == name
            and graph.tables[0].column("dur_ns")[nodes.row[n]] == recorded_ns
        ]
        own[name] = [int(nodes.dur_ns[n]) for n in rows]

    assert all(len(times) == 1 and times[0] < 30_000 for times in own.values())
