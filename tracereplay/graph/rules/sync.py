"""A host call returns when device work has ended.

    host     |--own--|······ waits ······|-- goes on        the wait is the edge, not the duration of the call
    stream      |---------work---------|`wake-up`

What a call waits for is the work that was enqueued when the call was reached. A call that does not name its stream waits for
the queue whose work ends inside it, latest first; where none does, for the queue that its thread launched on last (slack,
kept because a slower queue would be waited for). Copies wait for themselves when they end inside their call (pageable
memory); calls that synchronise silently (freeing, pinning) only where a call ends with the end of device work.
"""

import re
from dataclasses import dataclass

import numpy as np

from tracereplay.graph.draft import HostThread, RankDraft
from tracereplay.graph.edges import Found, found, make_edges
from tracereplay.graph.kinds import Basis, EdgeKind
from tracereplay.trace.times import Int64s

_DEVICE_CALL = re.compile(r"^(cudaDeviceSynchronize|hipDeviceSynchronize|cuCtxSynchronize)")
_QUEUE_CALL = re.compile(r"^(cuda|hip|cu)(Stream|Event)Synchronize")
_EVENT_CALL = re.compile(r"^(cuda|hip|cu)EventSynchronize")
_SILENT_CALL = re.compile(
    r"^(cudaFree|cudaMalloc|cudaHostAlloc|cudaHostRegister|hipFree|hipMalloc|hipHostMalloc|cuModuleLoad|hipModuleLoad)"
)
_COPY_CALL = re.compile(r"^(cuda|hip|cu)Memcpy")
# A silent call counts as a wait where device work ends inside it, at least this long after its start and at most this
# long before its end: both are a few times the cost of such a call that does not wait (1-10 µs on the corpus traces).
_SILENT_MARGIN_NS = 50_000
# No such call costs more CPU time of its own (1 to 13 µs on the corpus traces): what it lasted beyond that, it waited.
_COST_NS = 20_000


@dataclass(frozen=True, slots=True)
class _Call:
    thread: HostThread
    number: int
    position: int
    name: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class _Queue:
    """Work of one queue in the order of its enqueueing."""

    work: Int64s
    enqueued_ns: Int64s

    end_ns: Int64s

    def last_before(self, time_ns: int) -> int | None:
        """The last work that was enqueued before a time."""
        position = int(np.searchsorted(self.enqueued_ns, time_ns, side="left"))
        return int(self.work[position - 1]) if position else None

    def last_ending(self, enqueued_by_ns: int, since_ns: int, until_ns: int) -> int | None:
        """The last work that was enqueued before a time and ended within (since, until]."""
        position = int(np.searchsorted(self.enqueued_ns, enqueued_by_ns, side="left"))
        ends = self.end_ns[:position]
        inside = np.flatnonzero((ends > since_ns) & (ends <= until_ns))
        return int(self.work[inside[-1]]) if inside.size else None


def sync(draft: RankDraft) -> Found:
    """Edges from device work to what the host does after the call that waited for it."""
    queues = _queues(draft)
    src, dst, waits, refuted, uncovered_ns = [], [], [], 0, 0
    calls = [(call, _awaited(draft, call, queues)) for call in _blocking_calls(draft)]
    usual = _usual_cost(draft, calls)
    for call, awaited in calls:
        kept = [w for w in awaited if draft.work.end_ns[w] <= call.end_ns]
        refuted += len(awaited) - len(kept)
        node = int(call.thread.node_at_end(call.position))
        src += [int(draft.work_last_node[w]) for w in kept]
        dst += [node] * len(kept)
        last = max((int(draft.work.end_ns[w]) for w in kept), default=call.start_ns)
        if last > call.start_ns:
            own = min(usual.get(call.name, 0), last - call.start_ns)
            waits.append((node - 1, own))
        elif _QUEUE_CALL.match(call.name) or _DEVICE_CALL.match(call.name):
            uncovered_ns += max(call.end_ns - call.start_ns - usual.get(call.name, 0), 0)
    return found(make_edges(EdgeKind.SYNC, Basis.INFERRED, src, dst), waits, refuted, uncovered_ns)


