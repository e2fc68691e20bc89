"""Predictions against a fabric that is really made faster and slower: in, a folder; out, recordings there, then a page.

``python -m benchmarks.fabric_lab record DIR`` runs DLRMs on two hosts of the laboratory (``collect lab``) over links of several
speeds, every link once a round, so that what the machine does meanwhile falls on all of them. ``... evaluate DIR`` takes each
link's recordings as a base, predicts the step over each other link from the base's traces and the rates of both links alone,
and prints beside it what was measured there.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.fabric_lab_page import page
from benchmarks.fabric_lab_pairs import Pair, Point, pairs_of, read_point
from tracereplay.cli.collect_lab import config_of
from tracereplay.collectors.job import DlrmJob
from tracereplay.collectors.launch import CollectRequest, collect_dlrm
from tracereplay.collectors.link import parse_link
from tracereplay.errors import TracereplayError
from tracereplay.manifest import FILE_NAME as MANIFEST
from tracereplay.manifest import Manifest, read_manifest

ROUNDS: Final = 5
RANKS: Final = 2


@dataclass(frozen=True, slots=True)
class Course:
    """A model, what it runs, and the links that it runs over: the slowest at least doubles its step."""

    preset: str
    batch: int
    warmup: int
    steps: int
    links: tuple[str, ...]


COURSES: Final = (
    Course("kaggle", 128, 5, 12, ("unshaped", "1gbit", "400mbit", "150mbit")),
    Course("mlperf-small", 256, 3, 6, ("unshaped", "1gbit", "500mbit", "200mbit")),
    Course("rm2", 64, 3, 6, ("unshaped", "100mbit", "50mbit", "25mbit")),
)


def job_of(course: Course) -> DlrmJob:
    """The recording of a course."""
    return DlrmJob(config_of(course.preset), RANKS, course.batch, course.warmup, course.steps, seed=1)


def record(folder: Path, courses: Sequence[Course], rounds: Sequence[int], tell: Callable[[str], None]) -> None:
    """Record every course over each of its links, once a round; recordings that are there already stay.

    Raises:
        CollectError: no laboratory can be built here, or a run failed.
    """
    for course in courses:
        job = job_of(course)
        for number in rounds:
            for rate in course.links:
                place = folder / course.preset / rate / str(number)
                if (place / MANIFEST).exists():
                    continue
                made = collect_dlrm(CollectRequest(job, place, link=parse_link(rate), force=True), lambda _message: None)
                walls = sorted(step.wall_ns or 0 for step in made.steps if step.rank == 0)
                tell(f"{course.preset} over {rate}, round {number}: {walls[len(walls) // 2] / 1e6:.1f} ms a step")


def evaluate(folder: Path) -> tuple[dict[str, list[Point]], list[Pair]]:
    """The points of each course that was recorded, and all pairs.

    Raises:
        TraceError: a recording cannot be read.
    """
    points, pairs = {}, []
    for course in COURSES:
        places = [folder / course.preset / rate for rate in course.links]
        found = [read_point(place, parse_link(place.name)) for place in places if place.is_dir()]
        if len(found) > 1:
            points[course.preset] = found
            pairs += pairs_of(course.preset, found)
    return points, pairs


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _machine(folder: Path) -> Manifest:
    return read_manifest(next(folder.glob("*/*/*/manifest.json")))


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, or evaluate."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fabric_lab", description=__doc__)
    parser.add_argument("verb", choices=("record", "evaluate"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", help="one preset of those that are recorded")
    parser.add_argument("--output", type=Path, help="write the page there")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.verb == "record":
            courses = [course for course in COURSES if chosen.only in {None, course.preset}]
            record(chosen.folder, courses, range(chosen.rounds), _tell)
            return 0
        text = page(*evaluate(chosen.folder), _machine(chosen.folder))
    except TracereplayError as error:
        sys.stderr.write(f"{error.line()}\n")
        return int(error.exit_code)
    if chosen.output is None:
        sys.stdout.write(text)
    else:
        chosen.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
