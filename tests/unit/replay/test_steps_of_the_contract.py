"""The sentences of the contract's sections Steps and Collectives, each on a job small enough for paper."""

import json
from pathlib import Path

import pytest

from tests.fakes.jobs import graph_of, job_of
from tests.fakes.kineto import TraceFile
from tests.fakes.workloads import ALL_REDUCE, LAUNCH, SYNC, late_peer
from tracereplay.analyzers.accuracy import assess
from tracereplay.analyzers.attribution import attribute
from tracereplay.analyzers.prediction import predict
from tracereplay.errors import TraceError
from tracereplay.graph.build import build_graph
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.knobs import parse_setting
from tracereplay.replay.engine import Timing, replay
from tracereplay.replay.steps import step_times
from tracereplay.replay.whatif import apply, parse_scale, setting_change
from tracereplay.trace.job import Extras, read_job


def bleeding() -> TraceFile:
    """Two steps of 100 µs: a kernel of the first runs from 60 to 130, one of the second from 140 to 160."""
    trace = TraceFile(0, 1).step(1, 0, 100).call(LAUNCH, 10, 5, 1).kernel("gemm", 60, 70, 7, 1)
    return trace.step(2, 100, 100).call(LAUNCH, 110, 5, 2).kernel("gemm", 140, 20, 7, 2).call(SYNC, 150, 15)


