"""Links of a laboratory by hand."""

import pytest

from tracereplay.collectors.link import Link, parse_link
from tracereplay.errors import UsageError


def test_rates_and_delays_are_written_as_tc_writes_them() -> None:
    assert parse_link("1gbit", "50us") == Link(1_000_000_000, 50_000)
    assert parse_link("2.5Gbit") == Link(2_500_000_000, 0)
    assert parse_link("200mbit", "1.5ms") == Link(200_000_000, 1_500_000)
    assert parse_link("unshaped") == Link()
    assert [link.text for link in (parse_link("1gbit", "50us"), parse_link("200mbit"), Link())] == [
        "1gbit+50us", "200mbit", "unshaped",
    ]  # fmt: skip


def test_a_bucket_holds_a_quarter_of_a_millisecond_and_at_least_two_frames() -> None:
    assert parse_link("1gbit").bucket_bytes == 31_250
    assert parse_link("10mbit").bucket_bytes == 2 * 9014


@pytest.mark.parametrize(
    ("rate", "delay", "words"),
    [
        ("1Gb/s", None, "--link '1Gb/s' is no rate; write 200mbit"),
        ("0.5mbit", None, "at least 1mbit"),
        ("fast", None, "or unshaped for no limit"),
        ("1gbit", "50", "--delay '50' is no delay; write 50us"),
        ("1gbit", "2s", "at most 1s"),
    ],
)
def test_other_words_are_refused(rate: str, delay: str | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_link(rate, delay)
