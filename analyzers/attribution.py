"""Where the step's time goes and who makes whom wait: in, a graph; out, parts of the critical path, waits, sensitivities.

The parts are those of the critical path of the longest rank's step (``replay/critical_path.py``): they sum to it.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import Collective, DependencyGraph
from tracereplay.replay.critical_path import CriticalPath, Part, PathGraph, Piece, span_of
from tracereplay.replay.engine import Timing, replay
from tracereplay.replay.steps import step_times, summarise
from tracereplay.replay.whatif import Change, apply
from tracereplay.trace.classify import WorkClass

_BEFORE = "before the recording"


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


def attribute(graph: DependencyGraph, number: int | None = None) -> Attribution:
    """The attribution of one step, by default the longest of those that every rank has whole."""
    schedule = replay(graph)
    times = step_times(graph, schedule)
    steps = summarise(graph, times)
    chosen = number if number is not None else steps.numbers[int(np.argmax(steps.longest_ns))]
    mine = [t for t in times if t.number == chosen]
    longest = max(mine, key=lambda t: t.dur_ns)
    path = CriticalPath(PathGraph.of(graph), schedule)
    pieces, parts = path.pieces(longest), path.parts(longest)
    collectives = [c for c in graph.collectives if c.step == chosen]
    return Attribution(
        step=chosen,
        rank=graph.rank_numbers[longest.rank],
        step_ns=longest.dur_ns,
        parts=parts,
        sum_ns=sum(p.ns for p in parts),
        carry_in_ns=span_of(graph, longest).carry_in_ns,
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
    parts = CriticalPath(PathGraph.of(graph), schedule).parts(longest)
    sensitivity = _sensitivities(graph, number, longest.dur_ns, timing)
    return Bottleneck(number, graph.rank_numbers[longest.rank], longest.dur_ns, parts, sensitivity)


def _by_class(graph: DependencyGraph, pieces: list[Piece]) -> dict[str, int]:
    """Own time on the path by class of work; lags and waits belong to no class."""
    totals: Counter[str] = Counter()
    for piece in pieces:
        if piece.own:
            totals[WorkClass(graph.nodes.work_class[piece.node]).name.lower()] += piece.end_ns - piece.start_ns
    return dict(sorted(totals.items(), key=lambda item: -item[1]))


def _waits(path: CriticalPath, collectives: list[Collective]) -> tuple[Wait, ...]:
    """Each participant's wait with its cause: what was done, and on which rank, while the participant already waited."""
    graph = path.ground.graph
    rows = []
    for c in collectives:
        if c.wait_ns is None:
            continue
        last = int(np.argmax(c.start_ns))
        pieces = path.walk(c.arrivals[last], min(c.start_ns), c.start_ns[last])
        for rank, arrival, waited in zip(c.ranks, c.start_ns, c.wait_ns, strict=True):
            if waited > 0 and rank != c.ranks[last]:
                culprit, cause = _cause(graph, pieces, arrival, c.ranks[last])
                rows.append(Wait(graph.rank_numbers[rank], graph.rank_numbers[culprit], cause, f"{c.name}#{c.order}", waited))
    return tuple(sorted(rows, key=lambda w: -w.ns))


def _cause(graph: DependencyGraph, pieces: list[Piece], since_ns: int, last: int) -> tuple[int, str]:
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


def _waiting_as(graph: DependencyGraph, base: Timing, changed: Timing) -> tuple[Timing, ...]:
    """The other reading of collectives that cannot be split, of a job under a base: all waiting, till when they ended."""
    unsplit = graph.nodes.kind == NodeKind.UNSPLIT
    if not unsplit.any():
        return ()
    release_ns = np.where(unsplit, replay(graph, base).end_ns, changed.release_ns)
    return (Timing(np.where(unsplit, 0, changed.dur_ns), changed.lag_ns, changed.residue_ns, release_ns),)


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
        others = scenario.unsplit if base is None else _waiting_as(graph, base, scenario.timing)
        schedules = [replay(graph, timing) for timing in (scenario.timing, *others)]
        after = max(t.dur_ns for schedule in schedules for t in step_times(graph, schedule) if t.number == number)
        rows.append(Sensitivity(label, step_ns - after, (step_ns - after) / step_ns / 0.5 if step_ns else 0.0))
    return tuple(sorted(rows, key=lambda s: (-s.saved_ns_2x, s.knob)))
