"""The machine by hand: small programs whose times and causes are worked out on paper."""

import pytest

from tests.truth.exporter import Dialect, export
from tests.truth.machine import Cause, Do, Machine
from tests.truth.report import true_step_ns
from tests.truth.score import Edge, judge, score
from tests.truth.training import Features, draw_training, scaled_host, without_straggler

# With noise 0 a launch takes 5 µs to its work, a kernel follows another after 1 µs, an event after 1.2 µs, a thread wakes up
# after 5 µs; every call costs 4 µs, records and waits a quarter of that.
ALONE: dict[str, tuple[int, ...]] = {"0": (0,)}


def launch(name: str, ns: int, stream: int = 7) -> Do:
    return Do("launch", name=name, ns=ns, stream=stream, noise=0.0)


def run(*body: Do) -> Machine:
    machine = Machine(ALONE)
    machine.run({0: {"main": body}}, {0: 0})
    return machine


def times(machine: Machine) -> dict[str, tuple[int, int]]:
    return {e.name: (e.start, e.end) for e in machine.events if e.kind != "cuda_sync"}


def test_a_launch_and_a_wait_for_it() -> None:
    machine = run(launch("k", 100_000), Do("sync", name="cudaDeviceSynchronize", noise=0.0))

    # Work from 5 to 105 µs; the call begins at 4, returns 5 µs after the work's end.
    assert times(machine) == {
        "cudaLaunchKernel": (0, 4_000),
        "k": (5_000, 105_000),
        "cudaDeviceSynchronize": (4_000, 110_000),
    }
    # Without the work the call would have returned at 8: it cost 4 µs. Event 2 is its row of cuda_sync.
    assert machine.causes == [Cause(0, 3, "launch", 0), Cause(3, 1, "sync", 102_000, named=True)]


def test_an_event_makes_another_stream_wait() -> None:
    machine = run(
        launch("a", 50_000),
        Do("record", key="e", stream=7, noise=0.0),
        Do("await", key="e", stream=20, noise=0.0),
        launch("c", 10_000, stream=20),
    )

    # "a" ends at 55; "c" was launched at 6 and could have started at 11: the event delays it to 56.2, by 45.2 µs.
    assert times(machine)["c"] == (56_200, 66_200)
    waits = [c for c in machine.causes if c.kind == "event_wait"]
    assert [c.delay_ns for c in waits] == [45_200]
    assert [machine.events[c.src].name for c in waits] == ["a"]
    assert [machine.events[c.dst].name for c in waits] == ["c"]


def test_a_collective_ends_when_the_last_has_arrived_and_the_transfer_has_passed() -> None:
    machine = Machine({"0": (0, 1)})
    part = Do("collective", name="nccl", ns=30_000, stream=28, key=("0", 1, {"name": "all_reduce"}), noise=0.0)
    machine.run({0: {"main": (part,)}, 1: {"main": (Do("work", ns=200_000), part)}}, {0: 0, 1: 0})

    assert sorted((e.rank, e.start, e.end) for e in machine.events if e.kind == "kernel") == [
        (0, 5_000, 235_000),
        (1, 205_000, 235_000),
    ]


def test_a_graph_s_kernels_run_in_the_order_of_its_forks() -> None:
    nodes = (
        Do("launch", name="root", ns=10_000, stream=7, key="r", noise=0.0),
        Do("await", key="r", stream=20, noise=0.0),
        Do("launch", name="left", ns=10_000, stream=20, key="l", noise=0.0),
    )

    machine = run(Do("graph", body=nodes, noise=0.0))

    assert times(machine) == {"cudaGraphLaunch": (0, 4_000), "root": (5_000, 15_000), "left": (16_200, 26_200)}
    assert [(c.kind, c.named) for c in machine.causes if c.kind == "event_wait"] == [("event_wait", False)]


def test_a_changed_program_is_the_same_program_with_other_times() -> None:
    training = draw_training(3, Features(straggler=True))

    plain, faster = training.run(), training.run(scaled_host(0.5))

    assert sorted((e.rank, e.thread, e.stream, e.name) for e in plain.events) == sorted(
        (e.rank, e.thread, e.stream, e.name) for e in faster.events
    )
    assert true_step_ns(faster) < true_step_ns(plain)
    assert true_step_ns(training.run(without_straggler)) < true_step_ns(plain)


def test_the_true_edges_themselves_score_full_marks_and_a_false_one_counts() -> None:
    machine = draw_training(1, Features(groups=True)).run()
    written = export(machine, Dialect())
    truth = [
        Edge(src, dst, c.kind)
        for c in machine.causes
        if (src := written.place[c.src]) is not None and (dst := written.place[c.dst]) is not None
    ]
    kernels = [written.place[i] for i, e in enumerate(machine.events) if e.kind == "kernel"]
    false = Edge(kernels[-1] or (0, 0), kernels[0] or (0, 0), "event_wait")

    scores = score(machine, written, [*truth, false], all_recorded=True)

    assert {kind: one.recall for kind, one in scores.items()} == dict.fromkeys(scores, 1.0)
    assert scores["event_wait"].wrong == 1
    assert scores["launch"].wrong == 0


def test_an_edge_that_follows_from_others_is_found_though_not_given() -> None:
    # Of two launches on one stream the second kernel waits for the first call by way of the first kernel.
    machine = run(launch("a", 50_000), launch("b", 10_000))
    written = export(machine, Dialect())
    place = {e.name: written.place[i] or (0, 0) for i, e in enumerate(machine.events) if e.kind == "kernel"}
    call = next(written.place[i] or (0, 0) for i, e in enumerate(machine.events) if e.kind == "cuda_runtime")
    implied = Edge(call, place["b"], "launch")
    order = Edge(place["a"], place["b"], "stream_order")

    verdicts = judge(machine, written, [Edge(call, place["a"], "launch"), order, implied], all_recorded=True)

    assert verdicts.wrong == []
    assert implied not in verdicts.right


@pytest.mark.parametrize("whole_us", [False, True])
def test_the_trace_tells_nothing_that_an_exporter_would_not(whole_us: bool) -> None:
    machine = draw_training(2, Features(graphs=True, loader=True)).run()

    written = export(machine, Dialect(sync_rows=False, comm_args=False, record_calls=False, whole_us=whole_us))

    events = [event for trace in written.traces for event in trace.events]
    assert {event["cat"] for event in events} == {"cpu_op", "user_annotation", "cuda_runtime", "kernel"}
    keys = {key for event in events for key in event.get("args", {})}
    assert keys == {"device", "context", "stream", "correlation"}
