"""Findings as the contract's JSON envelope: in, frozen dataclasses; out, one document as text."""

import dataclasses
import json
import math
from typing import Any

from tracereplay import __version__
from tracereplay.analyzers.accuracy import Accuracy
from tracereplay.analyzers.attribution import Attribution
from tracereplay.analyzers.causes import Causes, Link, Other
from tracereplay.analyzers.overview import Overview
from tracereplay.analyzers.prediction import Prediction
from tracereplay.analyzers.sweep import Sweep
from tracereplay.graph.event_edges import EventEdges
from tracereplay.graph.model import Coverage
from tracereplay.report.moved import MovedPage


def envelope(verb: str, inputs: list[str], warnings: list[str], result: dict[str, Any]) -> str:
    """One JSON document ``{schema, version, inputs, warnings, result}``; refuses NaN and infinities."""
    document = {
        "schema": f"tracereplay/{verb}/1",
        "version": __version__,
        "inputs": inputs,
        "warnings": warnings,
        "result": result,
    }
    return json.dumps(document, allow_nan=False, ensure_ascii=False, indent=2) + "\n"


def overview_result(overview: Overview) -> dict[str, Any]:
    """``info``'s result."""
    return {
        "ranks": [dataclasses.asdict(rank) for rank in overview.ranks],
        "job": {
            "ranks_present": list(overview.ranks_present),
            "ranks_missing": list(overview.ranks_missing),
            "conflicts": [dataclasses.asdict(conflict) for conflict in overview.conflicts],
            "common_steps": list(overview.common_steps),
            "clock": [dataclasses.asdict(clock) for clock in overview.clock],
        },
    }


def accuracy_result(accuracy: Accuracy, coverage: Coverage, ranks_missing: list[int]) -> dict[str, Any]:
    """``replay``'s result."""
    result = dataclasses.asdict(accuracy)
    unexplained = result.pop("unexplained")
    return result | {"coverage": dataclasses.asdict(coverage) | unexplained | {"ranks_missing": ranks_missing}}


def prediction_result(prediction: Prediction, page: MovedPage | None = None) -> dict[str, Any]:
    """``whatif``'s result; ``hardware`` in it where a platform is asked about."""
    return dataclasses.asdict(prediction) | ({} if page is None else {"hardware": _hardware(page)})


def _hardware(page: MovedPage) -> dict[str, Any]:
    """From where to where, what binds, and the collectives; a share of latency that no time has is null."""
    result = dataclasses.asdict(page)
    for wire in result["wires"]:
        wire["latency_share"] = None if math.isnan(wire["latency_share"]) else wire["latency_share"]
    return {"from": result.pop("source"), "to": result.pop("target"), **result}


def sweep_result(sweep: Sweep) -> dict[str, Any]:
    """``sweep``'s result."""
    return dataclasses.asdict(sweep)


def attribution_result(attribution: Attribution) -> dict[str, Any]:
    """``attribute``'s result."""
    result = dataclasses.asdict(attribution)
    rows = [
        dataclasses.asdict(row) | {"waits": None if row.waits is None else [{"rank": rank, "ns": ns} for rank, ns in row.waits]}
        for row in attribution.collectives.rows
    ]
    result["collectives"]["rows"] = rows
    result["critical_path"] = {"length_ns": result.pop("path_ns"), "by_class": result.pop("by_class")}
    return result


def edges_result(edges: EventEdges, file: str) -> dict[str, Any]:
    """``graph``'s result."""
    return {"file": file, "edges": len(edges.table), "by_kind": edges.counts(), "without_event": edges.without_event}


def causes_result(causes: Causes) -> dict[str, Any]:
    """``why``'s result."""
    result = dataclasses.asdict(causes)
    return {**result.pop("place"), **result, "chain": [_link(link) for link in causes.chain]}


def _link(link: Link) -> dict[str, Any]:
    record = dataclasses.asdict(link)
    if link.because is not None:
        record["because"]["others"] = [_other(other) for other in link.because.others]
    return {**record.pop("place"), **record}


def _other(other: Other) -> dict[str, Any]:
    record = dataclasses.asdict(other)
    return {**record.pop("place"), **record}
