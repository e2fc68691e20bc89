import pytest

from tracereplay.errors import UsageError
from tracereplay.synth.architecture import Layer, parse_architecture


def test_a_string_gives_widths_tables_and_what_follows_from_them() -> None:
    arch = parse_architecture("13-8-4/6-1/2x100:3,7")

    assert (arch.bottom, arch.top, arch.interaction) == ((13, 8, 4), (6, 1), "dot")
    assert [(t.name, t.rows, t.dim, t.pooling) for t in arch.tables] == [("t0", 100, 4, 3), ("t1", 100, 4, 3), ("t2", 7, 4, 1)]
    assert arch.interaction_width == 4 + 6
    assert arch.top_layers == (Layer(10, 6), Layer(6, 1))
    assert arch.dense_parameters == (13 * 8 + 8) + (8 * 4 + 4) + (10 * 6 + 6) + (6 + 1)
    assert arch.interaction_flops(5) == 2 * 4 * 4 * 4 * 5


def test_concatenation_puts_the_vectors_side_by_side() -> None:
    arch = parse_architecture("5-4/3-1/3x10/cat")

    assert arch.interaction_width == 4 + 3 * 4
    assert arch.interaction_flops(10) == 0


def test_a_cross_network_goes_down_to_its_rank_and_up_again() -> None:
    arch = parse_architecture("5-4/3-1/3x10/dcn:2:8")

    assert arch.cross_layers == (Layer(16, 8, bias=False), Layer(8, 16)) * 2
    assert arch.dense_parameters == (5 * 4 + 4) + 2 * (16 * 8 + 8 * 16 + 16) + (16 * 3 + 3) + (3 + 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("13-8/1", "is no architecture"),
        ("13-x/1/10", "no layer widths"),
        ("13/1/10", "bottom has 1 width"),
        ("13-8/2/10", "top ends with 2"),
        ("13-8/1/ten", "is no table"),
        ("13-8/1/0", "rows of table t0 is 0"),
        ("13-8/1/10:0", "pooling of table t0 is 0"),
        ("13-8/1/10/sum", "no interaction 'sum'"),
        ("0-8/1/10", "bottom holds"),
        ("13-8/1/999999999x10", "more than 100,000 tables"),
    ],
)
def test_what_is_no_architecture_says_why(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_architecture(text)
