"""A stream waits for an event of another stream.

    host        |launch A|   |StreamWaitEvent|   |launch C|
    stream 7    |------A------|
    stream 20                 `-->|--C--|

Rows of ``cuda_sync`` name the stream and the event of a wait. Where there are none, three things are asked in turn:

- timing: work that starts later than its launch and its stream explain, right after work of another stream ended, waited for
  it. With a wait called between the previous launch on its stream and its own (or both launched by one graph) that is how
  a wait looks; without one the launch lies before the recording or the device was full, and it takes a closer fit;
- program order, for the waits that timing does not show: the next launch of the program is what waits, and what it waits
  for is the last work that the program launched on another queue; several waits before one launch are for as many other
  queues, the ones launched on most recently. Queues that the waiting one was seen to wait for are asked first; of a side
  queue never seen to wait, the program's main queue. Such an edge is slack. The forward thread and the backward threads
  that it hands over to are one program; every other thread is its own;
- timing again, which may refute such a pair (the producer ends after the consumer starts); refuted pairs are counted.
"""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from tracereplay.graph.bursts import engine_codes
from tracereplay.graph.chance import coincidence
from tracereplay.graph.draft import RankDraft
from tracereplay.graph.edges import Edges, Found, concat_edges, found, make_edges
from tracereplay.graph.graph_launches import graph_launches
from tracereplay.graph.kinds import Basis, Why
from tracereplay.graph.queues import Queues, device_queues
from tracereplay.graph.readiness import Readiness, readiness
from tracereplay.trace.classify import collective_of
from tracereplay.trace.sync_rows import STREAM_WAIT, sync_rows
from tracereplay.trace.times import Int64s

_WAIT_CALL = re.compile(r"^(cuda|hip|cu)StreamWaitEvent")
# Less than this is what launches and kernel gaps scatter by on the corpus traces (whole microseconds included).
_SHOWN_FROM_NS = 3_000
# From the end of the producer to the start of the consumer: 1 to 3 µs on NVIDIA devices, 10 to 17 µs on AMD's.
_FOLLOWS_WITHIN_NS = 30_000
_FOLLOWS_CLOSELY_NS = 8_000
# The next work may start while the last blocks of a kernel still run (up to 3 µs on the corpus traces).
_OVERLAP_NS = 3_000
# What is recorded in whole microseconds may seem to overlap by one.
_ROUNDING_NS = 1_000
# Ends of other work lie everywhere: one that is taken for the reason of a start lies closer than one in fifty would.
_FULL_BY_ACCIDENT = 0.02


@dataclass(frozen=True, slots=True)
class _Calls:
    """Wait calls that no row explains: when and on which thread each was made; ``used`` by a wait that timing shows."""

    ts_ns: Int64s
    thread: Int64s
    used: "np.ndarray[tuple[int], np.dtype[np.bool_]]"


def event_wait(draft: RankDraft) -> Found:
    """Edges from the work before a recorded event to the work that waits for it."""
    queues = device_queues(draft)
    recorded = queues.awaited()
    calls = _unexplained_calls(draft)
    ready = readiness(draft, recorded)
    awaited, filled = _shown_by_timing(draft, queues, ready, calls)
    shown = awaited | filled
    taken = {consumer for _, consumer in recorded}
    graphs = graph_launches(draft)
    known = set(recorded) | graphs.pairs
    guessed: set[tuple[int, int]] = set()
    refuted = 0
    for program in _programs(draft):
        good, bad = _by_program_order(draft, program, calls, shown | set(recorded))
        guessed |= {pair for pair in good if pair[1] not in taken}
        refuted += bad
    inferred = sorted(graphs.with_others(awaited | guessed, draft) - known)
    parts = [
        _edges(draft, Why.EVENT_WAIT, Basis.RECORDED, recorded),
        _edges(draft, Why.EVENT_WAIT, Basis.INFERRED, inferred),
        _edges(draft, Why.FULL_DEVICE, Basis.INFERRED, sorted(filled - known - set(inferred))),
    ]
    return found(concat_edges(parts), refuted=refuted)


def _edges(draft: RankDraft, why: Why, basis: Basis, pairs: list[tuple[int, int]]) -> Edges:
    columns = np.array(pairs, np.int64).reshape(-1, 2)
    return make_edges(why, basis, draft.work_last_node[columns[:, 0]], draft.work_node[columns[:, 1]])


