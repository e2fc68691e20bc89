import numpy as np

from tracereplay.graph.queues import Endings


def endings() -> Endings:
    """Queue 1 runs work 0, 1, 2, of which 1 ends first; queue 2 runs work 3."""
    work = np.array([1, 0, 3, 2])
    never = np.iinfo(np.int64).max
    return Endings(
        work=work,
        end_ns=np.array([20, 30, 40, 90]),
        enqueued_ns=np.array([2, 1, 3, 4]),
        followed_ns=np.array([4, 2, never, never]),
        queue=np.array([1, 1, 2, 1]),
        place=work,
    )


def test_the_last_work_of_a_queue_counts_where_it_ends_in_time() -> None:
    assert endings().of_last_enqueued(4, 90) == [1, 3]  # work 2 was enqueued at 4, not before
    assert endings().of_last_enqueued(5, 90) == [2, 3]
    assert endings().of_last_enqueued(5, 89) == [3]


def test_what_ended_when_the_call_began_is_not_inside_it() -> None:
    assert endings().of_last_enqueued(40, 90) == [2]
    assert endings().last_of_each(30, 39) == []


def test_an_earlier_piece_of_work_counts_where_the_last_one_ends_too_late() -> None:
    # Of work 0 and 1, which both end in time, work 1 was enqueued last though it ended first.
    assert endings().last_of_each(10, 50) == [1, 3]
    assert endings().last_of_each(25, 50) == [0, 3]  # work 1 had ended before
