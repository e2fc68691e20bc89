"""Lay one rank out: in, an event table and the first free node number; out, a RankDraft.

Only the recording window (first step's start to last step's end) is laid out. Work that was enqueued before the window and
still ran in it is kept and pinned to its recorded start; host events outside the window are counted.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracereplay.errors import TraceError
from tracereplay.graph.bursts import find_bursts
from tracereplay.graph.draft import HostThread, RankDraft, Work
from tracereplay.graph.late_launch import Launched, launch_times
from tracereplay.graph.rules import autograd
from tracereplay.graph.rules.host_collective import match_calls
from tracereplay.graph.tiling import tile
from tracereplay.trace.classify import WorkClass, class_of_kernel
from tracereplay.trace.collectives import is_host_annotation
from tracereplay.trace.schema import DEVICE_ROLES, HOST_ROLES, Role
from tracereplay.trace.steps import Step, StepMarks, find_steps
from tracereplay.trace.table import EventTable
from tracereplay.trace.times import Int64s


@dataclass(frozen=True, slots=True)
class _Queued:
    """Work columns before they are sorted into queues; see ``draft.Work``."""

    row: Int64s
    queue: Int64s
    call: Int64s
    launch_ns: Int64s
    collective: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _TilingPlan:
    """Rows of each host thread, which is the main one and until when it is tiled, extra cut points by thread, the window."""

    hosts: dict[tuple[int, int], Int64s]
    main: int
    cuts: dict[int, list[int]]
    low_ns: int
    high_ns: int
    main_high_ns: int


def lay_out(index: int, table: EventTable, first_node: int, steps: frozenset[int] | None) -> RankDraft:
    """The draft of one rank; ``steps`` keeps the window from the first to the last of those numbers.

    Raises:
        TraceError: no whole step, or none of the steps asked for.
    """
    marks = _wanted(find_steps(table), steps, table.path)
    low, high = marks.whole[0].start_ns, max(step.end_ns for step in marks.whole)
    spans, before = _thread_rows(table, low, high)
    communication = [key for key, rows in spans.items() if _is_communication_thread(table, rows)]
    hosts = {key: rows for key, rows in spans.items() if key not in communication}
    main = _main_thread(table, hosts, marks)
    device = _device_work(table, low, high)
    rows = list(hosts.values())
    bursts = find_bursts(table, rows, main)
    cuts = _merged(autograd.cut_points(table, rows, main, bursts), _late_launches(table, list(hosts), device))
    # Without marks nothing says that a thread stayed in the step after its last event, while others or the device went on.
    main_high = high if marks.marked or main < 0 else _last_end(table, rows[main], high)
    plan = _TilingPlan(hosts, main, cuts, low, high, main_high)
    threads, next_node = _tile_threads(table, plan, first_node)
    queued = _concat([device, _host_work(table, [spans[k] for k in communication])])
    return RankDraft(
        index, table, marks, low, high, threads, main, _sorted_work(table, queued, threads, high), next_node, before, bursts
    )


def _wanted(marks: StepMarks, steps: frozenset[int] | None, path: str) -> StepMarks:
    whole = tuple(step for step in marks.whole if steps is None or step.number in steps)
    if not whole:
        what = "no whole step" if steps is None else f"none of the steps {sorted(steps)} is whole"
        raise TraceError(
            what, where=path, hint="record with torch.profiler.schedule(active=1) or more, or see `tracereplay info`"
        )
    return StepMarks(whole, marks.cut, marks.marked)


def _thread_rows(table: EventTable, low: int, high: int) -> tuple[dict[tuple[int, int], Int64s], int]:
    """Rows of each (pid, tid) inside the window sorted by (start, -end), and how many host events lie outside it."""
    rows = table.rows_of(*HOST_ROLES)
    starts, durs = table.column("ts_ns")[rows], table.column("dur_ns")[rows]
    inside = (durs >= 0) & (starts < high) & (starts + np.maximum(durs, 0) > low)
    outside = int(np.count_nonzero(~inside))
    rows, starts, durs = rows[inside], starts[inside], durs[inside]
    pids, tids = table.codes("pid")[rows].astype(np.int64), table.codes("tid")[rows].astype(np.int64)
    thread = pids * (int(tids.max(initial=0)) + 1) + tids
    order = np.lexsort((rows, -(starts + durs), starts, thread))
    rows, thread = rows[order], thread[order]
    parts = np.split(rows, np.flatnonzero(np.diff(thread)) + 1) if rows.size else []
    return {(int(table.codes("pid")[p[0]]), int(table.codes("tid")[p[0]])): p for p in parts}, outside


def _is_communication_thread(table: EventTable, rows: Int64s) -> bool:
    """True where a thread does nothing but run collectives: each of its outermost events is one."""
    outermost = rows[table.column("parent_row")[rows] < 0]
    names = np.unique(table.codes("name")[outermost])
    return outermost.size > 0 and all(is_host_annotation(table.names[code]) for code in names)


def _main_thread(table: EventTable, hosts: dict[tuple[int, int], Int64s], marks: StepMarks) -> int:
    """The thread of the first step's mark, else the one with most events."""
    keys = list(hosts)
    row = marks.whole[0].row
    if row is not None:
        return keys.index((int(table.codes("pid")[row]), int(table.codes("tid")[row])))
    return int(np.argmax([rows.size for rows in hosts.values()])) if keys else -1


