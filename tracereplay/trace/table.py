"""The event table of one trace file: built once, checked once, never changed."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracereplay.trace.classify import NO_RULES, UserRules
from tracereplay.trace.columns import integer_column, numbers
from tracereplay.trace.schema import COLUMNS, SCHEMA, Role

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Quality:
    """What was wrong with a file: each repair, quarantine and guess is counted.

    ``complete`` is False where the file is cut, and ``damage`` says where; ``end_lost`` where events are missing at its
    end, not just the closing brackets. ``invalid_times`` are complete events without a
    usable start or duration (unfinished, lost); ``clock_violations`` pieces of work that start before their launch.
    """

    complete: bool = True
    repaired_strings: int = 0
    nonfinite_values: int = 0
    quarantined_events: int = 0
    invalid_times: int = 0
    impossible_durations: int = 0
    clock_violations: int = 0
    damage: str | None = None
    end_lost: bool = False

    @property
    def repairs(self) -> str:
        """What was repaired or put aside, counted; empty where nothing was."""
        names = ("repaired_strings", "nonfinite_values", "quarantined_events", "invalid_times", "impossible_durations")
        return ", ".join(f"{count} {name.replace('_', ' ')}" for name in names if (count := getattr(self, name)))

    def with_times(self, invalid: int, impossible: int, early: int) -> "Quality":
        """The same with the counts that need the whole table."""
        return replace(self, invalid_times=invalid, impossible_durations=impossible, clock_violations=early)


@dataclass(frozen=True, slots=True)
class Device:
    """An accelerator that the file's header lists."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Group:
    """A process group as recorded in ``distributedInfo.pg_config``; ranks are None where the list is cut."""

    name: str
    description: str
    backend: str
    size: int | None
    ranks: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says of itself: rank and size of its job, devices, process groups, host."""

    rank: int | None = None
    world_size: int | None = None
    backend: str | None = None
    host: str | None = None
    devices: tuple[Device, ...] = ()
    groups: tuple[Group, ...] = ()


@dataclass(frozen=True, slots=True)
class ExecutedCollective:
    """One collective as an execution trace records it: sizes in elements, splits by rank of uneven all-to-alls."""

    name: str
    seq: int | None
    group: str | None
    elements: int | None
    dtype: str | None
    in_split: tuple[int, ...]
    out_split: tuple[int, ...]


class TextSource(Protocol):
    """Where the events' own texts are."""

    def load(self) -> pa.ChunkedArray:
        """The text column, one entry a row."""
        ...


@dataclass(frozen=True, slots=True)
class ElementTexts:
    """Texts of consecutive elements of the event array, and which of them are rows of the table."""

    texts: pa.Array
    rows: npt.NDArray[np.int64]

    def of_rows(self) -> pa.Array:
        """The texts of the rows alone."""
        if self.rows.size == len(self.texts):
            return self.texts
        mask = np.zeros(len(self.texts), np.bool_)
        mask[self.rows] = True
        packed = pa.py_buffer(np.packbits(mask, bitorder="little"))
        return self.texts.filter(pa.Array.from_buffers(pa.bool_(), mask.size, [None, packed]))


@dataclass(frozen=True, slots=True)
class HeldText:
    """Texts in memory, part by part."""

    parts: tuple[ElementTexts, ...]

    def load(self) -> pa.ChunkedArray:
        """The text column."""
        return pa.chunked_array([part.of_rows() for part in self.parts], pa.large_binary())


@dataclass(frozen=True)
class EventTable:
    """All complete events of one file as Arrow columns (``trace/schema.py``), with its header and quality.

    ``executed`` are the collectives of an execution trace of the same rank; ``rules`` a user's own classes. The events'
    own texts are apart from the columns in ``table``: a stored trace is opened without them.
    """

    path: str
    table: pa.Table
    header: Header
    quality: Quality
    recorded_events: int
    text: "TextSource"
    executed: tuple[ExecutedCollective, ...] = ()
    rules: UserRules = NO_RULES
    _columns: dict[str, npt.NDArray[Any]] = field(default_factory=dict, repr=False, compare=False)
    _memory: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse a table that breaks the requirements of ``trace/schema.py``: that would be our fault."""
        if not self.table.schema.equals(COLUMNS):
            raise ValueError("event table does not have the schema's columns")
        if self.table.column("ts_ns").null_count:
            raise ValueError("event table has rows without a start")

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> npt.NDArray[Any]:
        """A numeric column as numpy with -1 in place of nulls; cached, do not write to it."""
        if name not in self._columns:
            self._columns[name] = numbers(self.table.column(name).combine_chunks(), -1)
        return self._columns[name]

    def at(self, ts_ns: npt.NDArray[np.int64]) -> "EventTable":
        """The same events at other times."""
        place = self.table.schema.get_field_index("ts_ns")
        moved = self.table.set_column(place, self.table.schema.field(place), integer_column(ts_ns))
        return replace(self, table=moved, _columns={}, _memory={})

    def with_executed(self, collectives: tuple[ExecutedCollective, ...]) -> "EventTable":
        """The same with the collectives of an execution trace."""
        return replace(self, executed=collectives, _columns={}, _memory={})

    def remembered(self, key: str, make: Callable[[], T]) -> T:
        """What ``make`` gives, made once for this table and key."""
        if key not in self._memory:
            self._memory[key] = make()
        value: T = self._memory[key]
        return value

    def with_text(self) -> pa.Table:
        """All columns of the schema, the events' own texts included."""
        return self.table.append_column(SCHEMA.field("text"), self._texts)

    @cached_property
    def _texts(self) -> pa.ChunkedArray:
        return self.text.load()

    @cached_property
    def names(self) -> list[str]:
        """The distinct names; ``codes("name")`` indexes into it."""
        return self.dictionary("name")

    def dictionary(self, name: str) -> list[str]:
        """The distinct values of a text column."""
        return list(self._encoded(name).dictionary.to_pylist())

    def codes(self, name: str) -> npt.NDArray[np.int32]:
        """The codes of a text column: indices into ``dictionary(name)``."""
        key = f"{name}#codes"
        if key not in self._columns:
            self._columns[key] = numbers(self._encoded(name).indices, -1)
        return self._columns[key]

    def name_of(self, row: int) -> str:
        """The name of one row."""
        return self.names[int(self.codes("name")[row])]

    def args_of(self, row: int) -> dict[str, Any]:
        """The decoded ``args`` of one row; empty where it has none. Linear in that event's text."""
        text = self._texts[row].as_py().strip().rstrip(b",")
        clean = text.decode("utf-8", "replace")
        try:
            decoded = msgspec.json.decode(clean)
        except msgspec.ValidationError:
            decoded = json.loads(clean)  # a number that no float holds, which the typed decoder had skipped
        args = decoded.get("args") if isinstance(decoded, dict) else None
        return args if isinstance(args, dict) else {}

    def texts_of(self, rows: npt.NDArray[np.int64]) -> list[bytes]:
        """The events' own JSON texts, without what may follow them."""
        return [text.strip().rstrip(b",") for text in self._texts.take(pa.array(rows)).to_pylist()]

    def rows_of(self, *roles: Role) -> npt.NDArray[np.int64]:
        """Rows with one of the roles, in file order."""
        wanted = np.zeros(len(Role), np.bool_)
        wanted[[int(role) for role in roles]] = True
        return np.flatnonzero(wanted[self.column("role")])

    def _encoded(self, name: str) -> Any:  # pyarrow ships no types
        return self.table.column(name).combine_chunks()
