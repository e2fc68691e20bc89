"""A job under many settings: in, a graph, one or two swept knobs, what else is asked; out, a point for each choice of values.

Laws: where every setting is 1x the baseline is predicted. A point with more of a resource is not slower, or it is listed with
the reason: a step is as long as its longest rank's, and a rank that enters a step earlier may only wait longer in it; or a
model gives some work more time.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise, product

import numpy as np

from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.knobs import Setting
from tracereplay.hardware.memory.placement import Tier
from tracereplay.hardware.ranges import Axis
from tracereplay.replay.critical_path import CriticalPath, PathGraph
from tracereplay.replay.engine import replay
from tracereplay.replay.move import LEVEL, Move, Mover
from tracereplay.replay.outcome import Interval, Outcome, outcome
from tracereplay.replay.sharing import on_links
from tracereplay.replay.site import Goal
from tracereplay.replay.steps import StepTime, step_times, summarise
from tracereplay.replay.table_moves import CAPACITY
from tracereplay.replay.whatif import Change, Scenario, apply, hardware_change, setting_change
from tracereplay.trace.classify import WorkClass
from tracereplay.units import format_ns

# Fewer than for one question: a point of a sweep has its neighbours beside it, which draw the same errors.
SAMPLES = 16
# So many findings of one kind are explained.
_MOST_EXPLAINED = 20


@dataclass(frozen=True, slots=True)
class Setup:
    """What all points have in common: changes, fixed settings; where the job's hardware is known, moves and where it goes."""

    changes: tuple[Change, ...] = ()
    settings: tuple[Setting, ...] = ()
    mover: Mover | None = None
    goal: Goal | None = None


@dataclass(frozen=True, slots=True)
class SweptKnob:
    """A swept knob and its values as written; ``moved``: whether any of them makes a difference; ``why`` not, where it is
    known.
    """

    knob: str
    values: tuple[str, ...]
    moved: bool
    why: str | None = None


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """A choice of values, and the step under it. ``binds`` is the part with the largest share of the critical path of one step,
    the baseline's longest, on its longest ``rank``; ``bottleneck_moves``: another part than at a value before.
    ``tables_in_hbm_bytes``, ``tables_outside_bytes``: bytes of embedding tables of all ranks, None where none are known.
    """

    settings: tuple[str, ...]
    predicted_ns: int | None
    interval: Interval | None
    speedup: float | None
    binds: str
    binds_share: float
    rank: int | None
    bottleneck_moves: bool
    tables_in_hbm_bytes: int | None = None
    tables_outside_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Slower:
    """A point with more of a resource than its neighbour, and slower than it; and why."""

    knob: str
    less: tuple[str, ...]
    more: tuple[str, ...]
    added_ns: int
    why: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """The result of ``tracereplay sweep``: points in the order of the values, the last knob's fastest; ``step`` is the number
    of the step whose critical path says what binds; ``samples`` are drawn a point (0: no interval).
    """

    baseline_ns: int
    step: int
    knobs: tuple[SweptKnob, ...]
    points: tuple[SweepPoint, ...]
    slower: tuple[Slower, ...]
    samples: int
    level: float | None
    assumed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Asked:
    """One point: its scenario, and the move behind it."""

    scenario: Scenario
    move: Move | None


@dataclass(frozen=True, slots=True)
class _Found:
    point: SweepPoint
    digest: bytes
    assumed: tuple[str, ...]
    why: str | None


def sweep(graph: DependencyGraph, axes: list[Axis], setup: Setup, samples: int = SAMPLES) -> Sweep:
    """The job at each choice of values of the axes.

    Raises:
        UsageError: settings that do not fit the hardware, or ratios of fields that are no knobs where none is known.
        HardwareError: a figure that the job depends on is unknown.
    """
    baseline = summarise(graph, step_times(graph, replay(graph)))
    number = baseline.numbers[int(np.argmax(baseline.longest_ns))]
    paths = PathGraph.of(graph)
    places = list(product(*(range(len(axis)) for axis in axes)))
    found: dict[tuple[int, ...], _Found] = {}
    for place in places:
        asked = _asked(graph, axes, setup, place)
        result = outcome(graph, asked.scenario, asked.move, samples)
        point = _point(paths, result, number, baseline.mean_ns)
        point = replace(point, settings=_texts(axes, place))
        before = [found[near].point.binds for near in _before(place)]
        moves = any(binds != point.binds for binds in before)
        inside, outside = _tables(asked.move)
        point = replace(point, bottleneck_moves=moves, tables_in_hbm_bytes=inside, tables_outside_bytes=outside)
        found[place] = _Found(point, _digest(asked.scenario), _assumed(asked), _why_no_tables(asked.move))
    return Sweep(
        baseline_ns=baseline.mean_ns,
        step=number,
        knobs=tuple(_knob(found, at, axis) for at, axis in enumerate(axes)),
        points=tuple(one.point for one in found.values()),
        slower=tuple(_slower(graph, axes, setup, found)),
        samples=0 if setup.mover is None else samples,
        level=None if setup.mover is None else LEVEL,
        assumed=_first_of_each(text for one in found.values() for text in one.assumed),
    )


