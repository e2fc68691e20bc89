"""The device that a host thread works on: in, an event table and a call; out, the device of the launches around it.

Runtime calls act on the calling thread's current device (CUDA Programming Guide, "Device Selection"), which no event names:
it shows in what the thread launches.
"""

from dataclasses import dataclass

import numpy as np

from tracereplay.trace.schema import DEVICE_ROLES
from tracereplay.trace.table import EventTable
from tracereplay.trace.times import Int64s


@dataclass(frozen=True, slots=True)
class _Launches:
    """The launches of one thread in order of time, each with the device of its work."""

    start_ns: Int64s
    device: Int64s


def device_around(table: EventTable, row: int) -> int | None:
    """The device of the thread's last launch before a call (a row of the table), else of its next one; None where the thread
    launched nothing.
    """
    launches = table.remembered("launches by thread", lambda: _by_thread(table))
    own = launches.get((int(table.codes("pid")[row]), int(table.codes("tid")[row])))
    if own is None:
        return None
    place = int(np.searchsorted(own.start_ns, table.column("ts_ns")[row], side="left"))
    return int(own.device[max(place - 1, 0)])


def _by_thread(table: EventTable) -> dict[tuple[int, int], _Launches]:
    """The launches of each (pid, tid) code."""
    work = table.rows_of(*DEVICE_ROLES)
    work = work[(table.column("launch_row")[work] >= 0) & (table.column("device")[work] >= 0)]
    calls, devices = table.column("launch_row")[work], table.column("device")[work].astype(np.int64)
    starts, pids, tids = table.column("ts_ns")[calls], table.codes("pid")[calls], table.codes("tid")[calls]
    order = np.lexsort((work, starts, tids, pids))
    borders = np.flatnonzero((np.diff(pids[order]) != 0) | (np.diff(tids[order]) != 0)) + 1
    parts = np.split(order, borders) if order.size else []
    return {(int(pids[p[0]]), int(tids[p[0]])): _Launches(starts[p], devices[p]) for p in parts}
