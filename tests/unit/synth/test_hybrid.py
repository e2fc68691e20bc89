import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracereplay.hardware.memory.tables import EmbeddingTable
from tracereplay.synth.architecture import parse_architecture
from tracereplay.synth.hybrid import Frequent, frequent
from tracereplay.synth.sharding import hybrid
from tracereplay.synth.volumes import volumes

# Zipf's law over four rows: 12/25, 6/25, 4/25, 3/25.
FOUR = EmbeddingTable("t", 4, 8, 1, skew=1.0)


def test_rows_that_a_batch_asks_for_more_often_than_the_threshold_are_frequent() -> None:
    # On two ranks 19/13 * 2 = 2.92 times: of 10 samples 4.8, 2.4, 1.6 and 1.2 ask for the rows.
    found = [frequent(FOUR, samples, 2) for samples in (10, 20, 5)]

    assert [part.rows for part in found] == [1, 3, 0]
    assert [part.share for part in found] == pytest.approx([12 / 25, 22 / 25, 0])


def test_one_rank_has_every_row_at_home() -> None:
    assert frequent(FOUR, 1, 1) == Frequent(4, 1.0)


def test_frequent_rows_are_reduced_and_the_others_sent() -> None:
    arch = parse_architecture("3-8/1/4").with_tables(skew=1.0)

    first, _ = volumes(arch, hybrid(arch, 2), 5)

    # 13 of 25 lookups of 5 samples, 8 numbers each, half of them on each rank: 10.4.
    assert first.pooled_split == (10, 10)
    assert first.all_reduce_elements == arch.dense_parameters + 8
    assert first.lookup_bytes == 5 * 8 * 4


@given(st.integers(1, 10_000), st.integers(1, 5_000), st.integers(1, 64), st.floats(0, 2))
def test_more_samples_never_make_a_row_rarer(rows: int, samples: int, ranks: int, skew: float) -> None:
    table = EmbeddingTable("t", rows, 8, 1, skew=skew)

    few, many = frequent(table, samples, ranks), frequent(table, 2 * samples, ranks)

    assert few.rows <= many.rows <= rows
    assert 0 <= few.share <= many.share <= 1 + 1e-9
