import pytest

from tracereplay.errors import CollectError, ExitCode, NotComparableError, TraceError, TracereplayError, UsageError


def test_a_message_is_one_line_of_where_what_and_what_to_do() -> None:
    error = TraceError("cut\nat byte 5", where="rank0.json", hint="copy it again")

    assert str(error) == "rank0.json: cut at byte 5; copy it again"


def test_a_message_without_place_and_hint_is_what_happened() -> None:
    assert TraceError("empty").line() == "empty"


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (UsageError, ExitCode.USAGE),
        (TraceError, ExitCode.INPUT),
        (CollectError, ExitCode.INPUT),
        (NotComparableError, ExitCode.NOT_COMPARABLE),
        (TracereplayError, ExitCode.FAULT),
    ],
)
def test_each_error_carries_its_exit_code(kind: type[TracereplayError], code: ExitCode) -> None:
    assert kind("x").exit_code is code
