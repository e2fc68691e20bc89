import numpy as np
import pyarrow as pa

from tracereplay.trace.columns import bytes_column, integer_column, numbers, optional_column, text_column


def test_integers_keep_their_type_and_values() -> None:
    assert integer_column(np.array([3, -1], np.int8)).equals(pa.array([3, -1], pa.int8()))


def test_entries_that_are_not_valid_are_null() -> None:
    column = integer_column(np.array([5, 6, 7], np.int64), np.array([True, False, True]))

    assert column.to_pylist() == [5, None, 7]


def test_none_is_null_and_zero_is_not() -> None:
    assert optional_column([0, None, 4]).to_pylist() == [0, None, 4]


def test_nulls_come_back_as_the_number_asked_for() -> None:
    column = optional_column([1, None, 3, *[4] * 7, None])

    assert numbers(column, -1).tolist() == [1, -1, 3, 4, 4, 4, 4, 4, 4, 4, -1]


def test_numbers_of_a_slice_are_those_of_the_slice() -> None:
    column = optional_column([1, None, 3, None])

    assert numbers(column.slice(1, 2), -1).tolist() == [-1, 3]


def test_a_column_without_nulls_is_not_copied() -> None:
    values = np.array([1, 2], np.int64)

    assert np.shares_memory(numbers(integer_column(values), -1), values)


def test_text_is_encoded_in_order_of_first_appearance() -> None:
    column = text_column(["b", "a", "b", "ü"])

    assert (column.dictionary.to_pylist(), column.indices.to_pylist()) == (["b", "a", "ü"], [0, 1, 0, 2])


def test_empty_columns_are_columns() -> None:
    assert [len(text_column([])), len(bytes_column([])), len(optional_column([]))] == [0, 0, 0]


def test_bytes_are_kept_as_they_are() -> None:
    assert bytes_column([b"{}", b"", b"\xff"]).to_pylist() == [b"{}", b"", b"\xff"]
