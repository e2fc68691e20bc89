"""The dependency graph of a job: tasks and reasons to wait, in arrays inside and a networkx graph outside."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tracereplay.graph.array_graph import Adjacency, ArrayDiGraph, Numbers, numbers_of
from tracereplay.graph.kinds import Basis, EdgeKind, NodeKind
from tracereplay.graph.networkx_reads import ReadByNetworkx, ReadColumns, nowhere
from tracereplay.trace.classify import WorkClass
from tracereplay.trace.schema import Role
from tracereplay.trace.table import EventTable
from tracereplay.trace.times import Int64s

if TYPE_CHECKING:
    import networkx as nx

NO_RELEASE = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Nodes(ReadColumns):
    """Columns of tasks, to networkx the graph's view of its nodes. Times are recorded ones in ns; ``dur_ns`` is the task's own
    time, waits taken out.

    ``rank`` is an index into the job's ranks, -1 for a rendezvous; ``row`` a row of that rank's table, -1 for a gap;
    ``release_ns`` pins a task to a recorded start (``NO_RELEASE`` where others decide); ``residue_ns`` is recorded start
    minus the start that rules and typical lags give; ``step`` an index into that rank's steps, -1 outside;
    ``collective`` an index into the graph's collectives, -1 elsewhere; ``owner_row`` the host row under which
    queue work counts (its operator, else the call that enqueued it), -1 where none is known; ``population`` numbers
    tasks whose lags and residues are compared with each other.
    """

    rank: Int64s
    kind: npt.NDArray[np.int8]
    work_class: npt.NDArray[np.int8]
    row: Int64s
    start_ns: Int64s
    dur_ns: Int64s
    release_ns: Int64s
    residue_ns: Int64s
    step: Int64s
    collective: Int64s
    owner_row: Int64s
    population: Int64s
    seen_in: Callable[[], ReadByNetworkx | None] = field(default=nowhere, repr=False, compare=False)

    view_name: ClassVar[str] = "nodes"

    def __len__(self) -> int:
        return int(self.start_ns.size)

    def __reduce__(self) -> tuple[Any, ...]:
        return Nodes, _columns(self)


@dataclass(frozen=True, slots=True)
class EdgeArrays(ReadColumns):
    """Edges in CSR form by destination: those into node ``n`` are ``first[n]:first[n + 1]``. ``why``: row of ``REASONS``.

    To networkx the graph's view of its edges: it goes over the shown ones, while the length counts parallel ones too.
    """

    first: Int64s
    src: Int64s
    dst: Int64s
    kind: npt.NDArray[np.int8]
    basis: npt.NDArray[np.int8]
    from_start: npt.NDArray[np.bool_]
    lag_ns: Int64s
    why: npt.NDArray[np.int8]
    seen_in: Callable[[], ReadByNetworkx | None] = field(default=nowhere, repr=False, compare=False)

    view_name: ClassVar[str] = "edges"

    def __len__(self) -> int:
        return int(self.src.size)

    def __reduce__(self) -> tuple[Any, ...]:
        return EdgeArrays, _columns(self)


def _columns(given: Any) -> tuple[Any, ...]:
    """The columns of nodes or edges, without the graph in which they stand."""
    return tuple(getattr(given, column.name) for column in fields(given) if column.name != "seen_in")


@dataclass(frozen=True, slots=True)
class StepSpan:
    """One step of one rank: the node with which it begins, the node before its end (the next one starts where the step
    ends, a wait in between belongs to it), recorded times.

    ``other_ends`` are the nodes with which other host threads end: without marks the step lasts until every thread has.
    ``drain_ns`` is when the work that the step enqueued had ended (None without such work); ``carry_in_ns`` the device
    time of earlier work that runs into the step.
    """

    rank: int
    number: int
    first_node: int
    last_node: int
    start_ns: int
    end_ns: int
    drain_ns: int | None
    carry_in_ns: int
    other_ends: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective: participants as parallel tuples of rank index, arrival node and transfer node.

    ``transfer_ns`` is None where a participant is missing from the traces: the recorded time cannot be split. ``absent`` are
    then the rank numbers that take part and are not here, as far as the files say who does. ``sent``, ``received``: of an
    uneven all-to-all the bytes that each participant here sends to each rank of the group and receives from each, in the order
    of their numbers (None: not recorded); empty where nothing shows that it is uneven. ``own_bytes``: of each participant.
    """

    name: str
    step: int
    order: int
    group: str | None
    bytes: int | None
    scale_out: bool
    ranks: tuple[int, ...]
    arrivals: tuple[int, ...]
    transfers: tuple[int, ...]
    rendezvous: int | None
    start_ns: tuple[int, ...]
    end_ns: tuple[int, ...]
    transfer_ns: int | None
    absent: tuple[int, ...] = ()
    sent: tuple[tuple[int, ...] | None, ...] = ()
    received: tuple[tuple[int, ...] | None, ...] = ()
    own_bytes: tuple[int | None, ...] = ()

    @property
    def is_uneven(self) -> bool:
        """Whether its ranks are recorded to send different numbers of bytes to each other."""
        return bool(self.sent)

    @property
    def recorded_ns(self) -> int:
        """Sum of the participants' recorded durations."""
        return sum(self.end_ns) - sum(self.start_ns)

    @property
    def wait_ns(self) -> tuple[int, ...] | None:
        """Each participant's wait: its own duration minus the transfer (contract, Collectives)."""
        if self.transfer_ns is None:
            return None
        pairs = zip(self.start_ns, self.end_ns, strict=True)
        return tuple(max(end - start - self.transfer_ns, 0) for start, end in pairs)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How well the rules cover the job, before any replay: edges by kind and basis, faults, guesses. ``faults`` counts by
    name what cannot have been (``graph/faults.py``).
    """

    edges: dict[str, dict[str, int]]
    refuted: int
    uncovered_blocking_ns: int
    unlinked_work: int
    pinned_threads: int
    clock_violations: int
    dropped_edges: int
    events_outside_steps: int
    overlapping_events: int
    faults: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class DependencyGraph(ArrayDiGraph):
    """Tasks, reasons, steps and collectives of a job; read-only. ``hosts``: the host of each rank, None where nothing says it.

    ``replay_order`` is a topological order of the nodes. networkx takes the graph as a directed one whose nodes are the node
    numbers and whose edges have the attributes that ``to_networkx`` names.
    """

    tables: tuple[EventTable, ...]
    rank_numbers: tuple[int | None, ...]
    nodes: Nodes
    edges: EdgeArrays
    replay_order: Int64s
    steps: tuple[StepSpan, ...]
    collectives: tuple[Collective, ...]
    coverage: Coverage
    host_carries_classes: bool
    warnings: tuple[str, ...] = ()
    hosts: tuple[str | None, ...] = ()

    def __len__(self) -> int:
        return len(self.nodes)

    def __post_init__(self) -> None:
        seen_in = weakref.ref(self)
        object.__setattr__(self, "nodes", replace(self.nodes, seen_in=seen_in))
        object.__setattr__(self, "edges", replace(self.edges, seen_in=seen_in))

    def name_of(self, node: int) -> str:
        """What a node is called: its event's name, ``gap`` for host time that no event covers."""
        rank, row = int(self.nodes.rank[node]), int(self.nodes.row[node])
        if rank < 0:
            return self.collectives[int(self.nodes.collective[node])].name
        return self.tables[rank].name_of(row) if row >= 0 else "gap"

    @cached_property
    def is_operator(self) -> npt.NDArray[np.bool_]:
        """Host nodes that are the self time of an operator."""
        result = np.zeros(len(self), np.bool_)
        for rank, table in enumerate(self.tables):
            mine = np.flatnonzero((self.nodes.rank == rank) & (self.nodes.row >= 0) & (self.nodes.kind == NodeKind.HOST))
            result[mine] = table.column("role")[self.nodes.row[mine]] == Role.CPU_OP
        return result

    @cached_property
    def step_number(self) -> Int64s:
        """The step number of each node, -1 outside the steps and at rendezvous."""
        width = int(self.nodes.step.max(initial=0)) + 1
        numbers = np.full(len(self.tables) * width, -1, np.int64)
        seen = [0] * len(self.tables)
        for span in self.steps:
            numbers[span.rank * width + seen[span.rank]] = span.number
            seen[span.rank] += 1
        inside = (self.nodes.step >= 0) & (self.nodes.rank >= 0)
        return np.where(inside, numbers[np.where(inside, self.nodes.rank * width + self.nodes.step, 0)], -1)

    @property
    def step_numbers(self) -> tuple[int, ...]:
        """Step numbers that every rank has whole, in order."""
        per_rank = [{s.number for s in self.steps if s.rank == r} for r in range(len(self.tables))]
        return tuple(sorted(set.intersection(*per_rank))) if per_rank else ()

    @cached_property
    def distance_ns(self) -> Int64s:
        """Along each edge the time from the start of its source to the earliest start of its destination, residue left out."""
        own = np.where(self.edges.from_start, 0, self.nodes.dur_ns[self.edges.src])
        return own + self.edges.lag_ns

    @cached_property
    def shown_edges(self) -> Int64s:
        """The edges that networkx sees, in order: of parallel ones the one with the largest distance, first of equal ones."""
        edges = self.edges
        order = np.lexsort((np.arange(len(edges)), -self.distance_ns, edges.src, edges.dst))
        src, dst = edges.src[order], edges.dst[order]
        first = np.ones(order.size, np.bool_)
        first[1:] = (src[1:] != src[:-1]) | (dst[1:] != dst[:-1])
        return np.sort(order[first])

    @cached_property
    def links(self) -> Adjacency:
        """The shown edges between node numbers, for networkx."""
        shown = self.shown_edges
        # Edges stand by destination, so that each node meets its predecessors in this very order.
        return Adjacency(len(self.nodes), self.edges.src[shown], self.edges.dst[shown], np.arange(shown.size))

    def edge_weight(self, attribute: object, default: float) -> Numbers:
        """A number for each shown edge: one of the numeric attributes of ``to_networkx``, ``default`` for any unknown one.

        Raises:
            TypeError: an attribute that is text.
        """
        numeric = {"weight": self.distance_ns, "lag_ns": self.edges.lag_ns, "from_start": self.edges.from_start}
        if attribute in {"kind", "basis"}:
            raise TypeError(f"edge attribute {attribute!r} is not a number")
        if not isinstance(attribute, str) or attribute not in numeric:
            return numbers_of([default] * self.shown_edges.size)
        return numeric[attribute][self.shown_edges].astype(np.int64)

    def to_networkx(self) -> "nx.DiGraph[int]":
        """A plain ``DiGraph`` of the same nodes and edges. About 15 µs a node.

        A node has ``name``, ``kind`` (of ``NodeKind``), ``work_class``, ``start_ns`` and ``dur_ns`` as recorded; ``rank`` where
        it has one and its number is known, ``event`` (the index in that rank's ``traceEvents``) where it is one: rendezvous
        have neither, gaps no event. All values are text, whole numbers and bools, which every writer of networkx takes.

        An edge has ``kind`` (of ``EdgeKind``), ``basis``, ``lag_ns``, ``from_start`` (it leaves the start of its source, not
        its end), and ``weight``: the time in ns from the start of its source to the earliest start of its destination, which
        is the source's own time plus the lag, or the lag alone ``from_start``. The sum of weights along a path is then how
        long after the path's first task its last one can start at the earliest, residues and pinned starts left out, and
        ``networkx.dag_longest_path`` the chain of tasks that takes longest. Of parallel edges the one with the largest weight
        is kept.
        """
        import networkx as nx  # noqa: PLC0415 - 0.2 s that no verb on the arrays needs

        graph = nx.DiGraph()
        graph.add_nodes_from((node, self._node_attributes(node)) for node in range(len(self.nodes)))
        graph.add_edges_from(
            (int(self.edges.src[i]), int(self.edges.dst[i]), self._edge_attributes(int(i))) for i in self.shown_edges
        )
        return graph

    def _node_attributes(self, node: int) -> dict[str, object]:
        nodes, rank, row = self.nodes, int(self.nodes.rank[node]), int(self.nodes.row[node])
        number = self.rank_numbers[rank] if rank >= 0 else None
        found: dict[str, object] = {
            "name": self.name_of(node),
            "kind": NodeKind(nodes.kind[node]).name.lower(),
            "work_class": WorkClass(nodes.work_class[node]).name.lower(),
            "start_ns": int(nodes.start_ns[node]),
            "dur_ns": int(nodes.dur_ns[node]),
        }
        if number is not None:
            found["rank"] = number
        if rank >= 0 and row >= 0:
            found["event"] = int(self.tables[rank].column("event")[row])
        return found

    def _edge_attributes(self, edge: int) -> dict[str, object]:
        return {
            "kind": EdgeKind(self.edges.kind[edge]).name.lower(),
            "basis": Basis(self.edges.basis[edge]).name.lower(),
            "lag_ns": int(self.edges.lag_ns[edge]),
            "from_start": bool(self.edges.from_start[edge]),
            "weight": int(self.distance_ns[edge]),
        }