def _unexplained_calls(draft: RankDraft) -> _Calls:
    """The wait calls inside the window that no row of ``cuda_sync`` describes, in order of time."""
    codes = np.array([code for code, name in enumerate(draft.table.names) if _WAIT_CALL.match(name)], np.int64)
    waits = [row for row in sync_rows(draft.table) if row.kind == STREAM_WAIT]
    described = {w.call_row for w in waits if None not in (w.stream, w.event_stream, w.recorded_ns)}
    names, ts = draft.table.codes("name"), draft.table.column("ts_ns")
    times, threads = [], []
    for number, thread in enumerate(draft.threads):
        rows = thread.rows[thread.rows >= 0]
        mine = [row for row in rows[np.isin(names[rows], codes)].tolist() if row not in described]
        times += [int(ts[row]) for row in mine]
        threads += [number] * len(mine)
    order = np.argsort(np.array(times, np.int64), kind="stable")
    return _Calls(np.array(times, np.int64)[order], np.array(threads, np.int64)[order], np.zeros(order.size, np.bool_))


def _shown_by_timing(
    draft: RankDraft, queues: Queues, ready: Readiness, calls: _Calls
) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """(producer, consumer) pairs that starts and ends show, with a wait called or a graph between them, and without. Marks
    the wait calls that they account for as used.
    """
    candidates = _candidates(draft, queues, ready)
    view = _View(draft, ready, np.sort(draft.work.end_ns[_members(queues)]), _usual_lag(draft, candidates))
    collectives = np.flatnonzero(draft.work.collective & ~draft.work.on_host)
    collectives = collectives[np.argsort(draft.work.end_ns[collectives], kind="stable")]
    awaited: set[tuple[int, int]] = set()
    filled: set[tuple[int, int]] = set()
    for consumer in _late(draft, queues, ready).tolist():
        slots = _slots(draft, ready, calls, consumer)
        producer = _followed(view, candidates.get(consumer, []), consumer, slots)
        if producer is None and slots.size:
            producer = _last_collective(draft, ready, collectives, consumer)
        if producer is None:
            continue
        in_graph = _one_graph(draft, producer, consumer)
        if not in_graph:
            calls.used[slots[-1:]] = True
        (awaited if in_graph or slots.size else filled).add((producer, consumer))
    return awaited, filled


def _candidates(draft: RankDraft, queues: Queues, ready: Readiness) -> dict[int, list[int]]:
    """For each piece of work that started late, in order of start, what ended around its start and may have delayed it."""
    work = draft.work
    members = _members(queues)
    by_end = members[np.argsort(work.end_ns[members], kind="stable")]
    ends = work.end_ns[by_end]
    late = _late(draft, queues, ready)
    low = np.searchsorted(ends, work.start_ns[late] - _FOLLOWS_WITHIN_NS, side="left")
    high = np.searchsorted(ends, work.start_ns[late] + _OVERLAP_NS, side="right")
    found_for = {}
    for consumer, first, last in zip(late.tolist(), low.tolist(), high.tolist(), strict=True):
        near = [p for p in by_end[first:last].tolist() if _may_precede(draft, ready, p, consumer)]
        if near:
            found_for[consumer] = near
    return found_for


def _members(queues: Queues) -> Int64s:
    return np.concatenate([q.work for q in queues.all]) if queues.all else np.empty(0, np.int64)


def _late(draft: RankDraft, queues: Queues, ready: Readiness) -> Int64s:
    """The work that launch and queue do not explain, in order of its start."""
    members = _members(queues)
    late = members[ready.late_ns[members] >= _SHOWN_FROM_NS]
    return late[np.argsort(draft.work.start_ns[late], kind="stable")]


def _last_collective(draft: RankDraft, ready: Readiness, by_end: Int64s, consumer: int) -> int | None:
    """The collective that ended last before work that was made to wait, where it accounts for nearly all of the delay: a
    process group makes a stream wait for its collectives, and the device may have been full for a moment after that.
    """
    work = draft.work
    start, late = int(work.start_ns[consumer]), int(ready.late_ns[consumer])
    place = int(np.searchsorted(work.end_ns[by_end], start, side="right")) - 1
    if place < 0 or start - work.end_ns[by_end[place]] > late // 8:
        return None
    producer = int(by_end[place])
    return producer if _may_precede(draft, ready, producer, consumer) else None


