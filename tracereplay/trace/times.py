"""Which recorded times can be true: in, times of device work; out, a class each and repaired durations.

A kernel that contains whole later work of its own stream cannot have run as recorded: streams run in order, and legal
overlap (programmatic dependent launch) always ends later than what it overlaps. Such a duration is cut at the start of the
next work; both totals are kept.
"""

from enum import IntEnum

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]


class TimeClass(IntEnum):
    """What a recorded time is worth."""

    OK = 0
    ZERO_LENGTH = 1
    UNFINISHED = 2
    LOST = 3
    IMPOSSIBLE = 4


def classify_times(ts_ns: Int64s, dur_ns: Int64s, base_ns: int) -> npt.NDArray[np.int8]:
    """The class of each event before streams are looked at; ``dur_ns`` is negative where none is known.

    Lost: no length and no start (CUPTI returns 0 and 0 when it has lost a record) among events that do have starts.
    """
    classes = np.where(
        dur_ns < 0, int(TimeClass.UNFINISHED), np.where(dur_ns == 0, int(TimeClass.ZERO_LENGTH), int(TimeClass.OK))
    )
    far = int(np.median(ts_ns)) - base_ns if ts_ns.size else 0
    lost = (ts_ns == base_ns) & (dur_ns == 0) & (far > 1_000_000_000)
    return np.where(lost, int(TimeClass.LOST), classes).astype(np.int8)


def repair_durations(queue: Int64s, ts_ns: Int64s, dur_ns: Int64s) -> tuple[npt.NDArray[np.bool_], Int64s]:
    """Which pieces of work contain whole later work of their queue, and all durations with those cut."""
    order = np.lexsort((dur_ns, ts_ns, queue))
    q, start, end = queue[order], ts_ns[order], ts_ns[order] + dur_ns[order]
    impossible = np.zeros(order.size, np.bool_)
    repaired = dur_ns[order].copy()
    borders = np.flatnonzero(np.diff(q)) + 1
    for part in np.split(np.arange(order.size), borders):
        if part.size < 2:
            continue
        earliest_later_end = np.minimum.accumulate(end[part][::-1])[::-1]
        next_start = start[part][1:]
        contains = (earliest_later_end[1:] <= end[part][:-1]) & (next_start > start[part][:-1]) & (end[part][:-1] > next_start)
        hit = part[:-1][contains]
        impossible[hit] = True
        repaired[hit] = next_start[contains] - start[hit]
    back = np.empty(order.size, np.int64)
    back[order] = np.arange(order.size)
    return impossible[back], repaired[back]


def union_ns(start_ns: Int64s, end_ns: Int64s) -> int:
    """Length of the union of half-open intervals."""
    if start_ns.size == 0:
        return 0
    order = np.argsort(start_ns, kind="stable")
    starts, reach = start_ns[order], np.maximum.accumulate(end_ns[order])
    gaps = np.maximum(starts[1:] - reach[:-1], 0)
    return int(reach[-1] - starts[0] - gaps.sum())
