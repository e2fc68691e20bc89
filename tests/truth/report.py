"""Ground truth beside what the product finds: in, seeds; out, recall and precision a kind of edge, errors of predictions.

    python -m tests.truth.report --seeds 50

Each variant is a kind of job, recorded in a dialect of the exporter. The truth of a change is a second run of the machine
with the changed program; the prediction sees the first recording alone.
"""

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.fakes.jobs import graph_of
from tests.truth.exporter import Dialect, Export, export
from tests.truth.machine import Do, Machine
from tests.truth.score import Edge, Score, score
from tests.truth.training import (
    ALL_TO_ALL,
    ELEMENTWISE,
    GEMM,
    Features,
    draw_training,
    scaled_collective,
    scaled_host,
    scaled_kernel,
    without_straggler,
)
from tracereplay.graph.event_edges import event_edges
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import replay
from tracereplay.replay.ideal import without_stragglers
from tracereplay.replay.steps import step_times, summarise
from tracereplay.replay.whatif import apply, parse_scale

# Offsets of milliseconds and drifts of tens of parts per million are what hosts without a common clock show.
_SKEWED = ((0, 0.0), (3_000_000, 20.0), (-4_000_000, -30.0), (1_500_000, 40.0))
_EVERYTHING = Features(graphs=True, multi_wait=True, groups=True, loader=True, pipeline=True)

VARIANTS: dict[str, tuple[Features, Dialect]] = {
    "plain": (Features(), Dialect()),
    "no cuda_sync rows": (Features(), Dialect(sync_rows=False)),
    "2021: whole µs, no args": (Features(), Dialect(sync_rows=False, comm_args=False, record_calls=False, whole_us=True)),
    "clock skew": (Features(), Dialect(clocks=_SKEWED)),
    "clock skew, no rows": (Features(), Dialect(sync_rows=False, clocks=_SKEWED)),
    "graphs": (Features(graphs=True), Dialect()),
    "graphs, no rows": (Features(graphs=True), Dialect(sync_rows=False)),
    "multi-wait": (Features(multi_wait=True), Dialect()),
    "multi-wait, no rows": (Features(multi_wait=True), Dialect(sync_rows=False)),
    "process groups": (Features(groups=True), Dialect()),
    "process groups, no rows": (Features(groups=True), Dialect(sync_rows=False)),
    "messages, loader": (Features(loader=True, pipeline=True), Dialect()),
    "everything": (_EVERYTHING, Dialect()),
    "everything, 2021": (_EVERYTHING, Dialect(sync_rows=False, comm_args=False, record_calls=False, whole_us=True)),
    "everything, no rows": (_EVERYTHING, Dialect(sync_rows=False)),
    "everything, skew, no rows": (_EVERYTHING, Dialect(sync_rows=False, clocks=_SKEWED)),
    "process groups, 2021": (
        Features(groups=True),
        Dialect(sync_rows=False, comm_args=False, record_calls=False, whole_us=True),
    ),
    "straggler": (Features(straggler=True), Dialect(sync_rows=False)),
}

# Recordings that name no groups: two groups that run in lock-step cannot be told apart, and count as wrong edges.
UNNAMED_GROUPS = "process groups, 2021"

CHANGES: dict[str, tuple[str, Callable[[Do], Do]]] = {
    "kernel x0.5": ("kernel:volta_sgemm*=0.5x", scaled_kernel(GEMM, 0.5)),
    "class x0.5": ("class:elementwise=0.5x", scaled_kernel(ELEMENTWISE, 0.5)),
    "all-to-all x0.5": ("collective:all_to_all=0.5x", scaled_collective(ALL_TO_ALL, 0.5)),
    "host x0.7": ("host=0.7x", scaled_host(0.7)),
}
STRAGGLER = "straggler removed"


@dataclass(frozen=True)
class Trial:
    """One seed of one variant: the score of each kind of edge, the relative error of each prediction."""

    scores: dict[str, Score]
    errors: dict[str, float]


@dataclass(frozen=True)
class Row:
    """One variant over all seeds."""

    variant: str
    seeds: int
    scores: dict[str, Score]
    worst_errors: dict[str, float]


