"""Ranks are taken away from jobs whose joint answer is known: the interval that is left holds it.

The jobs are those of the ground-truth machine with every latency at its middle: a typical lag is then the same whichever
ranks it is taken from, and what differs between the joint answer and the interval is the missing ranks alone.
"""

import itertools
import random
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.truth.exporter import Dialect, export
from tests.truth.machine import Do
from tests.truth.training import Features, draw_training
from tracereplay.analyzers.prediction import Prediction, predict
from tracereplay.graph.build import build_graph
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.knobs import parse_setting
from tracereplay.replay.engine import replay
from tracereplay.replay.steps import step_times
from tracereplay.replay.whatif import Change, apply, parse_scale, setting_change
from tracereplay.trace.job import read_job

JOBS = {
    "plain": Features(),
    "straggler": Features(straggler=True, multi_wait=True, loader=True),
    "groups": Features(groups=True),
    "groups and a straggler": Features(groups=True, straggler=True),
}
SCALES = (
    "collective:*=0.5x",
    "collective:*=2x",
    "collective:*=0x",
    "collective:*=10x",
    "class:collective=0.5x",
    "kernel:nccl*=0.5x",
)
# Changes of other work, which the ranks that are not here do too.
WORK = ("host=0.5x", "host=2x", "class:gemm=0.5x", "kernel:*=3x", "launch=0.5x", "host=0.7x collective:*=0.5x")
CASES = list(itertools.product(JOBS, range(5)))


def even(do: Do) -> Do:
    return replace(do, noise=0.5)


def changes(text: str) -> list[Change]:
    if text.startswith("fabric"):
        return [setting_change(setting) for setting in parse_setting(text)]
    return [parse_scale(one) for one in text.split()]


class Case:
    """A job with all ranks, and the same with some of them."""

    def __init__(self, kind: str, seed: int) -> None:
        rng = random.Random(f"{kind} {seed}")
        machine = draw_training(seed, JOBS[kind], steps=rng.choice([1, 2, 3])).run(even)
        traces = export(machine, Dialect()).traces
        here = sorted(rng.sample(range(len(traces)), rng.randrange(1, len(traces))))
        with tempfile.TemporaryDirectory() as folder:
            paths = [str(trace.write(Path(folder))) for trace in traces]
            self.whole = build_graph(read_job(paths))
            self.part = build_graph(read_job([paths[rank] for rank in here]))
        self.missing = tuple(rank for rank in range(len(traces)) if rank not in here)
        # What the part cannot know: by how much earlier a missing rank enters its first step.
        self.earlier_ns = int(self.part.nodes.start_ns.min() - self.whole.nodes.start_ns.min())


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_the_interval_holds_the_joint_answer_of_every_rank_and_of_the_step(kind: str, seed: int) -> None:
    case = Case(kind, seed)

    for text in (*SCALES, "fabric.*.bandwidth=2x"):
        answer = predict(case.part, changes(text))

        joint = predict(case.whole, changes(text))
        assert joint.interval is None
        assert_holds(answer, joint, joint_step_ns(case, text), text)
        assert set(answer.ranks_to_add) <= set(case.missing)
        assert answer.ranks_to_add


def assert_holds(answer: Prediction, joint: Prediction, step_ns: int, text: str, early_ns: int = 0) -> None:
    assert (answer.predicted_ns, answer.speedup, answer.steady_ns) == (None, None, None)
    assert answer.interval is not None
    # A transfer that is scaled is rounded to a whole nanosecond, on each side.
    rounding_ns = early_ns + sum(moved.count for moved in joint.moved.values())
    assert answer.interval.low_ns - rounding_ns <= step_ns <= answer.interval.high_ns + rounding_ns, text
    truth = {rank.rank: rank.predicted_ns for rank in joint.ranks}
    for rank in answer.ranks:
        true_ns = truth[rank.rank]
        assert rank.predicted_ns is None
        assert rank.interval is not None
        assert true_ns is not None
        assert rank.interval.low_ns - rounding_ns <= true_ns <= rank.interval.high_ns + rounding_ns, (text, rank.rank)


def joint_step_ns(case: Case, text: str) -> int:
    """The joint step of the ranks that are here: per number the longest of them, their mean."""
    graph: DependencyGraph = case.whole
    times = step_times(graph, replay(graph, apply(graph, changes(text)).timing))
    here = [graph.rank_numbers.index(rank) for rank in case.part.rank_numbers]
    longest = [max(t.dur_ns for t in times if t.rank in here and t.number == n) for n in graph.step_numbers]
    return round(sum(longest) / len(longest))


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_an_interval_holds_what_other_work_does_on_the_missing_ranks_too(kind: str, seed: int) -> None:
    case = Case(kind, seed)

    for text in WORK:
        answer = predict(case.part, changes(text))

        farthest = max(abs(change.factor - 1) for change in changes(text))
        early_ns = round(farthest * case.earlier_ns)
        if answer.interval is None:
            # Nothing comes to a collective at another time, or the step is the same whenever the others come.
            assert answer.unsplit_kept or abs((answer.predicted_ns or 0) - joint_step_ns(case, text)) <= early_ns
            continue
        assert_holds(answer, predict(case.whole, changes(text)), joint_step_ns(case, text), text, early_ns)
        assert set(answer.ranks_to_add) <= set(case.missing)
        assert answer.ranks_to_add


@pytest.mark.parametrize("seed", range(3))
def test_of_the_medians_with_ranks_missing_it_is_said_that_they_are_of_some(seed: int) -> None:
    case = Case("straggler", seed)

    (reason,) = [reason for reason in predict(case.part, [], stragglers=False).unsure if "medians" in reason]

    assert reason.endswith(f"add ranks {', '.join(map(str, case.missing))}")
