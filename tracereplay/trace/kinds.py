"""Name what a file is when it is no Kineto trace: in, its first text; out, a phrase for the error, and what to do."""

from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class OtherKind:
    """What a file is instead, and which way out there is."""

    what: str
    hint: str


_TRACE_HINT = "pass the trace that torch.profiler exported"
_MAGICS = (
    (b"\x0a", OtherKind("a Perfetto protobuf trace, not Kineto JSON", "export JSON, or open it with the Perfetto UI")),
    (
        b"\x80",
        OtherKind("a Python pickle such as a CUDA memory snapshot, not a Kineto trace", "open it at pytorch.org/memory_viz"),
    ),
    (b"SQLite format 3", OtherKind("an SQLite database such as an Nsight Systems export, not a Kineto trace", _TRACE_HINT)),
    (b"PAR1", OtherKind("a parquet file, not a Kineto trace", "pass the job directory that holds it")),
    (b"\x7fELF", OtherKind("a program, not a trace", _TRACE_HINT)),
)


def kind_of_bytes(first: bytes) -> OtherKind | None:
    """The kind by magic bytes; None for text. A protobuf begins like a line feed, so what follows must not be text."""
    for magic, kind in _MAGICS:
        if first.startswith(magic) and not _is_text(first[:64]):
            return kind
    return None if _is_text(first[:64]) else OtherKind("binary data of an unknown kind", _TRACE_HINT)


def kind_of_text(text: bytes) -> OtherKind:
    """The kind of a document without an event array."""
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return OtherKind(f"no Kineto trace: no traceEvents, and not JSON either ({error})", _TRACE_HINT)
    if not isinstance(document, dict):
        return OtherKind("JSON of another kind: neither an object nor an array of events", _TRACE_HINT)
    if "nodes" in document and "schema" in document:
        return OtherKind("an execution trace, not a Kineto trace", "pass it with --execution-traces beside the Kineto trace")
    if "device_traces" in document or "segments" in document:
        return OtherKind("a CUDA memory snapshot, not a Kineto trace", "open it at pytorch.org/memory_viz")
    keys = ", ".join(sorted(str(key) for key in document)[:5]) or "none"
    return OtherKind(f"JSON of another kind: no traceEvents among its keys ({keys})", _TRACE_HINT)


def _is_text(data: bytes) -> bool:
    return not any(byte < 9 or 13 < byte < 32 for byte in data)
