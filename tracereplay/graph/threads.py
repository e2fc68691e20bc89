"""Host threads of a finished graph: in, a DependencyGraph; out, which nodes are a thread's and which events meet there."""

from functools import cached_property

import numpy as np

from tracereplay.graph.kinds import EdgeKind, NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.trace.schema import HOST_ROLES
from tracereplay.trace.times import Int64s


class HostThreads:
    """The host threads of a graph as ranges of nodes, and how much own time lies before each node.

    ``ranges`` are (first node, node past the last); ``first_of`` and ``end_of`` give them for each node, -1 off host threads.
    """

    def __init__(self, graph: DependencyGraph) -> None:
        self.graph = graph
        nodes, edges = graph.nodes, graph.edges
        host = nodes.kind == NodeKind.HOST
        chained = (edges.kind == EdgeKind.THREAD_ORDER) & host[edges.src] & host[edges.dst] & (edges.dst == edges.src + 1)
        goes_on = np.zeros(len(graph) + 1, np.bool_)
        goes_on[edges.dst[chained]] = True
        first = np.flatnonzero(host & ~goes_on[:-1])
        last = np.flatnonzero(host & ~goes_on[1:])
        self.ranges = list(zip(first.tolist(), (last + 1).tolist(), strict=True))
        self.first_of = np.full(len(graph), -1, np.int64)
        self.end_of = np.full(len(graph), -1, np.int64)
        for low, high in self.ranges:
            self.first_of[low:high], self.end_of[low:high] = low, high
        self.own_before = np.concatenate([[0], np.cumsum(np.where(host, nodes.dur_ns, 0))])

    @cached_property
    def by_name(self) -> dict[tuple[int, int, int], tuple[int, int]]:
        """The range of each (rank, code of pid, code of tid)."""
        found = {}
        for low, high in self.ranges:
            named = low + np.flatnonzero(self.graph.nodes.row[low:high] >= 0)
            if named.size:
                rank, row = int(self.graph.nodes.rank[low]), int(self.graph.nodes.row[named[0]])
                table = self.graph.tables[rank]
                found[rank, int(table.codes("pid")[row]), int(table.codes("tid")[row])] = (low, high)
        return found

    def own_until(self, span: tuple[int, int], times: Int64s) -> Int64s:
        """How much own time of a thread lies before each time, up to a constant of that thread."""
        starts = self.graph.nodes.start_ns[span[0] : span[1]]
        return self.own_before[span[0] + np.searchsorted(starts, np.clip(times, starts[0], starts[-1]))]

    def given_by(self, node: int) -> tuple[int, int]:
        """The row that has ended last when a host node ends, the outermost of those that end together, and the own time in
        between; the row around it, or -1, where none has.
        """
        table = self.graph.tables[int(self.graph.nodes.rank[node])]
        row, own_ns = self._ended_by(node)
        starts, durations, parents = table.column("ts_ns"), table.column("dur_ns"), table.column("parent_row")
        limit = self._limit(node)
        while row >= 0 and (around := int(parents[row])) >= 0:
            end = starts[row] + durations[row]
            if end > limit or starts[around] + durations[around] > end:
                break
            row = around
        return row, own_ns

    def _limit(self, node: int) -> int:
        """When a host node ended in the recording."""
        return int(self.graph.nodes.start_ns[min(node + 1, self.end_of[node] - 1)])

    def _ended_by(self, node: int) -> tuple[int, int]:
        nodes, table = self.graph.nodes, self.graph.tables[int(self.graph.nodes.rank[node])]
        starts, durations = table.column("ts_ns"), table.column("dur_ns")
        limit = self._limit(node)
        for at in range(node, int(self.first_of[node]) - 1, -1):
            row = int(nodes.row[at])
            if row >= 0 and starts[row] + durations[row] <= limit:
                return row, int(self.own_before[node + 1] - self.own_before[at + 1])
        return int(nodes.row[node]), 0

    def received_by(self, node: int) -> tuple[int, int]:
        """The row that begins first from the start of a host node on, the outermost of those that begin together, and the own
        time in between; the row around it, or -1, where none does.
        """
        nodes = self.graph.nodes
        table = self.graph.tables[int(nodes.rank[node])]
        starts, parents = table.column("ts_ns"), table.column("parent_row")
        for at in range(node, int(self.end_of[node])):
            row = int(nodes.row[at])
            if row >= 0 and starts[row] >= nodes.start_ns[node]:
                while parents[row] >= 0 and starts[parents[row]] >= starts[row]:
                    row = int(parents[row])
                row = self._instant_before(int(nodes.rank[node]), row, int(nodes.start_ns[node]))
                return row, int(self.own_before[at] - self.own_before[node])
        return int(nodes.row[node]), 0

    def _instant_before(self, rank: int, row: int, since_ns: int) -> int:
        """The first event without length that lies between a time and the begin of a row of its thread, else the row."""
        table = self.graph.tables[rank]
        thread = (rank, int(table.codes("pid")[row]), int(table.codes("tid")[row]))
        times, rows = self._instants.get(thread, (np.empty(0, np.int64), np.empty(0, np.int64)))
        place = int(np.searchsorted(times, since_ns, side="left"))
        return int(rows[place]) if place < times.size and times[place] <= table.column("ts_ns")[row] else row

    @cached_property
    def _instants(self) -> dict[tuple[int, int, int], tuple[Int64s, Int64s]]:
        """Times and rows of the host events without length of each (rank, pid, tid): no node is theirs."""
        found: dict[tuple[int, int, int], tuple[Int64s, Int64s]] = {}
        for rank, table in enumerate(self.graph.tables):
            rows = table.rows_of(*HOST_ROLES)
            rows = rows[table.column("dur_ns")[rows] == 0]
            pids, tids = table.codes("pid")[rows], table.codes("tid")[rows]
            order = np.lexsort((rows, table.column("ts_ns")[rows], tids, pids))
            rows, pids, tids = rows[order], pids[order], tids[order]
            borders = np.flatnonzero((np.diff(pids) != 0) | (np.diff(tids) != 0)) + 1
            for part in np.split(np.arange(rows.size), borders) if rows.size else ():
                key = (rank, int(pids[part[0]]), int(tids[part[0]]))
                found[key] = (table.column("ts_ns")[rows[part]], rows[part])
        return found

    def waiting_call(self, node: int) -> int:
        """The row of the call that returns where a host node starts: the owner of the node before it."""
        return self._ended_by(node - 1 if node > self.first_of[node] else node)[0]

    def begin_node(self, rank: int, row: int) -> int | None:
        """The node at which a host event begins; None where the graph does not cover it."""
        table = self.graph.tables[rank]
        span = self.by_name.get((rank, int(table.codes("pid")[row]), int(table.codes("tid")[row])))
        if span is None:
            return None
        starts = self.graph.nodes.start_ns[span[0] : span[1]]
        begin = int(table.column("ts_ns")[row])
        return span[0] + int(np.searchsorted(starts, begin)) if starts[0] <= begin <= starts[-1] else None
