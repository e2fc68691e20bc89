"""Where the step's time goes and who makes whom wait: in, a graph; out, parts of the critical path, waits, sensitivities.

The walk starts at the end of the longest rank's step and goes back to its start, always to the task that decided the start
of the present one, over ranks where a collective was waited for. Law: the parts tile the step, so they sum to it.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from tracereplay.graph.kinds import EdgeKind, NodeKind
from tracereplay.graph.lags import residue_tail
from tracereplay.graph.model import Collective, DependencyGraph, StepSpan
from tracereplay.replay.engine import Timing, replay
from tracereplay.replay.schedule import RELEASED, Schedule
from tracereplay.replay.steps import StepTime, step_times, summarise
from tracereplay.replay.whatif import Change, apply
from tracereplay.trace.classify import WorkClass
from tracereplay.trace.times import Int64s

PART_NAMES = (
    "host", "launch", "input", "late_entry", "gemm", "attention", "conv", "embedding", "elementwise", "reduction", "copy",
    "collective_transfer", "collective_wait", "collective_unsplit", "sync", "other", "unexplained",
)  # fmt: skip

_CLASS_PART = {WorkClass.MEMSET: "copy", WorkClass.COLLECTIVE: "collective_transfer"}
_LAG_PART = {
    EdgeKind.LAUNCH: "launch",
    EdgeKind.STREAM_ORDER: "launch",
    EdgeKind.EVENT_WAIT: "sync",
    EdgeKind.SYNC: "sync",
    EdgeKind.THREAD_HANDOFF: "sync",
    EdgeKind.THREAD_ORDER: "host",
    EdgeKind.COLLECTIVE: "collective_wait",
}
_BEFORE = "before the recording"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the step."""

    name: str
    ns: int
    share: float


@dataclass(frozen=True, slots=True)
class Wait:
    """A rank's wait for another: who caused it, by what, in which collective."""

    rank: int | None
    caused_by_rank: int | None
    cause: str
    op: str
    ns: int


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """One collective of the step; ``transfer_ns``, ``last_rank`` and waits are None where it cannot be split."""

    op: str
    group: str | None
    seq: int
    bytes: int | None
    ranks: tuple[int | None, ...]
    transfer_ns: int | None
    end_skew_ns: int
    last_rank: int | None
    waits: tuple[tuple[int | None, int], ...] | None


@dataclass(frozen=True, slots=True)
class Collectives:
    """All collectives of the steps, over all ranks; sums are None where none could be split."""

    count: int
    recorded_ns: int
    transfer_ns: int | None
    wait_ns: int | None
    wait_share: float | None
    rows: tuple[CollectiveRow, ...]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What twice as much of one resource would save, and the elasticity (share saved over share of time removed); at least
    that where some of its time is in collectives that cannot be split.
    """

    knob: str
    saved_ns_2x: int
    elasticity: float


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """One step number under some timing: its longest rank, the parts of its critical path, what twice as much of one resource
    would save, largest saving first.
    """

    step: int
    rank: int | None
    step_ns: int
    parts: tuple[Part, ...]
    sensitivity: tuple[Sensitivity, ...]


@dataclass(frozen=True, slots=True)
class Attribution:
    """The result of ``tracereplay attribute`` for one step number; ``carry_in_ns`` is the device time of earlier work that
    runs into the step, as recorded.
    """

    step: int
    rank: int | None
    step_ns: int
    parts: tuple[Part, ...]
    sum_ns: int
    carry_in_ns: int
    tail_ns: int
    waits: tuple[Wait, ...]
    collectives: Collectives
    path_ns: int
    by_class: dict[str, int]
    sensitivity: tuple[Sensitivity, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of the walk: which part, between which times, at which node; ``own`` is the node's own time, not a lag."""

    part: str
    start_ns: int
    end_ns: int
    node: int
    own: bool = False


@dataclass(frozen=True, slots=True)
class _Path:
    """What every walk needs: the graph, its schedule, what residue is unexplained, the ranks' entries into the recording."""

    graph: DependencyGraph
    schedule: Schedule
    tail: Int64s
    entries: frozenset[int]


