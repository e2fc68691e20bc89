"""A sweep as a picture: in, its points; out, SVG text. One line over the first knob; of two knobs a line a value of the second.

Times start at 0, so that lengths compare; the band is the interval; rings and words mark where another part of the step binds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log
from xml.etree import ElementTree as ET

from tracereplay.analyzers.sweep import Sweep, SweepPoint
from tracereplay.hardware.ranges import Axis
from tracereplay.units import format_ns

_WIDTH, _HEIGHT = 820, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 190, 84, 62
# One hue from light to dark, as in ColorBrewer's Blues: lines of an ordered knob are ordered, in grey too; the lightest one
# can still be read as a word.
_HUES = ("#4f9bd0", "#3182bd", "#2171b5", "#08519c", "#08306b")
_INK, _QUIET, _FAINT = "#222222", "#6b6b6b", "#e4e4e4"
_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_MOST_TICKS = 10
_MOST_LABELS = 10
_LINE = 15
_LETTER = 6.5
# Values that span more than this, each about as many times the one before, stand on a logarithmic axis.
_LOG_FROM = 4.0


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of points; ``label`` stands at its end."""

    points: tuple[SweepPoint, ...]
    label: str
    colour: str


@dataclass(frozen=True, slots=True)
class _Scale:
    """From values to places: x by position on the axis, y by ns."""

    x: tuple[float, ...]
    most_ns: float
    unit_ns: int
    unit: str
    tick_ns: float

    def y(self, ns: float) -> float:
        """The height of a time."""
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * ns / self.most_ns


def sweep_svg(found: Sweep, axes: Sequence[Axis], asked: Sequence[str]) -> str:
    """The sweep as an SVG document."""
    across, lines = _lines(found, axes)
    scale = _scale(found, across)
    root = ET.Element(
        "svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {_WIDTH} {_HEIGHT}", width=str(_WIDTH), height=str(_HEIGHT)
    )
    root.set("font-family", "Helvetica, Arial, 'DejaVu Sans', sans-serif")
    root.set("font-size", "12")
    ET.SubElement(root, "rect", width="100%", height="100%", fill="#ffffff")
    _text(root, 16, 26, f"Step time over {across.knob}", size=16, fill=_INK, weight="bold")
    _text(root, 16, 46, _subtitle(found, asked))
    _frame(root, scale, across)
    _baseline(root, scale, found.baseline_ns)
    for line in lines:
        _band(root, scale, line)
    for line in lines:
        _curve(root, scale, line)
    _end_labels(root, scale, lines)
    if len(lines) == 1:
        _binding(root, scale, lines[0])
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _subtitle(found: Sweep, asked: Sequence[str]) -> str:
    words = [f"with {', '.join(asked)}"] if asked else []
    if found.level is not None:
        words.append(f"band: {100 * found.level:.0f} % of the models' known errors, {found.samples} samples a point")
    words.append("ring: another part binds")
    return "; ".join(words)


def _lines(found: Sweep, axes: Sequence[Axis]) -> tuple[Axis, list[_Line]]:
    """The axis from left to right, and the lines: one a value of the knob with fewer values."""
    if len(axes) == 1:
        return axes[0], [_Line(found.points, "", _HUES[2])]
    first, second = axes
    rows = [found.points[k * len(second) : (k + 1) * len(second)] for k in range(len(first))]
    if len(first) < len(second):
        across, other, cut = second, first, rows
    else:
        across, other, cut = first, second, [tuple(column) for column in zip(*rows, strict=True)]
    return across, [
        _Line(points, other.text(k), _HUES[round(k * (len(_HUES) - 1) / max(len(cut) - 1, 1))]) for k, points in enumerate(cut)
    ]


def _scale(found: Sweep, axis: Axis) -> _Scale:
    most = max([found.baseline_ns, *(_reach(point) for point in found.points)], default=1) or 1
    unit_ns, unit = next(((ns, name) for ns, name in _UNITS if most >= 2 * ns), _UNITS[-1])
    tick = _nice(most / 5 / unit_ns) * unit_ns
    places = _places(axis)
    low, high = min(places), max(places)
    room = _WIDTH - _LEFT - _RIGHT
    x = tuple(_LEFT + (room / 2 if high == low else room * (place - low) / (high - low)) for place in places)
    return _Scale(x, ceil(most * 1.04 / tick) * tick, unit_ns, unit, tick)


def _reach(point: SweepPoint) -> int:
    return max(point.predicted_ns or 0, point.interval.high_ns if point.interval is not None else 0)


def _places(axis: Axis) -> list[float]:
    """Places of the values: by amount, by its logarithm where the steps grow, by order where they are words."""
    if axis.amounts is None:
        return [float(k) for k in range(len(axis))]
    return [log(amount) for amount in axis.amounts] if _is_logarithmic(axis) else list(axis.amounts)


def _is_logarithmic(axis: Axis) -> bool:
    """Whether values span several times the least and lie the farther apart the larger they are."""
    ordered = sorted(axis.amounts or ())
    if len(ordered) < 3 or not 0 < ordered[0] * _LOG_FROM <= ordered[-1]:
        return False
    return ordered[-1] - ordered[-2] > 1.5 * (ordered[1] - ordered[0])


def _nice(rough: float) -> float:
    """The next larger of 1, 2, 2.5, 5 times a power of ten."""
    power = 10.0 ** len(str(int(rough))) / 10 if rough >= 1 else 0.1
    return next(by * power for by in (1, 2, 2.5, 5, 10) if by * power >= rough)