def _last_end(table: EventTable, rows: Int64s, high: int) -> int:
    """When the last of a thread's events ends, at most ``high``."""
    return min(high, int((table.column("ts_ns")[rows] + table.column("dur_ns")[rows]).max()))


def _merged(one: dict[int, list[int]], other: dict[int, list[int]]) -> dict[int, list[int]]:
    return {number: sorted({*one.get(number, []), *other.get(number, [])}) for number in {*one, *other}}


def _late_launches(table: EventTable, threads: list[tuple[int, int]], device: _Queued) -> dict[int, list[int]]:
    """Where the calls of each thread are cut that launched late inside themselves."""
    cuts: dict[int, list[int]] = {}
    called = np.flatnonzero(device.call >= 0)
    late = called[device.launch_ns[called] > table.column("ts_ns")[device.call[called]]]
    pids, tids = table.codes("pid"), table.codes("tid")
    for place in late.tolist():
        row = int(device.call[place])
        thread = (int(pids[row]), int(tids[row]))
        if thread in threads:
            cuts.setdefault(threads.index(thread), []).append(int(device.launch_ns[place]))
    return cuts


def _tile_threads(table: EventTable, plan: _TilingPlan, first_node: int) -> tuple[tuple[HostThread, ...], int]:
    pids, tids = table.dictionary("pid"), table.dictionary("tid")
    threads = []
    node = first_node
    for number, ((pid, tid), rows) in enumerate(plan.hosts.items()):
        starts = table.column("ts_ns")[rows]
        ends = starts + table.column("dur_ns")[rows]
        points = np.array(plan.cuts.get(number, []), np.int64)
        rows = np.concatenate([rows, np.full(points.size, -1, np.int64)])  # noqa: PLW2901  # rows of this thread with its cuts
        starts, ends = np.concatenate([starts, points]), np.concatenate([ends, points])
        order = np.lexsort((-ends, starts))
        low = plan.low_ns if number == plan.main else max(plan.low_ns, int(starts.min()))
        high = plan.main_high_ns if number == plan.main else min(plan.high_ns, int(ends.max()))
        tiling = tile(starts[order], ends[order], low, max(low, high))
        threads.append(HostThread(pids[pid], tids[tid], rows[order], tiling, node))
        node += threads[-1].node_count
    return tuple(threads), node


def _device_work(table: EventTable, low: int, high: int) -> _Queued:
    rows = table.rows_of(*DEVICE_ROLES)
    rows = rows[table.column("dur_ns")[rows] >= 0]
    calls = table.column("launch_row")[rows]
    starts = table.column("ts_ns")[rows]
    ends = starts + table.column("dur_ns")[rows]
    call_ts = np.where(calls >= 0, table.column("ts_ns")[calls], starts)
    kept = (np.minimum(call_ts, starts) < high) & (ends > low)
    rows, calls = rows[kept], calls[kept]
    devices, streams = table.column("device")[rows], table.column("stream")[rows]
    # Work without a recorded stream has no order: each piece is a queue of its own.
    alone = np.where(streams < 0, np.arange(rows.size), -1)
    _, queue = np.unique(np.stack([devices, streams, alone], axis=1), axis=0, return_inverse=True)
    names = np.array([class_of_kernel(name, table.rules) == WorkClass.COLLECTIVE for name in table.names], np.bool_)
    collective = names[table.codes("name")[rows]] & (table.column("role")[rows] == Role.KERNEL)
    queue = queue.reshape(-1).astype(np.int64)
    starts, ends, call_ts = starts[kept], ends[kept], call_ts[kept]
    call_ends = call_ts + np.where(calls >= 0, np.maximum(table.column("dur_ns")[calls], 0), 0)
    launch_ns = launch_times(Launched(starts, ends, queue, call_ts, call_ends, calls >= 0))
    return _Queued(rows, queue, calls, launch_ns, collective)


