"""An event-driven machine of hosts, devices and collectives: in, a program a rank; out, what happened and what caused it.

Host threads run instructions one after another; streams take their items in order; an item may be work, the record of an
event or a wait for one; a collective ends when its last participant has arrived and the transfer has passed. Nothing here
knows of graphs or replays: causes are noted where the machine waits. Times are whole nanoseconds on one true clock.
"""

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

# Typical times of a V100 or A100 host and device (launch 5-10 µs, kernel gap 1-2 µs, wake-up 4-8 µs), each spread by the
# instruction's own noise.
LATENCY_NS = (5_000, 2_000)
KERNEL_GAP_NS = (1_000, 500)
EVENT_LAG_NS = (1_200, 600)
WAKE_NS = (5_000, 2_000)
HANDOFF_NS = (15_000, 10_000)
COMM, HOST, DEVICE = "nccl", "host", "device"

Thread = Generator["int | Signal", None, None]


@dataclass(frozen=True)
class Do:
    """One instruction. ``what`` says which; ``ns`` is its own time (host time, or the work's), ``noise`` in [0, 1) spreads the
    latencies that it meets, ``body`` is what runs inside it.
    """

    what: str
    name: str = ""
    ns: int = 0
    stream: int = 7
    key: Any = None
    noise: float = 0.5
    cost_ns: int = 4_000
    body: tuple["Do", ...] = ()
    streams: tuple[int, ...] = ()


@dataclass
class Signal:
    """Something that happens once; ``causes`` are the events whose end made it happen."""

    fired: int | None = None
    causes: tuple[int, ...] = ()
    waiters: list[Callable[[], None]] = field(default_factory=list)


@dataclass
class Recorded:
    """One event of the recording, with what the exporter writes of it."""

    rank: int
    kind: str
    name: str
    start: int
    end: int
    thread: str = ""
    stream: int = -1
    correlation: int = 0
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cause:
    """A true edge between two recorded events, by how much it delayed its destination beyond launch and stream order, and
    whether a row of ``cuda_sync`` names it.
    """

    src: int
    dst: int
    kind: str
    delay_ns: int
    named: bool = False


@dataclass
class _Item:
    do: Do
    issued: int
    event: int = -1
    call: int = -1
    signal: Signal | None = None
    meeting: "_Meeting | None" = None


@dataclass
class _Meeting:
    size: int
    arrived: list[tuple["_Stream", "_Item", int]] = field(default_factory=list)


@dataclass
class _Stream:
    number: int
    items: deque[_Item] = field(default_factory=deque)
    busy: bool = False
    last: int = -1
    free: int = 0
    waits: list[tuple[Signal, int, bool]] = field(default_factory=list)


@dataclass
class _Rank:
    number: int
    streams: dict[int, _Stream] = field(default_factory=dict)
    correlation: int = 0
    signals: dict[Any, Signal] = field(default_factory=lambda: defaultdict(Signal))
    records: dict[Any, tuple[int, int]] = field(default_factory=dict)
    last_top: dict[str, int] = field(default_factory=dict)


def spread(span: tuple[int, int], noise: float) -> int:
    """A time within ``span`` = (least, width)."""
    return span[0] + int(span[1] * noise)


