import numpy as np
import numpy.typing as npt

from tracereplay.graph.alignment import align, merge

Int64s = npt.NDArray[np.int64]


def coded(text: str) -> tuple[Int64s, Int64s]:
    """Labels from letters, signatures from letters and the digit after each: ``A1`` and ``A2`` are like-labelled."""
    pairs = [text[i : i + 2] for i in range(0, len(text), 2)]
    return np.array([ord(p[0]) for p in pairs], np.int64), np.array([ord(p[0]) * 10 + int(p[1]) for p in pairs], np.int64)


def partners(one: str, other: str) -> list[int]:
    (a, a_signature), (b, b_signature) = coded(one), coded(other)
    found = align(a, b, a_signature, b_signature)
    assert found is not None
    return [int(position) for position in found]


def which(*sequences: str) -> list[list[int] | None]:
    return [None if found is None else found.tolist() for found in merge([coded(s) for s in sequences])]


def test_equal_sequences_pair_entry_by_entry() -> None:
    assert partners("A1B1A1", "A1B1A1") == [0, 1, 2]


def test_an_extra_entry_in_the_middle_has_no_partner() -> None:
    assert partners("A1B1C1", "A1B1X1C1") == [0, 1, -1, 2]


def test_of_like_labelled_entries_those_with_equal_signatures_are_paired() -> None:
    # Pairing the second A with the first one that follows would lose the equal signature of the last.
    assert partners("A1B1A2C1", "A1B1A3A2C1") == [0, 1, -1, 2, 3]


def test_like_labelled_entries_are_paired_whatever_their_signatures_where_nothing_else_fits() -> None:
    assert partners("A1B1", "A2B2") == [0, 1]


def test_entries_of_different_labels_are_never_paired() -> None:
    assert partners("A1", "B1") == [-1]


def test_an_entry_that_all_but_one_sequence_lack_does_not_shift_the_others() -> None:
    # The A with signature 3 is extra: the last A of every sequence is the second.
    assert which("A1B1A2", "A1B1A2", "A1A3B1A2") == [[0, 0, 2], [0, 0, 2], [0, 1, 0, 2]]


def test_extra_entries_of_several_sequences_are_the_same_where_they_pair() -> None:
    # F is in no sequence of the most common kind; one that lacks the M before it still has the same two.
    assert which("L1", "L1", "L1", "M1F1F1L1", "F1F1L1") == [[0], [0], [0], [0, 0, 1, 0], [0, 1, 0]]


def test_the_order_of_sequences_does_not_matter() -> None:
    one, two, three = "A1B1A2", "A1A3B1A2", "B1A2A2"

    assert which(one, two, three) == which(three, one, two)[1:] + which(three, one, two)[:1]


def test_a_sequence_too_long_to_be_aligned_is_left_out() -> None:
    # 4,501 by 4,501 scores are more than the 20 million that are made.
    forward = np.arange(4500)

    assert align(forward, forward[::-1], forward, forward[::-1]) is None
    assert [found is None for found in merge([(forward, forward), (forward[::-1].copy(), forward)])].count(True) == 1
