"""A topological order of edges in arrays: in, edges by destination; out, node order, and edges dropped to break cycles."""

from typing import Any

import numba
import numpy as np

from tracereplay.trace.times import Int64s


def topological_order(count: int, src: Int64s, dst: Int64s) -> Int64s:
    """Nodes in an order in which every edge runs forward; shorter than ``count`` where edges run in a circle."""
    outgoing = np.argsort(src, kind="stable")
    first = np.searchsorted(src[outgoing], np.arange(count + 1)).astype(np.int64)
    degree = np.bincount(dst, minlength=count).astype(np.int64)
    order, reached = _kahn(first, dst[outgoing], degree)
    return np.asarray(order[:reached], np.int64)


@numba.njit(cache=True)
def _kahn(first: Any, dst: Any, degree: Any) -> Any:  # numba infers the types
    count = degree.shape[0]
    order = np.empty(count, np.int64)
    reached = 0
    for node in range(count):
        if degree[node] == 0:
            order[reached] = node
            reached += 1
    head = 0
    while head < reached:
        node = order[head]
        head += 1
        for i in range(first[node], first[node + 1]):
            degree[dst[i]] -= 1
            if degree[dst[i]] == 0:
                order[reached] = dst[i]
                reached += 1
    return order, reached
