import json
from pathlib import Path

import pytest

from tests.fakes.jobs import graph_of, job_of
from tests.fakes.kineto import TraceFile
from tests.fakes.workloads import late_peer
from tracereplay import __version__
from tracereplay.analyzers.accuracy import assess
from tracereplay.analyzers.attribution import attribute
from tracereplay.analyzers.overview import survey
from tracereplay.analyzers.prediction import predict
from tracereplay.replay.whatif import parse_scale
from tracereplay.report.jsonout import accuracy_result, attribution_result, envelope, overview_result, prediction_result


def test_the_envelope_says_what_it_is() -> None:
    document = json.loads(envelope("replay", ["rank0.json"], ["careful"], {"measured_ns": 5}))

    assert document == {
        "schema": "tracereplay/replay/1",
        "version": __version__,
        "inputs": ["rank0.json"],
        "warnings": ["careful"],
        "result": {"measured_ns": 5},
    }


def test_the_envelope_is_one_document_that_ends_its_line() -> None:
    assert envelope("info", [], [], {}).endswith("}\n")


def test_text_is_written_as_it_is() -> None:
    assert "µs → 3" in envelope("info", [], ["µs → 3"], {})


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_know_is_never_printed(number: float) -> None:
    with pytest.raises(ValueError, match="Out of range float values"):
        envelope("replay", [], [], {"error": number})


def test_info_lists_ranks_and_the_job(tmp_path: Path) -> None:
    result = overview_result(survey(job_of(tmp_path, TraceFile(0, 2).step(3, 0, 100).op("a", 10, 5))))

    clock = {"rank": 0, "offset_ns": 0, "drift_ppm": 0.0, "residual_ns": 0, "interval_ns": 0, "anchors": 0}
    clock |= {"reference_ns": 0, "applied": False, "contradicted": 0}
    assert result["job"] == {
        "ranks_present": [0], "ranks_missing": [1], "conflicts": [], "common_steps": [3], "clock": [clock]
    }  # fmt: skip
    assert result["ranks"][0]["steps"] == ({"number": 3, "dur_ns": 100_000, "whole": True},)
    assert result["ranks"][0]["gpu"] is None


def test_replay_puts_what_is_unexplained_into_the_coverage(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, *late_peer())

    result = accuracy_result(assess(graph), graph.coverage, [])

    assert (result["measured_ns"], result["error"]) == (200_000, 0.0)
    assert (result["coverage"]["unexplained_wait_ns"], result["coverage"]["ranks_missing"]) == (0, [])
    assert result["coverage"]["edges"]["launch"] == {"recorded": 2, "inferred": 0}
    assert "unexplained" not in result


def test_whatif_gives_null_where_only_an_interval_is_known(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, late_peer()[0])

    result = prediction_result(predict(graph, [parse_scale("collective:*=0.5x")]))

    assert (result["predicted_ns"], result["speedup"]) == (None, None)
    assert result["interval"] == {"low_ns": 150_000, "high_ns": 200_000, "level": None}


def test_attribute_writes_waits_as_objects(tmp_path: Path) -> None:
    result = attribution_result(attribute(graph_of(tmp_path, *late_peer())))

    assert result["collectives"]["rows"][0]["waits"] == [{"rank": 0, "ns": 50_000}, {"rank": 1, "ns": 0}]
    assert result["critical_path"] == {"length_ns": 200_000, "by_class": {"host": 135_000, "collective": 50_000}}


def test_attribute_writes_null_for_waits_that_are_not_known(tmp_path: Path) -> None:
    result = attribution_result(attribute(graph_of(tmp_path, late_peer()[0])))

    assert result["collectives"]["rows"][0]["waits"] is None
