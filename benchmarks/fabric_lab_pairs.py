"""Predicted beside measured in the fabric laboratory: in, recordings of one job over several links; out, a row a pair of links.

A step is the median over the recorded step numbers of the longest rank's step: a median, since a machine's other business hits
single steps. Nothing but a base's own recordings and the rates of both links enters a prediction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import exp, hypot, log, sqrt
from pathlib import Path
from statistics import median, stdev
from typing import Final

import numpy as np

from tracereplay.analyzers.prediction import OtherHardware, predict
from tracereplay.collectors.lab_platform import FILE_NAME
from tracereplay.collectors.link import Link
from tracereplay.graph.build import build_graph
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.load import load_platform
from tracereplay.replay.move import Mover
from tracereplay.replay.site import Goal, Site
from tracereplay.replay.steps import recorded_step_times, summarise
from tracereplay.replay.whatif import hardware_change
from tracereplay.trace.job import read_job

# A change counts where the measured step differs by this share of the base's.
COUNTED: Final = 0.20
# Nine of ten values of a normal distribution lie within so many standard deviations.
_DEVIATIONS: Final = 1.645


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recording: its folder of traces and its steps' median in ns."""

    folder: Path
    graph: DependencyGraph
    step_ns: float


@dataclass(frozen=True, slots=True)
class Point:
    """All recordings of a job over one link; ``platform``: the file that describes its hosts."""

    link: Link
    platform: Path
    recorded: tuple[Recorded, ...]

    @property
    def step_ns(self) -> float:
        """The median of the recordings' steps."""
        return median(one.step_ns for one in self.recorded)

    @property
    def spread(self) -> float:
        """Standard deviation of the recordings' steps, of their logarithms."""
        return 0.0 if len(self.recorded) < 2 else stdev(log(one.step_ns) for one in self.recorded)


@dataclass(frozen=True, slots=True)
class Pair:
    """From a base to a target: what was measured there, what is predicted, with its interval; what a step that does not change
    and recorded durations times the ratio of the rates would say.
    """

    job: str
    base: Point
    target: Point
    predicted_ns: float
    low_ns: float
    high_ns: float
    scaled_ns: float

    @property
    def counts(self) -> bool:
        """Whether the measured step differs enough."""
        return abs(self.target.step_ns / self.base.step_ns - 1) >= COUNTED

    @property
    def error(self) -> float:
        """Of the prediction."""
        return self.predicted_ns / self.target.step_ns - 1

    @property
    def unchanged_error(self) -> float:
        """Of "no change"."""
        return self.base.step_ns / self.target.step_ns - 1

    @property
    def scaled_error(self) -> float:
        """Of recorded durations times the ratio of the rates."""
        return self.scaled_ns / self.target.step_ns - 1

    @property
    def inside(self) -> tuple[int, int]:
        """How many of the target's recordings lie in the interval, and of how many."""
        steps = [one.step_ns for one in self.target.recorded]
        return sum(self.low_ns <= step <= self.high_ns for step in steps), len(steps)


def read_recording(folder: Path) -> Recorded:
    """A recording from its folder.

    Raises:
        TraceError: it cannot be read.
    """
    graph = build_graph(read_job([str(folder)]))
    return Recorded(folder, graph, float(median(summarise(graph, recorded_step_times(graph)).longest_ns)))


def read_point(folder: Path, link: Link) -> Point:
    """All recordings over a link: folders of a folder.

    Raises:
        TraceError: one cannot be read.
    """
    recorded = tuple(read_recording(one) for one in sorted(folder.iterdir()) if (one / FILE_NAME).exists())
    return Point(link, recorded[0].folder / FILE_NAME, recorded)


def pairs_of(job: str, points: Sequence[Point]) -> list[Pair]:
    """Every point as a base for every other one."""
    return [_pair(job, base, target) for base, target in permutations(points, 2)]


def _pair(job: str, base: Point, target: Point) -> Pair:
    answers = [_predicted(one, base.platform, target.platform) for one in base.recorded]
    predicted = median(answer[0] for answer in answers)
    # What the models may be off, and what one recording differs from another: one of the target's, and the base's median.
    of_models = [median(abs(log(answer[end] / answer[0])) for answer in answers) for end in (1, 2)]
    of_runs = _DEVIATIONS * base.spread * sqrt(1 + 1 / len(base.recorded))
    low, high = (hypot(one, of_runs) for one in of_models)
    scaled = median(_scaled(one.graph, _ratio(base.link, target.link)) for one in base.recorded)
    return Pair(job, base, target, predicted, predicted * exp(-low), predicted * exp(high), scaled)


def _predicted(base: Recorded, here: Path, there: Path) -> tuple[float, float, float]:
    """The median step over the other link, and the bounds of it."""
    source = Site(load_platform(str(here)), 1.0)
    target = Goal(load_platform(str(there)), same_host=True).under(())
    move = Mover.of(base.graph, source).to(target)
    answer = predict(base.graph, [hardware_change(target.name, move.factor)], hardware=OtherHardware(move))
    steps = [row.predicted_ns for row in answer.steps if row.predicted_ns is not None]
    middle, mean, bounds = float(median(steps)), answer.predicted_ns, answer.interval
    if mean is None or bounds is None:
        return middle, middle, middle
    return middle, middle * bounds.low_ns / mean, middle * bounds.high_ns / mean


def _ratio(base: Link, target: Link) -> float:
    """By what a transfer's time is multiplied by who goes by the rates alone; one without a limit takes no time."""
    if target.rate_bits is None:
        return 0.0
    return 1.0 if base.rate_bits is None else base.rate_bits / target.rate_bits


def _scaled(graph: DependencyGraph, ratio: float) -> float:
    """The median step with the time in which a rank is in a collective, as recorded, times the ratio."""
    longest: dict[int, float] = {}
    inside: Mapping[tuple[int, int], list[tuple[int, int]]] = _collectives(graph)
    for span in graph.steps:
        busy = _union(inside.get((span.rank, span.number), []))
        step = span.end_ns - span.start_ns + (ratio - 1) * busy
        longest[span.number] = max(longest.get(span.number, 0.0), step)
    return float(median(longest.values()))


def _collectives(graph: DependencyGraph) -> dict[tuple[int, int], list[tuple[int, int]]]:
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for one in graph.collectives:
        for rank, start, end in zip(one.ranks, one.start_ns, one.end_ns, strict=True):
            found.setdefault((rank, one.step), []).append((start, end))
    return found


def _union(spans: list[tuple[int, int]]) -> int:
    """How long at least one of the intervals lasts."""
    if not spans:
        return 0
    ordered = np.array(sorted(spans))
    ends = np.maximum.accumulate(ordered[:, 1])
    starts = np.maximum(ordered[:, 0], np.concatenate([[ordered[0, 0]], ends[:-1]]))
    return int(np.maximum(ordered[:, 1] - starts, 0).sum())
