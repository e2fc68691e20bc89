import json

import pytest

from tracereplay.trace.repair import repair_event


@pytest.mark.parametrize(
    ("raw", "name", "strings"),
    [
        (b'{"name":"a\x01b"}', "a\x01b", 1),
        (b'{"name":"a\nb\tc"}', "a\nb\tc", 1),
        (b'{"name":"a\xff\xfe\x80b"}', "a\ufffd\ufffd\ufffdb", 1),
        (rb'{"name":"torch\cuda\__init__.py"}', r"torch\cuda\__init__.py", 1),
        (rb'{"name":"C:\temp\new\utils.py"}', r"C:\temp\new\utils.py", 1),
        (rb'{"name":"D:\x \"quoted\""}', r'D:\x "quoted"', 1),
        (b'{"name":"{"device": "cpu"}(12): run", "pid":3}', '{"device": "cpu"}(12): run', 1),
        (b'{"ts":1, "name":"say "hi""}', 'say "hi"', 1),
        (b'{"name":"\x01", "cat":"\x02"}', "\x01", 2),
        (b'{"name":"whole"}', "whole", 0),
    ],
)
def test_a_string_is_repaired_and_counted(raw: bytes, name: str, strings: int) -> None:
    repaired = repair_event(raw)

    assert repaired is not None
    assert (json.loads(repaired.text)["name"], repaired.strings, repaired.nonfinite) == (name, strings, 0)


@pytest.mark.parametrize("spelling", ["inf", "-inf", "+inf", "nan", "-nan", "Infinity", "-Infinity", "NaN", "NAN", "INF"])
def test_a_number_that_is_not_finite_is_null_and_counted(spelling: str) -> None:
    repaired = repair_event(f'{{"args":{{"a": {spelling}, "b":[{spelling}, 1]}}}}'.encode())

    assert repaired is not None
    assert (json.loads(repaired.text), repaired.strings, repaired.nonfinite) == ({"args": {"a": None, "b": [None, 1]}}, 0, 2)


def test_words_like_inf_and_nan_inside_strings_stay() -> None:
    repaired = repair_event(b'{"name": "nan inf", "NaN": "Infinity", "x": nan}')

    assert repaired is not None
    assert json.loads(repaired.text) == {"name": "nan inf", "NaN": "Infinity", "x": None}


def test_several_faults_of_one_event_are_repaired_together() -> None:
    raw = b'{"name":"a\\cuda \x01 \xff", "cat":"x\x02", "ts": 5, "args": {"bandwidth": inf, "s": "1\xfe2"}}'

    repaired = repair_event(raw)

    assert repaired is not None
    assert json.loads(repaired.text) == {
        "name": "a\\cuda \x01 \ufffd", "cat": "x\x02", "ts": 5, "args": {"bandwidth": None, "s": "1\ufffd2"}
    }  # fmt: skip
    assert repaired.nonfinite == 1


def test_bare_quotes_in_an_argument_are_escaped() -> None:
    repaired = repair_event(b'{"name":"a", "args": {"Call stack": "f("x")", "bytes": 4}}')

    assert repaired is not None
    assert json.loads(repaired.text) == {"name": "a", "args": {"Call stack": 'f("x")', "bytes": 4}}


def test_legal_escapes_stay_as_they_are() -> None:
    repaired = repair_event(b'{"name":"a\\n\\u00b5\\"q\\"", "x": nan}')

    assert repaired is not None
    assert json.loads(repaired.text)["name"] == 'a\nµ"q"'


@pytest.mark.parametrize("raw", [b"", b"{", b'{"ph":"X" "ts" 5}', b"[1]", b"5", b'{"name":"cut', b'{"a":}', b"{" * 3000])
def test_what_cannot_be_read_is_none(raw: bytes) -> None:
    assert repair_event(raw) is None
