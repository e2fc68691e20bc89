import pytest

from tracereplay.trace.collectives import CollectiveKey, RecordedCollective, keys_of_job
from tracereplay.trace.steps import Step

MS = 1_000_000
STEP = (Step(1, 0, 1000 * MS, None),)


def recorded(end_ms: float, name: str = "all_reduce", group: str | None = None, seq: int | None = None) -> RecordedCollective:
    end = round(end_ms * MS)
    return RecordedCollective(0, name, group, seq, None, None, None, None, None, end - MS, end, end - MS)


def orders(keys: list[CollectiveKey]) -> list[int]:
    return [key.order for key in keys]


def test_a_rank_that_missed_the_first_collective_is_shifted_by_one() -> None:
    whole = [recorded(t) for t in (10, 25, 33, 60, 71, 90)]
    later = [recorded(t) for t in (25, 33, 60, 71, 90)]

    first, second = keys_of_job([(whole, STEP), (later, STEP)])

    assert orders(first) == [0, 1, 2, 3, 4, 5]
    assert orders(second) == [1, 2, 3, 4, 5]


def test_a_shift_is_found_whatever_the_clocks_say() -> None:
    whole = [recorded(t) for t in (10, 25, 33, 60, 71, 90)]
    later = [recorded(t + 5000.25) for t in (25, 33, 60, 71, 90)]

    _, second = keys_of_job([(whole, STEP), (later, STEP)])

    assert orders(second) == [1, 2, 3, 4, 5]


def test_ends_that_fit_only_a_little_better_elsewhere_move_nothing() -> None:
    # Collectives in a steady rhythm fit every shift equally well: the order within the step stays.
    whole = [recorded(10 * t) for t in range(1, 8)]
    other = [recorded(10 * t + 0.1) for t in range(1, 8)]

    _, second = keys_of_job([(whole, STEP), (other, STEP)])

    assert orders(second) == [0, 1, 2, 3, 4, 5, 6]


def test_ends_that_come_late_by_turns_do_not_move_a_rank_by_a_whole_step() -> None:
    # Steps of 1,000 ms in which now one rank and now the other ends 130 ms later: moved by a step the ends scatter less.
    steps = tuple(Step(n, 1000 * n * MS, 1000 * (n + 1) * MS, None) for n in range(8))
    first = [recorded(1000 * n + 500 + 130 * (n % 2)) for n in range(8)]
    second = [recorded(1000 * n + 500 + 130 * ((n + 1) % 2)) for n in range(8)]

    _, keys = keys_of_job([(first, steps), (second, steps)])

    assert orders(keys) == list(range(8))


def test_few_collectives_are_matched_by_step_and_order() -> None:
    first, second = keys_of_job([([recorded(10), recorded(20)], STEP), ([recorded(20)], STEP)])

    assert orders(first) == [0, 1]
    assert orders(second) == [0]


def test_an_all_to_all_without_its_launch_matches_one_with_it() -> None:
    first, second = keys_of_job([([recorded(10, "all_to_all")], STEP), ([recorded(10, "send_recv")], STEP)])

    assert first == second


@pytest.mark.parametrize("group", [None, "5"])
def test_sequence_numbers_decide_where_they_are_recorded(group: str | None) -> None:
    first, second = keys_of_job(
        [
            ([recorded(10, group=group, seq=1), recorded(20, group=group, seq=2)], STEP),
            ([recorded(20, group=group, seq=2)], STEP),
        ]
    )

    assert first[1] == second[0]
