"""One rank laid out for the rules: in, its event table; out, host threads tiled, queues of work in order, node numbers.

A queue is (device, stream) for device work, or a communication thread of a gloo backend: both hold work that other
threads enqueue. Node numbers of a rank: first the segments of its host threads, then the work of its queues.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tracereplay.graph.bursts import Bursts
from tracereplay.graph.numbering import numbered
from tracereplay.graph.tiling import Tiling
from tracereplay.trace.steps import StepMarks
from tracereplay.trace.table import EventTable
from tracereplay.trace.times import Int64s

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HostThread:
    """A host thread inside the recording window.

    ``rows`` are table rows in tiling order, -1 for a cut point that a rule asked for. ``first_node`` is the node of its
    first segment.
    """

    pid: str
    tid: str
    rows: Int64s
    tiling: Tiling
    first_node: int

    def node_at_begin(self, position: int | Int64s) -> Int64s:
        """The node that starts where the event at ``position`` of ``rows`` begins."""
        return self.first_node + self.tiling.begin_boundary[position]

    def node_at_end(self, position: int | Int64s) -> Int64s:
        """The node that starts where the event at ``position`` of ``rows`` ends."""
        return self.first_node + self.tiling.end_boundary[position]

    @property
    def node_count(self) -> int:
        """Number of segments."""
        return int(self.tiling.start_ns.size)

    def node_from(self, time_ns: Int64s) -> Int64s:
        """The first node that starts at each time or later."""
        return np.asarray(self.first_node + np.searchsorted(self.tiling.start_ns, time_ns, side="left"), np.int64)

    def ends_at(self, time_ns: int) -> bool:
        """True where a segment ends at a time: what sticks out of its parent is cut there and has no end of its own."""
        position = int(np.searchsorted(self.tiling.end_ns, time_ns, side="left"))
        return position < self.node_count and int(self.tiling.end_ns[position]) == time_ns

    def node_after(self, time_ns: int) -> int:
        """The node that starts where the last one that has ended by ``time_ns`` ends: its start is that end, however much of
        the time before was a wait. The second node where none has.
        """
        position = int(np.searchsorted(self.tiling.end_ns, time_ns, side="right")) - 1
        return self.first_node + min(max(position, 0) + 1, self.node_count - 1)


@dataclass(frozen=True, slots=True)
class Work:
    """The queue work of a rank in node order: sorted by queue, then start.

    One entry a piece of work: table ``row``, ``queue`` number, times, and the launching call as (thread index, position in
    that thread's rows), -1 where none is linked. ``launch_ns`` is when the call launched it: its start, or a point inside
    a call that did other things first. ``collective`` marks work that a
    rendezvous splits, ``unlinked`` work for which no call is recorded at all.
    """

    row: Int64s
    queue: Int64s
    start_ns: Int64s
    end_ns: Int64s
    launch_ns: Int64s
    call_thread: Int64s
    call_position: Int64s
    collective: npt.NDArray[np.bool_]
    on_host: npt.NDArray[np.bool_]
    unlinked: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return int(self.row.size)

    @property
    def launched_together(self) -> npt.NDArray[np.bool_]:
        """True for work that one call launched together with other work, as graph launches do."""
        calls = numbered(self.call_thread, self.call_position)
        return np.asarray((self.call_thread >= 0) & (np.bincount(calls, minlength=1)[calls] > 1))


@dataclass(frozen=True)
class RankDraft:
    """All that the rules need of one rank."""

    index: int
    table: EventTable
    marks: StepMarks
    low_ns: int
    high_ns: int
    threads: tuple[HostThread, ...]
    main: int
    work: Work
    first_work_node: int
    dropped_before: int
    bursts: Bursts
    _memory: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def remembered(self, key: str, make: Callable[[], T]) -> T:
        """What ``make`` gives, made once for this draft and key."""
        if key not in self._memory:
            self._memory[key] = make()
        value: T = self._memory[key]
        return value

    @cached_property
    def work_node(self) -> Int64s:
        """The node of each piece of work: a collective's arrival, everything else's only node."""
        width = np.where(self.work.collective, 2, 1)
        return self.first_work_node + np.cumsum(width) - width

    @cached_property
    def work_last_node(self) -> Int64s:
        """The node with which each piece of work ends: a collective's transfer, everything else's only node."""
        return self.work_node + self.work.collective

    @cached_property
    def call_row(self) -> Int64s:
        """The table row of the call that enqueued each piece of work, -1 where none is linked."""
        rows = np.full(len(self.work), -1, np.int64)
        for number, thread in enumerate(self.threads):
            mine = self.work.call_thread == number
            rows[mine] = thread.rows[self.work.call_position[mine]]
        return rows

    @cached_property
    def call_ns(self) -> Int64s:
        """When each piece of work was enqueued: the start of its call, its own start where no call is linked."""
        rows = self.call_row
        return np.where(rows >= 0, self.table.column("ts_ns")[rows], self.work.start_ns)

    @cached_property
    def enqueued_ns(self) -> Int64s:
        """When each piece of work was enqueued: the start of its call. Work without a call came after all that stands before it
        in its queue; what is known of it beyond that is that the recording, or its window, began later than its call.
        """
        work, launches = self.work, self.table.column("launch_row")[self.work.row]
        called = np.where(launches >= 0, self.table.column("ts_ns")[launches], self.low_ns)
        known = work.call_thread >= 0
        result = np.where(known, self.call_ns, called)
        for part in np.split(np.arange(len(work)), np.flatnonzero(np.diff(work.queue)) + 1) if len(work) else ():
            result[part] = np.where(known[part], result[part], np.maximum.accumulate(result[part]))
        return result

    @property
    def next_node(self) -> int:
        """The first node number past this rank."""
        return self.first_work_node + len(self.work) + int(self.work.collective.sum())
