"""Re-timed on the recorded hardware, a public trace is the recording, event for event, and other readers see the same."""

from pathlib import Path

import pytest

from tracereplay.analyzers.overview import survey
from tracereplay.graph.build import build_graph
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import replay
from tracereplay.replay.retime import retime
from tracereplay.report.trace_file import trace_files
from tracereplay.trace.job import Job, read_job

# One of each kind of recording: CUDA with and without its synchronisation rows, ranges on streams, Python stacks, no host rows.
SINGLES = (
    "cuda_sync_a100/alexnet__benchmark_result_2869224_1695835535_trace.json.gz",
    "hip_graphs_mi300x/vllm_decode_full__graph_execution.json.gz",
    "nccl_args_a100/nccl_data.json.gz",
    "odd_mtia_cpu/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz",
    "old_schema_2021/num_workers_0.json.gz",
    "pair_h100_mi300x/h100.gaunernst_bert-small-uncased__1016001.json.gz",
    "rocm/gpu_only_trace.json.gz",
)


def written(graph: DependencyGraph, folder: Path) -> Job:
    for rank, text in enumerate(trace_files(graph, retime(graph, replay(graph)), compress=False)):
        (folder / f"rank{rank}.json").write_bytes(text)
    return read_job([str(folder)])


@pytest.mark.parametrize("name", SINGLES)
def test_every_event_is_where_it_was(corpus: Path, tmp_path: Path, name: str) -> None:
    graph = build_graph(read_job([str(corpus / "traces" / name)]))
    (events,) = retime(graph, replay(graph))

    found = written(graph, tmp_path).ranks[0].table

    old = graph.tables[0]
    assert found.column("ts_ns").tolist() == old.column("ts_ns")[events.row].tolist()
    assert found.column("dur_ns").tolist() == old.column("dur_ns")[events.row].tolist()
    assert events.row.size > 0.9 * len(old)


def test_a_job_of_eight_ranks_keeps_its_device_time(corpus: Path, tmp_path: Path) -> None:
    job = read_job([str(corpus / "traces" / "dlrm_v100x8")])

    again = written(build_graph(job), tmp_path)

    assert [rank.gpu for rank in survey(again).ranks] == [rank.gpu for rank in survey(job).ranks]
    assert [rank.steps for rank in survey(again).ranks] == [rank.steps for rank in survey(job).ranks]
