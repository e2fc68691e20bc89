"""Device work in the order in which it was enqueued: in, a rank's draft; out, queues that answer what an event stands for.

An event recorded on a stream stands for all that was enqueued there before: the stream's last work by then and, where the
stream was made to wait since, what that wait was for.
"""

from dataclasses import dataclass

import numpy as np

from tracereplay.graph.draft import RankDraft
from tracereplay.trace.sync_rows import STREAM_WAIT, SyncRow, sync_rows
from tracereplay.trace.times import Int64s


@dataclass(frozen=True, slots=True)
class Queue:
    """Work of one queue in the order of its enqueueing: work indices, when it was enqueued, when it ended."""

    number: int
    work: Int64s
    enqueued_ns: Int64s
    end_ns: Int64s

    def last_before(self, time_ns: int) -> int | None:
        """The last work that was enqueued before a time."""
        position = int(np.searchsorted(self.enqueued_ns, time_ns, side="left"))
        return int(self.work[position - 1]) if position else None

    def first_from(self, time_ns: int) -> int | None:
        """The first work that was enqueued at a time or later."""
        position = int(np.searchsorted(self.enqueued_ns, time_ns, side="left"))
        return int(self.work[position]) if position < self.work.size else None

    def last_ending(self, enqueued_by_ns: int, since_ns: int, until_ns: int) -> int | None:
        """The last work that was enqueued before a time and ended within (since, until]."""
        position = int(np.searchsorted(self.enqueued_ns, enqueued_by_ns, side="left"))
        ends = self.end_ns[:position]
        inside = np.flatnonzero((ends > since_ns) & (ends <= until_ns))
        return int(self.work[inside[-1]]) if inside.size else None


@dataclass(frozen=True, slots=True)
class _Wait:
    """A recorded wait: which queue waits from when on, for an event of which queue recorded when."""

    queue: int
    since_ns: int
    event_queue: int
    recorded_ns: int


@dataclass(frozen=True, slots=True)
class Queues:
    """The device queues of a rank, the queue of each (device, stream), and the recorded waits of streams for each other."""

    all: tuple[Queue, ...]
    of_stream: dict[tuple[int, int], Queue]
    waits: tuple[_Wait, ...]

    def behind(self, queue: Queue, time_ns: int) -> set[int]:
        """The work that an event recorded on a queue at a time stands for; empty where nothing was enqueued by then."""
        found: set[int] = set()
        seen: set[tuple[int, int]] = set()
        open_ = [(queue, time_ns)]
        by_number = {q.number: q for q in self.all}
        while open_:
            where, until = open_.pop()
            if (where.number, until) in seen:
                continue
            seen.add((where.number, until))
            last = where.last_before(until)
            since = -1
            if last is not None:
                found.add(last)
                since = int(where.enqueued_ns[np.flatnonzero(where.work == last)[0]])
            open_ += [
                (by_number[w.event_queue], w.recorded_ns)
                for w in self.waits
                if w.queue == where.number and since < w.since_ns < until
            ]
        return found

    def awaited(self) -> list[tuple[int, int]]:
        """(producer, consumer) work of every recorded wait; but for those that nothing follows and of a queue for itself."""
        pairs = set()
        by_number = {q.number: q for q in self.all}
        for wait in self.waits:
            consumer = by_number[wait.queue].first_from(wait.since_ns)
            if consumer is not None and wait.event_queue != wait.queue:
                producers = self.behind(by_number[wait.event_queue], wait.recorded_ns)
                pairs |= {(producer, consumer) for producer in producers if producer != consumer}
        return sorted(pairs)


def device_queues(draft: RankDraft) -> Queues:
    """The device queues of a rank."""
    work, enqueued = draft.work, draft.enqueued_ns
    devices, streams = draft.table.column("device"), draft.table.column("stream")
    queues, of_stream = [], {}
    on_device = np.flatnonzero(~work.on_host)
    order = on_device[np.lexsort((on_device, enqueued[on_device], work.queue[on_device]))]
    for members in np.split(order, np.flatnonzero(np.diff(work.queue[order])) + 1) if order.size else ():
        queue = Queue(int(work.queue[members[0]]), members, enqueued[members], work.end_ns[members])
        queues.append(queue)
        row = int(work.row[members[0]])
        if streams[row] >= 0:
            of_stream[int(devices[row]), int(streams[row])] = queue
    rows = [row for row in sync_rows(draft.table) if row.kind == STREAM_WAIT]
    waits = [wait for row in rows if (wait := _wait(draft, row, of_stream)) is not None]
    return Queues(tuple(queues), of_stream, tuple(waits))


def _wait(draft: RankDraft, row: SyncRow, of_stream: dict[tuple[int, int], Queue]) -> _Wait | None:
    if row.stream is None or row.event_stream is None or row.recorded_ns is None:
        return None
    waiting, awaited = of_stream.get((row.device, row.stream)), of_stream.get((row.device, row.event_stream))
    if waiting is None or awaited is None:
        return None
    since_ns = int(draft.table.column("ts_ns")[row.call_row])
    return _Wait(waiting.number, since_ns, awaited.number, row.recorded_ns)
