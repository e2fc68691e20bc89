"""A schedule back to events: in, a graph and a schedule; out, when each event of a rank begins and how long it lasts then.

- Work begins and ends with its tasks.
- A host event begins and ends with the tasks that start at its begin and end, so that events nest as they did and a wait lies
  in the event in which the host waited.
- A range that the profiler drew on a stream over the work of an annotation keeps its distance from the first and last work
  under it; a ``cuda_sync`` row keeps its distance from begin and end of its call.
- What the graph does not cover is left out and counted.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.graph.numbering import numbered
from tracereplay.graph.threads import HostThreads
from tracereplay.replay.schedule import Schedule
from tracereplay.trace.schema import DEVICE_ROLES, HOST_ROLES, Role
from tracereplay.trace.sync_rows import call_of_rows
from tracereplay.trace.table import EventTable
from tracereplay.trace.times import Int64s

OUTSIDE = "outside the steps"
NO_WORK = "range on a stream without work"
NO_CALL = "cuda_sync row without its call"


@dataclass(frozen=True, slots=True)
class Retimed:
    """The events of one rank at other times: rows of its table in file order with start and duration in ns, and how many
    other events there are, by why they are left out.
    """

    row: Int64s
    start_ns: Int64s
    dur_ns: Int64s
    left_out: dict[str, int]


def retime(graph: DependencyGraph, schedule: Schedule) -> tuple[Retimed, ...]:
    """The events of every rank under a schedule. Linear in events."""
    threads = HostThreads(graph)
    return tuple(_Rank(graph, schedule, threads, rank).result() for rank in range(len(graph.tables)))


class _Rank:
    """One rank: recorded and new begin and end of each row; new ones count where ``kept``."""

    def __init__(self, graph: DependencyGraph, schedule: Schedule, threads: HostThreads, rank: int) -> None:
        self.graph, self.schedule, self.threads, self.rank = graph, schedule, threads, rank
        self.table: EventTable = graph.tables[rank]
        self.begin: Int64s = self.table.column("ts_ns")
        self.end = self.begin + np.maximum(self.table.column("dur_ns"), 0)
        self.new_begin, self.new_end = self.begin.copy(), self.end.copy()
        self.kept: npt.NDArray[np.bool_] = np.zeros(len(self.table), np.bool_)

    def result(self) -> Retimed:
        """The kept rows at their new times."""
        self._work()
        self._host_events()
        self._ranges_on_streams()
        self._sync_rows()
        rows = np.flatnonzero(self.kept)
        return Retimed(rows, self.new_begin[rows], (self.new_end - self.new_begin)[rows], self._left_out())

    def _work(self) -> None:
        nodes = self.graph.nodes
        mine = np.flatnonzero((nodes.rank == self.rank) & (nodes.kind != NodeKind.HOST))
        # A collective's transfer follows its arrival: of several assignments the last one stays.
        self.new_begin[nodes.row[mine[::-1]]] = self.schedule.start_ns[mine[::-1]]
        self.new_end[nodes.row[mine]] = self.schedule.end_ns[mine]
        self.kept[nodes.row[mine]] = True

    def _host_events(self) -> None:
        pid, tid = self.table.codes("pid"), self.table.codes("tid")
        host = np.isin(self.table.column("role"), HOST_ROLES) & (self.table.column("dur_ns") >= 0) & ~self.kept
        for (rank, pid_code, tid_code), span in self.threads.by_name.items():
            if rank != self.rank:
                continue
            starts = self.graph.nodes.start_ns[span[0] : span[1]]
            rows = np.flatnonzero(host & (pid == pid_code) & (tid == tid_code))
            touches = (self.begin[rows] < starts[-1]) & (self.end[rows] > starts[0])
            point = (self.begin[rows] == self.end[rows]) & (self.begin[rows] >= starts[0]) & (self.end[rows] <= starts[-1])
            rows = rows[touches | point]
            self.new_begin[rows] = self._moved(span, self.begin[rows])
            self.new_end[rows] = self._moved(span, self.end[rows])
            self.kept[rows] = True

    def _moved(self, span: tuple[int, int], times: Int64s) -> Int64s:
        """When a thread comes to the point at which it was at given times: at the start of a task exactly, in proportion
        inside one (where an event sticks out of the one around it); before and after the thread's tasks the distance stays.
        """
        old, new = self.graph.nodes.start_ns[span[0] : span[1]], self.schedule.start_ns[span[0] : span[1]]
        inside = np.clip(times, old[0], old[-1])
        task = np.searchsorted(old, inside, side="right") - 1
        following = np.minimum(task + 1, old.size - 1)
        stretch = (new[following] - new[task]) / np.maximum(old[following] - old[task], 1)
        within = np.rint((inside - old[task]) * stretch).astype(np.int64)
        moved: Int64s = new[task] + within + (times - inside)
        return moved

    def _ranges_on_streams(self) -> None:
        ranges = self.table.rows_of(Role.GPU_ANNOTATION)
        work = np.flatnonzero(self.kept & np.isin(self.table.column("role"), DEVICE_ROLES))
        streams = numbered(*(self.table.codes(name)[np.concatenate([work, ranges])] for name in ("pid", "tid")))
        order = np.lexsort((work, self.begin[work], streams[: work.size]))
        own, work = streams[: work.size][order], work[order]
        begins = self.begin[work]
        for row, stream in zip(ranges.tolist(), streams[work.size :].tolist(), strict=True):
            first, past = np.searchsorted(own, [stream, stream + 1])
            low, high = first + np.searchsorted(begins[first:past], [self.begin[row], self.end[row] + 1])
            under = work[low:high]
            under = under[self.end[under] <= self.end[row]]
            if under.size:
                latest = under[self.end[under] == self.end[under].max()].min()
                self._along(row, int(under[0]), int(latest))

    def _sync_rows(self) -> None:
        for row, call in call_of_rows(self.table).items():
            if self.kept[call]:
                self._along(row, call, call)

    def _along(self, row: int, first: int, last: int) -> None:
        """Keep a row's distance from the begin of one row and the end of another."""
        self.new_begin[row] = self.new_begin[first] + self.begin[row] - self.begin[first]
        self.new_end[row] = max(self.new_end[last] + self.end[row] - self.end[last], self.new_begin[row])
        self.kept[row] = True

    def _left_out(self) -> dict[str, int]:
        missing = np.flatnonzero(~self.kept)
        roles, categories = self.table.column("role")[missing], self.table.codes("category")[missing]
        names = self.table.dictionary("category")
        reasons = {int(Role.GPU_ANNOTATION): NO_WORK, int(Role.CUDA_SYNC): NO_CALL}
        other = int(Role.OTHER)
        found = Counter(
            f"category {names[c] if c >= 0 else 'none'}" if role == other else reasons.get(role, OUTSIDE)
            for role, c in zip(roles.tolist(), categories.tolist(), strict=True)
        )
        return dict(sorted(found.items()))