def _usual_lag(draft: RankDraft, candidates: dict[int, list[int]]) -> int:
    """From the end of a producer to the start of what waited for it: the median where one candidate alone ended before."""
    work = draft.work
    lags = []
    for consumer, near in candidates.items():
        before = [int(work.start_ns[consumer] - work.end_ns[p]) for p in near if work.end_ns[p] <= work.start_ns[consumer]]
        if len(before) == 1:
            lags.append(before[0])
    return int(np.median(lags)) if lags else 0


def _may_precede(draft: RankDraft, ready: Readiness, producer: int, consumer: int) -> bool:
    """True for work of another queue that was enqueued before and ended when the consumer had been ready otherwise."""
    work = draft.work
    return bool(
        work.queue[producer] != work.queue[consumer]
        and draft.enqueued_ns[producer] <= draft.enqueued_ns[consumer]
        and work.end_ns[producer] > ready.ready_ns[consumer]
        and work.start_ns[producer] < work.start_ns[consumer]
    )


def _slots(draft: RankDraft, ready: Readiness, calls: _Calls, consumer: int) -> Int64s:
    """Wait calls, not used yet, between the previous launch on the consumer's queue and its own."""
    if draft.work.call_thread[consumer] < 0:
        return np.empty(0, np.int64)
    before = int(ready.previous[consumer])
    since = int(draft.enqueued_ns[before]) if before >= 0 else np.iinfo(np.int64).min
    # Of calls in one microsecond the order is not recorded.
    low = int(np.searchsorted(calls.ts_ns, since, side="left" if ready.whole_us else "right"))
    high = int(np.searchsorted(calls.ts_ns, draft.call_ns[consumer], side="right" if ready.whole_us else "left"))
    return np.arange(low, high)[~calls.used[low:high]]


@dataclass(frozen=True, slots=True)
class _View:
    """What timing is read from: a rank's work and readiness, all ends in order, the usual lag after what was waited for."""

    draft: RankDraft
    ready: Readiness
    ends_ns: Int64s
    usual_ns: int