def test_a_step_is_a_closed_mark_that_holds_work_first_and_last_included(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("a", 10, 5).step(2, 100, 80).op("a", 110, 5)
    trace.step(3, 180, 50).step(4, 230, None).op("a", 240, 5)

    steps = assess(graph_of(tmp_path, trace)).steps

    # Step 3 holds nothing, step 4 is not closed.
    assert [(s.number, s.measured_ns) for s in steps] == [(1, 100_000), (2, 80_000)]


def test_a_trace_without_marks_is_one_step_from_its_first_valid_event_to_its_last(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).call(LAUNCH, 20, 5, 1).kernel("gemm", 40, 70, 7, 1).op("lost", 5, -1).op("a", 30, 5)

    graph = graph_of(tmp_path, trace)

    assert [(s.number, s.start_ns, s.end_ns) for s in graph.steps] == [(0, 20_000, 110_000)]


def test_device_work_of_an_earlier_step_that_runs_into_one_is_carry_in(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, bleeding())

    assert [s.carry_in_ns for s in assess(graph).steps] == [0, 30_000]
    assert [attribute(graph, number).carry_in_ns for number in (1, 2)] == [0, 30_000]


def test_work_between_two_steps_is_carried_into_the_next_one_alone(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("a", 10, 5).call(LAUNCH, 105, 5, 1).kernel("gemm", 115, 20, 7, 1)
    trace.step(2, 120, 100).op("a", 130, 5).step(3, 220, 100).op("a", 230, 5)

    assert [s.carry_in_ns for s in assess(graph_of(tmp_path, trace)).steps] == [0, 15_000, 0]


def test_carry_in_is_that_of_the_longest_rank(tmp_path: Path) -> None:
    other = TraceFile(1, 2).step(1, 0, 100).op("a", 10, 5).step(2, 100, 120).op("a", 110, 5)
    first = bleeding()
    first.header["distributedInfo"]["world_size"] = 2

    assert [s.carry_in_ns for s in assess(graph_of(tmp_path, first, other)).steps] == [0, 0]


def test_a_jobs_step_is_the_longest_rank_and_its_summary_the_mean_over_numbers_that_every_rank_has(tmp_path: Path) -> None:
    lengths = {0: {1: 100, 2: 80, 3: 500}, 1: {1: 60, 2: 90}}
    traces = []
    for rank, steps in lengths.items():
        trace, now = TraceFile(rank, 2), 0
        for number, length in steps.items():
            trace.step(number, now, length).op("a", now + 5, 5)
            now += length
        traces.append(trace)

    graph = graph_of(tmp_path, *traces)
    accuracy = assess(graph)

    assert [(s.number, s.measured_ns) for s in accuracy.steps] == [(1, 100_000), (2, 90_000)]
    assert accuracy.measured_ns == 95_000
    assert "steps that only some ranks have whole do not count for the job: 3" in graph.warnings


def test_the_steady_state_is_from_the_end_of_a_step_to_the_end_of_the_next_of_the_longest_rank(tmp_path: Path) -> None:
    # Ends at 100, 210 and 330 on rank 0, at 100, 230 and 310 on rank 1: 130 and 120, gaps between marks included.
    first = TraceFile(0, 2).step(1, 0, 100).op("a", 5, 5).step(2, 110, 100).op("a", 115, 5).step(3, 230, 100).op("a", 235, 5)
    second = TraceFile(1, 2).step(1, 0, 100).op("a", 5, 5).step(2, 110, 120).op("a", 115, 5).step(3, 240, 70).op("a", 245, 5)

    assert assess(graph_of(tmp_path, first, second)).steady_ns == 125_000


@pytest.mark.parametrize(("drained_at", "predicted_ns"), [(195, 195_000), (230, 100_000)])
def test_a_predicted_step_ends_when_its_work_has_drained_if_the_recorded_one_had(
    tmp_path: Path, drained_at: int, predicted_ns: int
) -> None:
    # The host takes 200 µs and half of it then; the kernel ends before the mark, or long after it.
    trace = TraceFile(0, 1).step(1, 0, 200).call(LAUNCH, 0, 5, 1).kernel("gemm", 10, drained_at - 10, 7, 1)

    prediction = predict(graph_of(tmp_path, trace), [parse_scale("host=0.5x")])

    assert prediction.predicted_ns == predicted_ns


def test_the_first_entry_of_a_rank_is_kept_by_every_scenario_and_charged_to_it(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, *late_peer(enters=55))
    answer = attribute(graph)

    for text in ("host=0.5x", "host=3x", "launch=0x", "collective:*=0.5x"):
        times = step_times(graph, replay(graph, predict_timing(graph, text)))
        assert [t.start_ns - times[0].start_ns for t in times] == [0, 55_000]
    assert {p.name: p.ns for p in answer.parts}["late_entry"] == 55_000
    (wait,) = answer.waits
    assert (wait.rank, wait.caused_by_rank, wait.cause) == (0, 1, "before the recording")


def predict_timing(graph: DependencyGraph, text: str) -> Timing:
    return apply(graph, [parse_scale(text)]).timing


def test_from_the_second_recorded_step_on_the_entry_follows_from_the_replay(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("a", 5, 90).step(2, 100, 100).op("a", 105, 90)
    graph = graph_of(tmp_path, trace)

    times = step_times(graph, replay(graph, predict_timing(graph, "host=0.5x")))

    assert [(t.start_ns, t.end_ns) for t in times] == [(0, 50_000), (50_000, 100_000)]


def levels(graph: DependencyGraph) -> list[bool]:
    return [c.scale_out for c in graph.collectives]


@pytest.mark.parametrize(("hosts", "out"), [(("n0", "n0"), False), (("n0", "n1"), True)])
def test_ranks_of_one_host_are_joined_by_scale_up_others_by_scale_out(
    tmp_path: Path, hosts: tuple[str, str], out: bool
) -> None:
    ranks = [TraceFile(r, 2, host_name=host).step(1, 0, 300).op("a", 1, 1) for r, host in enumerate(hosts)]

    graph = graph_of(tmp_path, *(rank.kernel(ALL_REDUCE, 100, 50, 7) for rank in ranks))

    assert levels(graph) == [out]


def test_the_manifest_tells_the_host_of_a_rank_that_is_not_here(tmp_path: Path) -> None:
    trace = TraceFile(0, 2).step(1, 0, 300).op("a", 1, 1).kernel(ALL_REDUCE, 100, 50, 7)
    ranks = [{"rank": r, "trace": f"rank{r}.json", "host": f"n{r}", "pid": 1, "steps": [1]} for r in (0, 1)]
    manifest = {
        "schema": "tracereplay/manifest/1", "created": "2026-01-01T00:00:00Z", "world_size": 2, "backend": "nccl",
        "clock": "monotonic", "hosts": [], "ranks": ranks, "versions": {}, "workload": {}, "tracer": {},
    }  # fmt: skip
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(manifest))

    graph = build_graph(read_job([str(trace.write(tmp_path))], extras=Extras(manifest=path)))

    assert levels(graph) == [True]
    assert not any("no host is recorded" in warning for warning in graph.warnings)
    near = [setting_change(s) for s in parse_setting("fabric.scale_up.bandwidth=2x")]
    far = [setting_change(s) for s in parse_setting("fabric.scale_out.bandwidth=2x")]
    assert predict(graph, near).interval is None
    assert predict(graph, far).interval is not None


def test_ranks_without_a_step_in_common_are_refused(tmp_path: Path) -> None:
    job = job_of(tmp_path, *(TraceFile(r, 2).step(r, 0, 100).op("a", 5, 5) for r in (0, 1)))

    with pytest.raises(TraceError, match="no whole step in common"):
        build_graph(job)


def test_a_wait_is_a_participants_duration_less_the_shortest_one(tmp_path: Path) -> None:
    collective = attribute(graph_of(tmp_path, *late_peer())).collectives

    (row,) = collective.rows
    assert (row.transfer_ns, row.waits, row.last_rank) == (50_000, ((0, 50_000), (1, 0)), 1)
    assert (collective.recorded_ns, collective.wait_ns) == (150_000, 50_000)
    assert collective.wait_share == pytest.approx(1 / 3)


def test_a_collective_that_misses_participants_is_collective_unsplit_and_nobody_s_fault(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, late_peer()[0])
    answer = attribute(graph)

    assert {p.name: p.ns for p in answer.parts}["collective_unsplit"] == 100_000
    assert answer.waits == ()
    (row,) = answer.collectives.rows
    assert (row.transfer_ns, row.last_rank, row.waits) == (None, None, None)
    prediction = predict(graph, [parse_scale("collective:*=0.5x")])
    assert list(prediction.moved) == ["collective_unsplit"]
    # High: none of it transfer. Low: all of it.
    assert prediction.interval is not None
    assert (prediction.interval.low_ns, prediction.interval.high_ns) == (150_000, 200_000)
