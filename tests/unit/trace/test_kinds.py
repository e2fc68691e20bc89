import pytest

from tracereplay.trace.kinds import kind_of_bytes, kind_of_text


@pytest.mark.parametrize(
    ("first", "what"),
    [
        (b"\x0a\x0b\x08\x01", "a Perfetto protobuf trace, not Kineto JSON"),
        (b"\x0a\xcf\x01\x08\x02", "a Perfetto protobuf trace, not Kineto JSON"),
        (b"\x80\x04\x95\x00\x00", "a Python pickle such as a CUDA memory snapshot, not a Kineto trace"),
        (b"SQLite format 3\0\x10\x00", "an SQLite database such as an Nsight Systems export, not a Kineto trace"),
        (b"PAR1\x15\x04\x15\x00", "a parquet file, not a Kineto trace"),
        (b"\x7fELF\x02\x01\x01", "a program, not a trace"),
        (b"\x00\x01\x02", "binary data of an unknown kind"),
    ],
)
def test_a_binary_file_is_named_by_its_first_bytes(first: bytes, what: str) -> None:
    kind = kind_of_bytes(first)

    assert kind is not None
    assert kind.what == what


@pytest.mark.parametrize("first", [b"", b"hello", b"\n\n{", b"PAR1 is text", "µ".encode(), b"SQLite format 3 is a name"])
def test_text_is_no_binary_kind(first: bytes) -> None:
    assert kind_of_bytes(first) is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b'{"schema": "1.1.1", "pid": 1, "nodes": []}', "an execution trace, not a Kineto trace"),
        (b'{"device_traces": [], "segments": []}', "a CUDA memory snapshot, not a Kineto trace"),
        (b'{"segments": []}', "a CUDA memory snapshot, not a Kineto trace"),
        (
            b'{"b": 1, "a": 2, "f": 0, "e": 0, "d": 0, "c": 0}',
            "JSON of another kind: no traceEvents among its keys (a, b, c, d, e)",
        ),
        (b"{}", "JSON of another kind: no traceEvents among its keys (none)"),
        (b"5", "JSON of another kind: neither an object nor an array of events"),
    ],
)
def test_json_of_another_kind_is_named(text: bytes, what: str) -> None:
    assert kind_of_text(text).what == what


@pytest.mark.parametrize("text", [b"hello", b'{"a": ', b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_json_says_so(text: bytes) -> None:
    assert kind_of_text(text).what.startswith("no Kineto trace: no traceEvents, and not JSON either (")


def test_an_execution_trace_has_a_way_out() -> None:
    assert kind_of_text(b'{"schema": "1", "nodes": []}').hint == "pass it with --execution-traces beside the Kineto trace"
