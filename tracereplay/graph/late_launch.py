"""Calls that launch late inside themselves: in, device work with its calls; out, when each call really launched.

    host     |----- first use: module loading, staging -----|~|      a call of seconds, its work at the end
    queue                                                      |work|

The first launch of a kernel loads its module, a copy from pageable memory is staged by the host: such a call works long
before it launches. It shows by work that starts late inside its own call, or right after it, while nothing on the device
ended that it could have waited for. The part before is host time, the launch lies one usual latency before the start.
"""

from dataclasses import dataclass

import numpy as np

from tracereplay.trace.times import Int64s

# A launch is late by many times the usual latency and by more than its scatter, which reaches 30 µs on the corpus traces; the
# factor is chosen. How sensitive: docs/design/constants.md.
TIMES_USUAL = 4
AT_LEAST_NS = 50_000
# Work that waited for other work starts within 30 µs of its end, or up to 3 µs before (see rules/event_wait.py).
FOLLOWS_WITHIN_NS = 30_000
OVERLAP_NS = 3_000


@dataclass(frozen=True, slots=True)
class Launched:
    """Device work of one rank, one entry a piece: times of the work and of its call; ``called``: there is one."""

    start_ns: Int64s
    end_ns: Int64s
    queue: Int64s
    call_ns: Int64s
    call_end_ns: Int64s
    called: "np.ndarray[tuple[int], np.dtype[np.bool_]]"


def launch_times(launched: Launched) -> Int64s:
    """When each piece of work was launched: the start of its call, or later where that did other things first."""
    previous_ns = _previous_end(launched)
    since = np.maximum(launched.call_ns, previous_ns)
    idle = launched.called & (previous_ns <= launched.call_ns)
    if not idle.any():
        return launched.call_ns.copy()
    usual = max(int(np.median((launched.start_ns - launched.call_ns)[idle])), 0)
    late = launched.called & (launched.start_ns - since > max(TIMES_USUAL * usual, AT_LEAST_NS))
    late &= launched.start_ns <= launched.call_end_ns + max(2 * usual, 0)
    late &= ~_follows(launched)
    return np.where(late, np.maximum(launched.start_ns - usual, launched.call_ns), launched.call_ns)


def _previous_end(launched: Launched) -> Int64s:
    """The end of the work before each one on its queue; the smallest integer for the first."""
    order = np.lexsort((launched.end_ns, launched.start_ns, launched.queue))
    result = np.full(order.size, np.iinfo(np.int64).min, np.int64)
    same = launched.queue[order[1:]] == launched.queue[order[:-1]]
    result[order[1:][same]] = launched.end_ns[order[:-1][same]]
    return result


def _follows(launched: Launched) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """True for work before whose start other work has just ended."""
    ends = np.sort(launched.end_ns)
    low = np.searchsorted(ends, launched.start_ns - FOLLOWS_WITHIN_NS, side="left")
    high = np.searchsorted(ends, np.minimum(launched.start_ns + OVERLAP_NS, launched.end_ns - 1), side="right")
    return np.asarray(high > low)
