"""The page of a job on other hardware: in, what binds before and after; out, text."""

from collections.abc import Sequence
from dataclasses import dataclass

from tracereplay.analyzers.attribution import Bottleneck
from tracereplay.analyzers.overlap import Overlap
from tracereplay.replay.sharing import Lost
from tracereplay.replay.table_moves import RankFit, TableMove, TablesMoved
from tracereplay.replay.transfers import Wire
from tracereplay.report.table import table
from tracereplay.units import format_ns, format_share

_SHOWN = 5
_SHOWN_TABLES = 12


@dataclass(frozen=True, slots=True)
class MovedPage:
    """From which platform to which (None: not described), the longest step before and after, its collectives in the model,
    compute beside communication in the recording, where its embedding tables stand (None: a job without accelerators).
    """

    source: str | None
    target: str
    before: Bottleneck
    after: Bottleneck
    wires: tuple[Wire, ...]
    overlap: Overlap | None
    memory: TablesMoved | None = None


def moved_lines(page: MovedPage) -> list[str]:
    """The page as tables and sentences, the answer first: which resource binds before and after, and why."""
    before, after = page.before, page.after
    shares = [{part.name: part for part in side.parts} for side in (before, after)]
    names = sorted({*shares[0], *shares[1]}, key=lambda name: -max(s[name].ns if name in s else 0 for s in shares))
    rows = [(name, *(cell for side in shares for cell in _part_cells(side.get(name)))) for name in names]
    lines = [
        f"on {page.source or 'the recorded hosts'}: {_binds(before)}",
        f"on {page.target}: {_binds(after)}",
        f"critical path of step {before.step}, {format_ns(before.step_ns)} before and {format_ns(after.step_ns)} after:",
        table(("part", "before", "share", "after", "share"), rows),
        table(("twice as fast", "saves before", "saves after"), _savings(before, after)),
    ]
    wires = _wire_rows(page.wires)
    if wires:
        head = ("collective", "count", "bytes", "before", "after", "algorithm", "latency", "its bytes wait for")
        lines.append(table(head, wires))
    lines += [] if page.memory is None else _memory_lines(page.memory)
    return lines if page.overlap is None else [*lines, _overlapped(page.overlap)]


def _memory_lines(memory: TablesMoved) -> list[str]:
    """Which tables move, what stays outside, and what each rank's memory holds; nothing where all is in HBM as before."""
    outside = [one for one in memory.tables if {one.before, one.after} != {"hbm"}]
    changed = any(one.capacity_before_bytes != one.capacity_after_bytes for one in memory.ranks)
    if not outside and not changed:
        return []
    shown = sorted(outside, key=lambda one: (one.before == one.after, -one.bytes))
    head = ("embedding tables", "rank", "bytes", "rows a step", "stood in", "stand in", "")
    lines = [_tables_sentence(memory.tables)]
    lines += [table(head, [_table_cells(one) for one in shown[:_SHOWN_TABLES]], len(shown))] if shown else []
    ranks = ("HBM of rank", "bytes", "then", "of tables", "then", "of the rest", "free then")
    rows = [_fit_cells(one) for one in memory.ranks[:_SHOWN_TABLES]]
    lines.append(table(ranks, rows, len(memory.ranks)))
    if any(one.estimated for one in memory.ranks):
        lines.append("the rest is the most that it may be, an estimate: --placement FILE says what it is")
    return lines


def _tables_sentence(tables: Sequence[TableMove]) -> str:
    moved = [one for one in tables if one.before != one.after]
    left = [one for one in tables if one.after != "hbm"]
    into = sum(one.bytes for one in moved if one.after == "hbm")
    out = sum(one.bytes for one in moved if one.after != "hbm")
    parts = [f"{size:,} bytes of tables move {way} HBM" for size, way in ((into, "into"), (out, "out of")) if size]
    parts += [f"{sum(one.bytes for one in left):,} bytes stand outside of it"] if left else []
    return "; ".join(parts) or "all tables stand in HBM, before and after"