def _host_work(table: EventTable, threads: list[Int64s]) -> _Queued:
    """Collectives that a CPU backend runs on its own threads; each thread is a queue. Calls are matched over the whole
    recording, whatever the window is: the order of all calls is what matches them.
    """
    annotations = np.array([is_host_annotation(name) for name in table.names], np.bool_)
    everywhere = table.rows_of(Role.ANNOTATION)
    everywhere = everywhere[annotations[table.codes("name")[everywhere]]]
    call_of = np.full(len(table), -1, np.int64)
    call_of[everywhere] = match_calls(table, everywhere)
    rows = [span[annotations[table.codes("name")[span]]] for span in threads]
    row = np.concatenate([*rows, np.empty(0, np.int64)]).astype(np.int64)
    queue = np.repeat(np.arange(len(rows)), [r.size for r in rows]).astype(np.int64)
    call = call_of[row]
    launch_ns = table.column("ts_ns")[np.where(call >= 0, call, row)]
    return _Queued(row, queue, call, launch_ns, np.ones(row.size, np.bool_))


def _concat(parts: list[_Queued]) -> _Queued:
    queues, offset = [], 0
    for part in parts:
        queues.append(part.queue + offset)
        offset += int(part.queue.max(initial=-1)) + 1
    return _Queued(
        np.concatenate([p.row for p in parts]),
        np.concatenate(queues),
        np.concatenate([p.call for p in parts]),
        np.concatenate([p.launch_ns for p in parts]),
        np.concatenate([p.collective for p in parts]),
    )


def _sorted_work(table: EventTable, queued: _Queued, threads: tuple[HostThread, ...], high: int) -> Work:
    starts = table.column("ts_ns")[queued.row]
    ends = starts + table.column("dur_ns")[queued.row]
    thread_of, position_of = _positions(len(table), threads)
    linked = queued.call >= 0
    call_thread = np.where(linked, thread_of[queued.call], -1)
    # What nothing inside the window enqueued and what began after its end belongs to no step of it.
    kept = (call_thread >= 0) | (starts < high)
    order = np.flatnonzero(kept)[np.lexsort((queued.row[kept], ends[kept], starts[kept], queued.queue[kept]))]
    return Work(
        row=queued.row[order],
        queue=queued.queue[order],
        start_ns=starts[order],
        end_ns=ends[order],
        launch_ns=queued.launch_ns[order],
        call_thread=call_thread[order],
        call_position=np.where(linked, position_of[queued.call], -1)[order],
        collective=queued.collective[order],
        on_host=(table.column("role")[queued.row] == Role.ANNOTATION)[order],
        unlinked=(queued.call < 0)[order],
    )


def _positions(rows: int, threads: tuple[HostThread, ...]) -> tuple[Int64s, Int64s]:
    """For each table row its thread's index and its position there, -1 where it is not laid out."""
    thread_of, position_of = np.full(rows, -1, np.int64), np.full(rows, -1, np.int64)
    for number, thread in enumerate(threads):
        real = np.flatnonzero(thread.rows >= 0)
        thread_of[thread.rows[real]] = number
        position_of[thread.rows[real]] = real
    return thread_of, position_of


def step_of_time(steps: tuple[Step, ...], times: Int64s) -> Int64s:
    """The index of the step in which each time lies, -1 between and outside steps."""
    starts = np.array([s.start_ns for s in steps], np.int64)
    ends = np.array([s.end_ns for s in steps], np.int64)
    position = np.searchsorted(starts, times, side="right") - 1
    inside = (position >= 0) & (times < ends[np.maximum(position, 0)])
    return np.where(inside, position, -1)
