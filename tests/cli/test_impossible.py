"""Recordings that cannot have been: each verb refuses them in one line, or answers and says what was wrong.

Each case is one fault in an otherwise sound recording. Nothing may pass in silence: a number comes with a warning that names
the fault and the file, and with a count.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.kineto import TraceFile
from tests.truth.exporter import Dialect, export
from tests.truth.training import Features, draw_training
from tracereplay.cli.main import main

LAUNCH, SYNC, WAIT, RECORD = "cudaLaunchKernel", "cudaStreamSynchronize", "cudaStreamWaitEvent", "cudaEventRecord"
ALL_REDUCE, BROADCAST = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ncclDevKernel_Broadcast_RING_LL"
Capture = pytest.CaptureFixture[str]


def one(world_size: int = 1) -> TraceFile:
    return TraceFile(0, world_size, host_name="node0").step(1, 0, 1000).op("aten::mm", 1, 3)


def pair() -> tuple[TraceFile, TraceFile]:
    ranks = [TraceFile(r, 2, host_name="node0").step(1, 0, 1000).op("aten::mm", 1, 3) for r in (0, 1)]
    return ranks[0], ranks[1]


def with_row(trace: TraceFile, kind: str, ts: int, stream: int, correlation: int, **more: int) -> TraceFile:
    """A ``cuda_sync`` row of a call."""
    args = {"cuda_sync_kind": kind, "stream": stream, "correlation": correlation, "device": 0} | more
    return trace.event("cuda_sync", kind, ts, 1, pid=0, tid=stream, args=args)


def two_streams() -> TraceFile:
    """A on stream 7 up to 170, C on stream 20 from 171 on."""
    trace = one().call(LAUNCH, 100, 4, 1).kernel("A", 110, 60, 7, 1).call(LAUNCH, 116, 4, 4)
    return trace.kernel("C", 171, 20, 20, 4)


def recorded_later() -> TraceFile:
    trace = two_streams().call(WAIT, 112, 1, 3).call(RECORD, 400, 1, 5)
    return with_row(trace, "Stream Wait Event", 112, 20, 3, wait_on_stream=7, wait_on_cuda_event_record_corr_id=5)


def recorded_by_the_wait_itself() -> TraceFile:
    trace = two_streams().call(WAIT, 112, 1, 3)
    return with_row(trace, "Stream Wait Event", 112, 20, 3, wait_on_stream=7, wait_on_cuda_event_record_corr_id=3)


def host_waits_for_a_later_event() -> TraceFile:
    trace = two_streams().call("cudaEventSynchronize", 125, 60, 3).call(RECORD, 400, 1, 5)
    return with_row(trace, "Event Sync", 125, 7, 3, wait_on_stream=7, wait_on_cuda_event_record_corr_id=5)


def consumer_before_its_producer() -> TraceFile:
    trace = one().call(LAUNCH, 100, 4, 1).kernel("A", 110, 200, 7, 1).call(RECORD, 106, 1, 2)
    trace.call(WAIT, 112, 1, 3).call(LAUNCH, 116, 4, 4).kernel("C", 130, 20, 20, 4)
    return with_row(trace, "Stream Wait Event", 112, 20, 3, wait_on_stream=7, wait_on_cuda_event_record_corr_id=2)


def row_of_no_call() -> TraceFile:
    return with_row(two_streams(), "Stream Wait Event", 112, 20, 3, wait_on_stream=7, wait_on_cuda_event_record_corr_id=1)


def wait_that_ended_early() -> TraceFile:
    trace = one().call(LAUNCH, 100, 6, 1).kernel("k", 110, 300, 7, 1).call(SYNC, 120, 50, 2)
    return with_row(trace, "Stream Sync", 120, 7, 2)


def one_id_for_three_calls() -> TraceFile:
    trace = one().call(LAUNCH, 100, 6, 1).call(LAUNCH, 200, 6, 1).call(LAUNCH, 300, 6, 1)
    return trace.kernel("k", 310, 10, 7, 1).kernel("k", 330, 10, 7, 1)


def kernel_that_holds_others() -> TraceFile:
    trace = one().call(LAUNCH, 10, 6, 1).call(LAUNCH, 20, 6, 2).call(LAUNCH, 30, 6, 3)
    return trace.kernel("a", 100, 500, 7, 1).kernel("b", 120, 10, 7, 2).kernel("c", 150, 10, 7, 3)


def collectives(first: dict[str, Any], second: dict[str, Any]) -> tuple[TraceFile, TraceFile]:
    """One collective with recorded args on both ranks."""
    ranks = pair()
    shared = {"Seq": 1, "Process Group Name": "0", "Group size": 2, "Collective name": "allreduce", "In msg nelems": 8}
    for trace, own in zip(ranks, (first, second), strict=True):
        trace.call(LAUNCH, 10, 5, 1).kernel(ALL_REDUCE, 30, 100, 20, 1, **{**shared, "dtype": "Float", **own})
    return ranks


def counted_differently() -> tuple[TraceFile, TraceFile]:
    ranks = pair()
    for trace, count in zip(ranks, (3, 1), strict=True):
        for place in range(count):
            trace.call(LAUNCH, 10 + 200 * place, 5, place + 1).kernel(ALL_REDUCE, 30 + 200 * place, 100, 20, place + 1)
    return ranks


def in_other_order() -> tuple[TraceFile, TraceFile]:
    first, second = pair()
    first.kernel(ALL_REDUCE, 100, 50, 20).kernel(BROADCAST, 200, 50, 20)
    return first, second.kernel(BROADCAST, 100, 50, 20).kernel(ALL_REDUCE, 200, 50, 20)


def ended_before_the_last_arrived() -> tuple[TraceFile, TraceFile]:
    first, second = pair()
    return first.kernel(ALL_REDUCE, 100, 50, 20), second.kernel(ALL_REDUCE, 400, 50, 20)


def ended_before_it_began() -> tuple[TraceFile, TraceFile]:
    first, second = pair()
    return first.kernel(ALL_REDUCE, 100, -50, 20).op("a", 10, 5), second.kernel(ALL_REDUCE, 100, 50, 20)


def clocks_a_second_apart() -> tuple[TraceFile, TraceFile]:
    first = TraceFile(0, 2, host_name="node0").step(1, 0, 1000).op("a", 5, 30)
    return first, TraceFile(1, 2, host_name="node1").step(1, 1_000_000, 1000).op("a", 1_000_005, 30)


def steps_of_their_own() -> tuple[TraceFile, TraceFile]:
    ranks = pair()
    for trace, number in zip(ranks, (2, 3), strict=True):
        trace.step(number, 1000, 100).op("aten::mm", 1005, 5)
    return ranks


def half_the_ranks() -> Sequence[TraceFile]:
    machine = draw_training(3, Features(groups=True)).run()
    return export(machine, Dialect()).traces[:2]


def shuffled_waits() -> Sequence[TraceFile]:
    """A job of the ground-truth machine in which the rows of waits name the records in reverse."""
    traces = export(draw_training(5, Features()).run(), Dialect()).traces
    key = "wait_on_cuda_event_record_corr_id"
    rows = [event["args"] for event in traces[0].events if event["cat"] == "cuda_sync" and key in event["args"]]
    ids = [row[key] for row in rows]
    for row, number in zip(rows, reversed(ids), strict=True):
        row[key] = number
    return traces


@dataclass(frozen=True)
class Case:
    """Traces, words of the warning that names the fault and its file, and where the count of it is."""

    traces: Callable[[], Sequence[TraceFile] | TraceFile]
    words: tuple[str, ...]
    count: Callable[[dict[str, Any]], int]


def coverage(name: str) -> Callable[[dict[str, Any]], int]:
    return lambda found: int(found["replay"]["coverage"][name])


def fault(name: str) -> Callable[[dict[str, Any]], int]:
    return lambda found: int(found["replay"]["coverage"]["faults"].get(name, 0))


def quality(name: str) -> Callable[[dict[str, Any]], int]:
    return lambda found: sum(rank["quality"][name] for rank in found["info"]["ranks"])


def unsplit(found: dict[str, Any]) -> int:
    return sum(row["transfer_ns"] is None for row in found["attribute"]["collectives"]["rows"])


def missing(found: dict[str, Any]) -> int:
    return len(found["replay"]["coverage"]["ranks_missing"])


CONTRADICTION = ("cannot be split into waiting and transfer", "the ranks recorded different participants, kinds, sizes, counts")
LATER = ("rank0.json: 1 cuda_sync rows wait for an event that only their own or a later call records",)
CASES = {
    "a kernel before its launch": Case(
        lambda: one().call(LAUNCH, 100, 6, 1).kernel("k", 60, 10, 7, 1),
        ("rank0.json: 1 clock violations", "up to 40.0 µs before what they wait for (launch 1)"),
        coverage("clock_violations"),
    ),
    "a graph's kernels before its launch": Case(
        lambda: one().call("cudaGraphLaunch", 100, 20, 1).kernel("a", 50, 10, 7, 1).kernel("b", 65, 10, 7, 1),
        ("rank0.json: 2 clock violations", "(launch 2)"),
        coverage("clock_violations"),
    ),
    "a wait that ended early": Case(
        wait_that_ended_early, ("rank0.json: 1 blocking calls returned before the work ended",), fault("returned_early")
    ),
    "one id for three calls": Case(
        one_id_for_three_calls, ("rank0.json: 1 correlation ids are used by several calls",), fault("repeated_ids")
    ),
    "a kernel that holds later ones of its stream": Case(
        kernel_that_holds_others, ("rank0.json: 1 impossible durations",), quality("impossible_durations")
    ),
    "a wait for an event recorded later": Case(recorded_later, LATER, fault("waits_for_later")),
    "a wait for an event that it records itself": Case(recorded_by_the_wait_itself, LATER, fault("waits_for_later")),
    "a host wait for an event recorded later": Case(host_waits_for_a_later_event, LATER, fault("waits_for_later")),
    "work before the work that it waited for": Case(
        consumer_before_its_producer,
        ("rank0.json: 1 clock violations", "up to 180.0 µs", "(event_wait 1)"),
        coverage("clock_violations"),
    ),
    "a cuda_sync row without its call": Case(
        row_of_no_call, ("rank0.json: 1 cuda_sync rows belong to no recorded call",), fault("sync_rows_without_call")
    ),
    "waits in a circle": Case(
        shuffled_waits, ("rank0.json: ", "dependencies run in a circle and were dropped (event_wait"), coverage("dropped_edges")
    ),
    "collectives in another order": Case(
        in_other_order,
        ("rank0.json: 1 dependencies run in a circle and were dropped (collective 1)",),
        coverage("dropped_edges"),
    ),
    "a step that ends before it begins": Case(
        lambda: one().step(2, 1000, -50).op("b", 1005, 30), ("rank0.json: 1 invalid times",), quality("invalid_times")
    ),
    "two marks of one step": Case(
        lambda: one().step(1, 1000, 100).op("b", 1010, 20),
        ("rank0.json: 1 step numbers are marked more than once",),
        fault("repeated_steps"),
    ),
    "steps that overlap": Case(
        lambda: one().step(2, 600, 1000).op("b", 1200, 20),
        ("steps overlap in rank0.json",),
        coverage("overlapping_events"),
    ),
    "ranks with steps of their own": Case(
        steps_of_their_own,
        ("steps that only some ranks have whole do not count for the job: 2, 3",),
        lambda found: 2 * (len(found["replay"]["steps"]) == 1),
    ),
    "clocks a second apart that nothing aligns": Case(
        clocks_a_second_apart,
        ("no common collective aligns the clocks of ranks 1",),
        lambda found: sum(clock["offset_ns"] is None for clock in found["info"]["job"]["clock"]),
    ),
    "collectives counted differently": Case(counted_differently, CONTRADICTION, unsplit),
    "one collective of two kinds": Case(lambda: collectives({}, {"Collective name": "broadcast"}), CONTRADICTION, unsplit),
    "one all-reduce of two sizes": Case(lambda: collectives({}, {"In msg nelems": 9}), CONTRADICTION, unsplit),
    "one collective of two group sizes": Case(lambda: collectives({}, {"Group size": 4}), CONTRADICTION, unsplit),
    "a collective that ended before the last arrived": Case(
        ended_before_the_last_arrived,
        ("rank0.json: 1 clock violations", "up to 250.0 µs", "(collective 1)"),
        coverage("clock_violations"),
    ),
    "a collective that ended before it began": Case(
        ended_before_it_began, ("rank0.json: 1 invalid times",), quality("invalid_times")
    ),
    "events of a thread that overlap": Case(
        lambda: one().op("x", 100, 50).op("y", 120, 60),
        ("rank0.json: 1 host events outlast the event around them",),
        coverage("overlapping_events"),
    ),
    "times that are no numbers": Case(
        lambda: one().event("cpu_op", "z", "NaN", 5).event("cpu_op", "y", 10, "Infinity"),
        ("rank0.json: 2 nonfinite values, 2 invalid times",),
        quality("invalid_times"),
    ),
    "times beyond all clocks": Case(
        lambda: one().op("z", "9e18", 5).op("y", 50, "9e18").op("w", "1e400", 5),
        ("rank0.json: 3 invalid times",),
        quality("invalid_times"),
    ),
    "half the ranks": Case(half_the_ranks, ("collectives cannot be split", "add the missing ranks (2, 3)"), missing),
}
VERBS: dict[str, list[str]] = {
    "info": [],
    "replay": [],
    "whatif": ["--scale", "kernel:*=0.5x"],
    "attribute": [],
    "graph": ["--output", "FILE"],
    "why": ["--rank", "0", "--name", "*"],
}


def written(folder: Path, traces: Sequence[TraceFile] | TraceFile) -> list[str]:
    every = [traces] if isinstance(traces, TraceFile) else traces
    return [str(trace.write(folder)) for trace in every]


def ask(verb: str, paths: list[str], folder: Path, capsys: Capture) -> dict[str, Any]:
    """A verb's document; it must answer, and with numbers only."""
    words = [str(folder / "edges.parquet") if word == "FILE" else word for word in VERBS[verb]]
    status = main([verb, *paths, *words, "--json"])
    captured = capsys.readouterr()
    assert (status, captured.err) == (0, "")
    document: dict[str, Any] = json.loads(captured.out)
    return document