def _frame(root: ET.Element, scale: _Scale, axis: Axis) -> None:
    """Grid, ticks and what the axes measure."""
    right = _WIDTH - _RIGHT
    for k in range(round(scale.most_ns / scale.tick_ns) + 1):
        y = scale.y(k * scale.tick_ns)
        _path(root, [(_LEFT, y), (right, y)], _QUIET if k == 0 else _FAINT, 1)
        _text(root, _LEFT - 8, y + 4, f"{k * scale.tick_ns / scale.unit_ns:g}", anchor="end")
    _text(root, _LEFT - 8, _TOP - 12, scale.unit, anchor="end")
    every = ceil(len(axis) / _MOST_TICKS)
    for k, (x, value) in enumerate(zip(scale.x, axis.values, strict=True)):
        if k % every == 0:
            _path(root, [(x, scale.y(0)), (x, scale.y(0) + 5)], _QUIET, 1)
            _text(root, x, scale.y(0) + 19, value, anchor="middle")
    name = f"{axis.knob} (logarithmic)" if _is_logarithmic(axis) else axis.knob
    _text(root, (_LEFT + right) / 2, _HEIGHT - 16, name, anchor="middle", fill=_INK)


def _baseline(root: ET.Element, scale: _Scale, baseline_ns: int) -> None:
    y = scale.y(baseline_ns)
    _path(root, [(_LEFT, y), (_WIDTH - _RIGHT, y)], _QUIET, 1, dashes="4 4")
    _text(root, _WIDTH - _RIGHT, y - 6, f"recorded {format_ns(baseline_ns)}", anchor="end")


def _band(root: ET.Element, scale: _Scale, line: _Line) -> None:
    known = [(x, p.interval) for x, p in _in_order(scale, line) if p.interval is not None]
    if len(known) > 1:
        outline = [(x, scale.y(i.high_ns)) for x, i in known] + [(x, scale.y(i.low_ns)) for x, i in reversed(known)]
        shape = _path(root, outline, "none", 0, fill=line.colour)
        shape.set("fill-opacity", "0.18")


def _curve(root: ET.Element, scale: _Scale, line: _Line) -> None:
    known = [(x, p) for x, p in _in_order(scale, line) if p.predicted_ns is not None]
    if len(known) > 1:
        _path(root, [(x, scale.y(p.predicted_ns or 0)) for x, p in known], line.colour, 2)
    for x, point in known:
        ring = point.bottleneck_moves
        dot = ET.SubElement(
            root, "circle", cx=f"{x:.1f}", cy=f"{scale.y(point.predicted_ns or 0):.1f}", r="4.5" if ring else "2.8"
        )
        dot.set("fill", "#ffffff" if ring else line.colour)
        dot.set("stroke", line.colour)
        dot.set("stroke-width", "2")


def _in_order(scale: _Scale, line: _Line) -> list[tuple[float, SweepPoint]]:
    return sorted(zip(scale.x, line.points, strict=True), key=lambda pair: pair[0])


def _end_labels(root: ET.Element, scale: _Scale, lines: Sequence[_Line]) -> None:
    """What each line is and reaches, at its right end; labels keep a line's height apart."""
    ends = []
    for line in lines[:: ceil(len(lines) / _MOST_LABELS)]:
        x, last = _in_order(scale, line)[-1]
        if last.predicted_ns is not None:
            speed = "" if last.speedup is None else f" ({last.speedup:.2f}x)"
            ends.append((scale.y(last.predicted_ns), x, f"{format_ns(last.predicted_ns)}{speed}", line))
    floor = float(_TOP)
    for y, x, words, line in sorted(ends, key=lambda end: end[0]):
        floor = max(y + 4, floor)
        _text(root, x + 12, floor, line.label or words, fill=line.colour, weight="bold")
        if line.label:
            _text(root, x + 12, floor + _LINE - 2, words)
            floor += _LINE
        floor += _LINE


def _binding(root: ET.Element, scale: _Scale, line: _Line) -> None:
    """What binds, where it begins to: above the points, under them where the words before reach as far."""
    previous, edge = "", float("-inf")
    for x, point in _in_order(scale, line):
        if point.predicted_ns is None or point.binds == previous:
            continue
        words = f"{point.binds.replace('_', ' ')} binds"
        low, high = (point.predicted_ns,) * 2 if point.interval is None else (point.interval.low_ns, point.interval.high_ns)
        _text(root, x + 4, scale.y(low) + 20 if x < edge else scale.y(high) - 10, words, fill=_INK)
        previous, edge = point.binds, x + _LETTER * len(words)


def _path(  # noqa: PLR0913 - what SVG asks of a stroke
    root: ET.Element, points: Sequence[tuple[float, float]], stroke: str, width: float, *, fill: str = "none", dashes: str = ""
) -> ET.Element:
    way = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    element = ET.SubElement(root, "path", d=way, fill=fill, stroke=stroke)
    element.set("stroke-width", f"{width:g}")
    element.set("stroke-linejoin", "round")
    if dashes:
        element.set("stroke-dasharray", dashes)
    return element


def _text(  # noqa: PLR0913 - what SVG asks of a word
    root: ET.Element,
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "start",
    size: int = 12,
    fill: str = _QUIET,
    weight: str = "normal",
) -> None:
    element = ET.SubElement(root, "text", x=f"{x:.1f}", y=f"{y:.1f}", fill=fill)
    element.set("text-anchor", anchor)
    element.set("font-size", str(size))
    element.set("font-weight", weight)
    element.text = words
