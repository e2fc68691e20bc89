import json
from pathlib import Path
from typing import Any

import pytest

from tracereplay.analyzers.hta_check import TemporalBreakdown, hta_temporal_breakdown
from tracereplay.errors import TraceError
from tracereplay.trace.kineto import read_kineto
from tracereplay.trace.table import EventTable

pytest.importorskip("hta", reason="HTA is not installed; `make test-hta` has it")

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def event(category: str, name: str, start_us: int, end_us: int, stream: int | None = None) -> dict[str, Any]:
    args = {} if stream is None else {"device": 0, "stream": stream}
    duration = end_us - start_us
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 0, "ts": start_us, "dur": duration, "args": args}


def table_of(folder: Path, events: list[dict[str, Any]]) -> EventTable:
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return read_kineto(path)


def overlapping_streams() -> list[dict[str, Any]]:
    # µs           0        10        20   25   30        45   50 55
    # stream 7     [ gemm   ]         [ gemm    ]              [copy]
    # stream 9                             [ all-reduce   ]
    # idle                  [ 10      ]                   [ 5  ]
    return [
        event("cpu_op", "aten::mm", -100, 200),
        event("kernel", "sgemm_128x64", 0, 10, stream=7),
        event("kernel", "sgemm_128x64", 20, 30, stream=7),
        event("kernel", ALL_REDUCE, 25, 45, stream=9),
        event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 50, 55, stream=7),
    ]


def test_overlap_of_compute_and_communication_counts_as_compute(tmp_path: Path) -> None:
    table = table_of(tmp_path, overlapping_streams())

    rows = hta_temporal_breakdown({0: table})

    assert rows == (TemporalBreakdown(0, window_ns=55_000, idle_ns=15_000, compute_ns=20_000, non_compute_ns=20_000),)


@pytest.mark.parametrize("category", ["gpu_user_annotation", "cuda_sync"])
def test_rows_with_a_stream_that_are_no_work_leave_the_device_idle(tmp_path: Path, category: str) -> None:
    table = table_of(tmp_path, [*overlapping_streams(), event(category, "marked", 8, 50, stream=7)])

    (row,) = hta_temporal_breakdown({0: table})

    assert row.idle_ns == 15_000


def test_work_without_a_duration_is_left_out(tmp_path: Path) -> None:
    unfinished = event("kernel", "sgemm_128x64", 70, 80, stream=7)
    del unfinished["dur"]
    table = table_of(tmp_path, [*overlapping_streams(), unfinished])

    (row,) = hta_temporal_breakdown({0: table})

    assert row.window_ns == 55_000


def test_ranks_come_back_in_order(tmp_path: Path) -> None:
    table = table_of(tmp_path, overlapping_streams())
    other = table_of(tmp_path, [event("kernel", "elementwise_kernel", 0, 7, stream=7)])

    rows = hta_temporal_breakdown({3: table, 1: other})

    assert rows == (
        TemporalBreakdown(1, window_ns=7_000, idle_ns=0, compute_ns=7_000, non_compute_ns=0),
        TemporalBreakdown(3, window_ns=55_000, idle_ns=15_000, compute_ns=20_000, non_compute_ns=20_000),
    )


def test_gap_shorter_than_a_float_of_the_epoch_can_tell_stays_idle(tmp_path: Path) -> None:
    # HTA passes ends through floats, which near 1.7e18 ns are 256 ns apart: it closed this gap of 24 ns.
    path = tmp_path / "trace.json"
    work = [
        event("kernel", "sgemm_128x64", 0, 10, stream=7),
        event("kernel", "sgemm_128x64", 10, 20, stream=7) | {"ts": 10.024},
    ]
    path.write_text(json.dumps({"baseTimeNanoseconds": 1_753_610_116_223_166_376, "traceEvents": work}))

    (row,) = hta_temporal_breakdown({0: read_kineto(path)})

    assert row == TemporalBreakdown(0, window_ns=20_024, idle_ns=24, compute_ns=20_000, non_compute_ns=0)


def test_rank_without_device_work_is_refused(tmp_path: Path) -> None:
    table = table_of(tmp_path, [event("cpu_op", "aten::mm", 0, 10)])

    with pytest.raises(TraceError, match="no device work"):
        hta_temporal_breakdown({0: table})
