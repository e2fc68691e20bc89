from collections.abc import Sequence

import pytest

from tracereplay.graph.rules.splits import Splits, splits_of
from tracereplay.trace.collectives import RecordedCollective


def record(in_split: Sequence[int], out_split: Sequence[int] = (), size: int | None = 400) -> RecordedCollective:
    return RecordedCollective(
        row=0, name="all_to_all", group=None, seq=None, group_size=None, group_ranks=None, elements=None, dtype=None,
        bytes=size, start_ns=0, end_ns=1, enqueued_ns=0, in_split=tuple(in_split), out_split=tuple(out_split),
    )  # fmt: skip


def test_rows_become_bytes() -> None:
    # 400 bytes in 10 rows are 40 a row, 800 in 20 as well.
    found = splits_of([record([1, 9], [1, 5]), record([5, 15], [9, 15], 800)], 2)

    assert found == Splits(((40, 360), (200, 600)), ((40, 200), (360, 600)))


def test_a_rank_that_sends_nothing_sends_nothing() -> None:
    assert splits_of([record([2, 8]), record([0, 0], size=0)], 2).sent == ((80, 320), (0, 0))


def test_even_splits_and_none_are_no_splits() -> None:
    assert splits_of([record([5, 5]), record([5, 5])], 2) == Splits()
    assert splits_of([record([]), record([])], 2) == Splits()


@pytest.mark.parametrize(
    "unreadable",
    [record([]), record([10]), record([3, 4, 3]), record([1, 9], size=None)],
    ids=["none", "too short", "of another group", "without bytes but rows"],
)
def test_what_one_rank_did_not_record_is_not_zero(unreadable: RecordedCollective) -> None:
    sent = splits_of([record([1, 9]), unreadable], 2).sent

    assert sent[0] == (40, 360)
    assert sent[1] == ((40, 360) if unreadable.bytes is None else None)


def test_rows_that_do_not_make_up_the_bytes_contradict_the_record() -> None:
    assert splits_of([record([1, 6])], 2) == Splits()
    assert splits_of([record([1, 9]), record([1, 9], size=4_000)], 2) == Splits()  # rows of 40 bytes and of 400
