from pathlib import Path

from tests.fakes.jobs import table_of
from tests.fakes.kineto import TraceFile
from tracereplay.trace.steps import Step, StepMarks, find_steps


def test_a_closed_mark_that_holds_work_is_a_step(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().step(3, 0, 100).op("a", 10, 20))

    assert find_steps(table) == StepMarks((Step(3, 0, 100_000, 0),), (), marked=True)


def test_the_length_of_a_step_is_that_of_its_mark() -> None:
    assert Step(3, 5, 12, None).dur_ns == 7


def test_steps_stand_in_time_order_whatever_their_order_in_the_file(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().step(4, 100, 50).op("b", 110, 1).step(3, 0, 100).op("a", 10, 1))

    assert [(s.number, s.start_ns, s.row) for s in find_steps(table).whole] == [(3, 0, 2), (4, 100_000, 0)]


def test_a_mark_that_is_not_closed_is_cut(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().step(3, 0, 100).op("a", 10, 20).step(4, 100, None).op("b", 110, 20))

    marks = find_steps(table)

    assert ([s.number for s in marks.whole], marks.cut) == ([3], (4,))


def test_a_mark_without_work_is_cut(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().step(3, 0, 100).op("a", 10, 20).step(4, 100, 100))

    assert find_steps(table).cut == (4,)


def test_device_work_alone_makes_a_mark_a_step(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().step(3, 0, 100).kernel("k", 10, 20, stream=7))

    assert [s.number for s in find_steps(table).whole] == [3]


def test_a_mark_in_the_row_of_the_device_is_no_step(tmp_path: Path) -> None:
    trace = TraceFile().step(3, 0, 100).event("gpu_user_annotation", "ProfilerStep#3", 5, 90).op("a", 10, 20)

    assert [s.row for s in find_steps(table_of(tmp_path, trace)).whole] == [0]


def test_a_name_that_only_begins_like_a_mark_is_none(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().annotation("ProfilerStep#3x", 0, 100).op("a", 10, 20))

    assert find_steps(table).marked is False


def test_a_trace_without_marks_is_one_step_from_first_to_last_event(tmp_path: Path) -> None:
    trace = TraceFile().op("a", 10, 20).kernel("k", 25, 50, stream=7).event("cpu_op", "unfinished", 5, None)

    assert find_steps(table_of(tmp_path, trace)) == StepMarks((Step(0, 10_000, 75_000, None),), (), marked=False)


def test_a_trace_without_host_and_device_events_has_no_step(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().event("Trace", "Record Window End", 10, 20))

    assert find_steps(table) == StepMarks((), (), marked=False)
