"""Device work in the order in which it was enqueued: in, a rank's draft; out, queues that answer what an event stands for.

An event recorded on a stream stands for all that was enqueued there before: the stream's last work by then (where that ends
a graph, the ends of all its streams) and, where the stream was made to wait since, what that wait was for.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tracereplay.graph.current_device import device_around
from tracereplay.graph.draft import RankDraft
from tracereplay.graph.graph_launches import GraphLaunches, graph_launches
from tracereplay.trace.sync_rows import CONTEXT_SYNC, STREAM_SYNC, STREAM_WAIT, SyncRow, sync_rows
from tracereplay.trace.times import Int64s

_NEVER_NS = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Queue:
    """Work of one queue in the order of its enqueueing: its device (-1 unknown), work indices, when each was enqueued."""

    number: int
    device: int
    work: Int64s
    enqueued_ns: Int64s

    def count_before(self, time_ns: int) -> int:
        """How many pieces of work were enqueued before a time."""
        return int(np.searchsorted(self.enqueued_ns, time_ns, side="left"))

    def first_from(self, time_ns: int) -> int | None:
        """The first work that was enqueued at a time or later."""
        position = self.count_before(time_ns)
        return int(self.work[position]) if position < self.work.size else None


@dataclass(frozen=True, slots=True)
class Endings:
    """The device work of all queues in order of its ends: work indices, ends, when it and what follows in its queue was
    enqueued (never, where nothing follows), its queue, its place in an order by queue, then enqueueing.
    """

    work: Int64s
    end_ns: Int64s
    enqueued_ns: Int64s
    followed_ns: Int64s
    queue: Int64s
    place: Int64s

    def of_last_enqueued(self, time_ns: int, until_ns: int) -> list[int]:
        """Of each queue the work that was enqueued last before a time, where it ended after that and by another time."""
        low, high = self.end_ns.searchsorted(time_ns, "right"), self.end_ns.searchsorted(until_ns, "right")
        last = (self.enqueued_ns[low:high] < time_ns) & (self.followed_ns[low:high] >= time_ns)
        return sorted(self.work[low:high][last].tolist())

    def last_of_each(self, time_ns: int, until_ns: int) -> list[int]:
        """Of the work of each queue that was enqueued before a time and ended after it and by another, the last enqueued."""
        low, high = self.end_ns.searchsorted(time_ns, "right"), self.end_ns.searchsorted(until_ns, "right")
        inside = low + np.flatnonzero(self.enqueued_ns[low:high] < time_ns)
        inside = inside[np.argsort(self.place[inside])]
        queue = self.queue[inside]
        closing = np.ones(inside.size, np.bool_)
        closing[:-1] = queue[1:] != queue[:-1]
        found: list[int] = self.work[inside[closing]].tolist()
        return found


@dataclass(frozen=True, slots=True)
class _Wait:
    """A recorded wait: which queue waits from when on, for an event of which queue recorded when."""

    queue: int
    since_ns: int
    event_queue: int
    recorded_ns: int


@dataclass(frozen=True, slots=True)
class _Waits:
    """The recorded waits of one queue in order of time."""

    since_ns: Int64s
    waits: tuple[_Wait, ...]

    def between(self, after_ns: int, before_ns: int) -> tuple[_Wait, ...]:
        """The waits from after a time to before another."""
        low = int(np.searchsorted(self.since_ns, after_ns, side="right"))
        return self.waits[low : int(np.searchsorted(self.since_ns, before_ns, side="left"))]


@dataclass(frozen=True, slots=True)
class Lone:
    """Work whose stream is not recorded, each piece a queue of its own, in order of enqueueing."""

    work: Int64s
    device: Int64s
    enqueued_ns: Int64s


@dataclass(frozen=True, slots=True)
class Queues:
    """The device queues of a rank, the queue of each (device, stream), and the recorded waits of streams for each other."""

    all: tuple[Queue, ...]
    of_stream: dict[tuple[int, int], Queue]
    endings: Endings
    _waits: dict[int, _Waits]
    _by_number: dict[int, Queue]
    lone: Lone
    _graphs: GraphLaunches

    def behind(self, queue: Queue, time_ns: int) -> set[int]:
        """The work that an event recorded on a queue at a time stands for; empty where nothing was enqueued by then."""
        found: set[int] = set()
        seen: set[tuple[int, int]] = set()
        open_ = [(queue, time_ns)]
        while open_:
            where, until = open_.pop()
            if (where.number, until) in seen:
                continue
            seen.add((where.number, until))
            count = where.count_before(until)
            if count:
                last = int(where.work[count - 1])
                found |= {last, *self._graphs.others.get(last, ())}
            waits = self._waits.get(where.number)
            if waits is not None:
                since = int(where.enqueued_ns[count - 1]) if count else -1
                open_ += [(self._by_number[w.event_queue], w.recorded_ns) for w in waits.between(since, until)]
        return found

    def behind_all(self, queues: Iterable[Queue], time_ns: int) -> list[int]:
        """The work that events recorded on several queues at a time stand for, in order."""
        return sorted({work for queue in queues for work in self.behind(queue, time_ns)})

    def of_device(self, device: int | None, time_ns: int) -> list[int]:
        """The last work by a time of every stream of a device, None for all devices; what names no device may be of any."""
        return self.behind_all((q for q in self.of_stream.values() if is_of(q.device, device)), time_ns)

    def awaited(self) -> list[tuple[int, int]]:
        """(producer, consumer) work of every recorded wait; but for those that nothing follows and of a queue for itself."""
        pairs = set()
        for wait in (wait for waits in self._waits.values() for wait in waits.waits):
            consumer = self._by_number[wait.queue].first_from(wait.since_ns)
            if consumer is not None and wait.event_queue != wait.queue:
                producers = self.behind(self._by_number[wait.event_queue], wait.recorded_ns)
                pairs |= {(producer, consumer) for producer in producers if producer != consumer}
        return sorted(pairs)


class Open:
    """The work without a stream that a thread has not waited for yet. Each piece is the last of its queue for ever; what comes
    after the first wait for it on a thread comes after the piece by that, and needs no edge of its own.
    """

    def __init__(self, lone: Lone) -> None:
        self._lone, self._count = lone, 0
        self._open: dict[int, int] = {}  # place in the order of enqueueing, by work

    def of_device(self, device: int | None, time_ns: int) -> list[int]:
        """What of it was enqueued on a device before a time, None for all devices; what names no device may be of any."""
        count = int(np.searchsorted(self._lone.enqueued_ns, time_ns, side="left"))
        for place in range(self._count, count):
            self._open[int(self._lone.work[place])] = place
        self._count = max(self._count, count)
        return [w for w, place in self._open.items() if place < count and is_of(int(self._lone.device[place]), device)]

    def waited_for(self, works: Iterable[int]) -> None:
        """The thread has waited for these."""
        for work in works:
            self._open.pop(work, None)


def is_of(own: int, device: int | None) -> bool:
    """Whether work of a device (-1: not recorded) may be of a given one (None: any)."""
    return device is None or own in (device, -1)


def device_queues(draft: RankDraft) -> Queues:
    """The device queues of a rank; made once a draft."""
    return draft.remembered("device queues", lambda: _device_queues(draft))


def _device_queues(draft: RankDraft) -> Queues:
    work, enqueued = draft.work, draft.enqueued_ns
    devices, streams = draft.table.column("device"), draft.table.column("stream")
    on_device = np.flatnonzero(~work.on_host)
    order = on_device[np.lexsort((on_device, enqueued[on_device], work.queue[on_device]))]
    queues, of_stream, lone = [], {}, []
    for members in np.split(order, np.flatnonzero(np.diff(work.queue[order])) + 1) if order.size else ():
        row = int(work.row[members[0]])
        queue = Queue(int(work.queue[members[0]]), int(devices[row]), members, enqueued[members])
        queues.append(queue)
        if streams[row] >= 0:
            of_stream[queue.device, int(streams[row])] = queue
        else:
            lone.append(members)
    pieces = np.concatenate([*lone, np.empty(0, np.int64)]).astype(np.int64)
    pieces = pieces[np.argsort(enqueued[pieces], kind="stable")]
    return Queues(
        tuple(queues),
        of_stream,
        _endings(draft, order),
        _recorded_waits(draft, of_stream),
        {q.number: q for q in queues},
        Lone(pieces, devices[work.row[pieces]], enqueued[pieces]),
        graph_launches(draft),
    )


def _endings(draft: RankDraft, order: Int64s) -> Endings:
    """Device work, given in order of queue and enqueueing, in order of its ends."""
    queue, enqueued = draft.work.queue[order], draft.enqueued_ns[order]
    followed = np.full(order.size, _NEVER_NS, np.int64)
    followed[:-1] = np.where(queue[1:] == queue[:-1], enqueued[1:], _NEVER_NS)
    place = np.argsort(draft.work.end_ns[order], kind="stable")
    work = order[place]
    return Endings(work, draft.work.end_ns[work], enqueued[place], followed[place], queue[place], place)


def _recorded_waits(draft: RankDraft, of_stream: dict[tuple[int, int], Queue]) -> dict[int, _Waits]:
    """The recorded waits of each queue that has some."""
    waits: dict[int, list[_Wait]] = defaultdict(list)
    for row in sync_rows(draft.table):
        if row.kind == STREAM_WAIT and (wait := _wait(draft, row, of_stream)) is not None:
            waits[wait.queue].append(wait)
    found = {}
    for number, own in waits.items():
        own.sort(key=lambda wait: wait.since_ns)
        found[number] = _Waits(np.array([wait.since_ns for wait in own], np.int64), tuple(own))
    return found


def _wait(draft: RankDraft, row: SyncRow, of_stream: dict[tuple[int, int], Queue]) -> _Wait | None:
    if row.stream is None or row.recorded_ns is None:
        return None
    waiting, awaited = of_stream.get((row.device, row.stream)), event_queue(draft, row, of_stream)
    if waiting is None or awaited is None:
        return None
    since_ns = int(draft.table.column("ts_ns")[row.call_row])
    return _Wait(waiting.number, since_ns, awaited.number, row.recorded_ns)


def named_by(draft: RankDraft, row: SyncRow) -> list[int] | None:
    """The work on streams that a row of the host's waits names as what its call waits for; None where it does not say."""
    queues, called_ns = device_queues(draft), int(draft.table.column("ts_ns")[row.call_row])
    if row.kind == CONTEXT_SYNC:
        return queues.of_device(row.device, called_ns)
    if row.kind == STREAM_SYNC:
        queue = None if row.stream is None else queues.of_stream.get((row.device, row.stream))
        return None if queue is None else sorted(queues.behind(queue, called_ns))
    queue = event_queue(draft, row, queues.of_stream)
    if queue is None or row.recorded_ns is None:
        return None
    # A call cannot wait for what is recorded after it has begun.
    return sorted(queues.behind(queue, min(row.recorded_ns, called_ns)))


def event_queue(draft: RankDraft, row: SyncRow, of_stream: dict[tuple[int, int], Queue]) -> Queue | None:
    """The queue on which a row's event was recorded; None where the row does not say.

    A row names its own device and the event's stream, and streams of several devices may have one number: where the thread
    that recorded the event had launched on another device by then, the row leaves open which stream is meant.
    """
    if row.event_stream is None:
        return None
    if row.record_row is not None and sum(stream == row.event_stream for _, stream in of_stream) > 1:
        recording = device_around(draft.table, row.record_row)
        if recording is not None and recording != row.device:
            return None
    return of_stream.get((row.device, row.event_stream))
