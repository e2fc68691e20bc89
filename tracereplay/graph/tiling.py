"""Tile host threads without holes: in, sorted nested events; out, segments of self time and gaps.

    event      |------- aten::linear -------|
    children      |- aten::t -| |- addmm -|
    segments   |--|-----------|-|---------|-|      each belongs to the innermost event, gaps between to none

Every begin and end of an event is a boundary; ``begin_boundary[e]`` is the number of the segment that starts where event
``e`` begins, ``end_boundary[e]`` that of the one that starts where it ends. A last segment of no length closes the tiling.
"""

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from tracereplay.trace.times import Int64s


@dataclass(frozen=True, slots=True)
class Tiling:
    """Segments of one thread and where its events lie among them.

    ``start_ns``, ``end_ns``, ``owner`` a segment (owner: index of the innermost event, -1 for a gap);
    ``parent``, ``begin_boundary``, ``end_boundary`` an event. ``overlaps`` counts events that stick out of their parent.
    """

    start_ns: Int64s
    end_ns: Int64s
    owner: Int64s
    parent: Int64s
    begin_boundary: Int64s
    end_boundary: Int64s
    overlaps: int


def tile(start_ns: Int64s, end_ns: Int64s, low_ns: int, high_ns: int) -> Tiling:
    """The tiling of [low_ns, high_ns) by events sorted by (start, -end), clipped to it."""
    starts = np.clip(start_ns, low_ns, high_ns)
    ends = np.clip(end_ns, low_ns, high_ns)
    seg_start, seg_end, owner, parent, begin, end, count, overlaps = _tile(starts, ends, np.int64(low_ns), np.int64(high_ns))
    return Tiling(seg_start[:count].copy(), seg_end[:count].copy(), owner[:count].copy(), parent, begin, end, int(overlaps))


@numba.njit(cache=True)
def _tile(starts: Any, ends: Any, low: Any, high: Any) -> Any:  # numba infers the types
    n = starts.shape[0]
    seg_start = np.empty(2 * n + 2, np.int64)
    seg_end = np.empty(2 * n + 2, np.int64)
    owner = np.empty(2 * n + 2, np.int64)
    parent = np.full(n, -1, np.int64)
    begin = np.zeros(n, np.int64)
    end = np.zeros(n, np.int64)
    stack = np.empty(n, np.int64)
    depth = 0
    count = 0
    overlaps = 0
    cursor = low
    for i in range(n + 1):
        now = starts[i] if i < n else high
        while depth > 0 and ends[stack[depth - 1]] <= now:
            top = stack[depth - 1]
            if ends[top] > cursor:
                seg_start[count], seg_end[count], owner[count] = cursor, ends[top], top
                cursor = ends[top]
                count += 1
            end[top] = count
            depth -= 1
        if i == n:
            # Events that outlast a cut parent are closed with it.
            while depth > 0:
                end[stack[depth - 1]] = count
                depth -= 1
        if now > cursor:
            seg_start[count], seg_end[count] = cursor, now
            owner[count] = stack[depth - 1] if depth > 0 else -1
            cursor = now
            count += 1
        if i < n:
            begin[i] = count
            if depth > 0:
                parent[i] = stack[depth - 1]
                if ends[i] > ends[stack[depth - 1]]:
                    overlaps += 1
            stack[depth] = i
            depth += 1
    seg_start[count], seg_end[count], owner[count] = high, high, -1
    count += 1
    return seg_start, seg_end, owner, parent, begin, end, count, overlaps
