import numpy as np
import pyarrow as pa

from tracereplay.trace.columns import bytes_column, coded_column, integer_column, numbers

MIXED = integer_column(np.array([1, 0, 3, 0], np.int64), np.array([True, False, True, False]))


def test_integers_keep_their_type_and_values() -> None:
    assert integer_column(np.array([3, -1], np.int8)).equals(pa.array([3, -1], pa.int8()))


def test_entries_that_are_not_valid_are_null() -> None:
    column = integer_column(np.array([5, 6, 7], np.int64), np.array([True, False, True]))

    assert column.to_pylist() == [5, None, 7]


def test_zero_is_a_number_and_not_null() -> None:
    assert integer_column(np.array([0, 1], np.int64), np.array([True, False])).to_pylist() == [0, None]


def test_numbers_that_do_not_lie_beside_each_other_are_copied() -> None:
    assert integer_column(np.arange(6, dtype=np.int64)[::2]).to_pylist() == [0, 2, 4]


def test_nulls_come_back_as_the_number_asked_for() -> None:
    valid = np.array([True, False, *[True] * 8, False])
    column = integer_column(np.arange(11, dtype=np.int64), valid)

    assert numbers(column, -1).tolist() == [0, -1, 2, 3, 4, 5, 6, 7, 8, 9, -1]


def test_numbers_of_a_slice_are_those_of_the_slice() -> None:
    assert numbers(MIXED.slice(1, 2), -1).tolist() == [-1, 3]


def test_a_column_without_nulls_is_not_copied() -> None:
    values = np.array([1, 2], np.int64)

    assert np.shares_memory(numbers(integer_column(values), -1), values)


def test_codes_point_into_the_values() -> None:
    column = coded_column(np.array([1, 0, 1, 2], np.int32), ["b", "a", "ü"])

    assert column.to_pylist() == ["a", "b", "a", "ü"]
    assert column.type == pa.dictionary(pa.int32(), pa.string())


def test_half_a_surrogate_pair_is_kept_and_breaks_nothing() -> None:
    assert len(coded_column(np.array([0], np.int32), ["\ud800"])) == 1


def test_empty_columns_are_columns() -> None:
    assert [
        len(coded_column(np.empty(0, np.int32), [])),
        len(bytes_column([])),
        len(integer_column(np.empty(0, np.int64))),
    ] == [0, 0, 0]


def test_bytes_are_kept_as_they_are() -> None:
    assert bytes_column([b"{}", b"", b"\xff"]).to_pylist() == [b"{}", b"", b"\xff"]
