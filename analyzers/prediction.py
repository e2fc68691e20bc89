"""What a scenario makes of the job: in, a graph and changes; out, baseline and predicted steps.

Laws: a scenario without changes predicts the baseline. Where ranks are missing and only collectives change, the interval
holds what all ranks together would have given, unless the missing ones have collectives of their own.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

import numpy as np

from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import Timing, recorded_timing, replay
from tracereplay.replay.ideal import Equalised, Ideal, without_stragglers
from tracereplay.replay.launches import launch_bounds
from tracereplay.replay.move import Move
from tracereplay.replay.outcome import Interval, hull, outcome
from tracereplay.replay.schedule import Schedule
from tracereplay.replay.sharing import Lost, lost
from tracereplay.replay.steps import JobSteps, StepTime, step_times, summarise
from tracereplay.replay.uncertainty import SAMPLES
from tracereplay.replay.whatif import Change, Moved, Scenario, apply
from tracereplay.trace.classify import WorkClass
from tracereplay.trace.job import listed
from tracereplay.units import format_ns

# How the question is called where it is listed among others.
IDEAL_STRAGGLERS = "ideal stragglers"


@dataclass(frozen=True, slots=True)
class StepPrediction:
    """One step number of the job: the longest rank before and after, and when its work has drained after."""

    number: int
    baseline_ns: int
    predicted_ns: int | None
    drain_ns: int | None


@dataclass(frozen=True, slots=True)
class RankPrediction:
    """One rank: its mean step before and after; where only an interval can be given, that."""

    rank: int | None
    baseline_ns: int
    predicted_ns: int | None
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Unmodelled:
    """Device work that no knob or model reaches because nothing is known of it but its time."""

    work_ns: int
    share: float
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prediction:
    """The result of ``tracereplay whatif``; ``predicted_ns`` is None where only an interval can be given.

    ``unsplit``, ``unsplit_moved`` and ``unsplit_kept`` count collective records without a split that the changes touch, to
    which ranks come at another time alone, and that stay as recorded; ``ranks_to_add`` would split the former two, ``unsure``
    are reasons why the truth may be another. ``sharing``: what transfers lose to each other on their links, None where no
    fabric is modelled; ``surplus`` as in ``Scenario``; ``unmoved_reasons`` why knobs of ``unmoved_knobs`` moved nothing, where
    it is known.
    """

    baseline_ns: int
    predicted_ns: int | None
    speedup: float | None
    interval: Interval | None
    steady_ns: int | None
    baseline_steady_ns: int | None
    steps: tuple[StepPrediction, ...]
    ranks: tuple[RankPrediction, ...]
    moved: dict[str, Moved]
    unmoved_knobs: tuple[str, ...]
    assumed: tuple[str, ...]
    unmodelled: Unmodelled
    unsplit: int
    unsplit_moved: int
    unsplit_kept: int
    ranks_to_add: tuple[int, ...]
    unsure: tuple[str, ...]
    equalised: Equalised | None
    sharing: Lost | None
    unmoved_reasons: dict[str, str]
    surplus: bool = False


@dataclass(frozen=True, slots=True)
class OtherHardware:
    """What moving to other hardware does, the settings that made no difference, how many samples of its errors to draw."""

    move: Move
    unmoved: tuple[str, ...] = ()
    samples: int = SAMPLES


@dataclass(frozen=True, slots=True)
class InFull:
    """A prediction, and the timing and schedule that it is read from."""

    prediction: Prediction
    timing: Timing
    schedule: Schedule


def predict(
    graph: DependencyGraph, changes: list[Change], *, stragglers: bool = True, hardware: OtherHardware | None = None
) -> Prediction:
    """The job under the changes, without ``stragglers`` with every rank at the median of its work first. A change to
    collectives that cannot be split, or to when ranks come to them, gives an interval instead of a number; the latter a number
    where it is the same however long the missing ranks are waited for.

    ``hardware`` is what made the factors of a hardware change: the known errors of its models, sampled and replayed, give an
    interval around the number.
    """
    return predict_in_full(graph, changes, stragglers=stragglers, hardware=hardware).prediction


def predict_in_full(
    graph: DependencyGraph,
    changes: list[Change],
    *,
    stragglers: bool = True,
    hardware: OtherHardware | None = None,
    why: Mapping[str, str] = MappingProxyType({}),
) -> InFull:
    """The same with the timing and the schedule under the changes; where the answer is an interval, those of one reading.
    ``why``: for what reason a knob moves nothing if it does not.
    """
    before = step_times(graph, replay(graph))
    baseline = summarise(graph, before)
    ideal = None if stragglers else without_stragglers(graph)
    scenario = apply(graph, changes, ideal.timing if ideal else None)
    move = None if hardware is None else hardware.move
    found = outcome(graph, scenario, move, SAMPLES if hardware is None else hardware.samples, share_anew=True)
    predicted, after, known = found.steps, found.after, found.known
    unmoved = tuple(dict.fromkeys((*_unmoved_ideal(graph, ideal), *scenario.unmoved, *(hardware.unmoved if hardware else ()))))
    prediction = Prediction(
        baseline_ns=baseline.mean_ns,
        predicted_ns=predicted.mean_ns if known else None,
        speedup=baseline.mean_ns / predicted.mean_ns if known and predicted.mean_ns else None,
        interval=found.interval,
        steady_ns=predicted.steady_ns if known else None,
        baseline_steady_ns=baseline.steady_ns,
        steps=_steps(baseline, predicted, after, known),
        ranks=_ranks(graph, before, [after, *found.others]),
        moved=scenario.moved | (_moved_by_ideal(ideal) if ideal else {}),
        unmoved_knobs=unmoved,
        assumed=(*_assumed(graph, changes), *(move.assumed if move else ()), *_launches(graph, scenario, move)),
        unmodelled=_unmodelled(graph, changes, move),
        unsplit=scenario.unsplit_touched,
        unsplit_moved=scenario.unsplit_moved,
        unsplit_kept=scenario.unsplit_kept,
        ranks_to_add=scenario.absent,
        unsure=_unsure(graph, scenario, ideal, sure=known),
        equalised=ideal.equalised if ideal else None,
        sharing=None if move is None or move.sharing is None else lost(graph, move.sharing, scenario.timing, found.timing),
        surplus=scenario.surplus,
        unmoved_reasons={knob: why[knob] for knob in unmoved if knob in why},
    )
    return InFull(prediction, found.timing, found.schedule)


def notes(prediction: Prediction) -> list[str]:
    """What a reader must know beside the numbers: what moved nothing, and why there is an interval or none."""
    why = prediction.unmoved_reasons
    lines = [f"{name} moved nothing in this job{f': {why[name]}' if name in why else ''}" for name in prediction.unmoved_knobs]
    if prediction.equalised is not None:
        lines.append(_equalised_note(prediction.equalised, len(prediction.ranks)))
    if _marks_mislead(prediction):
        lines.append(
            "the answer is the mean of each step's longest rank, and which rank that is changes: a rank that enters a step "
            "earlier waits longer in it; the ranks' own mean steps move the other way"
        )
    if prediction.interval is not None and prediction.predicted_ns is None:
        lines.append(f"{_why_interval(prediction)}; predicted_ns, speedup and steady_ns are null{_advice(prediction)}")
    return [*lines, *prediction.unsure]


def _why_interval(p: Prediction) -> str:
    if p.surplus:
        return (
            f"{p.unsplit + p.unsplit_moved} collective records miss participants: the answer is an interval from none to all "
            "of their time being waiting, that stays before the transfer there"
        )
    if p.unsplit:
        return (
            f"{p.unsplit} collective records miss participants: the answer is an interval from none to all of their time being "
            "transfer"
        )
    return (
        f"{p.unsplit_moved} collective records miss participants, and these ranks come to them at another time: the answer is "
        "an interval over when the missing ranks may come"
    )


def _advice(prediction: Prediction) -> str:
    if prediction.ranks_to_add:
        return f"; add ranks {listed(prediction.ranks_to_add)}"
    return "; add the other ranks of the job" if len(prediction.ranks) == 1 else ""


def _unsure(graph: DependencyGraph, scenario: Scenario, ideal: Ideal | None, *, sure: bool) -> tuple[str, ...]:
    """What ranks that are not here may do to the answer and these files cannot tell."""
    reasons: list[str] = []
    if len(graph.tables) > 1 and not any(c.absent for c in graph.collectives):
        return ()
    if scenario.surplus and not sure:
        return (
            "the ranks that are not here are taken to do the same work as those that are, and more: what kept these waiting, "
            "taken for host time. Where they do other work the truth may lie outside the answer",
        )
    others = set(scenario.moved) - {"collective_unsplit", *(c.name for c in graph.collectives)}
    if others and ideal is None and not sure:
        reasons.append(
            f"{', '.join(sorted(others))} may change on the ranks that are not here too, all that they do or nothing: they are "
            "taken to have entered their first step no earlier than the ranks that are here"
        )
    absent = sorted({rank for c in graph.collectives for rank in c.absent})
    if ideal is not None and absent:
        reasons.append(
            "the medians are those of the ranks that are here: with the others they may be other ones, and the truth may lie "
            f"outside the answer; add ranks {listed(absent)}"
        )
    if scenario.unsplit_touched and _several_groups(graph):
        reasons.append(
            "the job has several process groups: collectives that only the missing ranks run are not known, and may move the "
            "truth out of the interval"
        )
    if scenario.unsplit_kept and scenario.moved:
        reasons.append(
            f"{scenario.unsplit_kept} collective records miss participants and keep their time: how much of it is waiting, and "
            "what the change does to that, only the missing ranks tell"
        )
    return tuple(reasons)


def _several_groups(graph: DependencyGraph) -> bool:
    """True where the collectives have different participants, the known missing ones included."""
    return len({frozenset((*(graph.rank_numbers[r] for r in c.ranks), *c.absent)) for c in graph.collectives}) > 1


def _equalised_note(e: Equalised, ranks: int) -> str:
    if ranks == 1:
        return "one rank has nothing to be compared with: --ideal stragglers needs the traces of several"
    return (
        f"{e.compared:,} tasks took the median over the ranks that do the same work; {e.kept:,} that fewer than half of the "
        f"ranks have were kept ({100 * e.kept_share:.1f} % of the time of all); ranks that enter their first step at another "
        f"time: {e.entries}"
    )


def _moved_by_ideal(ideal: Ideal) -> dict[str, Moved]:
    """What ``--ideal stragglers`` moved beside durations: lags of tasks, and entries into the first step."""
    rows = {"lag": (ideal.lag_before_ns, ideal.lag_after_ns), "late_entry": (ideal.late_before_ns, ideal.late_after_ns)}
    return {
        name: Moved(int(np.count_nonzero(a != b)), int(a[a != b].sum()), int(b[a != b].sum()), "median")
        for name, (a, b) in rows.items()
        if (a != b).any()
    }


def _unmoved_ideal(graph: DependencyGraph, ideal: Ideal | None) -> tuple[str, ...]:
    if ideal is None:
        return ()
    recorded = recorded_timing(graph)
    pairs = ((getattr(recorded, f.name), getattr(ideal.timing, f.name)) for f in fields(recorded))
    return () if any((a != b).any() for a, b in pairs) else (IDEAL_STRAGGLERS,)


def _marks_mislead(p: Prediction) -> bool:
    """True where the longest ranks' steps and the ranks' own mean steps move in opposite directions."""
    if p.predicted_ns is None:
        return False
    gained = sum((r.predicted_ns or 0) - r.baseline_ns for r in p.ranks)
    return (p.predicted_ns - p.baseline_ns) * gained < 0


def _steps(baseline: JobSteps, predicted: JobSteps, after: list[StepTime], known: bool) -> tuple[StepPrediction, ...]:
    rows = []
    for number, before_ns, after_ns in zip(baseline.numbers, baseline.longest_ns, predicted.longest_ns, strict=True):
        drains = [t.drain_ns for t in after if t.number == number and t.drain_ns is not None]
        rows.append(
            StepPrediction(number, before_ns, after_ns if known else None, max(drains, default=None) if known else None)
        )
    return tuple(rows)


def _ranks(graph: DependencyGraph, before: list[StepTime], readings: list[list[StepTime]]) -> tuple[RankPrediction, ...]:
    rows = []
    for index, rank in enumerate(graph.rank_numbers):
        means = [_mean_step(times, index) for times in readings]
        interval = hull(means)
        rows.append(RankPrediction(rank, _mean_step(before, index), means[0] if interval is None else None, interval))
    return tuple(rows)


def _mean_step(times: list[StepTime], index: int) -> int:
    own = [t.dur_ns for t in times if t.rank == index]
    return round(sum(own) / len(own))


def _assumed(graph: DependencyGraph, changes: list[Change]) -> tuple[str, ...]:
    assumed = ["hardware knobs are plain ratios: no efficiency curve, no uncertainty"] if any(c.knob for c in changes) else []
    assumed += [w for w in graph.warnings if w.startswith("no host is recorded")]
    return tuple(assumed)


def _launches(graph: DependencyGraph, scenario: Scenario, move: Move | None) -> tuple[str, ...]:
    """By how much launches beside the device could make the answer another one, in words."""
    bounds = None if move is None else launch_bounds(graph, scenario.timing, move)
    if bounds is None or move is None or move.launch is None:
        return ()
    launch = move.launch
    span = "" if launch.low_ns == launch.high_ns else f" ({launch.low_ns / 1e3:g} … {launch.high_ns / 1e3:g})"
    return (
        f"no launches: of {launch.ns / 1e3:g} µs an operator{span}, {launch.source}. With them the models' likely step lies "
        f"between {format_ns(bounds.low_ns)} (the longer of the host with its launches, {format_ns(bounds.host_ns)}, and the "
        f"device, {format_ns(bounds.device_ns)}) and {format_ns(bounds.serial_ns)} (each launched, then run)",
    )


def _unmodelled(graph: DependencyGraph, changes: list[Change], move: Move | None) -> Unmodelled:
    nodes = graph.nodes
    device = np.isin(nodes.kind, (NodeKind.DEVICE, NodeKind.TRANSFER, NodeKind.UNSPLIT))
    if graph.host_carries_classes and move is not None:
        device |= (nodes.kind == NodeKind.HOST) & graph.is_operator
    total = int(nodes.dur_ns[device].sum())
    if move is not None:
        unknown = np.flatnonzero(device & move.kept)
    elif any(c.knob and c.knob.side == "device" for c in changes):
        unknown = np.flatnonzero(device & (nodes.work_class == WorkClass.OTHER))
    else:
        return Unmodelled(0, 0.0, ())
    work_ns = int(nodes.dur_ns[unknown].sum())
    by_name: Counter[str] = Counter()
    for node in unknown.tolist():
        by_name[graph.name_of(node)] += int(nodes.dur_ns[node])
    names = [name for name, _ in by_name.most_common(10)]
    return Unmodelled(work_ns, work_ns / total if total else 0.0, tuple(names))
