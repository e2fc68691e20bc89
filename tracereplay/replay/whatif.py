"""Changes to a job: in, a graph and changes; out, a Timing to replay and what the changes moved.

A change multiplies the recorded durations of the tasks that it selects (or the launch lags). Waits are never selected:
they are results. A collective whose wait and transfer cannot be told apart has several readings (``readings``) where a change
touches it or moves when this rank comes to it: all of its time is transfer, or none is.
"""

import fnmatch
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracereplay.errors import UsageError
from tracereplay.graph.kinds import EdgeKind, NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.knobs import Knob, Setting, unknown_knob
from tracereplay.replay.engine import Timing, recorded_timing
from tracereplay.replay.readings import Factors, all_waiting, is_other_job, is_wire, reached_otherwise, scaled, with_surplus
from tracereplay.trace.classify import CLASS_NAMES, COLLECTIVE_NAMES, WorkClass
from tracereplay.trace.times import Int64s

Mask = npt.NDArray[np.bool_]

_SCALE = re.compile(
    r"^(?P<selector>.+?)(?:@rank=(?P<rank>\d+))?=(?P<factor>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)x(?:@rank=(?P<last>\d+))?$"
)
_KINDS = ("kernel", "op", "class", "collective")


@dataclass(frozen=True, slots=True)
class Change:
    """One change: what it is called, what it selects, by what it multiplies, on which rank, in which step; ``factors``
    instead, one a node, where a model of hardware gives them, ``afresh`` where recorded times are nothing to it.
    """

    label: str
    kind: str
    pattern: str
    factor: float
    rank: int | None = None
    knob: Knob | None = None
    step: int | None = None
    factors: npt.NDArray[np.float64] | None = None
    afresh: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """What a scenario moved of one class: how many tasks or collectives, their time before and after, on what basis."""

    count: int
    before_ns: int
    after_ns: int
    basis: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """A changed timing in which the time of collectives that cannot be split is all transfer; ``unsplit`` are the other
    readings of that time (empty: the changes concern none of them), of which an answer takes the extremes.

    Of the records of such collectives ``unsplit_touched`` counts those that the changes touch, ``unsplit_moved`` those to which
    ranks come at another time alone, ``unsplit_kept`` those that stay as recorded; ``absent`` are the ranks that take part in
    the former two and are not here. ``surplus``: the other reading takes them to do the work of the ranks here, and more.
    """

    timing: Timing
    unsplit: tuple[Timing, ...]
    moved: dict[str, Moved]
    unmoved: tuple[str, ...]
    unsplit_touched: int = 0
    unsplit_moved: int = 0
    unsplit_kept: int = 0
    absent: tuple[int, ...] = ()
    surplus: bool = False


def parse_scale(text: str) -> Change:
    """The change of ``SELECTOR=FACTORx``, with ``@rank=R`` before or after the factor for one rank.

    Raises:
        UsageError: another form, an unknown selector, class or collective.
    """
    match = _SCALE.match(text)
    if match is None:
        raise UsageError(f"--scale {text!r} is not SELECTOR=FACTORx", hint="for example 'collective:all_to_all=0.5x'")
    kind, _, pattern = match["selector"].partition(":")
    if match["rank"] is not None and match["last"] is not None:
        raise UsageError(f"--scale {text!r} names a rank twice", hint="write @rank=R once, or repeat --scale")
    rank = match["rank"] or match["last"]
    _check_selector(text, kind, pattern)
    return Change(text, kind, pattern, float(match["factor"]), None if rank is None else int(rank))


def setting_change(setting: Setting) -> Change:
    """The change that a hardware knob makes as a plain ratio: what it divides takes 1/ratio of its time.

    Raises:
        UsageError: a value, or a field that is no knob.
    """
    if setting.of_source:
        raise UsageError(f"--set {setting.text}: what the job ran on is not named", hint="name it with --from")
    if setting.knob is None:
        raise unknown_knob(setting.name)
    if setting.ratio is None:
        raise UsageError(
            f"--set {setting.text}: what the job ran on is not known, and so only ratios of knobs are",
            hint="add --from NAME, or write a ratio such as host.speed=2x",
        )
    return Change(setting.name, "knob", setting.name, 1 / setting.ratio, knob=setting.knob)


def hardware_change(label: str, factors: npt.NDArray[np.float64], *, afresh: bool = False) -> Change:
    """The change that other hardware makes: each node's time times a factor of its own. ``afresh``: operators and transfers
    take the models' times, to which the recorded ones are nothing (``Move.afresh``).
    """
    return Change(label, "hardware", "", 1.0, factors=factors, afresh=afresh)