class Machine:
    """Runs the programs of all ranks and keeps what happened: ``events`` and ``causes``."""

    def __init__(self, groups: dict[str, tuple[int, ...]]) -> None:
        self.groups = groups
        self.now = 0
        self.events: list[Recorded] = []
        self.causes: list[Cause] = []
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._running = 0
        self._ranks: dict[int, _Rank] = {}
        self._meetings: dict[Any, _Meeting] = {}

    def run(self, programs: Mapping[int, Mapping[str, Sequence[Do]]], entries: Mapping[int, int]) -> None:
        """Run each rank's threads from its entry on until nothing happens any more."""
        for rank, threads in programs.items():
            state = _Rank(rank)
            self._ranks[rank] = state
            for thread, body in threads.items():
                self._at(entries[rank], self._stepper(self._thread(state, thread, tuple(body))))
        while self._heap:
            self.now, _, call = heapq.heappop(self._heap)
            call()
        stuck = [(r.number, s.number) for r in self._ranks.values() for s in r.streams.values() if s.items or s.busy]
        assert not stuck, f"streams that never drained (rank, stream): {stuck}"

    # -- the loop -------------------------------------------------------------------------------------------------------

    def _at(self, time: int, call: Callable[[], None]) -> None:
        self._running += 1
        heapq.heappush(self._heap, (time, self._running, call))

    def _stepper(self, thread: Thread) -> Callable[[], None]:
        def step() -> None:
            for wanted in thread:
                if isinstance(wanted, int):
                    self._at(self.now + wanted, step)
                    return
                if wanted.fired is None:
                    wanted.waiters.append(step)
                    return

        return step

    def _fire(self, signal: Signal, causes: tuple[int, ...]) -> None:
        signal.fired, signal.causes = self.now, causes
        for waiter in signal.waiters:
            self._at(self.now, waiter)
        signal.waiters.clear()

    def _record(self, event: Recorded) -> int:
        self.events.append(event)
        return len(self.events) - 1

    def _because(self, src: int, dst: int, kind: str, delay: int = 0, *, named: bool = False) -> None:
        self.causes.append(Cause(src, dst, kind, delay, named))

    # -- hosts ----------------------------------------------------------------------------------------------------------

    def _thread(self, rank: _Rank, thread: str, body: tuple[Do, ...]) -> Thread:
        for do in body:
            yield from getattr(self, f"_do_{do.what}")(rank, thread, do)

    def _do_work(self, rank: _Rank, thread: str, do: Do) -> Thread:
        yield do.ns

    def _do_event(self, rank: _Rank, thread: str, do: Do) -> Thread:
        """An operator or annotation around its body; ``key`` is its category."""
        event = self._record(Recorded(rank.number, do.key or "cpu_op", do.name, self.now, -1, thread))
        yield from self._thread(rank, thread, do.body)
        self.events[event].end = self.now
        rank.last_top[thread] = event

    def _call(self, rank: _Rank, thread: str, name: str) -> int:
        rank.correlation += 1
        event = Recorded(rank.number, "cuda_runtime", name, self.now, -1, thread, correlation=rank.correlation)
        return self._record(event)

    def _done(self, rank: _Rank, thread: str, call: int) -> None:
        self.events[call].end = self.now
        rank.last_top[thread] = call

    def _do_launch(self, rank: _Rank, thread: str, do: Do) -> Thread:
        call = self._call(rank, thread, do.key if isinstance(do.key, str) else "cudaLaunchKernel")
        self._enqueue(rank, do.stream, _Item(do, self.now, call=call))
        yield do.cost_ns
        self._done(rank, thread, call)

    def _do_graph(self, rank: _Rank, thread: str, do: Do) -> Thread:
        """One call that launches all kernels of its body, each on its own stream; ``key`` names a kernel's event, and that of
        an ``await`` in the body the event that the next kernel of that stream waits for. The graph belongs to the stream of
        its first kernel: all of it waits for what that holds, and what comes there later waits for all of it.
        """
        origin, last = do.body[0].stream, {piece.stream: piece for piece in do.body if piece.what != "await"}
        before = Signal()
        self._enqueue(rank, origin, _Item(Do("record"), self.now, signal=before))
        for stream in last:
            if stream != origin:
                self._enqueue(rank, stream, _Item(Do("await", noise=do.noise), self.now, signal=before))
        call = self._call(rank, thread, "cudaGraphLaunch")
        for piece in do.body:
            if piece.what == "await":
                self._enqueue(rank, piece.stream, _Item(piece, self.now, signal=rank.signals[piece.key]))
            else:
                self._enqueue(rank, piece.stream, _Item(piece, self.now, call=call))
                self._enqueue(rank, piece.stream, _Item(Do("record"), self.now, signal=rank.signals[piece.key]))
        for stream, piece in last.items():
            if stream != origin:
                self._enqueue(rank, origin, _Item(Do("await", noise=piece.noise), self.now, signal=rank.signals[piece.key]))
        yield do.cost_ns
        self._done(rank, thread, call)

    def _do_record(self, rank: _Rank, thread: str, do: Do) -> Thread:
        call = self._call(rank, thread, "cudaEventRecord")
        rank.records[do.key] = (self.events[call].correlation, do.stream)
        self._enqueue(rank, do.stream, _Item(do, self.now, signal=rank.signals[do.key]))
        yield do.cost_ns // 4
        self._done(rank, thread, call)

    def _do_await(self, rank: _Rank, thread: str, do: Do) -> Thread:
        call = self._call(rank, thread, "cudaStreamWaitEvent")
        self._sync_row(rank, call, "Stream Wait Event", do.stream, do.key)
        self._enqueue(rank, do.stream, _Item(do, self.now, call=call, signal=rank.signals[do.key]))
        yield do.cost_ns // 4
        self._done(rank, thread, call)

    def _sync_row(self, rank: _Rank, call: int, name: str, stream: int, key: Any = None) -> None:
        args: dict[str, Any] = {"cuda_sync_kind": name}
        if key is not None:
            correlation, on_stream = rank.records[key]
            args |= {"wait_on_stream": on_stream, "wait_on_cuda_event_record_corr_id": correlation, "wait_on_cuda_event_id": 1}
        of_call = self.events[call].correlation
        self._record(Recorded(rank.number, "cuda_sync", name, self.now, call, stream=stream, correlation=of_call, args=args))

    def _do_sync(self, rank: _Rank, thread: str, do: Do) -> Thread:
        """A blocking call: of one stream (``streams``), of the whole device (none), of an event (``key``)."""
        call = self._call(rank, thread, do.name)
        reached = self.now
        signals = [rank.signals[do.key]] if do.key is not None else self._markers(rank, do.streams or tuple(rank.streams))
        if do.name.endswith("Synchronize"):
            kind = "Event Sync" if do.key is not None else "Stream Sync" if do.streams else "Context Sync"
            self._sync_row(rank, call, kind, do.streams[0] if do.streams else -1, do.key)
        yield do.cost_ns
        for signal in signals:
            yield signal
        latest = max([s.fired or 0 for s in signals], default=0)
        back = max(latest + spread(WAKE_NS, do.noise), self.now)
        yield back - self.now
        for signal in signals:
            for cause in signal.causes:
                delay = self.events[cause].end + spread(WAKE_NS, do.noise) - reached - do.cost_ns
                self._because(cause, call, "sync", max(delay, 0), named=do.name.endswith("Synchronize"))
        self._done(rank, thread, call)

    def _markers(self, rank: _Rank, streams: tuple[int, ...]) -> list[Signal]:
        """A signal for each stream that fires when all that is enqueued now has ended."""
        signals = []
        for number in streams:
            if number in rank.streams:
                signals.append(Signal())
                self._enqueue(rank, number, _Item(Do("record"), self.now, signal=signals[-1]))
        return signals

    def _do_copy(self, rank: _Rank, thread: str, do: Do) -> Thread:
        """A copy from or to pageable memory: the call ends when the copy has."""
        call = self._call(rank, thread, "cudaMemcpyAsync")
        done = Signal()
        self._enqueue(rank, do.stream, _Item(do, self.now, call=call))
        self._enqueue(rank, do.stream, _Item(Do("record"), self.now, signal=done))
        reached = self.now
        yield do.cost_ns
        yield done
        yield spread(WAKE_NS, do.noise)
        for cause in done.causes:
            self._because(cause, call, "sync", max(self.now - reached - do.cost_ns, 0))
        self._done(rank, thread, call)

    def _do_give(self, rank: _Rank, thread: str, do: Do) -> Thread:
        """Hand over to another thread, which waits for ``key``."""
        self._fire(rank.signals[do.key], tuple(x for x in [rank.last_top.get(thread, -1)] if x >= 0))
        yield 0

    def _do_take(self, rank: _Rank, thread: str, do: Do) -> Thread:
        """Wait for another thread's ``give``; what the thread does next is delayed by it."""
        signal = rank.signals[do.key]
        reached = self.now
        yield signal
        late = (signal.fired or 0) + spread(HANDOFF_NS, do.noise)
        if late > self.now and (signal.fired or 0) > reached:
            yield late - self.now
        following = len(self.events)
        for cause in signal.causes:
            self._pending(rank, thread, cause, following, max(self.now - reached, 0))

    def _pending(self, rank: _Rank, thread: str, cause: int, following: int, delay: int) -> None:
        """The hand-over's destination is the next event of the thread, which begins now or later."""

        def note() -> None:
            mine = (i for i in range(following, len(self.events)) if self.events[i].rank == rank.number)
            after = next((i for i in mine if self.events[i].thread == thread), None)
            if after is not None:
                self._because(cause, after, "thread_handoff", delay)

        self._at(1 << 60, note)

    # -- devices --------------------------------------------------------------------------------------------------------

    def _enqueue(self, rank: _Rank, number: int, item: _Item) -> None:
        stream = rank.streams.setdefault(number, _Stream(number))
        if item.do.what == "collective":
            item.meeting = self._meetings.setdefault(item.do.key[:2], _Meeting(len(self.groups[item.do.key[0]])))
        stream.items.append(item)
        self._at(self.now, lambda: self._pump(rank, stream))

    def _pump(self, rank: _Rank, stream: _Stream) -> None:
        while stream.items and not stream.busy:
            item = stream.items[0]
            if item.do.what == "record":
                stream.items.popleft()
                assert item.signal is not None
                self._fire(item.signal, self._behind(stream))
            elif item.do.what == "await":
                assert item.signal is not None
                if item.signal.fired is None:
                    item.signal.waiters.append(lambda: self._pump(rank, stream))
                    return
                stream.items.popleft()
                # A call records its wait; a wait inside a graph is part of the graph.
                stream.waits.append((item.signal, spread(EVENT_LAG_NS, item.do.noise), item.call >= 0))
            elif not self._start(rank, stream, item):
                return

    def _behind(self, stream: _Stream) -> tuple[int, ...]:
        """What an event recorded now on a stream stands for: its last work and what it waited for since."""
        waited = [cause for signal, *_ in stream.waits for cause in signal.causes]
        return tuple(dict.fromkeys([*([stream.last] if stream.last >= 0 else []), *waited]))

    def _start(self, rank: _Rank, stream: _Stream, item: _Item) -> bool:
        """Start the work at the head of a stream if it is time, else come back then."""
        do = item.do
        recorded = {"launch": item.issued + spread(LATENCY_NS, do.noise)}
        if stream.last >= 0:
            recorded["stream_order"] = stream.free + spread(KERNEL_GAP_NS, do.noise)
        waits = [((signal.fired or 0) + lag, signal, named) for signal, lag, named in stream.waits]
        begin = max([*recorded.values(), *(t for t, *_ in waits)])
        if begin > self.now:
            self._at(begin, lambda: self._pump(rank, stream))
            return False
        stream.items.popleft()
        kind = {"copy": "gpu_memcpy"}.get(do.what, "kernel")
        correlation = self.events[item.call].correlation
        item.event = self._record(
            Recorded(rank.number, kind, do.name, self.now, -1, stream=stream.number, correlation=correlation)
        )
        self._because(item.call, item.event, "launch")
        if stream.last >= 0:
            self._because(stream.last, item.event, "stream_order")
        for bound, signal, named in waits:
            for cause in signal.causes:
                if cause != stream.last:
                    delay = max(bound - max(recorded.values()), 0)
                    self._because(cause, item.event, "event_wait", delay, named=named)
        stream.waits.clear()
        stream.busy = True
        if item.meeting is None:
            self._at(self.now + do.ns, lambda: self._end(rank, stream, item))
        else:
            self._arrive(rank, stream, item)
        return True

    def _arrive(self, rank: _Rank, stream: _Stream, item: _Item) -> None:
        meeting = item.meeting
        assert meeting is not None
        meeting.arrived.append((stream, item, rank.number))
        self.events[item.event].args = dict(item.do.key[2], group=item.do.key[0], seq=item.do.key[1])
        if len(meeting.arrived) < meeting.size:
            return
        events = [i.event for _, i, _ in meeting.arrived]
        for a, b in pairwise(events):
            self._because(a, b, "collective")
        transfer = max(i.do.ns for _, i, _ in meeting.arrived)
        for other, i, number in meeting.arrived:
            self._at(self.now + transfer, partial(self._end, self._ranks[number], other, i))

    def _end(self, rank: _Rank, stream: _Stream, item: _Item) -> None:
        self.events[item.event].end = self.now
        stream.busy, stream.last, stream.free = False, item.event, self.now
        self._pump(rank, stream)


Machine._do_collective = Machine._do_launch  # type: ignore[attr-defined] # a collective is launched like any work
