"""Collect decoded events as columns and finish them to an event table: in, typed events chunk by chunk; out, an EventTable.

Only complete events (``ph`` = ``X``) become rows. After the last chunk the columns that need the whole file are made:
time classes, repaired durations, parents, launching calls and owners.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracereplay.trace.columns import coded_column, integer_column
from tracereplay.trace.decimal_time import parse_us_to_ns
from tracereplay.trace.event import NONE, Args, Event
from tracereplay.trace.links import LinkColumns, launch_rows, owner_rows
from tracereplay.trace.nesting import parent_rows
from tracereplay.trace.scan import Chunk
from tracereplay.trace.schema import COLUMNS, DEVICE_ROLES, HOST_ROLES, ROLE_OF_CATEGORY, Role
from tracereplay.trace.table import ElementTexts, EventTable, Header, HeldText, Quality
from tracereplay.trace.times import Int64s, TimeClass, classify_times, repair_durations

_INT64_MAX = 2**63 - 1
# No start lies 146 years from its base and no event lasts 36: such times are damage, and their sums stay within 64 bits.
_LATEST_NS = 2**62
_LONGEST_NS = 2**60
_NO_ARGS = Args()


@dataclass(slots=True)
class _Texts:
    """A text column under construction: distinct values, codes chunk by chunk."""

    codes: defaultdict[Any, int] = field(default_factory=lambda: defaultdict(count().__next__))
    parts: list[npt.NDArray[np.int32]] = field(default_factory=list)

    def add(self, values: list[Any]) -> None:
        codes = self.codes
        self.parts.append(np.array([codes[value] for value in values], np.int32))

    def column(self) -> pa.Array:
        return coded_column(np.concatenate(self.parts), ["" if value is None else str(value) for value in self.codes])


@dataclass(slots=True)
class EventColumns:
    """The columns of a file's complete events, chunk by chunk."""

    event: list[Int64s] = field(default_factory=list)
    ts: list[Int64s] = field(default_factory=list)
    dur: list[Int64s] = field(default_factory=list)
    integers: dict[str, list[Int64s]] = field(
        default_factory=lambda: {n: [] for n in ("device", "stream", "correlation", "external_id")}
    )
    texts: dict[str, _Texts] = field(default_factory=lambda: {n: _Texts() for n in ("name", "category", "pid", "tid")})
    text: list[ElementTexts] = field(default_factory=list)
    invalid_times: int = 0

    def __len__(self) -> int:
        return sum(part.size for part in self.event)

    def add(self, events: Sequence[Event], chunk: Chunk, first_element: int) -> None:
        """Take the complete events of a chunk whose first element has the given index in the array."""
        complete = [i for i, event in enumerate(events) if event.ph == "X"]
        rows = events if len(complete) == len(events) else [events[i] for i in complete]
        if not rows:
            return
        places = np.array(complete, np.int64)
        ts_ns, ts_ok = parse_us_to_ns([event.ts for event in rows])
        ts_ok &= np.abs(ts_ns) < _LATEST_NS
        if not ts_ok.all():
            self.invalid_times += int(np.count_nonzero(~ts_ok))
            rows = [event for event, ok in zip(rows, ts_ok.tolist(), strict=True) if ok]
            places, ts_ns = places[ts_ok], ts_ns[ts_ok]
            if not rows:
                return
        dur_ns, dur_ok = parse_us_to_ns([event.dur for event in rows])
        self.event.append(places + first_element)
        self.ts.append(ts_ns)
        self.dur.append(np.where(dur_ok & (dur_ns >= 0) & (dur_ns < _LONGEST_NS), dur_ns, NONE))
        self._add_fields(rows)
        self.text.append(_event_texts(chunk, places))

    def _add_fields(self, rows: Sequence[Event]) -> None:
        self.texts["name"].add([event.name for event in rows])
        self.texts["category"].add([event.cat for event in rows])
        self.texts["pid"].add([event.pid for event in rows])
        self.texts["tid"].add([event.tid for event in rows])
        args = [event.args or _NO_ARGS for event in rows]
        self.integers["correlation"].append(_integers([a.correlation for a in args]))
        self.integers["stream"].append(_integers([a.stream for a in args]))
        self.integers["device"].append(_integers([a.device for a in args]))
        upper, lower = _integers([a.external_id for a in args]), _integers([a.external_id_lower for a in args])
        self.integers["external_id"].append(np.where(upper == NONE, lower, upper))


def _integers(values: list[int | None]) -> Int64s:
    """Ids as int64, ``NONE`` for none; one of more than 64 bits is kept in the event's text alone."""
    try:
        return np.array(values, np.int64)
    except (OverflowError, TypeError):
        return np.array([NONE if value is None or abs(value) > _INT64_MAX else value for value in values], np.int64)


def _event_texts(chunk: Chunk, places: Int64s) -> ElementTexts:
    """The texts of a chunk's elements, of which the rows are some; an element's text reaches to where the next begins."""
    starts = chunk.starts
    borders = np.append(starts, chunk.ends[-1]) - starts[0] + 1
    texts = pa.Array.from_buffers(
        pa.large_binary(), starts.size, [None, pa.py_buffer(borders.astype(np.int64)), pa.py_buffer(chunk.array)]
    )
    return ElementTexts(texts, places)