def notes(found: Sweep) -> list[str]:
    """What a reader must know beside the points."""
    still = [knob for knob in found.knobs if not knob.moved]
    lines = [f"{knob.knob} moved nothing in this job{f': {knob.why}' if knob.why else ''}" for knob in still]
    for one in found.slower[:_MOST_EXPLAINED]:
        lines.append(f"{', '.join(one.more)} is {format_ns(one.added_ns)} slower than {', '.join(one.less)}: {one.why}")
    if any(point.predicted_ns is None for point in found.points):
        lines.append(
            "collective records miss participants: points are intervals without a number; add the ranks that are missing"
        )
    return lines


def _asked(graph: DependencyGraph, axes: list[Axis], setup: Setup, place: tuple[int, ...]) -> _Asked:
    chosen = [*setup.settings, *(one for axis, at in zip(axes, place, strict=True) for one in axis.settings[at])]
    if setup.mover is None or setup.goal is None:
        return _Asked(apply(graph, [*setup.changes, *(setting_change(one) for one in chosen)]), None)
    move = setup.mover.to(setup.goal.under(chosen))
    return _Asked(apply(graph, [*setup.changes, hardware_change("hardware", move.factor, afresh=move.afresh)]), move)


def _shared(graph: DependencyGraph, asked: _Asked) -> _Asked:
    """The same with the time that transfers take among the others on their links."""
    return asked if asked.move is None else replace(asked, scenario=on_links(graph, asked.scenario, asked.move.sharing))


def _point(paths: PathGraph, result: Outcome, number: int, baseline_ns: int) -> SweepPoint:
    longest = _longest(result.after, number)
    parts = CriticalPath(paths, result.schedule).parts(longest)
    largest = max(parts, key=lambda part: part.ns, default=None)
    mean_ns = result.steps.mean_ns
    return SweepPoint(
        settings=(),
        predicted_ns=mean_ns if result.known else None,
        interval=result.interval,
        speedup=baseline_ns / mean_ns if result.known and mean_ns else None,
        binds="unexplained" if largest is None else largest.name,
        binds_share=0.0 if largest is None else largest.share,
        rank=paths.graph.rank_numbers[longest.rank],
        bottleneck_moves=False,
    )


def _longest(times: list[StepTime], number: int) -> StepTime:
    return max((t for t in times if t.number == number), key=lambda t: t.dur_ns)


