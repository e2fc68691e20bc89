"""Which host event lies in which: in, an event table's columns; out, the parent row of each host row.

Events of one thread nest by time: the parent is the innermost event that began before and ends not earlier. Of two events
with one interval the earlier recorded (by the exporter's own order) is the outer.
"""

from typing import Any

import numba
import numpy as np

from tracereplay.trace.times import Int64s


def parent_rows(thread: Int64s, start_ns: Int64s, end_ns: Int64s, order_hint: Int64s) -> Int64s:
    """For each event the index of its parent, -1 at the top. ``order_hint`` breaks ties of equal intervals."""
    order = np.lexsort((order_hint, -end_ns, start_ns, thread))
    parents = np.full(thread.size, -1, np.int64)
    if thread.size:
        _nest(order, thread, start_ns, end_ns, parents)
    return parents


@numba.njit(cache=True)
def _nest(order: Any, thread: Any, start: Any, end: Any, parents: Any) -> None:  # numba infers the types
    stack = np.empty(order.shape[0], np.int64)
    depth = 0
    current = thread[order[0]]
    for row in order:
        if thread[row] != current:
            depth = 0
            current = thread[row]
        while depth > 0 and (end[stack[depth - 1]] < end[row] or end[stack[depth - 1]] <= start[row]):
            if end[stack[depth - 1]] > start[row]:
                # It is outlived by its would-be child: not a parent, but it may still hold later events.
                break
            depth -= 1
        k = depth
        while k > 0 and end[stack[k - 1]] < end[row]:
            k -= 1
        if k > 0:
            parents[row] = stack[k - 1]
        stack[depth] = row
        depth += 1
