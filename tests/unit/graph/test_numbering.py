import numpy as np

from tracereplay.graph.numbering import numbered, ordinals, runs


def test_equal_rows_of_columns_have_one_number_in_the_order_of_their_values() -> None:
    assert numbered(np.array([7, 3, 7, 3]), np.array([1, 9, 2, 9])).tolist() == [1, 0, 2, 0]


def test_an_ordinal_counts_the_earlier_entries_of_its_group() -> None:
    assert ordinals(np.array([5, 8, 5, 5, 8])).tolist() == [0, 0, 1, 2, 1]


def test_runs_are_stretches_of_equal_neighbours() -> None:
    assert runs(np.array([4, 4, 1, 4])) == [slice(0, 2), slice(2, 3), slice(3, 4)]


def test_nothing_has_no_numbers_and_no_runs() -> None:
    empty = np.empty(0, np.int64)

    assert (numbered(empty).size, ordinals(empty).size, runs(empty)) == (0, 0, [])
