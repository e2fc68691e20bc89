import pytest

from tracereplay.trace.decimal_time import parse_us_to_ns


def ns_of(*texts: bytes) -> list[int]:
    values, valid = parse_us_to_ns(texts)
    assert valid.all()
    return [int(value) for value in values]


def test_plain_microseconds_become_nanoseconds() -> None:
    assert ns_of(b"0", b"12", b"12.5", b"0.001", b"7.25") == [0, 12_000, 12_500, 1, 7_250]


def test_epoch_microseconds_with_three_decimals_keep_every_digit() -> None:
    assert ns_of(b"1783322452123456.100", b"1783322452123456.101") == [1_783_322_452_123_456_100, 1_783_322_452_123_456_101]


def test_negative_times_keep_their_sign() -> None:
    assert ns_of(b"-2.5", b"-0.001") == [-2_500, -1]


def test_exponents_are_exact() -> None:
    assert ns_of(b"1.5e3", b"2E-3", b"1.783322452123456E15") == [1_500_000, 2, 1_783_322_452_123_456_000]


def test_quoted_numbers_are_read() -> None:
    assert ns_of(b'"12.5"', b'" 3 "') == [12_500, 3_000]


def test_fractions_below_a_nanosecond_are_rounded_half_to_even() -> None:
    assert ns_of(b"0.0005", b"0.0015", b"0.00051", b"1.23456789", b"-0.0015") == [0, 2, 1, 1_235, -2]


def test_texts_of_different_lengths_do_not_disturb_each_other() -> None:
    assert ns_of(b"1", b"1783322452123456.100", b"22.1") == [1_000, 1_783_322_452_123_456_100, 22_100]


@pytest.mark.parametrize("text", [b"", b"abc", b"1.2.3", b"-", b"NaN", b'"Infinity"', b"null", b"{}", b"\xff"])
def test_text_without_a_finite_number_is_invalid(text: bytes) -> None:
    _, valid = parse_us_to_ns([b"1", text, b"2"])

    assert valid.tolist() == [True, False, True]


def test_no_texts_give_no_times() -> None:
    values, valid = parse_us_to_ns([])

    assert (values.size, valid.size) == (0, 0)
