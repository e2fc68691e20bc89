"""How long a host thread takes to go on when what it waited for has happened: in, an event table; out, a typical time.

Measured where a trace shows it best: from the end of device work to the return of the blocking call inside which it ended.
The same thread scheduler wakes threads that wait for each other.
"""

import numpy as np

from tracereplay.graph.blocking_calls import BLOCKING_CALL
from tracereplay.trace.schema import DEVICE_ROLES
from tracereplay.trace.table import EventTable


def wake_up_ns(table: EventTable) -> int:
    """The median over the blocking calls inside which device work ended, of the last such end; 0 where there is none. Measured
    once a table.
    """
    return table.remembered("wake-up", lambda: _measured_ns(table))


def _measured_ns(table: EventTable) -> int:
    codes = [code for code, name in enumerate(table.names) if BLOCKING_CALL.match(name)]
    calls = np.flatnonzero(np.isin(table.codes("name"), codes) & (table.column("dur_ns") >= 0))
    work = table.rows_of(*DEVICE_ROLES)
    work = work[table.column("dur_ns")[work] >= 0]
    if calls.size == 0 or work.size == 0:
        return 0
    ends = np.sort(table.column("ts_ns")[work] + table.column("dur_ns")[work])
    begin = table.column("ts_ns")[calls]
    done = begin + table.column("dur_ns")[calls]
    last = ends[np.maximum(np.searchsorted(ends, done, side="right") - 1, 0)]
    inside = (last > begin) & (last <= done)
    return int(np.median((done - last)[inside])) if inside.any() else 0
