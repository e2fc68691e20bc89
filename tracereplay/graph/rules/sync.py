"""A host call returns when device work has ended.

    host     |--own--|······ waits ······|-- goes on        the wait is the edge, not the duration of the call
    stream      |---------work---------|`wake-up`

What a call waits for is the work that was enqueued when the call was reached. A call that does not name its stream waits for
the queue whose work ends inside it, latest first; where none does, for the queue that its thread launched on last (slack,
kept because a slower queue would be waited for). Copies wait for themselves when they end inside their call (pageable
memory); calls that synchronise silently (freeing, pinning, and any other call that lasts long) only where a call ends with
the end of device work: freeing then waits for the whole device, the others for the work that shows. Rows of ``cuda_sync``
name what a call waits for and win over all that.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tracereplay.graph.draft import HostThread, RankDraft
from tracereplay.graph.edges import Found, concat_edges, found, make_edges
from tracereplay.graph.kinds import Basis, Why
from tracereplay.graph.queues import Queue, Queues, device_queues
from tracereplay.graph.wake_up import wake_up_ns
from tracereplay.trace.schema import Role
from tracereplay.trace.sync_rows import CONTEXT_SYNC, STREAM_SYNC, STREAM_WAIT, SyncRow, sync_rows
from tracereplay.trace.times import Int64s

_DEVICE_CALL = re.compile(r"^(cudaDeviceSynchronize|hipDeviceSynchronize|cuCtxSynchronize)")
_QUEUE_CALL = re.compile(r"^(cuda|hip|cu)(Stream|Event)Synchronize")
_EVENT_CALL = re.compile(r"^(cuda|hip|cu)EventSynchronize")
_RECORD_CALL = re.compile(r"^(cuda|hip|cu)EventRecord")
_SILENT_CALL = re.compile(
    r"^(cudaFree|cudaMalloc|cudaHostAlloc|cudaHostRegister|hipFree|hipMalloc|hipHostMalloc|cuModuleLoad|cuLibraryLoad|hipModuleLoad)"
)
_COPY_CALL = re.compile(r"^(cuda|hip|cu)Memcpy")
# Freeing waits for all that the device was given (CUDA Programming Guide, "Implicit Synchronization").
_WHOLE_DEVICE = re.compile(r"^(cudaFree|hipFree)(Host)?$")
# Launches and records may stand in a full queue for long, but that is for an earlier piece of work, not for the last.
_NEVER_BLOCKS = re.compile(r"^(cuda|hip|cu)(\w*Launch\w*|EventRecord|EventQuery|StreamWaitEvent)")
_NONE = make_edges(Why.SYNC, Basis.INFERRED, [], [])
# A silent call counts as a wait where device work ends inside it, at least this long after its start and at most this
# long before its end: both are a few times the cost of such a call that does not wait (1-10 µs on the corpus traces).
_SILENT_MARGIN_NS = 50_000
# No such call costs more CPU time of its own (1 to 13 µs on the corpus traces): what it lasted beyond that, it waited.
_COST_NS = 20_000
# A thread goes on within tens of microseconds of the end that it waited for.
_LONGEST_WAKE_NS = 1_000_000
# The clocks of host and device differ by some microseconds: what a mere wait is for may seem to end after it (7.5 µs on a
# MI300X trace of the corpus).
_CLOCKS_NS = 10_000


@dataclass(frozen=True, slots=True)
class _Call:
    thread: HostThread
    number: int
    position: int
    row: int
    name: str
    start_ns: int
    end_ns: int


def sync(draft: RankDraft) -> Found:
    """Edges from device work to what the host does after the call that waited for it."""
    queues = device_queues(draft)
    described = {row.call_row: row for row in sync_rows(draft.table) if row.kind != STREAM_WAIT}
    calls = _blocking_calls(draft, set(described))
    recorded = [_named(queues, call, described.get(call.row)) for call in calls]
    wake_ns = wake_up_ns(draft.table)
    awaited = [r if r is not None else _inferred(draft, c, queues, wake_ns) for c, r in zip(calls, recorded, strict=True)]
    usual = _usual_cost(draft, calls, awaited)
    parts, waits, refuted, uncovered_ns = [], [], 0, 0
    for call, works, named in zip(calls, awaited, recorded, strict=True):
        kept = [w for w in works if draft.work.end_ns[w] <= call.end_ns + _CLOCKS_NS * _blocks(call)]
        refuted += len(works) - len(kept)
        node = int(call.thread.node_at_end(call.position))
        basis = Basis.INFERRED if named is None else Basis.RECORDED
        parts.append(make_edges(Why.SYNC, basis, draft.work_last_node[kept], [node] * len(kept)))
        last = max((int(draft.work.end_ns[w]) for w in kept), default=call.start_ns)
        after_ns = max(call.end_ns - last, 0)
        if last > call.start_ns and after_ns > (_LONGEST_WAKE_NS if _blocks(call) else _SILENT_MARGIN_NS):
            # The work ended long before the call did: what the call did then is its own, and nothing covers a mere wait.
            uncovered_ns += after_ns * _blocks(call)
            waits.append((node - 1, after_ns))
        elif last > call.start_ns:
            waits.append((node - 1, min(usual.get(call.name, 0), last - call.start_ns)))
        elif _blocks(call):
            uncovered_ns += max(call.end_ns - call.start_ns - usual.get(call.name, 0), 0)
    return found(concat_edges([_NONE, *parts]), waits, refuted, uncovered_ns)


def _blocks(call: _Call) -> bool:
    return bool(_QUEUE_CALL.match(call.name) or _DEVICE_CALL.match(call.name))


def _blocking_calls(draft: RankDraft, described: set[int]) -> list[_Call]:
    """Calls of the table's names, calls that a row describes, and calls of any name that last as long as a wait."""
    names = draft.table.names
    pattern = re.compile("|".join(p.pattern for p in (_DEVICE_CALL, _QUEUE_CALL, _SILENT_CALL, _COPY_CALL)))
    wanted = np.array([pattern.match(name) is not None for name in names], np.bool_)
    passed = np.array([_NEVER_BLOCKS.match(name) is not None for name in names], np.bool_)
    ts, dur, codes = draft.table.column("ts_ns"), draft.table.column("dur_ns"), draft.table.codes("name")
    runtime = draft.table.column("role") == Role.RUNTIME
    calls = []
    for number, thread in enumerate(draft.threads):
        rows = thread.rows
        real = rows >= 0
        long = real & runtime[rows] & (dur[rows] >= 2 * _SILENT_MARGIN_NS) & ~passed[codes[rows]]
        told = real & np.isin(rows, list(described))
        for position in np.flatnonzero((real & wanted[codes[rows]]) | long | told):
            row = int(rows[position])
            start, end = int(ts[row]), int(ts[row] + dur[row])
            if draft.low_ns <= start < end <= draft.high_ns:
                calls.append(_Call(thread, number, int(position), row, names[codes[row]], start, end))
    return calls