def _path_of(graph: DependencyGraph, schedule: Schedule) -> _Path:
    first = {span.rank: span.first_node for span in reversed(graph.steps)}
    return _Path(graph, schedule, residue_tail(graph.nodes), frozenset(first.values()))


def attribute(graph: DependencyGraph, number: int | None = None) -> Attribution:
    """The attribution of one step, by default the longest of those that every rank has whole."""
    schedule = replay(graph)
    times = step_times(graph, schedule)
    steps = summarise(graph, times)
    chosen = number if number is not None else steps.numbers[int(np.argmax(steps.longest_ns))]
    mine = [t for t in times if t.number == chosen]
    longest = max(mine, key=lambda t: t.dur_ns)
    path = _path_of(graph, schedule)
    pieces, parts = _parts(path, longest)
    collectives = [c for c in graph.collectives if c.step == chosen]
    return Attribution(
        step=chosen,
        rank=graph.rank_numbers[longest.rank],
        step_ns=longest.dur_ns,
        parts=parts,
        sum_ns=sum(p.ns for p in parts),
        carry_in_ns=_span_of(graph, longest).carry_in_ns,
        tail_ns=max(max(t.end_ns for t in mine) - longest.end_ns, 0),
        waits=_waits(path, collectives),
        collectives=_summarise_collectives(graph, collectives),
        path_ns=sum(p.end_ns - p.start_ns for p in pieces),
        by_class=_by_class(graph, pieces),
        sensitivity=_sensitivities(graph, chosen, longest.dur_ns, None),
    )


def bottleneck(graph: DependencyGraph, timing: Timing, number: int) -> Bottleneck:
    """What a step's time is made of under a timing, and what would shorten it."""
    schedule = replay(graph, timing)
    longest = max((t for t in step_times(graph, schedule) if t.number == number), key=lambda t: t.dur_ns)
    _, parts = _parts(_path_of(graph, schedule), longest)
    sensitivity = _sensitivities(graph, number, longest.dur_ns, timing)
    return Bottleneck(number, graph.rank_numbers[longest.rank], longest.dur_ns, parts, sensitivity)


def _parts(path: _Path, longest: StepTime) -> tuple[list[_Piece], tuple[Part, ...]]:
    """The pieces and the parts of the critical path of a rank's step."""
    last = _last_node(path.graph, path.schedule, longest)
    pieces = [] if last is None else _walk(path, last, longest.start_ns, longest.end_ns)
    if last is None and longest.dur_ns:
        pieces = [_Piece("unexplained", longest.start_ns, longest.end_ns, -1)]
    totals: Counter[str] = Counter()
    for piece in pieces:
        totals[piece.part] += piece.end_ns - piece.start_ns
    return pieces, tuple(Part(n, totals[n], totals[n] / longest.dur_ns) for n in PART_NAMES if totals[n])


def _span_of(graph: DependencyGraph, step: StepTime) -> StepSpan:
    return next(s for s in graph.steps if s.rank == step.rank and s.number == step.number)


def _last_node(graph: DependencyGraph, schedule: Schedule, longest: StepTime) -> int | None:
    """The task that starts where a step ends, or the work that drained last if that ends later; None where neither is."""
    span = _span_of(graph, longest)
    closing = [span.last_node + 1, *span.other_ends] if span.first_node >= 0 else []
    ended = [node for node in closing if schedule.start_ns[node] >= longest.end_ns]
    if ended:
        return ended[0]
    index = [s.number for s in graph.steps if s.rank == longest.rank].index(longest.number)
    nodes = graph.nodes
    mine = np.flatnonzero((nodes.rank == longest.rank) & (nodes.step == index) & (nodes.kind != NodeKind.HOST))
    return int(mine[np.argmax(schedule.end_ns[mine])]) if mine.size else None


