"""Recordings beside what is replayed and predicted of them: in, jobs; out, a row for each, all measured when called."""

from dataclasses import dataclass

from benchmarks.held_out import FEWEST_STEPS
from benchmarks.hta_path import HtaAnswer, ask_hta
from benchmarks.recordings import Recording
from tracereplay.analyzers.accuracy import Accuracy, assess
from tracereplay.analyzers.held_out import HeldOut, hold_out
from tracereplay.analyzers.prediction import predict
from tracereplay.graph.build import build_graph
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.steps import JobSteps, recorded_step_times, summarise
from tracereplay.trace.job import read_job
from tracereplay.trace.steps import find_steps


@dataclass(frozen=True, slots=True)
class Replayed:
    """One job: its size, its replay against the recording, its held-out steps (None with too few), what HTA said of it
    (None where HTA was not run).
    """

    recording: Recording
    ranks: int
    steps: int
    tasks: int
    accuracy: Accuracy
    held_out: HeldOut | None
    hta: HtaAnswer | None

    @property
    def start_error_p95(self) -> float:
        """The worst rank's 95th percentile of task-start errors, as a share of its step."""
        return max(rank.start_error_p95 for rank in self.accuracy.ranks)


@dataclass(frozen=True, slots=True)
class StragglerStep:
    """One step of the job with a straggler: recorded, predicted without it, and as really recorded without it; ``number``
    is None for the mean step.
    """

    number: int | None
    with_ns: int
    predicted_ns: int
    without_ns: int

    @property
    def error(self) -> float:
        """The prediction against the real run."""
        return self.predicted_ns / self.without_ns - 1


def replayed(recording: Recording, hta: str | None = None) -> Replayed:
    """Read, build, replay and compare one job; ``hta`` is the interpreter of an environment with HTA.

    Raises:
        TracereplayError: a file that cannot be read.
    """
    job = read_job(recording.paths)
    graph = build_graph(job)
    marked = find_steps(job.ranks[0].table).marked
    return Replayed(
        recording=recording,
        ranks=len(graph.tables),
        steps=len(graph.step_numbers),
        tasks=len(graph),
        accuracy=assess(graph),
        held_out=hold_out(graph) if len(graph.step_numbers) >= FEWEST_STEPS else None,
        hta=ask_hta([t.table.path for t in job.ranks], graph.step_numbers if marked else (), hta) if hta else None,
    )


def without_straggler(on: Recording, off: Recording) -> tuple[StragglerStep, ...]:
    """Each step of ``on`` with every rank at the median of its work, beside ``off``, which is read when that has been
    predicted; the mean step last.
    """
    graph = build_graph(read_job(on.paths))
    prediction = predict(graph, [], stragglers=False)
    slow, real = _recorded(graph), _recorded(build_graph(read_job(off.paths)))
    slow_ns, real_ns = (dict(zip(steps.numbers, steps.longest_ns, strict=True)) for steps in (slow, real))
    steps = [
        StragglerStep(step.number, slow_ns[step.number], step.predicted_ns, real_ns[step.number])
        for step in prediction.steps
        if step.predicted_ns is not None and step.number in real_ns
    ]
    if prediction.predicted_ns is not None:
        steps.append(StragglerStep(None, slow.mean_ns, prediction.predicted_ns, real.mean_ns))
    return tuple(steps)


def _recorded(graph: DependencyGraph) -> JobSteps:
    return summarise(graph, recorded_step_times(graph))
