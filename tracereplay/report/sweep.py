"""A sweep for people: in, its points; out, a table and bars for one knob, a grid for two."""

from collections.abc import Sequence
from itertools import pairwise

from tracereplay.analyzers.sweep import Sweep, SweepPoint
from tracereplay.hardware.ranges import Axis
from tracereplay.report.table import WIDTH, page, table
from tracereplay.units import format_ns, format_share

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_MARK = "*"
_HEAD = ("step", "speedup", "binds", "share", "on rank")
_ALIKE = 0.001
# Between columns of a table.
_GAP = 3


def sweep_text(found: Sweep, axes: Sequence[Axis], asked: Sequence[str]) -> str:
    """``sweep`` as text."""
    lines = [_answer(found, axes, asked)]
    if len(axes) == 1:
        lines += [_rows(found, axes[0]), bars(found, axes[0])]
    else:
        lines += _grid(found, axes)
    lines += _outside(found)
    if any(point.bottleneck_moves for point in found.points):
        lines.append(f"{_MARK} another part of the step binds than at the value before")
    if found.samples:
        lines.append(f"intervals hold {format_share(found.level)} of the models' known errors, {found.samples} samples a point")
    lines += ["\n".join(f"assumed: {text}" for text in found.assumed)] if found.assumed else []
    return page(lines)


def _answer(found: Sweep, axes: Sequence[Axis], asked: Sequence[str]) -> str:
    """The first of the best points; one is as good as another that is as fast within 0.1 %."""
    knobs = " and ".join(axis.knob for axis in axes)
    beside = f", with {', '.join(asked)}" if asked else ""
    head = f"step {format_ns(found.baseline_ns)} as recorded; {len(found.points)} points over {knobs}{beside}"
    times = [point.predicted_ns for point in found.points if point.predicted_ns is not None]
    if not times:
        return head
    enough = min(times) * (1 + _ALIKE)
    if max(times) <= enough:
        return f"{head}:\n{format_ns(min(times))} at every one of them"
    best = next(point for point in found.points if point.predicted_ns is not None and point.predicted_ns <= enough)
    return f"{head}:\nbest {format_ns(best.predicted_ns)} ({_speedup(best)}) at {', '.join(best.settings)}"


def _rows(found: Sweep, axis: Axis) -> str:
    rows = []
    for value, p in zip(axis.values, found.points, strict=True):
        binds = f"{_MARK if p.bottleneck_moves else ''}{p.binds}"
        bounds = [_interval(p)] if any(one.interval for one in found.points) else []
        rows.append((value, format_ns(p.predicted_ns), *bounds, _speedup(p), binds, format_share(p.binds_share), _rank(p)))
    interval = ["interval"] if len(rows[0]) > len(_HEAD) + 1 else []
    head = (axis.knob, _HEAD[0], *interval, *_HEAD[1:])
    return f"what binds: the largest part of the critical path of step {found.step}, on its longest rank\n\n{table(head, rows)}"


def _outside(found: Sweep) -> list[str]:
    """The bytes of tables outside of HBM at each point, where they are not the same at all."""
    if len({point.tables_outside_bytes for point in found.points}) < 2:
        return []
    sizes = (f"{point.tables_outside_bytes or 0:,} at {', '.join(point.settings)}" for point in found.points)
    return ["bytes of tables outside of HBM:\n" + "\n".join(sizes)]


def bars(found: Sweep, axis: Axis, width: int = WIDTH) -> str:
    """The steps as bars from 0, in eighths of a character; ``░`` reaches from the lower to the upper end of an interval."""
    label = max(len(value) for value in axis.values)
    times = [format_ns(point.predicted_ns) for point in found.points]
    time = max(len(text) for text in times)
    most = max(max(p.predicted_ns or 0, p.interval.high_ns if p.interval else 0) for p in found.points)
    room = max(width - label - time - 4, 10)
    lines = []
    for value, text, point in zip(axis.values, times, found.points, strict=True):
        lines.append(f"{value:<{label}}  {text:>{time}}  {_bar(point, room / max(most, 1))}".rstrip())
    return "\n".join(lines)


def _bar(point: SweepPoint, scale: float) -> str:
    if point.interval is None:
        return _solid((point.predicted_ns or 0) * scale)
    low, high = point.interval.low_ns * scale, point.interval.high_ns * scale
    solid = _solid(low)
    return solid + "░" * (round(high) - len(solid))


def _solid(length: float) -> str:
    whole, eighth = divmod(round(length * 8), 8)
    return "█" * whole + (_EIGHTHS[eighth] if eighth else "")


def _grid(found: Sweep, axes: Sequence[Axis]) -> list[str]:
    """Times and what binds, the second knob's values side by side, so many at a time as fit on the page."""
    down, across = axes
    cells = [_cell(point) for point in found.points]
    title = f"{down.knob} ↓"
    heads = [f"{across.knob.rpartition('.')[2]}={value}" for value in across.values]
    room = WIDTH - max(len(text) for text in (title, *down.values))
    fitting = max(room // (max(len(text) for text in (*cells, *heads)) + _GAP), 1)
    blocks = []
    for first, last in pairwise([*range(0, len(across), fitting), len(across)]):
        rows = [(v, *cells[k * len(across) :][first:last]) for k, v in enumerate(down.values)]
        blocks.append(table((title, *heads[first:last]), rows))
    words = f"step, and what binds: the largest part of the critical path of step {found.step}; across: {across.knob}"
    return [words, *blocks]


def _cell(point: SweepPoint) -> str:
    time = format_ns(point.predicted_ns) if point.predicted_ns is not None else _interval(point)
    return f"{time} {_MARK if point.bottleneck_moves else ''}{point.binds.removeprefix('collective_')}"


def _interval(point: SweepPoint) -> str:
    if point.interval is None:
        return ""
    return f"{format_ns(point.interval.low_ns)} … {format_ns(point.interval.high_ns)}"


def _speedup(point: SweepPoint) -> str:
    return "n/a" if point.speedup is None else f"{point.speedup:.2f}x"


def _rank(point: SweepPoint) -> str:
    return "?" if point.rank is None else str(point.rank)