def apply(graph: DependencyGraph, changes: list[Change], base: Timing | None = None) -> Scenario:
    """The scenario of all changes together; factors on one task multiply. They change the ``base``, by default the recorded
    timing; what moved counts from the recorded one.

    Raises:
        UsageError: a change names a rank that the job does not have.
    """
    recorded = recorded_timing(graph)
    base = base or recorded
    ones = np.ones(len(graph))
    factors = Factors(ones, ones.copy(), np.ones(len(graph.edges)), np.zeros(len(graph), np.bool_))
    with np.errstate(over="ignore", invalid="ignore"):  # too much for a float is refused below
        for change in changes:
            _multiply(graph, change, factors)
    unsplit = graph.nodes.kind == NodeKind.UNSPLIT
    touched = unsplit & (factors.node != 1)
    lag_ns = scaled(base.lag_ns, factors.lag)
    timing = Timing(scaled(base.dur_ns, factors.node), lag_ns, base.residue_ns, base.release_ns)
    concerned = touched | reached_otherwise(graph, timing) if unsplit.any() else touched
    afresh = bool(changes) and all(change.afresh for change in changes) and not is_other_job(graph, base)
    readings = with_surplus if afresh else all_waiting
    return Scenario(
        timing=timing,
        unsplit=readings(graph, base, timing, factors) if concerned.any() else (),
        moved=_moved(graph, base, timing, factors),
        unmoved=tuple(dict.fromkeys(factors.unmoved)),
        unsplit_touched=int(np.count_nonzero(touched)),
        unsplit_moved=int(np.count_nonzero(concerned & ~touched)),
        unsplit_kept=int(np.count_nonzero(unsplit & ~concerned)),
        absent=tuple(sorted({rank for c in graph.collectives if concerned[[*c.transfers]].any() for rank in c.absent})),
        surplus=afresh,
    )


def _check_selector(text: str, kind: str, pattern: str) -> None:
    if kind in ("host", "launch") and not pattern:
        return
    if kind not in _KINDS or not pattern:
        raise UsageError(
            f"--scale {text!r}: no selector {kind!r}",
            hint="selectors are kernel:GLOB, op:GLOB, class:NAME, collective:NAME, host, launch",
        )
    if kind == "class" and pattern not in CLASS_NAMES:
        raise UsageError(f"--scale {text!r}: no class {pattern!r}", hint=f"classes are {', '.join(CLASS_NAMES)}")
    if kind == "collective" and pattern not in ("*", *COLLECTIVE_NAMES):
        raise UsageError(
            f"--scale {text!r}: no collective {pattern!r}", hint=f"collectives are {', '.join(COLLECTIVE_NAMES)} or *"
        )


def _multiply(graph: DependencyGraph, change: Change, factors: Factors) -> None:
    """Multiply the factors of what one change selects; note a change that selects nothing that takes time."""
    if change.factors is not None:
        factors.modelled[change.factors != 1] = True
        if not factors.modelled.any():
            factors.unmoved.append(change.label)
        factors.node[:] *= change.factors
        factors.hardware[:] *= change.factors
        return
    if change.kind == "launch":
        chosen = (graph.edges.kind == EdgeKind.LAUNCH) & _in_scope(graph, change)[graph.edges.dst]
        if not (graph.edges.lag_ns[chosen] != 0).any():
            factors.unmoved.append(change.label)
        factors.lag[chosen] *= change.factor
        return
    chosen = _selected(graph, change) & _in_scope(graph, change)
    if not (graph.nodes.dur_ns[chosen] > 0).any():
        factors.unmoved.append(change.label)
    factors.node[chosen] *= change.factor


def _in_scope(graph: DependencyGraph, change: Change) -> Mask:
    """Nodes of the change's rank and step; all where it names none."""
    scope = np.ones(len(graph), np.bool_)
    if change.rank is not None:
        if change.rank not in graph.rank_numbers:
            raise UsageError(
                f"--scale {change.label!r}: the job has no rank {change.rank}",
                hint=f"ranks are {list(graph.rank_numbers)}",
            )
        scope &= graph.nodes.rank == graph.rank_numbers.index(change.rank)
    if change.step is not None:
        scope &= graph.step_number == change.step
    return scope


def _selected(graph: DependencyGraph, change: Change) -> Mask:
    nodes = graph.nodes
    host, wire = nodes.kind == NodeKind.HOST, is_wire(graph)
    if change.knob is not None:
        return _selected_by_knob(graph, change.knob)
    if change.kind == "host":
        return np.asarray(host)
    if change.kind == "collective":
        return wire & _collective_named(graph, change.pattern)
    # On CPU-only traces the operators on host threads are the work.
    work = host & graph.is_operator if graph.host_carries_classes else (nodes.kind == NodeKind.DEVICE)
    if change.kind == "class":
        return np.asarray((work | wire) & (nodes.work_class == CLASS_NAMES[change.pattern]))
    if change.kind == "kernel":
        return np.asarray((work | wire) & _rows_match(graph, change.pattern, nodes.row, under=False))
    rows = np.where(host, nodes.row, nodes.owner_row)
    return np.asarray((work | wire) & _rows_match(graph, change.pattern, rows, under=True))