def _walk(path: _Path, node: int, start_ns: int, end_ns: int) -> list[_Piece]:
    """Pieces that tile [start_ns, end_ns) backwards along the edges that decided each start."""
    graph, schedule = path.graph, path.schedule
    pieces: list[_Piece] = []
    tail = path.tail
    entries = path.entries
    upper = end_ns
    while upper > start_ns:
        begin = int(schedule.start_ns[node])
        upper = _add(pieces, _Piece(_part_of(graph, node), begin, upper, node, own=True), start_ns)
        edge = int(schedule.waited_for[node])
        if upper <= start_ns:
            break
        if edge == RELEASED:
            part = "late_entry" if node in entries else "unexplained"
            _add(pieces, _Piece(part, start_ns, upper, node), start_ns)
            break
        source = int(graph.edges.src[edge])
        bound = int(schedule.start_ns[source] if graph.edges.from_start[edge] else schedule.end_ns[source])
        part = _LAG_PART[EdgeKind(graph.edges.kind[edge])]
        overlapped = graph.edges.from_start[edge] and graph.edges.kind[edge] == EdgeKind.STREAM_ORDER
        if overlapped and graph.nodes.kind[source] == NodeKind.ARRIVAL:
            source = _transfer_beside(path, source, upper)
            bound = int(schedule.start_ns[source])
            overlapped = graph.nodes.kind[source] == NodeKind.TRANSFER
        if overlapped:
            # The next kernel started while this one ran: until then the time is this one's.
            upper = _add(pieces, _Piece(_part_of(graph, source), bound, upper, source, own=True), start_ns)
        if graph.nodes.residue_ns[node] > tail[node]:
            lag_end = max(min(upper, bound + int(graph.edges.lag_ns[edge])), bound)
            upper = _add(pieces, _Piece("unexplained", lag_end, upper, node), start_ns)
        upper = _add(pieces, _Piece(part, bound, upper, node), start_ns)
        node = source
    return pieces


def _transfer_beside(path: _Path, arrival: int, time_ns: int) -> int:
    """The transfer that follows an arrival where it had begun by then; else the arrival."""
    nodes, number = path.graph.nodes, int(path.graph.nodes.collective[arrival])
    for transfer in path.graph.collectives[number].transfers if number >= 0 else ():
        if nodes.rank[transfer] == nodes.rank[arrival] and path.schedule.start_ns[transfer] < time_ns:
            return transfer
    return arrival


def _add(pieces: list[_Piece], piece: _Piece, start_ns: int) -> int:
    """Add what of a piece lies after ``start_ns`` and is not empty; return the time down to which the walk has come."""
    low = max(piece.start_ns, start_ns)
    if low < piece.end_ns:
        pieces.append(replace(piece, start_ns=low))
    return min(low, piece.end_ns)


def _part_of(graph: DependencyGraph, node: int) -> str:
    nodes = graph.nodes
    kind = NodeKind(nodes.kind[node])
    if kind is NodeKind.UNSPLIT:
        return "collective_unsplit"
    if kind is NodeKind.TRANSFER:
        return "collective_transfer"
    if kind is NodeKind.HOST and nodes.work_class[node] == WorkClass.HOST:
        return "input" if _is_input(graph, node) else "host"
    work = WorkClass(nodes.work_class[node])
    return _CLASS_PART.get(work, work.name.lower())


def _is_input(graph: DependencyGraph, node: int) -> bool:
    """True for host time under a data loader's or a collector's input annotation."""
    rank, row = int(graph.nodes.rank[node]), int(graph.nodes.row[node])
    while row >= 0:
        name = graph.tables[rank].name_of(row)
        if "DataLoader" in name or name in ("## input ##", "## copy_batch_to_gpu ##"):
            return True
        row = int(graph.tables[rank].column("parent_row")[row])
    return False


def _by_class(graph: DependencyGraph, pieces: list[_Piece]) -> dict[str, int]:
    """Own time on the path by class of work; lags and waits belong to no class."""
    totals: Counter[str] = Counter()
    for piece in pieces:
        if piece.own:
            totals[WorkClass(graph.nodes.work_class[piece.node]).name.lower()] += piece.end_ns - piece.start_ns
    return dict(sorted(totals.items(), key=lambda item: -item[1]))


