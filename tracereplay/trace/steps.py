"""Steps of a rank: in, an event table; out, the marks that are whole and hold work."""

import re
from dataclasses import dataclass

import numpy as np

from tracereplay.trace.schema import DEVICE_ROLES, HOST_ROLES, Role
from tracereplay.trace.table import EventTable

_MARK = re.compile(r"^ProfilerStep#(\d{1,18})$")
_MARK_ROLES = (Role.ANNOTATION, Role.CPU_OP)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of one rank: its number (0 where the trace has no marks) and the row of its mark (None likewise)."""

    number: int
    start_ns: int
    end_ns: int
    row: int | None

    @property
    def dur_ns(self) -> int:
        """Length of the mark."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class StepMarks:
    """The whole steps in time order, and the numbers of those cut by the recording."""

    whole: tuple[Step, ...]
    cut: tuple[int, ...]
    marked: bool


def find_steps(table: EventTable) -> StepMarks:
    """The steps of a trace: one a closed ``ProfilerStep#N`` mark that holds work; without marks the whole trace is one."""
    numbers = {code: int(m.group(1)) for code, name in enumerate(table.names) if (m := _MARK.match(name))}
    codes, roles = table.codes("name"), table.column("role")
    rows = [int(r) for r in np.flatnonzero(np.isin(codes, list(numbers)) & np.isin(roles, _MARK_ROLES))]
    if not rows:
        return _whole_trace(table)
    whole, cut = [], []
    work_starts = _work_starts(table, rows)
    # An empty mark is an artefact of the recording's end, where the recording holds host events at all.
    records_host = table.rows_of(*HOST_ROLES).size > len(rows)
    for row in sorted(rows, key=lambda r: int(table.column("ts_ns")[r])):
        start, dur = int(table.column("ts_ns")[row]), int(table.column("dur_ns")[row])
        number = numbers[int(codes[row])]
        holds_work = np.searchsorted(work_starts, start + dur) > np.searchsorted(work_starts, start)
        if dur > 0 and (holds_work or not records_host):
            whole.append(Step(number, start, start + dur, row))
        else:
            cut.append(number)
    return StepMarks(tuple(whole), tuple(cut), marked=True)


def _work_starts(table: EventTable, marks: list[int]) -> np.ndarray:
    rows = np.setdiff1d(table.rows_of(*HOST_ROLES, *DEVICE_ROLES), np.array(marks, np.int64))
    return np.sort(table.column("ts_ns")[rows])


def _whole_trace(table: EventTable) -> StepMarks:
    rows = table.rows_of(*HOST_ROLES, *DEVICE_ROLES)
    rows = rows[table.column("dur_ns")[rows] >= 0]
    if rows.size == 0:
        return StepMarks((), (), marked=False)
    starts = table.column("ts_ns")[rows]
    ends = starts + table.column("dur_ns")[rows]
    return StepMarks((Step(0, int(starts.min()), int(ends.max()), None),), (), marked=False)
