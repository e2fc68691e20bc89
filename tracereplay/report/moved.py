"""The page of a job on other hardware: in, what binds before and after; out, text."""

from collections.abc import Sequence
from dataclasses import dataclass

from tracereplay.analyzers.attribution import Bottleneck
from tracereplay.analyzers.overlap import Overlap
from tracereplay.hardware.memory.banks import Holdings
from tracereplay.hardware.memory.placement import Tier
from tracereplay.replay.sharing import Lost
from tracereplay.replay.transfers import Wire
from tracereplay.report.table import table
from tracereplay.units import format_ns, format_share

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class MovedPage:
    """From which platform to which (None: not described), the longest step before and after, its collectives in the model,
    compute beside communication in the recording, where embedding tables stand (None: not recorded).
    """

    source: str | None
    target: str
    before: Bottleneck
    after: Bottleneck
    wires: tuple[Wire, ...]
    overlap: Overlap | None
    tables: Holdings | None = None


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
    lines += [] if page.tables is None else _held(page.tables)
    return lines if page.overlap is None else [*lines, _overlapped(page.overlap)]


def _held(found: Holdings) -> list[str]:
    """What the memories of the target hold, and which tables stand elsewhere than where they were recorded."""
    least, fullest = (f(found.ranks, key=lambda rank: rank.free) for f in (max, min))
    size = _gb(fullest.table_bytes) if least.table_bytes == fullest.table_bytes else f"up to {_gb(fullest.table_bytes)}"
    dense = "" if fullest.dense_bytes is None else f" and an estimated {_gb(fullest.dense_bytes)} of dense weights"
    line = (
        f"embedding tables: {size} a rank in a memory of {_gb(fullest.capacity)}{dense}; {_gb(fullest.free)} are left for "
        "activations, which are not recorded"
    )
    if not found.moved:
        outside = sum(one.tier is not Tier.HBM for one in found.banks)
        why = f"{outside} groups of them stay outside" if outside else "all were there: more memory moves none"
        return [f"{line}; {why}"]
    rows = [
        (
            str(one.bank.rank),
            one.bank.name,
            f"{one.bank.tables:,}",
            _gb(one.bank.whole_bytes),
            one.bank.tier.value,
            one.tier.value,
        )
        for one in found.moved
    ]
    return [line, table(("rank", "lookup", "tables", "bytes", "from", "to"), rows)]


def _gb(size: int) -> str:
    return f"{size / 1e9:.2f} GB"


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
