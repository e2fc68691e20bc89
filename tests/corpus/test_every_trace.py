"""Every trace of the corpus goes through the whole spine."""

import math
from pathlib import Path

import pytest

from tracereplay.analyzers.accuracy import assess
from tracereplay.analyzers.attribution import attribute
from tracereplay.analyzers.overview import survey
from tracereplay.graph.build import build_graph
from tracereplay.trace.job import read_job

SINGLES = (
    "cuda_sync_a100/alexnet__benchmark_result_2869224_1695835535_trace.json.gz",
    "cuda_sync_a100/cuda_event_sync__event_sync_trace.json.gz",
    "cuda_sync_a100/cuda_event_sync_multi_stream__event_sync_trace.json.gz",
    "cuda_sync_a100/end_to_end__simple_add__input__trace.json.gz",
    "hip_graphs_mi300x/vllm_decode_full__graph_execution.json.gz",
    "nccl_args_a100/benchmark_result_924719_1679055439_trace.json.gz",
    "nccl_args_a100/nccl_data.json.gz",
    "nccl_args_a100/step_based_trace_2543932.json.gz",
    "odd_mtia_cpu/mtia_inference_rank_0.json.gz",
    "odd_mtia_cpu/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz",
    "odd_mtia_cpu/rank_not_found.json.gz",
    "old_schema_2021/num_workers_0.json.gz",
    "pair_h100_mi300x/h100.gaunernst_bert-small-uncased__1016001.json.gz",
    "pair_h100_mi300x/mi300x.gaunernst_bert-small-uncased__1016001.json.gz",
    "recsys_a100_vs_v100/control.json.gz",
    "rocm/gpu_only_trace.json.gz",
    "rocm/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    "rocm/resnet_act_checkpoint.json.gz",
)


@pytest.mark.parametrize("name", SINGLES)
def test_a_trace_is_surveyed_replayed_and_attributed(corpus: Path, name: str) -> None:
    job = read_job([str(corpus / "traces" / name)])

    graph = build_graph(job)
    accuracy = assess(graph)
    answer = attribute(graph)

    assert survey(job).ranks[0].events > 0
    assert abs(accuracy.error) <= 0.01
    assert math.isfinite(accuracy.unexplained.calibrated_error)
    assert answer.sum_ns == answer.step_ns


@pytest.mark.parametrize("name", ["torchrec_straggler_on", "torchrec_straggler_off"])
def test_ranks_that_began_to_record_at_different_places_are_joined_right(corpus: Path, name: str) -> None:
    """Rank 2's recording lacks the first all-reduce of the others: counted within the step alone every later one would be
    joined with another, edges would run in circles, and a third of the time would be unexplained."""
    graph = build_graph(read_job([str(corpus / "traces" / name)]))

    accuracy = assess(graph)

    assert graph.coverage.dropped_edges == 0
    assert abs(accuracy.error) <= 0.01
    assert accuracy.unexplained.unexplained_wait_share <= 0.10