@pytest.mark.parametrize("name", CASES)
def test_an_impossible_recording_is_answered_with_a_warning_and_a_count(name: str, tmp_path: Path, capsys: Capture) -> None:
    case = CASES[name]
    paths = written(tmp_path, case.traces())

    documents = {verb: ask(verb, paths, tmp_path, capsys) for verb in VERBS}

    for verb, document in documents.items():
        told = any(all(word in warning for word in case.words) for warning in document["warnings"])
        assert told or verb == "info", (verb, document["warnings"])
    assert case.count({verb: document["result"] for verb, document in documents.items()}) > 0


def sound() -> dict[str, Callable[[], Sequence[TraceFile] | TraceFile]]:
    """Recordings with nothing wrong, though they look odd: waits for streams that hold no work, for events from before the
    recording, for the own stream; a wait that is recorded as the file says.
    """
    return {
        "a stream without work": lambda: with_row(
            two_streams().call(RECORD, 106, 1, 2).call(WAIT, 112, 1, 3),
            "Stream Wait Event", 112, 20, 3, wait_on_stream=99, wait_on_cuda_event_record_corr_id=2,
        ),
        "an event from before the recording": lambda: with_row(
            two_streams().call(WAIT, 112, 1, 3),
            "Stream Wait Event", 112, 20, 3, wait_on_stream=7, wait_on_cuda_event_record_corr_id=77,
        ),
        "its own stream": lambda: with_row(
            two_streams().call(RECORD, 106, 1, 2).call(WAIT, 112, 1, 3),
            "Stream Wait Event", 112, 20, 3, wait_on_stream=20, wait_on_cuda_event_record_corr_id=2,
        ),
        "a drawn job": lambda: export(draw_training(5, Features()).run(), Dialect()).traces,
        "a job of clocks that drift": lambda: export(
            draw_training(5, Features()).run(), Dialect(clocks=((0, 0.0), (2_000, 3.0), (-4_000, -2.0), (0, 1.0)))
        ).traces,
    }  # fmt: skip


