import pytest

from tracereplay.units import format_ns, format_share


@pytest.mark.parametrize(
    ("value_ns", "text"),
    [
        (None, "n/a"),
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.0 µs"),
        (19_901_000, "19.901 ms"),
        (1_234_567_890_123, "1,234.568 s"),
        (-2_500, "-2.5 µs"),
    ],
)
def test_a_time_is_written_in_its_largest_unit(value_ns: int | None, text: str) -> None:
    assert format_ns(value_ns) == text


@pytest.mark.parametrize(("share", "text"), [(None, "n/a"), (0.0, "0.0 %"), (0.0512, "5.1 %"), (1.0, "100.0 %")])
def test_a_share_is_written_as_per_cent(share: float | None, text: str) -> None:
    assert format_share(share) == text