def _table_cells(one: TableMove) -> tuple[str, ...]:
    lacks = f"lacks {one.missing_bytes:,} bytes" if one.missing_bytes else ""
    return one.name, _rank(one.rank), f"{one.bytes:,}", f"{one.lookups:,}", one.before, one.after, lacks


def _fit_cells(one: RankFit) -> tuple[str, ...]:
    numbers = (
        one.capacity_before_bytes,
        one.capacity_after_bytes,
        one.tables_before_bytes,
        one.tables_after_bytes,
        one.besides_bytes,
        one.free_after_bytes,
    )
    return _rank(one.rank), *(f"{number:,}" for number in numbers)


def _rank(rank: int | None) -> str:
    return "–" if rank is None else str(rank)


def _overlapped(found: Overlap) -> str:
    there = f"{format_share(found.beside_share)} of compute ran beside communication"
    if found.slowdown is None:
        return f"{there}; how much slower is not known, no kernel occurs there and alone often enough: not modelled"
    much = f"{format_share(abs(found.slowdown))} {'slower' if found.slowdown >= 0 else 'faster'}"
    return (
        f"{there}, {much} than alone (median of {found.kinds:,} kinds of kernels that occur both ways); predictions keep that"
    )


def shared_line(found: Lost) -> str:
    """What transfers lose to each other on the links that they share, and which link has the most to carry."""
    if found.slowed:
        line = f"{found.slowed:,} transfers overlap on links and lose {format_ns(found.lost_ns)} to sharing them, the step "
        line += format_ns(found.step_lost_ns)
    else:
        line = "no transfers slow each other down on a link"
    if found.recorded_lost_ns:
        line = f"{line}; {format_ns(found.recorded_lost_ns)} of sharing in the recording is taken out"
    if found.busiest_link is None:
        return line
    return f"{line}; the busiest link is {found.busiest_link}, {format_share(found.busiest_share or 0.0)} of the time"


def _part_cells(part: object) -> tuple[str, str]:
    if part is None:
        return "", ""
    return format_ns(part.ns), format_share(part.share)  # type: ignore[attr-defined] # a Part where it is not None


def _binds(side: Bottleneck) -> str:
    """Which resource binds a step, and why."""
    saving = [s for s in side.sensitivity if s.saved_ns_2x > 0]
    if not saving:
        return "no resource alone would shorten the step"
    first, *rest = saving
    line = f"{first.knob} binds: twice as fast it saves {format_ns(first.saved_ns_2x)} of {format_ns(side.step_ns)}"
    return f"{line}, {rest[0].knob} {format_ns(rest[0].saved_ns_2x)}" if rest else line


def _savings(before: Bottleneck, after: Bottleneck) -> Sequence[tuple[str, ...]]:
    sides = [{s.knob: s.saved_ns_2x for s in side.sensitivity} for side in (before, after)]
    knobs = sorted(sides[0], key=lambda knob: -max(side.get(knob, 0) for side in sides))
    return [(k, *(format_ns(side.get(k, 0)) for side in sides)) for k in knobs if any(s.get(k, 0) > 0 for s in sides)][:_SHOWN]


def _wire_rows(wires: Sequence[Wire]) -> Sequence[tuple[str, ...]]:
    """Equal collectives in one row."""
    groups: dict[tuple[str, float | None, bool], list[Wire]] = {}
    for wire in wires:
        groups.setdefault((wire.name, wire.size, wire.uneven), []).append(wire)
    rows = []
    for (name, size, uneven), same in groups.items():
        first = same[0]
        latency = "" if first.latency_share != first.latency_share else format_share(first.latency_share)
        before, after = sum(w.before_ns for w in same), sum(w.after_ns for w in same)
        known = "not recorded" if size is None else f"{size:,.0f}"
        link = first.bottleneck or "latency alone"
        algorithm = f"{first.algorithm}, uneven" if uneven else first.algorithm
        rows.append((name, f"{len(same):,}", known, format_ns(before), format_ns(after), algorithm, latency, link))
    return rows
