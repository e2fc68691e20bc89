"""A host call returns when device work has ended.

    host     |--own--|······ waits ······|-- goes on        the wait is the edge, not the duration of the call
    stream      |---------work---------|`wake-up`

What a call waits for is the work that was enqueued when the call was reached. A call that does not name its stream waits for
the queue whose work ends inside it, at about the usual wake-up before the call does; where none does, for the queue that its
thread launched on last (slack, kept because a slower queue would be waited for). Copies wait for themselves when they end
inside their call (pageable memory); calls that synchronise silently (freeing, pinning, and any other call that lasts long)
only where a call ends with the end of device work: freeing then waits for the whole device, the others for the work that
shows. The device is the one that the thread launches on. Rows of ``cuda_sync`` name what a call waits for and win over all
that.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from tracereplay.graph.blocking_calls import BLOCKING_CALL, DEVICE_CALL, EVENT_CALL
from tracereplay.graph.current_device import device_around
from tracereplay.graph.draft import HostThread, RankDraft
from tracereplay.graph.edges import Edges, Found, found, make_edges
from tracereplay.graph.graph_launches import graph_launches
from tracereplay.graph.kinds import Basis, Why
from tracereplay.graph.queues import Open, Queues, device_queues, named_by
from tracereplay.graph.wake_up import wake_up_ns
from tracereplay.trace.schema import Role
from tracereplay.trace.sync_rows import CONTEXT_SYNC, STREAM_WAIT, SyncRow, sync_rows

_RECORD_CALL = re.compile(r"^(cuda|hip|cu)EventRecord")
_SILENT_CALL = re.compile(
    r"^(cudaFree|cudaMalloc|cudaHostAlloc|cudaHostRegister|hipFree|hipMalloc|hipHostMalloc|cuModuleLoad|cuLibraryLoad|hipModuleLoad)"
)
_COPY_CALL = re.compile(r"^(cuda|hip|cu)Memcpy")
# Freeing waits for all that the device was given (CUDA Programming Guide, "Implicit Synchronization").
_WHOLE_DEVICE = re.compile(r"^(cudaFree|hipFree)(Host)?$")
# Launches and records may stand in a full queue for long, but that is for an earlier piece of work, not for the last.
_NEVER_BLOCKS = re.compile(r"^(cuda|hip|cu)(\w*Launch\w*|EventRecord|EventQuery|StreamWaitEvent)")
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

    @property
    def node_after(self) -> int:
        """The node with which the thread goes on after the call."""
        return int(self.thread.node_at_end(self.position))


@dataclass(frozen=True, slots=True)
class _Awaited:
    """What a call waits for, what of it had ended by its end, and whether a row says so."""

    works: list[int]
    kept: list[int]
    recorded: bool


def sync(draft: RankDraft) -> Found:
    """Edges from device work to what the host does after the call that waited for it."""
    described = {row.call_row: row for row in sync_rows(draft.table) if row.kind != STREAM_WAIT}
    calls = _blocking_calls(draft, set(described))
    index = _Index(draft, device_queues(draft), wake_up_ns(draft.table), draft.work.end_ns.tolist())
    awaited = [_awaited(index, call, described.get(call.row)) for call in calls]
    usual = _usual_cost(index, calls, awaited)
    waits, uncovered_ns = [], 0
    for call, one in zip(calls, awaited, strict=True):
        blocks = _blocks(call)
        node = call.node_after
        last = max((index.end_ns[w] for w in one.kept), default=call.start_ns)
        after_ns = max(call.end_ns - last, 0)
        if last > call.start_ns and after_ns > (_LONGEST_WAKE_NS if blocks else _SILENT_MARGIN_NS):
            # The work ended long before the call did: what the call did then is its own, and nothing covers a mere wait.
            uncovered_ns += after_ns * blocks
            waits.append((node - 1, after_ns))
        elif last > call.start_ns:
            waits.append((node - 1, min(usual.get(call.name, 0), last - call.start_ns)))
        elif blocks:
            uncovered_ns += max(call.end_ns - call.start_ns - usual.get(call.name, 0), 0)
    pairs = [(work, call.node_after, one.recorded) for call, one in zip(calls, awaited, strict=True) for work in one.kept]
    refuted = sum(len(one.works) - len(one.kept) for one in awaited)
    return found(_edges(draft, pairs), waits, refuted, uncovered_ns)


def _edges(draft: RankDraft, pairs: list[tuple[int, int, bool]]) -> Edges:
    """Edges of (work, node, whether a row says so)."""
    columns = np.array(pairs, np.int64).reshape(-1, 3)
    edges = make_edges(Why.SYNC, Basis.INFERRED, draft.work_last_node[columns[:, 0]], columns[:, 1])
    return replace(edges, basis=np.where(columns[:, 2] == 1, int(Basis.RECORDED), int(Basis.INFERRED)).astype(np.int8))


class _Index:
    """What a rank's calls are looked up in, sorted once: queues, ends of work, what each thread launched and recorded where."""

    def __init__(self, draft: RankDraft, queues: Queues, wake_ns: int, end_ns: list[int]) -> None:
        self.draft, self.queues, self.wake_ns, self.end_ns = draft, queues, wake_ns, end_ns
        self.graphs = graph_launches(draft)
        thread, position = draft.work.call_thread, draft.work.call_position
        order = np.lexsort((position, thread))
        bounds = np.searchsorted(thread[order], np.arange(len(draft.threads) + 1))
        self._launched: list[list[int]] = [order[a:b].tolist() for a, b in pairwise(bounds.tolist())]
        self._launched_at: list[list[int]] = [position[work].tolist() for work in self._launched]
        codes = [code for code, name in enumerate(draft.table.names) if _RECORD_CALL.match(name)]
        names = draft.table.codes("name")
        self._records: list[list[int]] = [
            np.flatnonzero((t.rows >= 0) & np.isin(names[t.rows], codes)).tolist() for t in draft.threads
        ]
        self.open = [Open(queues.lone) for _ in draft.threads]

    def launched_by(self, call: _Call) -> list[int]:
        """The work that a call launched."""
        positions = self._launched_at[call.number]
        low = bisect_left(positions, call.position)
        return self._launched[call.number][low : bisect_left(positions, call.position + 1, low)]

    def last_launched(self, call: _Call) -> list[int]:
        """The work that the call's own thread launched last before it, for an event before the thread's last record."""
        until = call.position
        if EVENT_CALL.match(call.name):
            records = self._records[call.number]
            count = bisect_left(records, call.position)
            until = records[count - 1] if count else until
        positions, launched = self._launched_at[call.number], self._launched[call.number]
        count = bisect_left(positions, until)
        return list(self.graphs.ends.get(launched[count - 1], (launched[count - 1],))) if count else []