def finish(path: str, columns: EventColumns, header: tuple[Header, int], quality: Quality, elements: int) -> EventTable:
    """The event table of all columns; ``header`` carries the base that relative times count from."""
    head, base_ns = header
    event = np.concatenate(columns.event)
    # A relative file counts from its base; bases differ between the ranks of a job (kineto, 2024).
    ts_ns = np.concatenate(columns.ts) + np.int64(base_ns)
    raw_ns = np.concatenate(columns.dur)
    numbers = {name: np.concatenate(parts) for name, parts in columns.integers.items()}
    numbers["correlation"] = np.where(numbers["correlation"] > 0, numbers["correlation"], NONE)
    text = {name: texts.column() for name, texts in columns.texts.items()}
    category_roles = np.array(
        [int(ROLE_OF_CATEGORY.get(c or "", Role.OTHER)) for c in columns.texts["category"].codes], np.int8
    )
    role = category_roles[np.concatenate(columns.texts["category"].parts)]
    on_device = np.isin(role, DEVICE_ROLES)
    numbers["device"] = _device_from_pid(numbers["device"], on_device, columns.texts["pid"])
    time_class = classify_times(ts_ns, raw_ns, base_ns)
    dur_ns = np.where(time_class == TimeClass.LOST, NONE, raw_ns)
    # Work without a recorded stream may have run beside any other.
    work = np.flatnonzero(on_device & (dur_ns >= 0) & (numbers["stream"] != NONE))
    impossible, dur_ns[work] = repair_durations(_queues(numbers, work), ts_ns[work], dur_ns[work])
    time_class[work[impossible]] = int(TimeClass.IMPOSSIBLE)
    links = _links(role, ts_ns, dur_ns, numbers, columns)
    table = pa.Table.from_arrays(
        [
            integer_column(event),
            integer_column(ts_ns),
            integer_column(dur_ns, dur_ns >= 0),
            integer_column(raw_ns, raw_ns >= 0),
            integer_column(time_class),
            integer_column(role),
            *(text[name] for name in ("name", "category", "pid", "tid")),
            *(
                integer_column(numbers[name], numbers[name] != NONE)
                for name in ("device", "stream", "correlation", "external_id")
            ),
            *(integer_column(rows, rows >= 0) for rows in links),
        ],
        schema=COLUMNS,
    )
    invalid = columns.invalid_times + int(
        np.count_nonzero((time_class == TimeClass.UNFINISHED) | (time_class == TimeClass.LOST))
    )
    launches = links[1]
    linked = np.flatnonzero((launches >= 0) & (dur_ns >= 0))
    early = int(np.count_nonzero(ts_ns[linked] < ts_ns[launches[linked]]))
    return EventTable(
        path, table, head, quality.with_times(invalid, int(impossible.sum()), early), elements, HeldText(tuple(columns.text))
    )


def _device_from_pid(device: Int64s, on_device: npt.NDArray[np.bool_], pids: _Texts) -> Int64s:
    """Device of device rows: from args, else from the row's pid, where Kineto puts it too."""
    ids = np.array([value if isinstance(value, int) and abs(value) <= _INT64_MAX else NONE for value in pids.codes], np.int64)
    return np.where((device == NONE) & on_device, ids[np.concatenate(pids.parts)], device)


def _queues(numbers: dict[str, Int64s], rows: Int64s) -> Int64s:
    pairs = np.stack([numbers["device"][rows], numbers["stream"][rows]], axis=1)
    return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64) if rows.size else np.empty(0, np.int64)


def _links(
    role: npt.NDArray[np.int8], ts_ns: Int64s, dur_ns: Int64s, numbers: dict[str, Int64s], columns: EventColumns
) -> tuple[Int64s, Int64s, Int64s]:
    """Parent, launch and owner rows of the whole table, -1 where there is none."""
    host = np.flatnonzero(np.isin(role, HOST_ROLES) & (dur_ns >= 0))
    pid, tid = (np.concatenate(columns.texts[n].parts).astype(np.int64) for n in ("pid", "tid"))
    thread = pid[host] * (int(tid.max(initial=0)) + 1) + tid[host]
    parent = np.full(ts_ns.size, NONE, np.int64)
    above = parent_rows(thread, ts_ns[host], ts_ns[host] + dur_ns[host], host)
    parent[host] = np.where(above >= 0, host[np.maximum(above, 0)], NONE)
    work = np.flatnonzero(np.isin(role, DEVICE_ROLES))
    calls, operators = np.flatnonzero(role == Role.RUNTIME), np.flatnonzero(role == Role.CPU_OP)
    linking = LinkColumns(work, calls, operators, ts_ns, numbers["correlation"], numbers["external_id"], parent)
    launch, owner = np.full(ts_ns.size, NONE, np.int64), np.full(ts_ns.size, NONE, np.int64)
    launch[work] = launch_rows(linking)
    owner[work], _ = owner_rows(linking, launch[work])
    return parent, launch, owner