def _followed(view: _View, near: list[int], consumer: int, slots: Int64s) -> int | None:
    """Of the candidates the one that the consumer waited for: the one whose end lies before the start by the usual lag."""
    draft, ready, work = view.draft, view.ready, view.draft.work
    rounding_ns = _ROUNDING_NS if ready.whole_us else 0
    start, late = int(work.start_ns[consumer]), int(ready.late_ns[consumer])
    lags = {producer: start - int(work.end_ns[producer]) for producer in near}
    in_graph = {p: lag for p, lag in lags.items() if _one_graph(draft, p, consumer)}
    if in_graph:
        lags, least, most = in_graph, -rounding_ns, _FOLLOWS_CLOSELY_NS
    elif slots.size:
        least, most = -rounding_ns, max(_FOLLOWS_CLOSELY_NS, min(_FOLLOWS_WITHIN_NS, late // 4))
    else:
        least, most = -_OVERLAP_NS, min(_FOLLOWS_WITHIN_NS, late // 8)
        lags = {p: lag for p, lag in lags.items() if _filled_the_device(view, p, consumer)}
    fitting = [producer for producer, lag in lags.items() if least <= lag <= most]
    return min(fitting, key=lambda p: (abs(lags[p] - view.usual_ns), p), default=None)


def _filled_the_device(view: _View, producer: int, consumer: int) -> bool:
    """True where work may have kept other work from starting and its end says so: it ran when the other was ready, or the
    other was launched before the recording, and of all the ends since then this one lies too close for an accident.
    """
    work = view.draft.work
    start, since = int(work.start_ns[consumer]), int(view.ready.ready_ns[consumer])
    if work.call_thread[consumer] >= 0 and work.start_ns[producer] > since:
        return False
    ends = np.searchsorted(view.ends_ns, [since, start + _OVERLAP_NS], side="right")
    lag = abs(start - int(work.end_ns[producer]))
    return coincidence(int(ends[1] - ends[0]), lag, start - since) < _FULL_BY_ACCIDENT


def _one_graph(draft: RankDraft, one: int, other: int) -> bool:
    work = draft.work
    return bool(
        work.call_thread[one] >= 0
        and work.call_thread[one] == work.call_thread[other]
        and work.call_position[one] == work.call_position[other]
    )


def _programs(draft: RankDraft) -> list[list[int]]:
    """Threads that take turns: the main thread with the engine's threads, every other thread by itself."""
    engine = engine_codes(draft.table)
    codes = draft.table.codes("name")
    together: list[int] = []
    alone: list[int] = []
    for number, thread in enumerate(draft.threads):
        is_engine = np.isin(codes[thread.rows[thread.rows >= 0]], engine).any()
        (together if number == draft.main or is_engine else alone).append(number)
    return [together, *([n] for n in alone)]


def _by_program_order(
    draft: RankDraft, program: list[int], calls: _Calls, known: set[tuple[int, int]]
) -> tuple[set[tuple[int, int]], int]:
    """(producer, consumer) of each wait of a program that nothing else shows, and how many pairs timing refutes."""
    work = draft.work
    of_program = np.isin(calls.thread, program)
    launched = np.flatnonzero(np.isin(work.call_thread, program) & ~work.on_host)
    order = np.argsort(draft.call_ns[launched], kind="stable")
    launched = launched[order]
    places = np.searchsorted(draft.call_ns[launched], calls.ts_ns, side="right")
    called, left = Counter(places[of_program].tolist()), Counter(places[of_program & ~calls.used].tolist())
    so_far = _Program.begin(draft, launched, known)
    good: set[tuple[int, int]] = set()
    refuted = 0
    for place, consumer in enumerate(launched.tolist() if left else ()):
        so_far.know(consumer)
        if not left[place]:
            so_far.launch(consumer)
            continue
        for producer in so_far.plausible(consumer, several=called[place] > 1)[: left[place]]:
            if work.end_ns[producer] <= work.start_ns[consumer]:
                good.add((producer, consumer))
                so_far.note(producer, consumer)
            else:
                refuted += 1
        so_far.launch(consumer)
    return good, refuted


@dataclass(frozen=True, slots=True)
class _Program:
    """A program as far as it has been read: the last launch on each queue, in the order of these launches, and what each queue
    has waited for last of each other. ``seen`` are the queues that each was seen to wait for anywhere in the recording.
    """

    draft: RankDraft
    main: int
    seen: dict[int, set[int]]
    known: dict[int, list[int]]
    last: dict[int, int]
    awaited: dict[tuple[int, int], int]

    @staticmethod
    def begin(draft: RankDraft, launched: Int64s, known: set[tuple[int, int]]) -> "_Program":
        """A program of which nothing has been read; ``known`` are the waits that are not guessed."""
        queue = draft.work.queue
        seen: dict[int, set[int]] = {}
        of_consumer: dict[int, list[int]] = {}
        for producer, consumer in sorted(known):
            seen.setdefault(int(queue[consumer]), set()).add(int(queue[producer]))
            of_consumer.setdefault(consumer, []).append(producer)
        main = int(np.bincount(queue[launched]).argmax()) if launched.size else -1
        return _Program(draft, main, seen, of_consumer, {}, {})

    def plausible(self, consumer: int, *, several: bool) -> list[int]:
        """The last launches on other queues that waits before this launch may be for, most recent first.

        What the queue has waited for already is not waited for again. A side queue waits for the queues that it was seen
        to wait for, else for the main one, from which it is forked. The main one waits for any side queue, but for a queue
        of messages only if it was seen to, or never seen to wait: who sends need not wait. ``several`` waits before one
        launch are for several queues.
        """
        work = self.draft.work
        queue = int(work.queue[consumer])
        others = [
            (other, producer)
            for other, producer in reversed(self.last.items())
            if other != queue and self.awaited.get((queue, other)) != producer
        ]
        seen = self.seen.get(queue)
        if queue == self.main or self.main not in self.last:
            return [p for other, p in others if seen is None or other in seen or not self._may_be_message(p)]
        first = [p for other, p in others if (other in seen if seen is not None else other == self.main)]
        more = [p for _, p in others if p not in first and not work.collective[p]]
        return [*first, *more] if several else first

    def know(self, consumer: int) -> None:
        """The waits of a launch that are known have been read."""
        for producer in self.known.get(consumer, []):
            self.note(producer, consumer)

    def _may_be_message(self, work: int) -> bool:
        """True for a kernel of sends and receives, which may be an all-to-all as well."""
        if not self.draft.work.collective[work]:
            return False
        table = self.draft.table
        return collective_of(table.name_of(int(self.draft.work.row[work])), table.rules) == "send_recv"

    def note(self, producer: int, consumer: int) -> None:
        """The consumer's queue has waited for the producer."""
        queue = self.draft.work.queue
        self.awaited[int(queue[consumer]), int(queue[producer])] = producer

    def launch(self, work: int) -> None:
        """The next launch has been read."""
        queue = int(self.draft.work.queue[work])
        self.last.pop(queue, None)
        self.last[queue] = work
