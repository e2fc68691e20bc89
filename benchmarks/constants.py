"""``python -m benchmarks.constants``: how much hangs on each chosen constant of the graph's rules.

In: the corpus of public traces (``$TRACEREPLAY_CORPUS``, else ``../shared/corpus``), the samples. Out: a Markdown table, a
row a constant: edges of the kind that it decides and errors of the steps, with the constant as it is, halved and doubled.
Errors are those of the calibrated replay (every residue replaced by its population's median), mean and worst over all jobs.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.accuracy import corpus_folder, set_folders
from benchmarks.recordings import find_recordings
from tracereplay.analyzers.accuracy import assess
from tracereplay.errors import TracereplayError
from tracereplay.graph import lags, late_launch
from tracereplay.graph.build import build_graph
from tracereplay.graph.kinds import Why
from tracereplay.graph.rules import device_wait, thread_wait
from tracereplay.trace.job import Job, read_job


@dataclass(frozen=True, slots=True)
class Constant:
    """A chosen number: where it is, its name there, and the reason of the edges that it decides (None: it decides lags). A late
    launch cuts a segment of its thread in two: it shows in the edges of thread order.
    """

    module: ModuleType
    name: str
    why: Why | None


CONSTANTS = (
    Constant(lags, "FEWEST_GAPS", None),
    Constant(lags, "FEWEST_ALIKE", None),
    Constant(lags, "COPY_LENGTHS_NS", None),
    Constant(late_launch, "TIMES_USUAL", Why.THREAD_ORDER),
    Constant(late_launch, "AT_LEAST_NS", Why.THREAD_ORDER),
    Constant(late_launch, "FOLLOWS_WITHIN_NS", Why.THREAD_ORDER),
    Constant(late_launch, "OVERLAP_NS", Why.THREAD_ORDER),
    Constant(device_wait, "SHORTEST_NS", Why.UNRECORDED_SYNC),
    Constant(device_wait, "LONGEST_WAKE_NS", Why.UNRECORDED_SYNC),
    Constant(thread_wait, "SHORTEST_NS", Why.THREAD_WAIT),
    Constant(thread_wait, "LONGEST_WAKE_NS", Why.THREAD_WAIT),
    Constant(thread_wait, "GIVER_SHARE", Why.THREAD_WAIT),
    Constant(thread_wait, "UNUSUAL_TIMES", Why.THREAD_WAIT),
    Constant(thread_wait, "UNUSUAL_NS", Why.THREAD_WAIT),
)
FACTORS = (0.5, 2.0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Over all jobs: edges by reason, mean and worst size of the calibrated error."""

    edges: dict[Why, int]
    mean: float
    worst: float


def outcome(jobs: Sequence[Job]) -> Outcome:
    """What the graphs of all jobs come to with the constants as they stand."""
    edges, errors = np.zeros(len(Why), np.int64), []
    for job in jobs:
        graph = build_graph(job)
        edges += np.bincount(graph.edges.why, minlength=len(Why))
        errors.append(abs(assess(graph).unexplained.calibrated_error))
    return Outcome({why: int(edges[why]) for why in Why}, float(np.mean(errors)), max(errors))


@contextmanager
def scaled(constant: Constant, factor: float) -> Iterator[None]:
    """The constant times a factor for a while."""
    value = getattr(constant.module, constant.name)
    setattr(constant.module, constant.name, _times(value, factor))
    try:
        yield
    finally:
        setattr(constant.module, constant.name, value)


def _times(value: Any, factor: float) -> Any:
    """A number of the same kind, or each of several; whole numbers stay at least 1."""
    if isinstance(value, tuple):
        return tuple(_times(one, factor) for one in value)
    return max(round(value * factor), 1) if isinstance(value, int) else value * factor


def table(jobs: Sequence[Job]) -> Iterator[str]:
    """The lines of the table."""
    yield f"Constants over {len(jobs)} jobs"
    yield ""
    yield "| constant | value | edges: as it is, halved, doubled | mean error | worst error |"
    yield "|---|---|---|---|---|"
    now = outcome(jobs)
    for constant in CONSTANTS:
        found = [now]
        for factor in FACTORS:
            with scaled(constant, factor):
                found.append(outcome(jobs))
        edges = "no edges" if constant.why is None else ", ".join(f"{one.edges[constant.why]:,}" for one in found)
        mean, worst = (", ".join(f"{100 * value:.2f} %" for value in values) for values in _errors(found))
        place = f"{constant.module.__name__.rpartition('.')[2]}.{constant.name}"
        yield f"| {place} | {getattr(constant.module, constant.name)} | {edges} | {mean} | {worst} |"


def _errors(found: Sequence[Outcome]) -> tuple[list[float], list[float]]:
    return [one.mean for one in found], [one.worst for one in found]


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args(arguments)
    try:
        jobs = [read_job(recording.paths) for recording in find_recordings(set_folders(corpus_folder())).jobs]
        for line in table(jobs):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    except TracereplayError as error:
        sys.stderr.write(f"{error.line()}\n")
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