@pytest.mark.parametrize("name", sound())
def test_nothing_is_said_of_a_sound_recording(name: str, tmp_path: Path, capsys: Capture) -> None:
    paths = written(tmp_path, sound()[name]())

    document = ask("replay", paths, tmp_path, capsys)

    assert document["warnings"] == []
    assert set(document["result"]["coverage"]["faults"].values()) == {0}


@pytest.mark.parametrize(
    ("traces", "words"),
    [
        (lambda: TraceFile(0, 1).step(2, 1000, -50).op("b", 1005, 30), "rank0.json: no whole step"),
        (
            lambda: [TraceFile(r, 2).step(r + 1, 0, 100).op("a", 5, 30) for r in (0, 1)],
            "the ranks have no whole step in common",
        ),
    ],
    ids=["the only step ends before it begins", "ranks without a common step"],
)
def test_a_recording_without_a_step_is_refused(
    traces: Callable[[], Sequence[TraceFile] | TraceFile], words: str, tmp_path: Path, capsys: Capture
) -> None:
    paths = written(tmp_path, traces())

    for verb, more in VERBS.items():
        if verb == "info":
            continue
        status = main([verb, *paths, *[str(tmp_path / "e.parquet") if word == "FILE" else word for word in more]])
        captured = capsys.readouterr()
        assert (status, captured.out, captured.err.count("\n")) == (3, "", 1)
        assert words in captured.err


def test_two_files_of_one_rank_are_refused(tmp_path: Path, capsys: Capture) -> None:
    paths = [str(one(2).write(tmp_path, name)) for name in ("a.json", "b.json")]

    for verb, more in VERBS.items():
        status = main([verb, *paths, *[str(tmp_path / "e.parquet") if word == "FILE" else word for word in more]])
        captured = capsys.readouterr()
        assert status == 3
        assert captured.err.splitlines()[-1].startswith("tracereplay: rank 0 is claimed by 2 files")