def _selected_by_knob(graph: DependencyGraph, knob: Knob) -> Mask:
    nodes = graph.nodes
    nothing = np.zeros(len(graph), np.bool_)
    if not knob.modelled:
        return nothing
    if knob.fabric is not None:
        levels = np.array([c.scale_out for c in graph.collectives], np.bool_)
        far = levels[nodes.collective] if levels.size else nothing
        return np.asarray(is_wire(graph) & (far == (knob.fabric == "scale_out")))
    if knob.whole_host:
        return np.asarray(nodes.kind == NodeKind.HOST)
    side = NodeKind.HOST if knob.side == "host" else NodeKind.DEVICE
    if side is NodeKind.HOST and not graph.host_carries_classes:
        return nothing
    classes = [int(CLASS_NAMES[name]) for name in knob.classes]
    return np.asarray((nodes.kind == side) & np.isin(nodes.work_class, classes))


def _collective_named(graph: DependencyGraph, name: str) -> Mask:
    named = np.array([name in ("*", c.name) for c in graph.collectives], np.bool_)
    nodes = graph.nodes
    return np.where(nodes.collective >= 0, named[nodes.collective], False) if named.size else np.zeros(len(graph), np.bool_)


def _rows_match(graph: DependencyGraph, glob: str, rows: Int64s, *, under: bool) -> Mask:
    """Nodes whose row has a matching name or, ``under``, lies under an event with one."""
    result = np.zeros(len(graph), np.bool_)
    for rank, table in enumerate(graph.tables):
        names = np.array([fnmatch.fnmatchcase(name, glob) for name in table.names], np.bool_)
        hit = names[table.codes("name")]
        if under:
            hit = _spread_down(hit, table.column("parent_row"))
        mine = (graph.nodes.rank == rank) & (rows >= 0)
        result[mine] = hit[rows[mine]]
    return result


def _spread_down(hit: Mask, parents: Int64s) -> Mask:
    while True:
        wider = hit | ((parents >= 0) & hit[parents])
        if np.array_equal(wider, hit):
            return hit
        hit = wider


def _moved(graph: DependencyGraph, base: Timing, after: Timing, factors: Factors) -> dict[str, Moved]:
    """Time moved by class of work; collectives by name, counted once each with the transfer all participants share."""
    nodes, recorded = graph.nodes, recorded_timing(graph)
    scaled, equalised = factors.node != 1, base.dur_ns != recorded.dur_ns
    moved: dict[str, Moved] = {}
    for work in WorkClass:
        mine = (nodes.work_class == work) & ~is_wire(graph) & (((recorded.dur_ns > 0) & scaled) | equalised)
        if mine.any():
            before_ns, after_ns = int(recorded.dur_ns[mine].sum()), int(after.dur_ns[mine].sum())
            reasons = (("median", equalised), ("model", factors.modelled), ("ratio", scaled & ~factors.modelled))
            basis = [name for name, how in reasons if (how & mine).any()]
            moved[work.name.lower()] = Moved(int(np.count_nonzero(mine)), before_ns, after_ns, ", ".join(basis))
    moved |= _moved_collectives(graph, recorded, after, scaled, "model" if factors.modelled.any() else "ratio")
    changed = (factors.lag != 1) & (base.lag_ns != 0)
    if changed.any():
        moved["launch"] = Moved(
            int(np.count_nonzero(changed)), int(base.lag_ns[changed].sum()), int(after.lag_ns[changed].sum()), "ratio"
        )
    return moved


def _moved_collectives(graph: DependencyGraph, before: Timing, after: Timing, touched: Mask, basis: str) -> dict[str, Moved]:
    rows: dict[str, list[tuple[int, int]]] = {}
    uneven: set[str] = set()
    for c in graph.collectives:
        mine = [n for n in c.transfers if touched[n]]
        if not mine:
            continue
        key = c.name if c.transfer_ns is not None else "collective_unsplit"
        pair = (max(int(before.dur_ns[n]) for n in mine), max(int(after.dur_ns[n]) for n in mine))
        rows.setdefault(key, []).append(pair)
        if c.is_uneven and basis == "model":
            uneven.add(key)
    by = {key: f"{basis}, uneven splits" if key in uneven else basis for key in rows}
    return {k: Moved(len(v), sum(a for a, _ in v), sum(b for _, b in v), by[k]) for k, v in sorted(rows.items())}
