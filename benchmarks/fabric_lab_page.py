"""``docs/accuracy-fabric.md`` as text: in, points and pairs of the fabric laboratory; out, the page."""

from collections.abc import Mapping, Sequence
from statistics import median

from benchmarks.fabric_lab_pairs import COUNTED, Pair, Point
from tracereplay.manifest import Manifest

# What is asked: at least so many counted pairs; their median and worst error (the closest published model of DLRM, calibrated
# on its target, errs by 5.21 %, arXiv:2201.07821); coverage of intervals of 90 %.
PAIRS, TYPICAL, WORST, COVERED = 12, 0.052, 0.15, (0.80, 0.97)
# Repetitions that differ by more than this are said to be the floor of what can be asked.
_FLOOR = 0.05

_HEAD = """\
# Accuracy on a fabric that is really made faster

`python -m benchmarks.fabric_lab record DIR` trains DLRMs on two hosts of the [laboratory](how-to/laboratory.md): two ranks,
gloo, a core each, over a link whose rate a token bucket sets. `python -m benchmarks.fabric_lab evaluate DIR --output
docs/accuracy-fabric.md` takes the recordings over each link as a base, predicts the step over each other link, up and down,
and writes this page. A prediction sees the base's traces and the rates of both links, nothing of the target.

Recorded {date} on {machine}; {versions}.

{answer}
"""

_POINTS = """
## What was measured

The median over a recording's steps of the longest rank's step; a row has the median over the recordings, the least and most of
them, and their spread (standard deviation of the logarithms). Above {floor:.0%} it is the floor of what any prediction can
reach.

{table}
"""

_PAIRS = """
## Predicted beside measured

**bold**: pairs that count, whose measured step differs by at least {counted:.0%}. *scaled*: recorded durations of
collectives times the ratio of the rates. *inside*: how many of the recordings lie in the interval of 90 %.

{table}
"""


def page(points: Mapping[str, Sequence[Point]], pairs: Sequence[Pair], machine: Manifest) -> str:
    """The page."""
    host = machine.hosts[0]
    head = _HEAD.format(
        date=machine.created[:10],
        machine=f"{host.cpu_model}, {host.cpu_count} cores, {host.kernel}",
        versions=", ".join(f"{name} {version}" for name, version in sorted(machine.versions.items())),
        answer=_answer(pairs),
    )
    measured = _POINTS.format(
        floor=_FLOOR, table=_table(_POINT_COLUMNS, [_point(job, p) for job in points for p in points[job]])
    )
    return head + measured + _PAIRS.format(counted=COUNTED, table=_table(_PAIR_COLUMNS, [_pair(one) for one in pairs]))


def _answer(pairs: Sequence[Pair]) -> str:
    counted = [one for one in pairs if one.counts]
    if not counted:
        return "No pair counts."
    ours, unchanged, scaled = (
        [abs(getattr(one, name)) for one in counted] for name in ("error", "unchanged_error", "scaled_error")
    )
    inside, of = (sum(one.inside[k] for one in pairs) for k in (0, 1))
    width = median(one.high_ns / one.low_ns - 1 for one in counted)
    better = min(median(unchanged), median(scaled))
    rows = [
        ("pairs that count", f"{len(counted)}, {sum(one.target.step_ns < one.base.step_ns for one in counted)} of them faster",
         f"at least {PAIRS}, up and down"),
        ("median error", f"{median(ours):.1%}", f"at most {TYPICAL:.1%}"),
        ("worst error", f"{max(ours):.1%}", f"at most {WORST:.0%}"),
        ('median error of "no change"', f"{median(unchanged):.1%}", ""),
        ("median error of scaled durations", f"{median(scaled):.1%}", ""),
        ("ours of the better one", f"{median(ours) / better:.2f}", "at most 0.50"),
        ("measurements inside the intervals of 90 %", f"{inside / of:.1%} of {of}", f"{COVERED[0]:.0%} to {COVERED[1]:.0%}"),
        ("median width of the intervals", f"{width:.1%}", "printed"),
    ]  # fmt: skip
    return _table(("", "measured", "asked"), rows)


_POINT_COLUMNS = ("job", "link", "step", "least", "most", "spread", "recordings")
_PAIR_COLUMNS = ("job", "from", "to", "measured", "predicted", "interval", "error", "no change", "scaled", "inside")


def _point(job: str, point: Point) -> tuple[str, ...]:
    steps = [one.step_ns for one in point.recorded]
    spread = f"{point.spread:.1%}" + (" (floor)" if point.spread > _FLOOR else "")
    return job, point.link.text, _ms(point.step_ns), _ms(min(steps)), _ms(max(steps)), spread, str(len(steps))


def _pair(pair: Pair) -> tuple[str, ...]:
    error = f"{pair.error:+.1%}"
    return (
        pair.job, pair.base.link.text, pair.target.link.text, _ms(pair.target.step_ns), _ms(pair.predicted_ns),
        f"{_ms(pair.low_ns)} to {_ms(pair.high_ns)}", f"**{error}**" if pair.counts else error, f"{pair.unchanged_error:+.1%}",
        f"{pair.scaled_error:+.1%}", "{} of {}".format(*pair.inside),
    )  # fmt: skip


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.1f} ms"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