def _blocks(call: _Call) -> bool:
    return BLOCKING_CALL.match(call.name) is not None


def _blocking_calls(draft: RankDraft, described: set[int]) -> list[_Call]:
    """Calls of the table's names, calls that a row describes, and calls of any name that last as long as a wait; for each
    thread in the order in which it goes on after them.
    """
    names = draft.table.names
    pattern = re.compile("|".join(p.pattern for p in (BLOCKING_CALL, _SILENT_CALL, _COPY_CALL)))
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
    return sorted(calls, key=lambda call: (call.number, call.node_after))


def _awaited(index: _Index, call: _Call, row: SyncRow | None) -> _Awaited:
    named = None if row is None else _named(index, call, row)
    works = _inferred(index, call) if named is None else named
    kept = [w for w in works if index.end_ns[w] <= call.end_ns + _CLOCKS_NS * _blocks(call)]
    index.open[call.number].waited_for(kept)
    return _Awaited(works, kept, named is not None)


def _named(index: _Index, call: _Call, row: SyncRow) -> list[int] | None:
    """The work that a row of ``cuda_sync`` names; None where it does not say."""
    if row.kind == CONTEXT_SYNC:
        return _of_device(index, call, row.device)
    return named_by(index.draft, row)


def _inferred(index: _Index, call: _Call) -> list[int]:
    """The work that a call waits for where no row says; empty where nothing was enqueued or nothing shows a wait."""
    queues, end_ns = index.queues, index.end_ns
    if _COPY_CALL.match(call.name):
        return [w for w in index.launched_by(call) if call.start_ns < end_ns[w] <= call.end_ns]
    if DEVICE_CALL.match(call.name):
        return _of_device(index, call, device_around(index.draft.table, call.row))
    if _WHOLE_DEVICE.match(call.name):
        everything = _of_device(index, call, device_around(index.draft.table, call.row))
        return everything if all(end_ns[w] <= call.end_ns for w in everything) else []
    # An event lies after some earlier work of its queue, not after the last.
    event = EVENT_CALL.match(call.name)
    inside = (queues.endings.last_of_each if event else queues.endings.of_last_enqueued)(call.start_ns, call.end_ns)
    if not _blocks(call):
        latest = max(inside, key=lambda w: end_ns[w], default=None)
        return [latest] if latest is not None and _ends_with(call, end_ns[latest]) else []
    if inside:
        shown = min(inside, key=lambda w: (abs(call.end_ns - end_ns[w] - index.wake_ns), -end_ns[w]))
        return list(index.graphs.ends.get(shown, (shown,)))
    return [w for w in index.last_launched(call) if end_ns[w] <= call.start_ns]


def _of_device(index: _Index, call: _Call, device: int | None) -> list[int]:
    """The last work of every queue of a device, of all devices where nothing says which; work without a stream that the thread
    has waited for already is left out.
    """
    lone = index.open[call.number].of_device(device, call.start_ns)
    return sorted({*index.queues.of_device(device, call.start_ns), *lone})


def _ends_with(call: _Call, end_ns: int) -> bool:
    return end_ns - call.start_ns >= _SILENT_MARGIN_NS >= call.end_ns - end_ns


def _usual_cost(index: _Index, calls: list[_Call], awaited: list[_Awaited]) -> dict[str, int]:
    """The CPU time of each kind of call: the median of those that waited for nothing, at most ``_COST_NS``; unknown (0)
    where every one waited.
    """
    free: dict[str, list[int]] = {}
    for call, one in zip(calls, awaited, strict=True):
        if all(index.end_ns[w] <= call.start_ns for w in one.works):
            free.setdefault(call.name, []).append(call.end_ns - call.start_ns)
    return {name: min(int(np.median(durations)), _COST_NS) for name, durations in free.items()}