def _texts(axes: list[Axis], place: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(axis.text(at) for axis, at in zip(axes, place, strict=True))


def _before(place: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The places one value earlier on each axis."""
    for axis, at in enumerate(place):
        if at:
            yield (*place[:axis], at - 1, *place[axis + 1 :])


def _digest(scenario: Scenario) -> bytes:
    """Equal for equal timings, so that none need be kept."""
    timing = scenario.timing
    return blake2b(timing.dur_ns.tobytes() + timing.lag_ns.tobytes(), digest_size=16).digest()


def _knob(found: dict[tuple[int, ...], _Found], at: int, axis: Axis) -> SweptKnob:
    moved = _moved(found, at)
    why = None if moved or axis.knob != CAPACITY else next((one.why for one in reversed(found.values()) if one.why), None)
    return SweptKnob(axis.knob, axis.values, moved, why)


def _tables(move: Move | None) -> tuple[int | None, int | None]:
    """Bytes of tables in HBM and outside of it; None twice where none are known."""
    if move is None or move.tables is None or not move.tables.tables:
        return None, None
    inside = sum(one.bytes for one in move.tables.tables if one.after == Tier.HBM)
    return inside, sum(one.bytes for one in move.tables.tables) - inside


def _why_no_tables(move: Move | None) -> str | None:
    if move is None:
        return "name the platform that the job ran on with --from"
    return "the job ran on CPUs: it has no tables in HBM" if move.tables is None else move.tables.why


def _moved(found: dict[tuple[int, ...], _Found], axis: int) -> bool:
    """Whether the values of an axis make any difference, whatever the others."""
    rows: dict[tuple[int, ...], set[bytes]] = {}
    for place, one in found.items():
        rows.setdefault((*place[:axis], *place[axis + 1 :]), set()).add(one.digest)
    return any(len(digests) > 1 for digests in rows.values())


def _assumed(asked: _Asked) -> tuple[str, ...]:
    ratios = ("hardware knobs are plain ratios: no efficiency curve, no uncertainty",)
    return ratios if asked.move is None else asked.move.assumed


def _first_of_each(assumed: Iterable[str]) -> tuple[str, ...]:
    """Of what is assumed of one field at many points what is at the first: a swept field is another at each."""
    return tuple({text.partition(" ")[0]: text for text in reversed([*assumed])}.values())[::-1]


# -- more, and slower ------------------------------------------------------------------------------------------------------


def _slower(graph: DependencyGraph, axes: list[Axis], setup: Setup, found: dict[tuple[int, ...], _Found]) -> Iterator[Slower]:
    """Neighbours of which the one with more of a resource is slower; the first ones with their reason."""
    pairs = []
    for at, axis in enumerate(axes):
        order = axis.upwards()
        above = dict(pairwise(order))
        for place, one in found.items():
            more = (*place[:at], above[place[at]], *place[at + 1 :]) if place[at] in above else None
            after_ns = None if more is None else found[more].point.predicted_ns
            if more is not None and after_ns is not None and one.point.predicted_ns is not None:
                pairs.append((after_ns - one.point.predicted_ns, axis.knob, place, more))
    worst = sorted((pair for pair in pairs if pair[0] > 0), key=lambda pair: -pair[0])
    for position, (added_ns, knob, less, more) in enumerate(worst):
        sides = (
            [_shared(graph, _asked(graph, axes, setup, place)) for place in (less, more)] if position < _MOST_EXPLAINED else []
        )
        why = _why(graph, *sides) if sides else "not looked into: see the larger ones"
        yield Slower(knob, _texts(axes, less), _texts(axes, more), added_ns, why)


def _why(graph: DependencyGraph, less: _Asked, more: _Asked) -> str:
    """Why more of a resource makes the step longer: work that takes longer, else the rank that waits longer."""
    grown = _grown(graph, less, more)
    if grown:
        return f"the model gives {grown}"
    before, after = (step_times(graph, replay(graph, one.scenario.timing)) for one in (less, more))
    number = max(graph.step_numbers, key=lambda n: _longest(after, n).dur_ns - _longest(before, n).dur_ns)
    longest, was = _longest(after, number), _longest(before, number)
    same = next(t for t in before if (t.rank, t.number) == (longest.rank, number))
    earlier = format_ns(same.start_ns - longest.start_ns)
    rank = f"rank {graph.rank_numbers[longest.rank]}"
    role = "as before" if longest.rank == was.rank else f"before it was rank {graph.rank_numbers[was.rank]}"
    return f"no task takes longer; {rank}, the longest of step {number} ({role}), enters it {earlier} earlier and waits in it"


def _grown(graph: DependencyGraph, less: _Asked, more: _Asked) -> str:
    """What takes longer with more, by class; of collectives the algorithms where they are others."""
    nodes = graph.nodes
    added = more.scenario.timing.dur_ns - less.scenario.timing.dur_ns
    totals: Counter[str] = Counter()
    for work in WorkClass:
        mine = (nodes.work_class == work) & (added > 0) & (nodes.kind != NodeKind.ARRIVAL)
        if mine.any():
            totals[work.name.lower()] = int(added[mine].sum())
    words = [f"{name} {format_ns(ns)} more" for name, ns in totals.most_common(3)]
    if less.move is not None and more.move is not None:
        pairs = zip(less.move.wires, more.move.wires, strict=True)
        words += dict.fromkeys(
            f"{a.name} runs as {b.algorithm} instead of {a.algorithm}" for a, b in pairs if a.algorithm != b.algorithm
        )
    return "; ".join(words) if totals else ""
