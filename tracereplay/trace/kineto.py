"""Kineto JSON to an event table: in, a trace file; out, an EventTable. The only file that knows "ts", "dur", "cat".

Theory of operation. ``container`` turns the file into blocks of text, ``scan`` into chunks of whole events. msgspec decodes
a chunk into typed structs, in which times stay raw text and ``args`` are reduced to the few typed fields that become
columns; the event's own text is kept beside them. A chunk that does not decode is decoded event by event, and an event
that does not decode is repaired (``repair``) or quarantined. Times become integers from their text (``decimal_time``).
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tracereplay.errors import TraceError
from tracereplay.trace.assemble import EventColumns, finish
from tracereplay.trace.container import Source
from tracereplay.trace.event import Args, Event
from tracereplay.trace.kinds import kind_of_bytes, kind_of_text
from tracereplay.trace.repair import repair_event
from tracereplay.trace.scan import Chunk, Scanner, split_events
from tracereplay.trace.table import Device, EventTable, Group, Header, Quality

_Scalar = int | float | str | bool | None


class _LooseEvent(msgspec.Struct, gc=False):
    """An event whose fields may be of any type."""

    ph: Any = ""
    cat: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: msgspec.Raw = msgspec.Raw(b"")
    args: Any = None


# A base beyond this and a world beyond that are damage: no clock counts from 73 years away, no job has a million ranks.
_LATEST_BASE_NS = 2**61
_LARGEST_WORLD = 1_000_000

# Brackets that the header after the events may hold.
_MOST_BRACKETS = 64

# Not strict: a number written as text is a number.
_decode_events = msgspec.json.Decoder(list[Event], strict=False).decode
_decode_event = msgspec.json.Decoder(Event, strict=False).decode
_decode_loosely = msgspec.json.Decoder(_LooseEvent).decode


@dataclass(slots=True)
class _Reading:
    """What one file's reading has come to: columns so far, what was repaired, where the last whole event lies."""

    columns: EventColumns = field(default_factory=EventColumns)
    elements: int = 0
    strings: int = 0
    nonfinite: int = 0
    quarantined: int = 0
    last_name: str = ""


def read_kineto(path: Path) -> EventTable:
    """The event table of one Kineto trace file; damage is repaired, quarantined or salvaged, and counted.

    Raises:
        TraceError: missing, empty, of another kind, two documents in one, or without any event that can be read.
    """
    source = Source(path)
    scanner = Scanner(source.blocks)
    reading = _Reading()
    for chunk in scanner.chunks():
        _take_chunk(reading, chunk)
    _refuse_other_kinds(path, source, scanner)
    _take_rest(reading, scanner)
    damage = _damage(reading, source, scanner)
    header, base_ns = _read_header(reading, scanner)
    quality = Quality(
        complete=damage is None,
        repaired_strings=reading.strings,
        nonfinite_values=reading.nonfinite,
        quarantined_events=reading.quarantined,
        damage=damage,
        end_lost=source.damage is not None or bool(scanner.rest),
    )
    if not len(reading.columns):
        raise TraceError(damage or "no analysable events", where=str(path), hint="record at least one complete event")
    return finish(str(path), reading.columns, (header, base_ns), quality, reading.elements)


def _take_chunk(reading: _Reading, chunk: Chunk) -> None:
    """Decode a chunk whole; event by event where that fails."""
    if not chunk.doubtful and _is_utf8(chunk.text):
        try:
            events = _decode_events(chunk.array)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            events = []
        if len(events) == chunk.starts.size:
            reading.columns.add(events, chunk, reading.elements)
            reading.elements += len(events)
            reading.last_name = events[-1].name or ""
            return
    for start, end in zip(chunk.starts.tolist(), chunk.ends.tolist(), strict=True):
        for piece in split_events(chunk.text[start:end]):
            _take_piece(reading, piece)


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        # A block may end inside a character, which the next one completes.
        return error.end == len(text) and error.reason == "unexpected end of data"
    return True


def _take_piece(reading: _Reading, text: bytes) -> bool:
    """Take one event's text, repaired if need be; True where it could be read."""
    event = _decode_one(text) if _is_utf8(text) else None
    if event is None:
        repaired = repair_event(text)
        event = _decode_one(repaired.text) if repaired is not None else None
        if repaired is None or event is None:
            reading.quarantined += 1
            reading.elements += 1
            return False
        text = repaired.text
        reading.strings += repaired.strings
        reading.nonfinite += repaired.nonfinite
    whole = Chunk(text, np.zeros(1, np.int64), np.array([len(text)]), 0)
    reading.columns.add([event], whole, reading.elements)
    reading.elements += 1
    reading.last_name = event.name or ""
    return True