def _named(queues: Queues, call: _Call, row: SyncRow | None) -> list[int] | None:
    """The work that a row of ``cuda_sync`` names; None where there is no row or it does not say."""
    if row is None:
        return None
    if row.kind == CONTEXT_SYNC:
        return _of_queues(queues, [q for (device, _), q in queues.of_stream.items() if device == row.device], call.start_ns)
    stream = row.stream if row.kind == STREAM_SYNC else row.event_stream
    queue = queues.of_stream.get((row.device, stream)) if stream is not None else None
    until_ns = call.start_ns if row.kind == STREAM_SYNC else row.recorded_ns
    return None if queue is None or until_ns is None else sorted(queues.behind(queue, until_ns))


def _of_queues(queues: Queues, chosen: Iterable[Queue], time_ns: int) -> list[int]:
    return sorted({work for queue in chosen for work in queues.behind(queue, time_ns)})


def _inferred(draft: RankDraft, call: _Call, queues: Queues, wake_ns: int) -> list[int]:
    """The work that a call waits for where no row says; empty where nothing was enqueued or nothing shows a wait."""
    work = draft.work
    if _COPY_CALL.match(call.name):
        own = np.flatnonzero((work.call_thread == call.number) & (work.call_position == call.position))
        return [int(w) for w in own if call.start_ns < work.end_ns[w] <= call.end_ns]
    if _DEVICE_CALL.match(call.name):
        return _of_queues(queues, queues.all, call.start_ns)
    if _EVENT_CALL.match(call.name):
        # An event lies after some earlier work of its queue, not after the last.
        last = [w for q in queues.all if (w := q.last_ending(call.start_ns, call.start_ns, call.end_ns)) is not None]
    else:
        last = [w for queue in queues.all if (w := queue.last_before(call.start_ns)) is not None]
    inside = [w for w in last if call.start_ns < work.end_ns[w] <= call.end_ns]
    shown = min(inside, key=lambda w: (abs(call.end_ns - int(work.end_ns[w]) - wake_ns), -int(work.end_ns[w])), default=None)
    if _WHOLE_DEVICE.match(call.name):
        everything = _of_queues(queues, queues.all, call.start_ns)
        return everything if all(work.end_ns[w] <= call.end_ns for w in everything) else []
    if not _blocks(call):
        latest = max(inside, key=lambda w: int(work.end_ns[w]), default=None)
        return [latest] if latest is not None and _ends_with(call, int(work.end_ns[latest])) else []
    if shown is not None:
        return [shown]
    return [w for w in _last_of_thread(draft, call) if work.end_ns[w] <= call.start_ns]


def _ends_with(call: _Call, end_ns: int) -> bool:
    return end_ns - call.start_ns >= _SILENT_MARGIN_NS >= call.end_ns - end_ns


def _last_of_thread(draft: RankDraft, call: _Call) -> list[int]:
    """The work that the call's own thread launched last before it, for an event before the thread's last record."""
    until = call.position
    if _EVENT_CALL.match(call.name):
        records = _positions_of(draft, call, _RECORD_CALL)
        until = int(records[-1]) if records.size else until
    mine = np.flatnonzero((draft.work.call_thread == call.number) & (draft.work.call_position < until))
    return [int(mine[np.argmax(draft.work.call_position[mine])])] if mine.size else []


def _positions_of(draft: RankDraft, call: _Call, pattern: re.Pattern[str]) -> Int64s:
    """Where the call's own thread made calls of a kind before it."""
    codes = [code for code, name in enumerate(draft.table.names) if pattern.match(name)]
    rows = call.thread.rows[: call.position]
    return np.flatnonzero((rows >= 0) & np.isin(draft.table.codes("name")[rows], codes))


def _usual_cost(draft: RankDraft, calls: list[_Call], awaited: list[list[int]]) -> dict[str, int]:
    """The CPU time of each kind of call: the median of those that waited for nothing, at most ``_COST_NS``; unknown (0)
    where every one waited.
    """
    free: dict[str, list[int]] = {}
    for call, works in zip(calls, awaited, strict=True):
        if all(draft.work.end_ns[w] <= call.start_ns for w in works):
            free.setdefault(call.name, []).append(call.end_ns - call.start_ns)
    return {name: min(int(np.median(durations)), _COST_NS) for name, durations in free.items()}