def given_edges(graph: DependencyGraph) -> list[Edge]:
    """The graph's edges between events, as ``tracereplay graph`` writes them."""
    columns = event_edges(graph).table.to_pydict()
    names = ("src_rank", "src_event", "dst_rank", "dst_event", "kind")
    return [Edge((a, b), (c, d), kind) for a, b, c, d, kind in zip(*(columns[name] for name in names), strict=True)]


def try_seed(seed: int, variant: str) -> Trial:
    """Run the job of a seed, record it, build its graph, compare edges and predictions with the truth."""
    features, dialect = VARIANTS[variant]
    training = draw_training(seed, features)
    machine = training.run()
    written = export(machine, dialect)
    graph = _graph(written)
    errors = {}
    for name, (text, change) in CHANGES.items():
        predicted = summarise(graph, step_times(graph, replay(graph, apply(graph, [parse_scale(text)]).timing))).mean_ns
        errors[name] = predicted / true_step_ns(training.run(change)) - 1
    if features.straggler:
        ideal = summarise(graph, step_times(graph, replay(graph, without_stragglers(graph).timing))).mean_ns
        # The ideal job enters its first step together, too.
        errors[STRAGGLER] = ideal / true_step_ns(training.entered_together().run(without_straggler)) - 1
    return Trial(score(machine, written, given_edges(graph), all_recorded=dialect.sync_rows), errors)


def true_step_ns(machine: Machine) -> float:
    """The mean over the steps of the longest rank's time."""
    longest: dict[str, int] = defaultdict(int)
    for event in machine.events:
        if event.name.startswith("ProfilerStep#"):
            longest[event.name] = max(longest[event.name], event.end - event.start)
    return sum(longest.values()) / len(longest)


def summed(variant: str, trials: Iterable[Trial]) -> Row:
    """The row of a variant: scores added up, of errors the one farthest from 0."""
    scores: dict[str, Score] = defaultdict(Score)
    errors: dict[str, float] = {}
    count = 0
    for trial in trials:
        count += 1
        for kind, one in trial.scores.items():
            scores[kind] += one
        for name, error in trial.errors.items():
            errors[name] = max(errors.get(name, 0.0), error, key=abs)
    return Row(variant, count, dict(scores), errors)


def rows(seeds: Iterable[int], variants: Iterable[str] = VARIANTS, jobs: int = 2) -> list[Row]:
    """The row of each variant over the seeds."""
    wanted = list(seeds)
    with ProcessPoolExecutor(jobs) as pool:
        return [summed(variant, pool.map(partial(try_seed, variant=variant), wanted)) for variant in variants]


KINDS = ("launch", "stream_order", "event_wait", "sync", "thread_handoff", "collective")


def edge_table(found: list[Row]) -> str:
    """The rows as Markdown: for each kind of edge recall, precision and how many true edges were asked for."""
    lines = ["| variant | " + " | ".join(f"`{kind}`" for kind in KINDS) + " |", "|---|" + "---:|" * len(KINDS)]
    for row in found:
        cells = [_cell(row.scores.get(kind, Score())) for kind in KINDS]
        lines.append(f"| {row.variant} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def error_table(found: list[Row]) -> str:
    """The rows as Markdown: for each change the error of the predicted step that lies farthest from 0."""
    names = [*CHANGES, STRAGGLER]
    lines = ["| variant | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for row in found:
        cells = [f"{100 * row.worst_errors[name]:+.2f} %" if name in row.worst_errors else "" for name in names]
        lines.append(f"| {row.variant} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(one: Score) -> str:
    return f"{100 * one.recall:.2f} / {100 * one.precision:.2f} ({one.asked:,})"


def _graph(written: Export) -> DependencyGraph:
    with tempfile.TemporaryDirectory() as folder:
        return graph_of(Path(folder), *written.traces)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Edges and predictions beside the truth of a simulated machine.")
    parser.add_argument("--seeds", type=int, default=50, help="how many jobs of each variant (default 50)")
    parser.add_argument("--variant", action="append", help="only this variant; may be repeated")
    wanted = parser.parse_args()
    found = rows(range(wanted.seeds), wanted.variant or VARIANTS)
    sys.stdout.write(f"{wanted.seeds} jobs a variant: recall / precision in per cent (edges asked for)\n\n")
    sys.stdout.write(edge_table(found) + "\nworst error of the predicted step\n\n" + error_table(found))


if __name__ == "__main__":
    main()
