from xml.etree import ElementTree as ET

import pytest

from tracereplay.analyzers.sweep import Sweep, SweepPoint, SweptKnob
from tracereplay.hardware.ranges import parse_axis
from tracereplay.replay.outcome import Interval
from tracereplay.report.sweep import bars, sweep_text
from tracereplay.report.sweep_svg import sweep_svg

SVG = "{http://www.w3.org/2000/svg}"


def point(setting: str, ms: float, *, binds: str = "host", moves: bool = False, within: float | None = None) -> SweepPoint:
    ns = round(ms * 1_000_000)
    interval = None if within is None else Interval(round(ns * (1 - within)), round(ns * (1 + within)), 0.9)
    return SweepPoint((setting,), ns, interval, 8 / ms, binds, 0.5, 0, moves)


def halving(within: float | None = None) -> Sweep:
    settings = [f"host.speed={value}" for value in ("1x", "2x", "4x")]
    points = (
        point(settings[0], 8, within=within),
        point(settings[1], 4, within=within),
        point(settings[2], 2.5, binds="gemm", moves=True, within=within),
    )
    samples, level = (0, None) if within is None else (16, 0.9)
    return Sweep(8_000_000, 1, (SweptKnob("host.speed", ("1x", "2x", "4x"), True),), points, (), samples, level, ())


AXIS = parse_axis("host.speed=1x,2x,4x")


def test_bars_are_as_long_as_times_in_eighths_of_a_character() -> None:
    # 31 wide, 2 for the value, 8 for the time, 4 between: 17 characters for 8 ms; 2.5 ms are 5.3125.
    assert bars(halving(), AXIS, width=31) == "\n".join(
        ["1x  8.000 ms  █████████████████", "2x  4.000 ms  ████████▌", "4x  2.500 ms  █████▎"]
    )


def test_an_interval_is_shaded_from_its_lower_to_its_upper_end() -> None:
    # 17 characters for 12 ms: 4 … 12, 2 … 6 and 1.25 … 3.75 ms are 5.67 … 17, 2.83 … 8.5 and 1.77 … 5.3.
    assert bars(halving(0.5), AXIS, width=31) == "\n".join(
        ["1x  8.000 ms  █████▋░░░░░░░░░░░", "2x  4.000 ms  ██▉░░░░░", "4x  2.500 ms  █▊░░░"]
    )


@pytest.mark.parametrize("width", [24, 60, 110, 200])
def test_no_bar_is_wider_than_the_page(width: int) -> None:
    assert max(len(line) for line in bars(halving(0.5), AXIS, width).split("\n")) == width


def test_the_answer_is_the_first_point_that_is_as_good_as_the_best() -> None:
    found = halving()
    again = Sweep(8_000_000, 1, found.knobs, (*found.points[:2], point("host.speed=4x", 3.9999)), (), 0, None, ())

    assert "best 2.500 ms (3.20x) at host.speed=4x" in sweep_text(found, [AXIS], [])
    assert "best 4.000 ms (2.00x) at host.speed=2x" in sweep_text(again, [AXIS], [])


def test_a_drawing_has_a_dot_a_point_a_ring_where_another_part_binds_and_names_both() -> None:
    root = ET.fromstring(sweep_svg(halving(0.1), [AXIS], ["zion"]))

    circles = root.findall(f"{SVG}circle")
    words = [text.text for text in root.findall(f"{SVG}text")]
    assert [circle.get("fill") == "#ffffff" for circle in circles] == [False, False, True]
    heights = [float(circle.get("cy", "nan")) for circle in circles]
    assert heights == sorted(heights)
    assert {"host binds", "gemm binds", "ms", "host.speed (logarithmic)", "2.500 ms (3.20x)", "recorded 8.000 ms"} <= {*words}
    assert {"1x", "2x", "4x", "0", "2", "4", "6", "8", "10"} <= {*words}
    (band,) = [path for path in root.findall(f"{SVG}path") if path.get("fill-opacity")]
    assert band.get("d", "").count("L") == 5


def test_values_on_a_logarithmic_axis_are_evenly_apart() -> None:
    root = ET.fromstring(sweep_svg(halving(), [AXIS], []))

    first, second, third = [float(circle.get("cx", "nan")) for circle in root.findall(f"{SVG}circle")]
    assert second - first == pytest.approx(third - second, abs=0.2)


def test_two_knobs_are_a_line_a_value_of_the_one_with_fewer() -> None:
    other = parse_axis("accelerator.flops=1x,2x")
    rows = [point(f"host.speed={a}x", 8 / a / b) for a in (1, 2, 4) for b in (1, 2)]
    knobs = (SweptKnob("host.speed", ("1x", "2x", "4x"), True), SweptKnob("accelerator.flops", ("1x", "2x"), True))
    root = ET.fromstring(sweep_svg(Sweep(8_000_000, 1, knobs, tuple(rows), (), 0, None, ()), [AXIS, other], []))

    words = {text.text for text in root.findall(f"{SVG}text")}
    assert {"accelerator.flops=1x", "accelerator.flops=2x", "2.000 ms (4.00x)", "1.000 ms (8.00x)"} <= words
    assert len(root.findall(f"{SVG}circle")) == 6


def test_a_wide_grid_is_cut_into_blocks_and_no_cell_is_shortened() -> None:
    across = parse_axis("accelerator.flops=1x:12x:12")
    rows = [point("", 8 / a, binds="late_entry") for a in (1, 2, 4) for _ in across.values]
    knobs = (SweptKnob("host.speed", AXIS.values, True), SweptKnob("accelerator.flops", across.values, True))

    text = sweep_text(Sweep(8_000_000, 1, knobs, tuple(rows), (), 0, None, ()), [AXIS, across], [])

    assert "…" not in text
    assert text.count("4.000 ms late_entry") == 12
    assert text.count("host.speed ↓") == 3
    assert [f"flops={k}x" in text for k in range(1, 13)] == [True] * 12