def _decode_one(text: bytes) -> Event | None:
    try:
        return _decode_event(text)
    except (msgspec.ValidationError, OverflowError):
        return _loosely(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _loosely(text: bytes) -> Event | None:
    """An event with fields of unexpected types: what is no number or text there counts as not recorded."""
    try:
        loose = _decode_loosely(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    fields = loose.args if isinstance(loose.args, dict) else {}
    args = Args(
        _integer(fields.get("correlation")),
        _integer(fields.get("stream")),
        _integer(fields.get("device")),
        _integer(fields.get("External id", fields.get("external id"))),
    )
    texts = [value if isinstance(value, str) else None for value in (loose.ph, loose.cat, loose.name)]
    ids = [value if isinstance(value, int | str) else None for value in (loose.pid, loose.tid)]
    return Event(texts[0] or "", texts[1], texts[2], ids[0], ids[1], loose.ts, loose.dur, args)


def _integer(value: Any) -> int | None:  # whatever JSON an exporter wrote
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    try:
        return int(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _take_rest(reading: _Reading, scanner: Scanner) -> None:
    """Salvage what an unfinished end holds: whole events there, and nothing of the last one if it is cut."""
    pieces = split_events(scanner.rest)
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        if last and _decode_one(piece) is None and repair_event(piece) is None:
            event = _before_closing(piece)
            if event is None:
                scanner.rest = piece
                return
            # Unpaired quotes had hidden the closing brackets from the scanner.
            scanner.closed, scanner.tail = True, piece[len(event) :].lstrip().removeprefix(b"]")
            _take_piece(reading, event)
        else:
            _take_piece(reading, piece)
    scanner.rest = b""


def _before_closing(text: bytes) -> bytes | None:
    """The event in front of the array's closing bracket and the rest of the document; None where it is not there."""
    end = len(text)
    for _ in range(_MOST_BRACKETS):
        end = text.rfind(b"]", 0, end)
        if end < 0:
            return None
        event = text[:end].rstrip()
        if _decode_header(b'{"traceEvents":[' + text[end:].strip()) is not None and (_decode_one(event) or repair_event(event)):
            return event
    return None


def _refuse_other_kinds(path: Path, source: Source, scanner: Scanner) -> None:
    where = str(path)
    if source.read_bytes == 0 or (not scanner.found and not scanner.head.strip()):
        raise TraceError(source.damage or "empty file", where=where, hint="record the trace again")
    if not scanner.found:
        kind = kind_of_bytes(scanner.head) or kind_of_text(scanner.head)
        what = f"{source.damage}; {kind.what}" if source.damage else kind.what
        raise TraceError(what, where=where, hint=kind.hint)
    after = _after_document(scanner)
    if after is not None:
        raise TraceError(
            f"two JSON documents in one file (the second one begins at byte {after})", where=where, hint="split it"
        )


def _after_document(scanner: Scanner) -> int | None:
    """The place of a second document after the first one's end, None where there is none."""
    if not scanner.closed:
        return None
    tail = scanner.tail
    if not scanner.bare:
        end = _end_of_object(tail)
        if end is None:
            return None
        tail = tail[end:]
    rest = tail.lstrip(b" \t\r\n,;\0")
    return scanner.tail_offset + len(scanner.tail) - len(rest) if rest[:1] in (b"{", b"[") else None


def _end_of_object(tail: bytes) -> int | None:
    """Where the document's own brace closes in the text after its event array."""
    depth, quoted, escaped = 0, False, False
    for place, byte in enumerate(tail):
        if quoted:
            quoted, escaped = not (byte == 0x22 and not escaped), byte == 0x5C and not escaped
        elif byte == 0x22:
            quoted = True
        elif byte in b"{[":
            depth += 1
        elif byte in b"}]":
            if depth == 0:
                return place + 1
            depth -= 1
    return None


def _damage(reading: _Reading, source: Source, scanner: Scanner) -> str | None:
    """Why the text is not whole, with the last whole event; None where it is. A bare array may stay open (the trace event
    format allows that).
    """
    whole = scanner.closed and (scanner.bare or _end_of_object(scanner.tail) is not None)
    if source.damage is None and (whole or (scanner.bare and not scanner.rest)):
        return None
    last = (
        f"the last whole event is {reading.last_name!r} (event {reading.elements - 1})"
        if reading.elements
        else "no event is whole"
    )
    why = f"{source.damage}; " if source.damage else ""
    return f"truncated: {why}{last}, the text ends at byte {source.read_bytes}"


def _read_header(reading: _Reading, scanner: Scanner) -> tuple[Header, int]:
    """The header around the event array; what of it cannot be read is not recorded, and counted."""
    if scanner.bare:
        return Header(), 0
    text = scanner.head + b"]" + (scanner.tail[: _end_of_object(scanner.tail) or None] if scanner.closed else b"}")
    fields = _decode_header(text)
    if fields is None:
        repaired = repair_event(text)
        fields = _decode_header(repaired.text) if repaired is not None else None
        if fields is None or repaired is None:
            reading.quarantined += 1
            return Header(), 0
        reading.strings += repaired.strings
        reading.nonfinite += repaired.nonfinite
    base_ns = _integer(fields.get("baseTimeNanoseconds")) or 0
    if abs(base_ns) >= _LATEST_BASE_NS:
        reading.quarantined += 1
        base_ns = 0
    return _header(fields), base_ns


def _decode_header(text: bytes) -> dict[str, Any] | None:
    try:
        fields = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _header(fields: dict[str, Any]) -> Header:
    info = fields.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    size = _integer(info.get("world_size"))
    devices = fields.get("deviceProperties")
    rows = [row for row in devices if isinstance(row, dict)] if isinstance(devices, list) else []
    return Header(
        rank=_integer(info.get("rank")),
        world_size=size if size is not None and 0 < size <= _LARGEST_WORLD else None,
        backend=str(info["backend"]) if "backend" in info else None,
        host=str(fields["host_name"]) if fields.get("host_name") else None,
        devices=tuple(Device(d, str(row.get("name", ""))) for row in rows if (d := _integer(row.get("id"))) is not None),
        groups=_groups(info.get("pg_config")),
    )


def _groups(config: Any) -> tuple[Group, ...]:  # whatever JSON an exporter wrote
    if isinstance(config, dict):
        config = list(config.values())
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
