import gzip
import json
from pathlib import Path
from typing import Any

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tracereplay.graph.build import build_graph
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import replay
from tracereplay.replay.retime import retime
from tracereplay.report.trace_file import trace_files
from tracereplay.trace.job import read_job
from tracereplay.trace.kineto import read_kineto

LAUNCH = "cudaLaunchKernel"
BASE_NS = 1_700_000_000_000_000_000


def documents(graph: DependencyGraph) -> list[dict[str, Any]]:
    return [json.loads(text) for text in trace_files(graph, retime(graph, replay(graph)), compress=False)]


def of_phase(document: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    return [event for event in document["traceEvents"] if event["ph"] == phase]


def launched() -> TraceFile:
    trace = TraceFile(3, 8, "nccl", {"default_pg": list(range(8))}, host_name="node0", base_ns=BASE_NS)
    trace.header["deviceProperties"] = [{"id": 0, "name": "V100"}]
    return (
        trace.step(1, 0, 100).op("aten::mm", 8, 9, **{"External id": 5}).call(LAUNCH, 10, 5, 1).kernel("gemm", 22.5, 30, 7, 1)
    )


def test_events_keep_all_their_fields(tmp_path: Path) -> None:
    trace = launched()

    (document,) = documents(graph_of(tmp_path, trace))

    kept = of_phase(document, "X")
    assert [{**event, "ts": None, "dur": None} for event in kept] == [
        {**event, "ts": None, "dur": None} for event in json.loads(trace.encode())["traceEvents"]
    ]
    assert [(event["ts"], event["dur"]) for event in kept] == [
        (1_000_000.0, 100.0), (1_000_008.0, 9.0), (1_000_010.0, 5.0), (1_000_022.5, 30.0)
    ]  # fmt: skip
    assert document["baseTimeNanoseconds"] == BASE_NS - 1_000_000_000


def test_the_file_says_whose_it_is(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, launched())

    path = tmp_path / "out.json"
    path.write_bytes(next(trace_files(graph, retime(graph, replay(graph)), compress=False)))

    assert read_kineto(path).header == graph.tables[0].header


def test_processes_and_threads_have_names(tmp_path: Path) -> None:
    (document,) = documents(graph_of(tmp_path, launched()))

    named = {(e["name"], e["pid"], e["tid"]): next(iter(e["args"].values())) for e in of_phase(document, "M")}
    assert named == {
        ("process_name", 100, 1): "python",
        ("process_labels", 100, 1): "CPU",
        ("thread_name", 100, 1): "thread 1",
        ("process_name", 0, 7): "python",
        ("process_labels", 0, 7): "GPU 0",
        ("thread_name", 0, 7): "stream 7",
    }


def test_an_arrow_leads_from_each_launch_to_its_work(tmp_path: Path) -> None:
    (document,) = documents(graph_of(tmp_path, launched()))

    (start,), (finish,) = of_phase(document, "s"), of_phase(document, "f")
    assert (start["id"], start["cat"], finish["bp"]) == (finish["id"], finish["cat"], "e")
    assert [(e["pid"], e["tid"], e["ts"]) for e in (start, finish)] == [(100, 1, 1_000_010.0), (0, 7, 1_000_022.5)]


def test_gzip_holds_the_same_and_is_the_same_each_time(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, launched())
    events = retime(graph, replay(graph))

    (plain,), (first,), (second,) = (trace_files(graph, events, compress=c) for c in (False, True, True))

    assert gzip.decompress(first) == plain
    assert first == second


def test_all_ranks_count_from_one_base(tmp_path: Path) -> None:
    ranks = [TraceFile(r, 2, base_ns=BASE_NS + r * 7_000_000_000).step(1, 0, 100).op("a", 10, 5) for r in (0, 1)]

    first, second = documents(graph_of(tmp_path, *ranks))

    assert first["baseTimeNanoseconds"] == second["baseTimeNanoseconds"]
    assert of_phase(second, "X")[0]["ts"] - of_phase(first, "X")[0]["ts"] == 7_000_000


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    path = launched().write(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"aten::mm", b"aten::\xff\xfe"))

    (document,) = documents(build_graph(read_job([str(path)])))

    assert len(of_phase(document, "X")) == 4
