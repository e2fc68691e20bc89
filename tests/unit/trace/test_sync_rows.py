from pathlib import Path

from tests.fakes.jobs import table_of
from tests.fakes.kineto import TraceFile
from tracereplay.trace.sync_rows import SyncRow, sync_rows

WAIT = "cudaStreamWaitEvent"


def row(name: str, ts: int, **args: int) -> TraceFile:
    return TraceFile().event("cuda_sync", name, ts, 1, pid=0, tid=7, args=args)


def joined(*traces: TraceFile) -> TraceFile:
    trace = TraceFile()
    for other in traces:
        trace.events += other.events
    return trace


def test_a_wait_names_its_call_its_streams_and_the_time_of_the_record(tmp_path: Path) -> None:
    trace = TraceFile().call("cudaEventRecord", 10, 1, 3).call(WAIT, 20, 1, 4)
    named = {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 3, "stream": 20, "correlation": 4, "device": 0}

    assert sync_rows(table_of(tmp_path, joined(trace, row("Stream Wait Event", 20, **named)))) == (
        SyncRow("Stream Wait Event", call_row=1, device=0, stream=20, event_stream=7, record_row=0, recorded_ns=10_000),
    )


def test_what_the_profiler_did_not_see_is_none(tmp_path: Path) -> None:
    # -1, and the same as an unsigned number, stand for streams and records from before the recording.
    trace = TraceFile().call("cudaEventQuery", 20, 1, 4)
    named = {"wait_on_stream": 2**32 - 1, "wait_on_cuda_event_record_corr_id": -1, "stream": -1, "correlation": 4, "device": 0}

    assert sync_rows(table_of(tmp_path, joined(trace, row("Event Sync", 20, **named)))) == (
        SyncRow("Event Sync", call_row=0, device=0, stream=None, event_stream=None, record_row=None, recorded_ns=None),
    )


def test_of_calls_that_share_an_id_the_last_one_before_the_row_is_meant(tmp_path: Path) -> None:
    trace = TraceFile().call(WAIT, 20, 1, 4).call(WAIT, 120, 1, 4).call(WAIT, 220, 1, 4)

    (found,) = sync_rows(table_of(tmp_path, joined(trace, row("Stream Wait Event", 121, stream=20, correlation=4, device=0))))

    assert found.call_row == 1


def test_both_spellings_of_a_kind_are_one_and_other_rows_are_none(tmp_path: Path) -> None:
    trace = TraceFile().call("cudaStreamSynchronize", 20, 5, 4)
    rows = [row(name, 20, stream=7, correlation=4, device=0) for name in ("Stream Sync", "Stream Synchronize", "Graph Sync")]

    assert [found.kind for found in sync_rows(table_of(tmp_path, joined(trace, *rows)))] == ["Stream Sync", "Stream Sync"]


def test_a_row_without_its_call_is_left_out(tmp_path: Path) -> None:
    trace = TraceFile().call(WAIT, 20, 1, 5)

    assert sync_rows(table_of(tmp_path, joined(trace, row("Stream Wait Event", 20, stream=7, correlation=4, device=0)))) == ()
