"""The laws of the architecture page on small random jobs: real reader, real graph, real replay."""

import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.simulated import Action, Phase, Program, jobs, programs, wild_jobs
from tracereplay.analyzers.accuracy import assess
from tracereplay.analyzers.attribution import attribute
from tracereplay.analyzers.overview import survey
from tracereplay.analyzers.prediction import predict
from tracereplay.errors import TraceError
from tracereplay.graph.build import build_graph
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import replay
from tracereplay.replay.steps import step_times
from tracereplay.replay.whatif import apply, parse_scale
from tracereplay.trace.job import read_job
from tracereplay.trace.schema import Role

# What the few samples of a small trace leave open: a wake-up or a launch more or less on the path.
SLACK_NS = 10_000
LAW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SCALES = st.sampled_from(
    [
        "host=0.5x",
        "host=3x",
        "launch=0x",
        "class:gemm=0.25x",
        "class:gemm=7x",
        "collective:*=0.5x",
        "collective:*=40x",
        "op:*=2x",
    ]
)


def build(traces: list[TraceFile]) -> DependencyGraph:
    with tempfile.TemporaryDirectory() as folder:
        return graph_of(Path(folder), *traces)


def bounds(graph: DependencyGraph, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    return np.where(graph.edges.from_start, start[graph.edges.src], end[graph.edges.src])


@LAW
@given(jobs())
def test_law_1_a_replay_on_the_recorded_hardware_gives_back_the_recorded_step(traces: list[TraceFile]) -> None:
    graph = build(traces)

    accuracy = assess(graph)

    assert accuracy.error == 0
    assert accuracy.measured_ns == accuracy.replayed_ns
    np.testing.assert_array_equal(replay(graph).start_ns, graph.nodes.start_ns)


@LAW
@given(jobs() | wild_jobs(), st.lists(SCALES, min_size=1, max_size=3))
def test_law_2_no_task_starts_before_what_it_waits_for(traces: list[TraceFile], scales: list[str]) -> None:
    graph = build(traces)

    schedule = replay(graph, apply(graph, [parse_scale(s) for s in scales]).timing)

    waiting = schedule.start_ns[graph.edges.dst] - bounds(graph, schedule.start_ns, schedule.end_ns)
    assert waiting.min(initial=0) >= 0


@LAW
@given(jobs() | wild_jobs())
def test_law_3_parts_sum_to_the_step(traces: list[TraceFile]) -> None:
    graph = build(traces)

    answer = attribute(graph)

    assert answer.sum_ns == answer.step_ns == answer.path_ns
    assert sum(part.share for part in answer.parts) == pytest.approx(1 if answer.step_ns else 0)


@LAW
@given(jobs(), st.sampled_from(["class:gemm", "collective:*", "host"]), st.sampled_from([2, 4, 10]))
def test_law_4_speeding_up_saves_at_most_the_path_s_share_and_slowing_down_costs_at_least_it(
    traces: list[TraceFile], selector: str, k: int
) -> None:
    graph = build(traces)
    before = max(t.dur_ns for t in step_times(graph, replay(graph)))
    parts = {p.name: p.ns for p in attribute(graph).parts}
    names = {"class:gemm": ("gemm",), "collective:*": ("collective_transfer",), "host": ("host", "input")}[selector]
    on_path_ns = sum(parts.get(name, 0) for name in names)

    faster = max(t.dur_ns for t in step_times(graph, replay(graph, apply(graph, [parse_scale(f"{selector}={1 / k}x")]).timing)))
    slower = max(t.dur_ns for t in step_times(graph, replay(graph, apply(graph, [parse_scale(f"{selector}={k}x")]).timing)))

    rounding_ns = len(graph)
    # The path is that of the longest step; work on it that another rank began before that step did saves, too.
    assert -rounding_ns <= before - faster <= (1 - 1 / k) * (on_path_ns + begun_before_ns(graph)) + rounding_ns
    assert slower - before >= (k - 1) * on_path_ns - rounding_ns


def begun_before_ns(graph: DependencyGraph) -> int:
    """How long before the step that the attribution walks the first rank entered its own."""
    steps = step_times(graph, replay(graph))
    longest = max(steps, key=lambda t: t.dur_ns)
    return longest.start_ns - min(t.start_ns for t in steps)


def test_work_that_another_rank_began_before_the_longest_step_saves_in_it_too() -> None:
    # Both steps take 54 µs. Rank 1 enters 10 µs earlier, and its product of 20 µs, for which rank 0 waits in the end, has run
    # for 1 µs when rank 0 enters: 19 of it are on the path of rank 0's step, and half of all 20 are saved.
    product = Action("launch", 3, 20)
    phases = (
        Phase(((product,), (product,)), None, 0),
        Phase(((), (Action("sync", 1, 1),)), "all_to_all", 1),
        Phase(((Action("sync", 7, 1),), ()), None, 1),
    )
    graph = build(Program(phases, (10, 0)).run())

    halved = replay(graph, apply(graph, [parse_scale("class:gemm=0.5x")]).timing)

    assert {p.name: p.ns for p in attribute(graph).parts}["gemm"] == 19_000
    assert [t.dur_ns for t in step_times(graph, replay(graph))] == [54_000, 54_000]
    assert [t.dur_ns for t in step_times(graph, halved)] == [44_000, 44_000]


@LAW
@given(programs(), st.sampled_from([2, 5]), st.booleans())
def test_a_prediction_is_what_the_changed_program_really_does(program: Program, k: int, transfers: bool) -> None:
    """The truth is a second run of the program with longer kernels or transfers; the prediction sees the first run only."""
    graph = build(program.run())
    truth = build(program.run(transfers=k) if transfers else program.run(kernels=k))
    change = parse_scale(f"collective:*={k}x" if transfers else f"class:gemm={k}x")

    predicted = max(t.dur_ns for t in step_times(graph, replay(graph, apply(graph, [change]).timing)))

    true_ns = max(s.end_ns - s.start_ns for s in truth.steps)
    assert predicted == pytest.approx(true_ns, rel=0.02, abs=SLACK_NS)


@LAW
@given(jobs())
def test_law_5_a_knob_that_moves_nothing_says_so(traces: list[TraceFile]) -> None:
    graph = build(traces)

    prediction = predict(graph, [parse_scale("kernel:no_such_kernel=0.5x"), parse_scale("class:attention=0.5x")])

    assert prediction.unmoved_knobs == ("kernel:no_such_kernel=0.5x", "class:attention=0.5x")
    assert prediction.predicted_ns == prediction.baseline_ns
    assert prediction.moved == {}


@LAW
@given(jobs())
def test_law_6_not_recorded_is_not_zero(traces: list[TraceFile]) -> None:
    for trace in traces:
        trace.events = [e for e in trace.events if e["cat"] != "kernel"]
        trace.header = {}
    with tempfile.TemporaryDirectory() as folder:
        job = read_job([str(traces[0].write(Path(folder), "alone.json"))])
        overview = survey(job)
        answer = attribute(build_graph(job))

    assert overview.ranks[0].gpu is None
    assert overview.ranks[0].rank is None
    assert answer.collectives.transfer_ns is None
    assert answer.collectives.wait_share is None


@LAW
@given(jobs(), st.randoms(use_true_random=False))
def test_law_7_reading_order_file_names_and_rank_order_change_nothing(traces: list[TraceFile], rng: random.Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(t.write(Path(folder), f"{i}.json")) for i, t in enumerate(traces)]
        expected = attribute(build_graph(read_job(paths)))
        for trace in traces:
            rng.shuffle(trace.events)
        renamed = [str(t.write(Path(folder), f"renamed_{len(traces) - i}.json")) for i, t in enumerate(traces)]
        rng.shuffle(renamed)
        shuffled = attribute(build_graph(read_job(renamed)))

    assert shuffled == expected


@LAW
@given(wild_jobs())
def test_law_8_every_piece_of_work_becomes_a_task_or_is_outside_the_steps(traces: list[TraceFile]) -> None:
    graph = build(traces)

    rows = {(int(r), int(w)) for r, w in zip(graph.nodes.rank, graph.nodes.row, strict=True) if r >= 0 and w >= 0}
    for rank, table in enumerate(graph.tables):
        end_ns = next(s.end_ns for s in graph.steps if s.rank == rank)
        start_ns = next(s.start_ns for s in graph.steps if s.rank == rank)
        kernels = table.rows_of(Role.KERNEL)
        ts, dur = table.column("ts_ns")[kernels], table.column("dur_ns")[kernels]
        inside = kernels[(ts >= start_ns) & (ts + dur <= end_ns) & (dur > 0)]
        assert {(rank, int(w)) for w in inside} <= rows


@LAW
@given(wild_jobs())
def test_impossible_traces_give_an_answer_and_never_an_infinite_one(traces: list[TraceFile]) -> None:
    graph = build(traces)

    accuracy = assess(graph)

    assert graph.replay_order.size == len(graph)
    assert np.isfinite(accuracy.error)
    assert np.isfinite(accuracy.unexplained.calibrated_error)


def test_a_trace_without_events_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no analysable events"):
        graph_of(tmp_path, TraceFile(0))
