"""A Megatron job of eight ranks with a slow last stage: what its own tool said without the stragglers, from our engine."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.fakes.megatron_ops import Op, OpsJob, build_ops, read_ops, without_delays, without_residues, without_stragglers
from tracereplay.replay.batch import replay_steps
from tracereplay.replay.engine import Timing, recorded_timing, replay

Tool = dict[str, dict[str, float]]


@pytest.fixture(scope="module")
def folder(corpus: Path) -> Path:
    return corpus / "ground_truth" / "straggler"


@pytest.fixture(scope="module")
def job(folder: Path) -> OpsJob:
    return build_ops(read_ops(folder / "trace-ST.parquet"))


@pytest.fixture(scope="module")
def tool(folder: Path) -> Tool:
    result: Tool = json.loads((folder / "result-ST.json").read_text())
    return result


def steps_s(job: OpsJob, timing: Timing) -> np.ndarray:
    """The job's step times in seconds, in order of step number."""
    return np.asarray(replay_steps(job.graph, [timing]).job.longest_ns[0] / 1e9)


def tool_s(job: OpsJob, tool: Tool, what: str) -> np.ndarray:
    return np.array([tool[what][str(n)] for n in job.graph.step_numbers])


def test_every_operation_is_in_the_graph(job: OpsJob) -> None:
    graph = job.graph

    assert len(job.ops) == 6_784
    assert np.unique(job.last).size == 6_784
    assert graph.replay_order.size == len(graph)
    assert len(graph.step_numbers) == 32


def test_each_recorded_step_is_replayed_within_half_a_per_cent(job: OpsJob, tool: Tool) -> None:
    error = steps_s(job, recorded_timing(job.graph)) / tool_s(job, tool, "step_t_base") - 1

    assert np.abs(error).max() <= 0.005


def test_typical_launch_delays_give_each_step_within_one_per_cent(job: OpsJob, tool: Tool) -> None:
    """An identity from stored delays proves little: this one knows only a median an operation and stage."""
    error = steps_s(job, without_residues(job)) / tool_s(job, tool, "step_t_base") - 1

    assert np.abs(error).max() <= 0.01


def test_each_step_without_launch_delays_is_the_tool_s_within_half_a_per_cent(job: OpsJob, tool: Tool) -> None:
    error = steps_s(job, without_delays(job)) / tool_s(job, tool, "step_t_nodelay") - 1

    assert np.abs(error).max() <= 0.005


def test_stragglers_slow_the_job_down_by_1_179_with_launch_delays_dropped(job: OpsJob) -> None:
    slowdown = steps_s(job, without_delays(job)).mean() / steps_s(job, without_stragglers(job)).mean()

    assert slowdown == pytest.approx(1.179, rel=0.01)


def test_stragglers_slow_the_job_down_by_1_201_with_launch_delays_kept(job: OpsJob) -> None:
    slowdown = steps_s(job, recorded_timing(job.graph)).sum() / steps_s(job, without_stragglers(job)).sum()

    assert slowdown == pytest.approx(1.201, rel=0.01)


def test_two_stages_by_hand() -> None:
    """Stage 1 waits for stage 0's send, stage 0 for the norm: a kind of job small enough to draw.

    stage 0   |forward 100|s|··············|norm 5|
    stage 1   |recv······|3 |forward 160|2 |norm 5|
    """
    ops = (
        Op(7, 0, 0, 0, "forward-compute", 0, 0, 100),
        Op(7, 0, 0, 0, "forward-send", 0, 100, 103),
        Op(7, 0, 0, 0, "optimizer-clip-main-grad", 0, 103, 270),
        Op(7, 1, 0, 1, "forward-recv", 0, 0, 103),
        Op(7, 1, 0, 1, "forward-compute", 0, 103, 263),
        Op(7, 1, 0, 1, "optimizer-clip-main-grad", 0, 265, 270),
    )
    job = build_ops(ops)

    def ends(timing: Timing) -> list[int]:
        return [int(end) for end in replay(job.graph, timing).end_ns[job.last]]

    assert ends(recorded_timing(job.graph)) == [100, 103, 270, 103, 263, 270]
    assert ends(without_delays(job)) == [100, 103, 268, 103, 263, 268]
    # Both forwards take their mean of 130, the transfers stay 3, the norm 5.
    assert ends(without_stragglers(job)) == [130, 133, 268, 133, 263, 268]