def _waits(path: _Path, collectives: list[Collective]) -> tuple[Wait, ...]:
    """Each participant's wait with its cause: what was done, and on which rank, while the participant already waited."""
    graph = path.graph
    rows = []
    for c in collectives:
        if c.wait_ns is None:
            continue
        last = int(np.argmax(c.start_ns))
        pieces = _walk(path, c.arrivals[last], min(c.start_ns), c.start_ns[last])
        for rank, arrival, waited in zip(c.ranks, c.start_ns, c.wait_ns, strict=True):
            if waited > 0 and rank != c.ranks[last]:
                culprit, cause = _cause(graph, pieces, arrival, c.ranks[last])
                rows.append(Wait(graph.rank_numbers[rank], graph.rank_numbers[culprit], cause, f"{c.name}#{c.order}", waited))
    return tuple(sorted(rows, key=lambda w: -w.ns))


def _cause(graph: DependencyGraph, pieces: list[_Piece], since_ns: int, last: int) -> tuple[int, str]:
    """The rank and the part with the largest share of the last arrival's path since a participant began to wait."""
    totals: Counter[tuple[int, str]] = Counter()
    for piece in pieces:
        rank = int(graph.nodes.rank[piece.node])
        totals[rank if rank >= 0 else last, piece.part] += max(piece.end_ns - max(piece.start_ns, since_ns), 0)
    rank, name = max(totals, key=lambda key: (totals[key], key)) if totals else (last, "unexplained")
    return rank, _BEFORE if name == "late_entry" else name


def _summarise_collectives(graph: DependencyGraph, collectives: list[Collective]) -> Collectives:
    split = [c for c in collectives if c.transfer_ns is not None]
    recorded_ns = sum(c.recorded_ns for c in collectives)
    known_ns = sum(c.recorded_ns for c in split)
    wait_ns = sum(sum(c.wait_ns or ()) for c in split) if split else None
    return Collectives(
        count=len(collectives),
        recorded_ns=recorded_ns,
        transfer_ns=sum(c.transfer_ns or 0 for c in split) if split else None,
        wait_ns=wait_ns,
        wait_share=wait_ns / known_ns if wait_ns is not None and known_ns else None,
        rows=tuple(_row(graph, c) for c in collectives),
    )


def _row(graph: DependencyGraph, c: Collective) -> CollectiveRow:
    ranks = tuple(graph.rank_numbers[r] for r in c.ranks)
    waits = c.wait_ns
    return CollectiveRow(
        op=c.name,
        group=c.group,
        seq=c.order,
        bytes=c.bytes,
        ranks=ranks,
        transfer_ns=c.transfer_ns,
        end_skew_ns=max(c.end_ns) - min(c.end_ns),
        last_rank=ranks[int(np.argmax(c.start_ns))] if waits is not None else None,
        waits=tuple(zip(ranks, waits, strict=True)) if waits is not None else None,
    )


def _sensitivities(graph: DependencyGraph, number: int, step_ns: int, base: Timing | None) -> tuple[Sensitivity, ...]:
    """Twice as fast within the step, one resource at a time, largest saving first. Earlier steps stay as they are, so that
    the ranks enter the step as recorded and the saving is that of this step alone.
    """
    present = {WorkClass(w) for w in np.unique(graph.nodes.work_class[graph.nodes.dur_ns > 0])}
    names = sorted({c.name for c in graph.collectives if c.transfer_ns is not None})
    questions = [("host", ""), ("launch", "")]
    questions += [("class", w.name.lower()) for w in sorted(present - {WorkClass.HOST, WorkClass.COLLECTIVE})]
    questions += [("collective", name) for name in names]
    rows = []
    for kind, pattern in questions:
        label = f"{kind}:{pattern}" if pattern else kind
        scenario = apply(graph, [Change(label, kind, pattern, 0.5, step=number)], base)
        schedules = [replay(graph, timing) for timing in (scenario.timing, *scenario.unsplit)]
        after = max(t.dur_ns for schedule in schedules for t in step_times(graph, schedule) if t.number == number)
        rows.append(Sensitivity(label, step_ns - after, (step_ns - after) / step_ns / 0.5 if step_ns else 0.0))
    return tuple(sorted(rows, key=lambda s: (-s.saved_ns_2x, s.knob)))
