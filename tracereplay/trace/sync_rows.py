"""What ``cuda_sync`` rows say: in, an event table; out, waits of streams and of the host with the calls that asked for them.

Kineto writes such rows since 2023 where synchronisation events are switched on (libkineto, CuptiActivity: CudaSyncActivity): a
row belongs to a runtime call by its correlation id and names the stream that waits, the stream on which the awaited event
was recorded and the correlation id of the call that recorded it; -1 stands for what the profiler did not see.
"""

from dataclasses import dataclass

from tracereplay.trace.schema import Role
from tracereplay.trace.table import EventTable
from tracereplay.trace.times import Int64s

STREAM_WAIT, STREAM_SYNC, EVENT_SYNC, CONTEXT_SYNC = "Stream Wait Event", "Stream Sync", "Event Sync", "Context Sync"
_KINDS = {
    STREAM_WAIT: STREAM_WAIT,
    STREAM_SYNC: STREAM_SYNC,
    "Stream Synchronize": STREAM_SYNC,
    EVENT_SYNC: EVENT_SYNC,
    "Event Synchronize": EVENT_SYNC,
    CONTEXT_SYNC: CONTEXT_SYNC,
    "Context Synchronize": CONTEXT_SYNC,
}


@dataclass(frozen=True, slots=True)
class SyncRow:
    """One row: its kind, the runtime call (row of the table) that it describes, the device, the stream that waits or is waited
    for, the stream of the awaited event, the call that recorded it and when that began; None where the row does not say.
    """

    kind: str
    call_row: int
    device: int
    stream: int | None
    event_stream: int | None
    record_row: int | None
    recorded_ns: int | None


def call_of_rows(table: EventTable) -> dict[int, int]:
    """The runtime call to which each row belongs, both as rows of the table; rows without one are left out."""
    return table.remembered("calls of sync rows", lambda: _call_of_rows(table))


def _call_of_rows(table: EventTable) -> dict[int, int]:
    ts, correlation = table.column("ts_ns"), table.column("correlation")
    rows = table.rows_of(Role.CUDA_SYNC).tolist()
    calls = _calls_by_correlation(table) if rows else {}
    found = {row: _nearest(calls.get(int(correlation[row]), []), int(ts[row]), ts) for row in rows}
    return {row: call for row, call in found.items() if call is not None}


def sync_rows(table: EventTable) -> tuple[SyncRow, ...]:
    """All rows whose call is in the table, in file order; decoded once a table."""
    return table.remembered("sync_rows", lambda: _sync_rows(table))


def _sync_rows(table: EventTable) -> tuple[SyncRow, ...]:
    call_of = call_of_rows(table)
    if not call_of:
        return ()
    ts, device = table.column("ts_ns"), table.column("device")
    calls = _calls_by_correlation(table)
    found = []
    for row, call in call_of.items():
        kind = _KINDS.get(table.name_of(row))
        if kind is None:
            continue
        args = table.args_of(row)
        record = _nearest(calls.get(_known(args.get("wait_on_cuda_event_record_corr_id")) or 0, []), int(ts[row]), ts)
        found.append(
            SyncRow(
                kind=kind,
                call_row=call,
                device=int(device[row]),
                stream=_known(args.get("stream")),
                event_stream=_known(args.get("wait_on_stream")),
                record_row=record,
                recorded_ns=None if record is None else int(ts[record]),
            )
        )
    return tuple(found)


def _calls_by_correlation(table: EventTable) -> dict[int, list[int]]:
    """Rows of runtime calls by correlation id; ids may be used again."""
    rows = table.rows_of(Role.RUNTIME)
    calls: dict[int, list[int]] = {}
    for row, number in zip(rows.tolist(), table.column("correlation")[rows].tolist(), strict=True):
        if number > 0:
            calls.setdefault(number, []).append(row)
    return calls


def _nearest(rows: list[int], time_ns: int, ts: Int64s) -> int | None:
    """The row that began last by a time, else the first; None of none."""
    before = [row for row in rows if ts[row] <= time_ns]
    return max(before, key=lambda row: (int(ts[row]), row)) if before else min(rows, default=None)


def _known(value: object) -> int | None:
    """A number that the profiler knew: streams and ids are never negative, and 2**32 - 1 is Kineto's -1."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32 - 1 else None
