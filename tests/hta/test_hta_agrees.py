"""On public traces, ``tracereplay info`` and HTA give the same device time where they mean the same by it."""

from pathlib import Path

import pytest

from tracereplay.analyzers.hta_check import TemporalBreakdown, hta_temporal_breakdown
from tracereplay.analyzers.overview import survey
from tracereplay.trace.job import read_job

pytest.importorskip("hta", reason="HTA is not installed; `make test-hta` has it")

# Jobs whose kernel names both tell apart alike: collectives are NCCL's, and no copy is a kernel.
JOBS = [
    "dlrm_v100x8",
    *(
        f"pair_h100_mi300x/{machine}.{model}.json.gz"
        for machine in ("h100", "mi300x")
        for model in (
            "Falconsai_nsfw_image_detection__1016002",
            "Qwen_Qwen1.5-0.5B-Chat__1016005",
            "gaunernst_bert-small-uncased__1016001",
        )
    ),
]


@pytest.mark.parametrize("paths", JOBS)
def test_idle_and_compute_time_agree_to_the_nanosecond(corpus: Path, paths: str) -> None:
    job = read_job([str(corpus / "traces" / paths)])
    found = survey(job)

    rows = hta_temporal_breakdown({trace.rank or 0: trace.table for trace in job.ranks})

    assert rows == tuple(
        TemporalBreakdown(
            rank=rank.rank or 0,
            window_ns=rank.gpu.window_ns or 0,
            idle_ns=rank.gpu.idle_ns or 0,
            compute_ns=rank.gpu.compute_ns,
            non_compute_ns=rank.gpu.busy_ns - rank.gpu.compute_ns,
        )
        for rank in found.ranks
        if rank.gpu is not None
    )