def _queues(draft: RankDraft) -> list[_Queue]:
    work, enqueued = draft.work, draft.call_ns
    queues = []
    for queue in np.unique(work.queue[~work.on_host]):
        members = np.flatnonzero(work.queue == queue)
        members = members[np.argsort(enqueued[members], kind="stable")]
        queues.append(_Queue(members, enqueued[members], work.end_ns[members]))
    return queues


def _blocking_calls(draft: RankDraft) -> list[_Call]:
    names = draft.table.names
    pattern = re.compile("|".join(p.pattern for p in (_DEVICE_CALL, _QUEUE_CALL, _SILENT_CALL, _COPY_CALL)))
    codes = [code for code, name in enumerate(names) if pattern.match(name)]
    ts, dur = draft.table.column("ts_ns"), draft.table.column("dur_ns")
    calls = []
    for number, thread in enumerate(draft.threads):
        row_codes = np.where(thread.rows >= 0, draft.table.codes("name")[thread.rows], -1)
        for position in np.flatnonzero(np.isin(row_codes, codes)):
            row = thread.rows[position]
            start, end = int(ts[row]), int(ts[row] + dur[row])
            if draft.low_ns <= start < end <= draft.high_ns:
                calls.append(_Call(thread, number, int(position), names[row_codes[position]], start, end))
    return calls


def _awaited(draft: RankDraft, call: _Call, queues: list[_Queue]) -> list[int]:
    """The work that a call waits for, one a queue; empty where nothing was enqueued or nothing shows a wait."""
    work = draft.work
    if _COPY_CALL.match(call.name):
        own = np.flatnonzero((work.call_thread == call.number) & (work.call_position == call.position))
        return [int(w) for w in own if call.start_ns < work.end_ns[w] <= call.end_ns]
    last = [w for queue in queues if (w := queue.last_before(call.start_ns)) is not None]
    if _DEVICE_CALL.match(call.name):
        return last
    if _EVENT_CALL.match(call.name):
        # An event lies after some earlier work of its queue, not after the last.
        last = [w for q in queues if (w := q.last_ending(call.start_ns, call.start_ns, call.end_ns)) is not None]
    inside = [w for w in last if call.start_ns < work.end_ns[w] <= call.end_ns]
    latest = max(inside, key=lambda w: int(work.end_ns[w]), default=None)
    if _SILENT_CALL.match(call.name):
        return [] if latest is None or not _ends_with(call, int(work.end_ns[latest])) else [latest]
    if latest is not None:
        return [latest]
    return [w for w in _last_of_thread(draft, call) if work.end_ns[w] <= call.start_ns]


def _ends_with(call: _Call, end_ns: int) -> bool:
    return end_ns - call.start_ns >= _SILENT_MARGIN_NS >= call.end_ns - end_ns


def _last_of_thread(draft: RankDraft, call: _Call) -> list[int]:
    """The work that the call's own thread launched last before it."""
    mine = np.flatnonzero((draft.work.call_thread == call.number) & (draft.work.call_position < call.position))
    return [int(mine[np.argmax(draft.work.call_position[mine])])] if mine.size else []


def _usual_cost(draft: RankDraft, calls: list[tuple[_Call, list[int]]]) -> dict[str, int]:
    """The CPU time of each kind of call: the median of those that waited for nothing, at most ``_COST_NS``; unknown (0)
    where every one waited.
    """
    free: dict[str, list[int]] = {}
    for call, awaited in calls:
        if all(draft.work.end_ns[w] <= call.start_ns for w in awaited):
            free.setdefault(call.name, []).append(call.end_ns - call.start_ns)
    return {name: min(int(np.median(durations)), _COST_NS) for name, durations in free.items()}
