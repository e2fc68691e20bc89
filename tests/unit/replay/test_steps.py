import numpy as np

from tests.fakes.graphs import Task, graph_by_hand
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph, StepSpan
from tracereplay.replay.schedule import Schedule
from tracereplay.replay.steps import JobSteps, StepTime, recorded_step_times, step_times, summarise

HOST = 0


def one_step(drain_ns: int | None, kind: NodeKind = NodeKind.DEVICE, step: int = 0) -> DependencyGraph:
    """A step of 1,000 ns with one host task, the closing one, and one piece of work."""
    tasks = [Task(0, 1000), Task(1000, 0), Task(100, 800, kind, step=step)]
    return graph_by_hand(tasks, [], [StepSpan(0, 5, HOST, HOST, 0, 1000, drain_ns, 0)])


def schedule(host: tuple[int, int], work: tuple[int, int]) -> Schedule:
    return Schedule(np.array([host[0], host[1], work[0]]), np.array([host[1], host[1], work[1]]), np.array([-1, 0, -1]))


def times(graph: DependencyGraph, planned: Schedule) -> list[tuple[int, int | None]]:
    return [(t.dur_ns, t.drain_ns) for t in step_times(graph, planned)]


def test_a_step_whose_work_drains_early_ends_at_its_mark() -> None:
    assert times(one_step(900), schedule((0, 700), (100, 600))) == [(700, 600)]


def test_a_step_whose_recorded_work_had_drained_ends_when_its_work_has_drained() -> None:
    assert times(one_step(900), schedule((0, 700), (100, 850))) == [(850, 850)]


def test_a_step_whose_recorded_work_ran_on_ends_at_its_mark() -> None:
    # The work ended at 1,011: more than 1 % of the step after its mark.
    assert times(one_step(1011), schedule((0, 700), (100, 850))) == [(700, 850)]


def test_work_that_ended_within_one_per_cent_of_the_mark_counts_as_drained_less_what_it_ended_late() -> None:
    assert times(one_step(1010), schedule((0, 700), (100, 850))) == [(840, 850)]


def test_a_recorded_schedule_gives_the_mark_back_though_work_drained_late() -> None:
    assert times(one_step(1010), schedule((0, 1000), (100, 1010))) == [(1000, 1010)]


def test_a_step_without_work_has_no_drain() -> None:
    assert times(one_step(None, NodeKind.HOST), schedule((0, 700), (100, 850))) == [(700, None)]


def test_work_outside_the_steps_holds_no_step_up() -> None:
    assert times(one_step(None, step=-1), schedule((0, 700), (100, 850))) == [(700, None)]


def test_a_step_is_measured_from_where_the_schedule_starts_it() -> None:
    assert times(one_step(900), schedule((300, 1000), (400, 900))) == [(700, 600)]


def test_recorded_steps_are_the_lengths_of_their_marks() -> None:
    spans = [StepSpan(0, 5, 0, 0, 100, 1100, 1300, 0), StepSpan(0, 6, 0, 0, 1100, 1900, None, 0)]
    graph = graph_by_hand([Task(0, 1)], [], spans)

    assert recorded_step_times(graph) == [StepTime(0, 5, 100, 1100, 1200), StepTime(0, 6, 1100, 1900, None)]


def job(*numbers: tuple[int, ...]) -> DependencyGraph:
    """A job whose ranks have these step numbers whole; times do not matter."""
    tasks = [Task(0, 1, rank=rank) for rank in range(len(numbers))]
    return graph_by_hand(tasks, [], [StepSpan(r, n, r, r, 0, 1, None, 0) for r, row in enumerate(numbers) for n in row])


def test_a_job_steps_time_is_that_of_its_longest_rank_and_the_mean_is_over_numbers() -> None:
    rows = [
        StepTime(0, 5, 0, 100, None),
        StepTime(0, 6, 100, 230, None),
        StepTime(1, 5, 0, 110, None),
        StepTime(1, 6, 110, 230, None),
    ]

    assert summarise(job((5, 6), (5, 6)), rows) == JobSteps((5, 6), (110, 130), 120, 130)


def test_the_steady_state_is_from_end_to_end_gaps_included() -> None:
    rows = [StepTime(0, 5, 0, 100, None), StepTime(0, 6, 120, 220, None), StepTime(0, 7, 220, 320, None)]

    # 220 − 100 and 320 − 220
    assert summarise(job((5, 6, 7)), rows).steady_ns == 110


def test_the_steady_state_takes_the_longest_rank_of_each_step() -> None:
    rows = [
        StepTime(0, 5, 0, 100, None),
        StepTime(0, 6, 100, 200, None),
        StepTime(1, 5, 0, 80, None),
        StepTime(1, 6, 80, 200, None),
    ]

    assert summarise(job((5, 6), (5, 6)), rows).steady_ns == 120


def test_a_single_step_has_no_steady_state() -> None:
    assert summarise(job((5,)), [StepTime(0, 5, 0, 100, None)]).steady_ns is None


def test_a_number_that_one_rank_lacks_is_left_out() -> None:
    rows = [StepTime(0, 5, 0, 100, None), StepTime(0, 6, 100, 900, None), StepTime(1, 5, 0, 110, None)]

    assert summarise(job((5, 6), (5,)), rows) == JobSteps((5,), (110,), 110, None)


def test_the_steady_state_is_of_consecutive_numbers_only() -> None:
    rows = [StepTime(0, 5, 0, 100, None), StepTime(0, 6, 120, 220, None), StepTime(0, 9, 900, 1000, None)]

    # From 6 to 9 three steps passed: only 220 − 100 is a step.
    assert summarise(job((5, 6, 9)), rows).steady_ns == 120


def test_steps_apart_have_no_steady_state() -> None:
    rows = [StepTime(0, 5, 0, 100, None), StepTime(0, 7, 200, 300, None)]

    assert summarise(job((5, 7)), rows).steady_ns is None
