"""A re-timed job as Kineto JSON: in, a graph and its events at other times; out, the bytes of one trace file a rank.

The events are those of the recording, with all their fields; ``ts`` and ``dur`` are new. Times count from a base of whole
seconds that all ranks share, on the clock to which the ranks were aligned. Names of processes and threads and the arrows from
launches to work are made anew, for the recording's own are not kept.
"""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from isal import igzip

from tracereplay import __version__
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.retime import Retimed
from tracereplay.trace.schema import DEVICE_ROLES, Role
from tracereplay.trace.table import EventTable, Header
from tracereplay.units import NS_PER_S

_Fields = dict[str, msgspec.Raw]
_ON_STREAMS = (*DEVICE_ROLES, Role.GPU_ANNOTATION, Role.CUDA_SYNC)


def trace_files(graph: DependencyGraph, events: tuple[Retimed, ...], *, compress: bool) -> Iterator[bytes]:
    """The content of each rank's file, in the order of the graph's ranks; ``compress`` makes it gzip."""
    earliest = min((int(e.start_ns.min()) for e in events if e.start_ns.size), default=0)
    # A second of room: an event at the very base would read like one whose time was lost.
    base_ns = (earliest // NS_PER_S - 1) * NS_PER_S
    for table, number, retimed in zip(graph.tables, graph.rank_numbers, events, strict=True):
        document = _document(table, number, retimed, base_ns)
        yield igzip.compress(document, mtime=0) if compress else document


def _document(table: EventTable, rank: int | None, retimed: Retimed, base_ns: int) -> bytes:
    head = msgspec.json.encode(_header(table.header, rank) | {"baseTimeNanoseconds": base_ns})
    events = [_decoded(text) for text in table.texts_of(retimed.row)]
    for fields, start, dur in zip(events, retimed.start_ns.tolist(), retimed.dur_ns.tolist(), strict=True):
        fields["ts"], fields["dur"] = _microseconds(start - base_ns), _microseconds(dur)
    rows = [*_names(table, retimed, events), *events, *_arrows(table, retimed, events)]
    return head[:-1] + b',"traceEvents":[\n' + b",\n".join(map(msgspec.json.encode, rows)) + b"\n]}\n"


def _header(header: Header, rank: int | None) -> dict[str, Any]:
    groups = [
        {"pg_name": g.name, "pg_desc": g.description, "backend_config": g.backend}
        | ({} if g.size is None else {"pg_size": g.size})
        | ({} if g.ranks is None else {"ranks": list(g.ranks)})
        for g in header.groups
    ]
    info = {"rank": rank, "world_size": header.world_size, "backend": header.backend, "pg_config": groups or None}
    fields = {
        "distributedInfo": {key: value for key, value in info.items() if value is not None} or None,
        "deviceProperties": [{"id": d.id, "name": d.name} for d in header.devices] or None,
        "host_name": header.host,
    }
    known = {key: value for key, value in fields.items() if value is not None}
    return {"schemaVersion": 1, "displayTimeUnit": "ms", "traceName": f"retimed by tracereplay {__version__}"} | known


def _decoded(text: bytes) -> _Fields:
    """An event with the text of each of its fields."""
    try:
        return msgspec.json.decode(text, type=_Fields)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Bytes that are no UTF-8, which the reader tolerates where they do no harm.
        fields = json.loads(text.decode("utf-8", "replace"))
        return {key: msgspec.Raw(json.dumps(value).encode()) for key, value in fields.items()}


def _microseconds(value_ns: int) -> msgspec.Raw:
    whole, rest = divmod(abs(value_ns), 1_000)
    return msgspec.Raw(f"{'-' if value_ns < 0 else ''}{whole}.{rest:03d}".encode())


def _names(table: EventTable, retimed: Retimed, events: list[_Fields]) -> Iterator[dict[str, Any]]:
    """Names of processes and threads as viewers show them."""
    on_stream = np.isin(table.column("role")[retimed.row], _ON_STREAMS)
    seen: set[tuple[bytes, bytes]] = set()
    for fields, device in zip(events, on_stream.tolist(), strict=True):
        pid, tid = fields.get("pid", msgspec.Raw(b"0")), fields.get("tid", msgspec.Raw(b"0"))
        where = {"ph": "M", "ts": 0, "pid": pid, "tid": tid}
        shown = bytes(tid).decode("utf-8", "replace").strip('"')
        if (bytes(pid), b"") not in seen:
            label = f"GPU {bytes(pid).decode('utf-8', 'replace')}" if device else "CPU"
            yield where | {"name": "process_name", "args": {"name": "python"}}
            yield where | {"name": "process_labels", "args": {"labels": label}}
        if (bytes(pid), bytes(tid)) not in seen:
            yield where | {"name": "thread_name", "args": {"name": f"{'stream' if device else 'thread'} {shown}"}}
        seen |= {(bytes(pid), b""), (bytes(pid), bytes(tid))}


def _arrows(table: EventTable, retimed: Retimed, events: list[_Fields]) -> Iterator[dict[str, Any]]:
    """An arrow from each launching call to its work."""
    place = {row: n for n, row in enumerate(retimed.row.tolist())}
    launches = table.column("launch_row")[retimed.row].tolist()
    for number, launch in enumerate(launches):
        if launch < 0 or launch not in place:
            continue
        call, work = events[place[launch]], events[number]
        for fields, end in ((call, {"ph": "s"}), (work, {"ph": "f", "bp": "e"})):
            where = {key: fields[key] for key in ("pid", "tid", "ts") if key in fields}
            yield {"cat": "ac2g", "name": "ac2g", "id": number} | end | where
