"""Kineto JSON to an event table: in, a trace file; out, an EventTable. The only file that knows "ts", "dur", "cat".

Theory of operation. The document is decoded once by msgspec into typed structs in which times and ``args`` stay raw
text. Times become integers from that text (``decimal_time``); ``args`` of an event are decoded once more into the
few typed fields that become columns and are otherwise kept as bytes.
"""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracereplay.errors import TraceError
from tracereplay.trace.columns import bytes_column, integer_column, optional_column, text_column
from tracereplay.trace.container import read_bytes
from tracereplay.trace.decimal_time import parse_us_to_ns
from tracereplay.trace.schema import ROLE_OF_CATEGORY, SCHEMA, Role
from tracereplay.trace.table import Device, EventTable, Group, Header, Quality

_Scalar = int | float | str | None
_INT64_MAX = 2**63 - 1


class _Event(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str | None = None
    name: str | None = None
    pid: _Scalar = None
    tid: _Scalar = None
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: msgspec.Raw = msgspec.Raw(b"")
    args: msgspec.Raw = msgspec.Raw(b"")


class _Args(msgspec.Struct, gc=False):
    correlation: _Scalar = None
    stream: _Scalar = None
    device: _Scalar = None
    external_id: _Scalar = msgspec.field(default=None, name="External id")
    external_id_lower: _Scalar = msgspec.field(default=None, name="external id")


class _Document(msgspec.Struct):
    traceEvents: list[_Event] | None = None  # noqa: N815  # Kineto's spelling
    distributedInfo: dict[str, Any] | None = None  # noqa: N815
    deviceProperties: list[dict[str, Any]] | None = None  # noqa: N815
    baseTimeNanoseconds: int | None = None  # noqa: N815
    host_name: str | None = None
    nodes: msgspec.Raw | None = None
    schema: msgspec.Raw | None = None


_document_decoder = msgspec.json.Decoder(_Document)
_args_decoder = msgspec.json.Decoder(_Args)


def read_kineto(path: Path) -> EventTable:
    """The event table of one Kineto trace file.

    Raises:
        TraceError: missing, empty, cut, not JSON, or JSON of another kind; the message names file and byte.
    """
    data = read_bytes(path)
    document = _decode(data, path)
    events = document.traceEvents
    if events is None:
        raise TraceError(_other_kind(document, data), where=str(path), hint="pass the trace that torch.profiler exported")
    return _build(path, document, events)


def _decode(data: bytes, path: Path) -> _Document:
    try:
        if data.lstrip()[:1] == b"[":
            return _Document(traceEvents=msgspec.json.decode(data, type=list[_Event]))
        return _document_decoder.decode(data)
    except msgspec.DecodeError as error:
        raise TraceError(
            f"not a whole Kineto JSON document: {error}", where=str(path), hint="record or copy it again"
        ) from error
    except UnicodeDecodeError as error:
        raise TraceError(f"invalid UTF-8 at byte {error.start}", where=str(path), hint="record it again") from error


def _other_kind(document: _Document, data: bytes) -> str:
    if document.nodes is not None and document.schema is not None:
        return "an execution trace, not a Kineto trace"
    keys = sorted(str(key) for key in msgspec.json.decode(data))[:5]
    return f"JSON of another kind: no traceEvents among its keys ({', '.join(keys) or 'none'})"


def _build(path: Path, document: _Document, events: list[_Event]) -> EventTable:
    index = np.array([i for i, event in enumerate(events) if event.ph == "X"], np.int64)
    ts_ns, ts_ok = parse_us_to_ns([bytes(events[i].ts) for i in index])
    # A relative file counts from its base; bases differ between the ranks of a job (kineto, 2024).
    ts_ns = ts_ns[ts_ok] + np.int64(document.baseTimeNanoseconds or 0)
    kept = index[ts_ok]
    rows = [events[i] for i in kept]
    dur_ns, dur_ok = parse_us_to_ns([bytes(event.dur) for event in rows])
    dur_ok &= dur_ns >= 0
    if not rows:
        raise TraceError("no analysable events", where=str(path), hint="record at least one complete event")
    table = _columns(kept, rows, ts_ns, (dur_ns, dur_ok))
    invalid = int(np.count_nonzero(~ts_ok)) + int(np.count_nonzero(~dur_ok))
    return EventTable(str(path), table, _header(document), Quality(invalid_times=invalid), len(events))


def _columns(
    index: npt.NDArray[np.int64],
    rows: list[_Event],
    ts_ns: npt.NDArray[np.int64],
    durations: tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]],
) -> pa.Table:
    args = [_decode_args(bytes(event.args)) for event in rows]
    categories = [event.cat or "" for event in rows]
    columns = [
        integer_column(index),
        integer_column(ts_ns),
        integer_column(*durations),
        integer_column(np.array([int(ROLE_OF_CATEGORY.get(c, Role.OTHER)) for c in categories], np.int8)),
        text_column([event.name or "" for event in rows]),
        text_column(categories),
        text_column(["" if event.pid is None else str(event.pid) for event in rows]),
        text_column(["" if event.tid is None else str(event.tid) for event in rows]),
        optional_column([_device(event, a) for event, a in zip(rows, args, strict=True)]),
        optional_column([_integer(a.stream) for a in args]),
        optional_column([_positive(a.correlation) for a in args]),
        optional_column([_integer(a.external_id if a.external_id is not None else a.external_id_lower) for a in args]),
        bytes_column([bytes(event.args) for event in rows]),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _decode_args(raw: bytes) -> _Args:
    if not raw:
        return _Args()
    try:
        return _args_decoder.decode(raw)
    except msgspec.DecodeError:
        return _Args()


def _integer(value: _Scalar) -> int | None:
    """An id that may be written as a number or as text; None where it is neither or does not fit 64 bits."""
    if isinstance(value, int):
        return value if abs(value) <= _INT64_MAX else None
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return None
    return None


def _positive(value: _Scalar) -> int | None:
    """A correlation id: zero and negative ones mean "none" (CUPTI writes 0, Kineto -1)."""
    number = _integer(value)
    return number if number is not None and number > 0 else None


def _device(event: _Event, args: _Args) -> int | None:
    """Device of a device row: from args, else from the row's pid (where Kineto puts it)."""
    device = _integer(args.device)
    if device is not None or ROLE_OF_CATEGORY.get(event.cat or "", Role.OTHER) not in (
        Role.KERNEL,
        Role.MEMCPY,
        Role.MEMSET,
    ):
        return device
    return _integer(event.pid)


def _header(document: _Document) -> Header:
    info = document.distributedInfo or {}
    devices = tuple(
        Device(int(row["id"]), str(row["name"])) for row in document.deviceProperties or [] if "id" in row and "name" in row
    )
    return Header(
        rank=_integer(info.get("rank")),
        world_size=_integer(info.get("world_size")),
        backend=str(info["backend"]) if "backend" in info else None,
        host=document.host_name,
        devices=devices,
        groups=_groups(info.get("pg_config")),
    )


def _groups(config: Any) -> tuple[Group, ...]:  # whatever JSON the exporter wrote
    if not isinstance(config, list):
        return ()
    return tuple(_group(row) for row in config if isinstance(row, dict) and "pg_name" in row)


def _group(row: dict[str, Any]) -> Group:
    """A process group; Kineto cuts long rank lists and marks the cut with ``...``."""
    size = _integer(row.get("pg_size"))
    listed = row.get("ranks")
    ranks = tuple(r for r in listed if isinstance(r, int)) if isinstance(listed, list) else ()
    whole = bool(ranks) and (size is None or len(ranks) == size)
    return Group(
        name=str(row["pg_name"]),
        description=str(row.get("pg_desc", "")),
        backend=str(row.get("backend_config", "")),
        size=size if size is not None else (len(ranks) or None),
        ranks=ranks if whole else None,
    )
