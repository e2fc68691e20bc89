from pathlib import Path

import numpy as np
import pytest

from tests.fakes.jobs import table_of
from tests.fakes.kineto import TraceFile
from tracereplay.errors import TraceError
from tracereplay.graph.draft import RankDraft
from tracereplay.graph.layout import lay_out, step_of_time
from tracereplay.trace.steps import Step

LAUNCH = "cudaLaunchKernel"


def draft_of(folder: Path, trace: TraceFile, steps: frozenset[int] | None = None) -> RankDraft:
    return lay_out(0, table_of(folder, trace), 0, steps)


def work_names(draft: RankDraft) -> list[str]:
    return [draft.table.name_of(int(row)) for row in draft.work.row]


def test_the_window_reaches_from_the_first_step_to_the_last(tmp_path: Path) -> None:
    draft = draft_of(tmp_path, TraceFile().step(1, 100, 50).op("a", 110, 5).step(2, 200, 50).op("b", 210, 5))

    assert (draft.low_ns, draft.high_ns) == (100_000, 250_000)
    assert (draft.threads[0].tiling.start_ns[0], draft.threads[0].tiling.end_ns[-1]) == (100_000, 250_000)


def test_host_events_outside_the_window_are_counted(tmp_path: Path) -> None:
    trace = (
        TraceFile().op("before", 10, 5).step(1, 100, 50).op("a", 110, 5).op("after", 160, 5).event("cpu_op", "cut", 120, None)
    )

    assert draft_of(tmp_path, trace).dropped_before == 3


def test_only_the_steps_asked_for_are_laid_out(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 50).op("a", 10, 5).step(2, 50, 50).op("b", 60, 5)

    draft = draft_of(tmp_path, trace, frozenset({2}))

    assert ([s.number for s in draft.marks.whole], draft.low_ns) == ([2], 50_000)


def test_a_trace_without_a_whole_step_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"rank0\.json: no whole step; record with torch\.profiler\.schedule"):
        draft_of(tmp_path, TraceFile().step(1, 0, None).op("a", 10, 5))


def test_asking_for_a_step_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"none of the steps \[7\] is whole"):
        draft_of(tmp_path, TraceFile().step(1, 0, 50).op("a", 10, 5), frozenset({7}))


def test_the_main_thread_is_the_one_that_carries_the_mark(tmp_path: Path) -> None:
    trace = TraceFile().op("a", 1, 1, tid=1).op("b", 3, 1, tid=1).step(1, 0, 50, tid=2).op("c", 5, 1, tid=2)

    draft = draft_of(tmp_path, trace)

    assert [(thread.tid, thread.pid) for thread in draft.threads] == [("1", "100"), ("2", "100")]
    assert draft.main == 1


def test_without_marks_the_main_thread_is_the_one_with_most_events(tmp_path: Path) -> None:
    trace = TraceFile().op("a", 0, 1, tid=1).op("b", 3, 1, tid=2).op("c", 5, 1, tid=2)

    assert draft_of(tmp_path, trace).main == 1


def test_a_trace_of_device_work_alone_has_no_main_thread(tmp_path: Path) -> None:
    draft = draft_of(tmp_path, TraceFile().kernel("k", 10, 5, stream=7))

    assert (draft.threads, draft.main, work_names(draft)) == ((), -1, ["k"])


def test_another_thread_is_tiled_between_its_own_first_and_last_event(tmp_path: Path) -> None:
    draft = draft_of(tmp_path, TraceFile().step(1, 0, 100).op("a", 20, 10, tid=2).op("b", 40, 10, tid=2))

    tiling = draft.threads[1].tiling
    assert tiling.start_ns.tolist() == [20_000, 30_000, 40_000, 50_000]
    assert tiling.owner.tolist() == [0, -1, 1, -1]


def test_nodes_are_numbered_threads_first_then_work(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).call(LAUNCH, 10, 5, 1).kernel("k", 20, 5, 7, 1).op("a", 20, 10, tid=2)

    draft = draft_of(tmp_path, trace)

    # Main: step, call, step, closing; the other thread: a, closing; then the kernel.
    assert ([t.first_node for t in draft.threads], draft.first_work_node, draft.next_node) == ([0, 4], 6, 7)


