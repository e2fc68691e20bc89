"""Which call launched which work, and which operator owns it: in, columns of an event table; out, rows.

Launch: by correlation id. A unique id links whatever the clocks say; one call may launch many pieces (graphs); an id that
several calls carry (counters wrap, processes restart) is resolved in time order. Owner: the operator with the work's own
External id, a name space apart from correlation ids; without one the innermost operator around the launching call.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tracereplay.trace.times import Int64s


class OwnerKind(IntEnum):
    """How the owner of a piece of work is known."""

    NONE = 0
    EXTERNAL_ID = 1
    CONTAINMENT = 2


@dataclass(frozen=True, slots=True)
class LinkColumns:
    """What linking needs of the calls, the operators and the work; all as table rows and columns over the whole table."""

    work: Int64s
    calls: Int64s
    operators: Int64s
    ts_ns: Int64s
    correlation: Int64s
    external_id: Int64s
    parent_row: Int64s


def launch_rows(columns: LinkColumns) -> Int64s:
    """For each piece of work the row of its launching call, -1 where no call has its correlation id."""
    calls = columns.calls[columns.correlation[columns.calls] > 0]
    calls = calls[np.lexsort((columns.ts_ns[calls], columns.correlation[calls]))]
    result = np.full(columns.work.size, -1, np.int64)
    if calls.size == 0:
        return result
    ids, wanted = columns.correlation[calls], columns.correlation[columns.work]
    first, past = np.searchsorted(ids, wanted, side="left"), np.searchsorted(ids, wanted, side="right")
    linked = (past > first) & (wanted > 0)
    result[linked] = calls[first[linked]]
    repeated = np.flatnonzero(linked & (past - first > 1))
    repeated = repeated[np.lexsort((columns.ts_ns[columns.work[repeated]], wanted[repeated]))]
    for mine in np.split(repeated, np.flatnonzero(np.diff(wanted[repeated])) + 1) if repeated.size else []:
        same = calls[first[mine[0]] : past[mine[0]]]
        if same.size == mine.size:
            result[mine] = same
            continue
        began = np.searchsorted(columns.ts_ns[same], columns.ts_ns[columns.work[mine]], side="right") - 1
        result[mine] = same[np.maximum(began, 0)]
    return result


def owner_rows(columns: LinkColumns, launches: Int64s) -> tuple[Int64s, npt.NDArray[np.int8]]:
    """For each piece of work the row of the operator that owns it (-1: none), and how that is known."""
    own_id = columns.external_id[columns.work]
    # Exporters of 2021-2023 repeat the correlation id in this field where no operator is known.
    own_id = np.where(own_id == columns.correlation[columns.work], -1, own_id)
    call_id = np.where(launches >= 0, columns.external_id[launches], -1)
    call_id = np.where(call_id == columns.correlation[np.maximum(launches, 0)], -1, call_id)
    by_id = _operator_with(columns, np.where(own_id > 0, own_id, call_id))
    around = _innermost_operator(columns, launches)
    owner = np.where(by_id >= 0, by_id, around)
    kind = np.where(
        by_id >= 0, int(OwnerKind.EXTERNAL_ID), np.where(around >= 0, int(OwnerKind.CONTAINMENT), int(OwnerKind.NONE))
    )
    return owner, kind.astype(np.int8)


def _operator_with(columns: LinkColumns, wanted: Int64s) -> Int64s:
    operators = columns.operators[columns.external_id[columns.operators] > 0]
    operators = operators[np.argsort(columns.external_id[operators], kind="stable")]
    result = np.full(wanted.size, -1, np.int64)
    if operators.size == 0:
        return result
    ids = columns.external_id[operators]
    place = np.minimum(np.searchsorted(ids, wanted), operators.size - 1)
    found = (ids[place] == wanted) & (wanted > 0)
    result[found] = operators[place[found]]
    return result


def _innermost_operator(columns: LinkColumns, launches: Int64s) -> Int64s:
    is_operator = np.zeros(columns.ts_ns.size, np.bool_)
    is_operator[columns.operators] = True
    result = np.where(launches >= 0, columns.parent_row[np.maximum(launches, 0)], -1)
    while True:
        climb = (result >= 0) & ~is_operator[np.maximum(result, 0)]
        if not climb.any():
            return result
        result = np.where(climb, columns.parent_row[np.maximum(result, 0)], result)