def test_work_stands_by_queue_then_by_start(tmp_path: Path) -> None:
    trace = (
        TraceFile()
        .step(1, 0, 100)
        .kernel("late", 50, 5, stream=7)
        .kernel("other device", 10, 5, stream=7, device=1)
        .kernel("other stream", 10, 5, stream=20)
        .kernel("early", 20, 5, stream=7)
    )

    draft = draft_of(tmp_path, trace)

    assert work_names(draft) == ["early", "late", "other stream", "other device"]
    assert draft.work.queue.tolist() == [0, 0, 1, 2]


def test_work_without_a_duration_is_left_out(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).kernel("k", 10, 5, stream=7).event("kernel", "cut", 20, None, args={"stream": 7})

    assert work_names(draft_of(tmp_path, trace)) == ["k"]


def test_work_of_before_the_window_that_runs_into_it_is_kept(tmp_path: Path) -> None:
    trace = TraceFile().call(LAUNCH, 10, 5, 1).kernel("k", 90, 30, 7, 1).step(1, 100, 50).op("a", 110, 5)

    draft = draft_of(tmp_path, trace)

    assert (work_names(draft), draft.work.call_thread.tolist()) == (["k"], [-1])


def test_work_of_before_the_window_that_ended_before_it_is_left_out(tmp_path: Path) -> None:
    trace = TraceFile().kernel("k", 80, 20, stream=7).step(1, 100, 50).op("a", 110, 5)

    assert work_names(draft_of(tmp_path, trace)) == []


def test_work_that_the_window_launched_and_that_ran_after_it_is_kept(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 50).call(LAUNCH, 40, 5, 1).kernel("k", 90, 30, 7, 1)

    assert work_names(draft_of(tmp_path, trace)) == ["k"]


def test_work_that_was_launched_after_the_window_is_left_out(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 50).op("a", 10, 5).call(LAUNCH, 60, 5, 1).kernel("k", 90, 30, 7, 1)

    assert work_names(draft_of(tmp_path, trace)) == []


def test_threads_of_gloo_are_queues_and_no_host_threads(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).op("a", 10, 5).gloo("gloo:all_reduce", 20, 30, tid=5)

    draft = draft_of(tmp_path, trace)

    assert ([t.tid for t in draft.threads], work_names(draft)) == (["1"], ["gloo:all_reduce"])
    assert (draft.work.on_host.tolist(), draft.work.collective.tolist()) == ([True], [True])


@pytest.mark.parametrize("backend", ["gloo", "mpi", "ucc"])
def test_a_thread_whose_outermost_events_are_all_collectives_is_a_queue_whatever_they_hold(
    tmp_path: Path, backend: str
) -> None:
    trace = TraceFile().step(1, 0, 100).op("a", 10, 5).gloo(f"{backend}:all_reduce", 20, 30, tid=5)

    draft = draft_of(tmp_path, trace.op("aten::add", 25, 5, tid=5).gloo(f"{backend}:all_reduce", 60, 5, tid=5))

    assert ([t.tid for t in draft.threads], work_names(draft)) == (["1"], [f"{backend}:all_reduce"] * 2)


def test_a_thread_that_does_anything_else_outside_its_collectives_is_a_host_thread(tmp_path: Path) -> None:
    trace = TraceFile().step(1, 0, 100).op("a", 10, 5).gloo("gloo:all_reduce", 20, 30, tid=5).op("aten::add", 60, 5, tid=5)

    draft = draft_of(tmp_path, trace)

    assert ([t.tid for t in draft.threads], work_names(draft)) == (["1", "5"], [])


def test_a_collective_takes_two_nodes(tmp_path: Path) -> None:
    trace = TraceFile().op("a", 0, 10).kernel("k", 1, 1, stream=7).kernel("ncclDevKernel_AllReduce", 3, 2, stream=7)

    draft = draft_of(tmp_path, trace)

    first = draft.first_work_node
    assert (draft.work_node - first).tolist() == [0, 1]
    assert (draft.work_last_node - first).tolist() == [0, 2]
    assert draft.next_node == first + 3


def test_a_copy_with_the_name_of_a_collective_is_none(tmp_path: Path) -> None:
    draft = draft_of(tmp_path, TraceFile().op("a", 0, 10).memcpy("nccl copy", 3, 2, stream=7))

    assert draft.work.collective.tolist() == [False]


def test_the_step_of_a_time_is_none_between_and_outside_steps() -> None:
    steps = (Step(3, 0, 100, None), Step(4, 150, 200, None))

    found = step_of_time(steps, np.array([-5, 0, 99, 100, 150, 199, 200], np.int64))

    assert found.tolist() == [-1, 0, 0, -1, 1, 1, -1]
