"""When work could have started by its launch and its queue alone: in, a rank's draft; out, how late each piece of work is.

The plain launch latency is the tenth percentile over work whose queue was idle when its call began, the plain gap that over
work that followed other work of its queue; both by kind of work. A median would not do: on some queues most work waits for
other queues. What a start is later than that, something else may have caused.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracereplay.graph.draft import RankDraft
from tracereplay.trace.times import Int64s

_NEVER = np.iinfo(np.int64).min
_LOW_PERCENTILE = 10
# From the end of a piece of device work to the start of the next of its queue: 1 to 3 µs on NVIDIA devices of the corpus, up
# to 17 µs on AMD's.
_LONGEST_GAP_NS = 30_000


@dataclass(frozen=True, slots=True)
class Readiness:
    """For each piece of work when it was ready, by how much it started later, and the previous work of its queue (-1: none).

    ``ready_ns`` is the smallest integer for work without a launch and a predecessor; ``late_ns`` is 0 there. ``whole_us``:
    times were recorded in whole microseconds.
    """

    ready_ns: Int64s
    late_ns: Int64s
    previous: Int64s
    whole_us: bool


def readiness(draft: RankDraft, awaited: Sequence[tuple[int, int]] = ()) -> Readiness:
    """The readiness of a rank's work; ``awaited`` are (producer, consumer) pairs that are known already."""
    work = draft.work
    previous = _previous(draft)
    before_ns = np.where(previous >= 0, work.end_ns[previous], _NEVER)
    called = work.call_thread >= 0
    launch_ns = np.where(called, work.launch_ns, _NEVER)
    kind = np.where(work.on_host, 9, draft.table.column("role")[work.row])
    idle = called & (before_ns <= launch_ns)
    latency = _plain(kind, work.start_ns - launch_ns, idle)
    queued = (previous >= 0) & (before_ns >= launch_ns + np.where(called, latency, 0)) & (work.start_ns >= before_ns)
    gap = _plain(kind, work.start_ns - before_ns, queued)
    # Where all that follows in a queue waits for something else, too, the low end is no plain gap.
    gap = np.where(work.on_host, gap, np.minimum(gap, _LONGEST_GAP_NS))
    bounds = [
        np.where(called, launch_ns + latency, _NEVER),
        np.where(previous >= 0, before_ns + gap, _NEVER),
    ]
    ready = np.maximum(*bounds)
    for producer, consumer in awaited:
        ready[consumer] = max(ready[consumer], work.end_ns[producer])
    late = np.where(ready == _NEVER, 0, np.maximum(work.start_ns - ready, 0))
    return Readiness(ready, late, previous, bool((work.start_ns % 1_000 == 0).all()))


def _previous(draft: RankDraft) -> Int64s:
    """The work before each one on its queue, -1 for the first."""
    work = draft.work
    previous = np.arange(len(work)) - 1
    first = np.ones(len(work), np.bool_)
    first[1:] = work.queue[1:] != work.queue[:-1]
    return np.where(first, -1, previous)


def _plain(kind: Int64s, values: Int64s, chosen: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Int64s:
    """For each piece of work the low end of ``values`` over the chosen work of its kind, else over all chosen; 0 of none."""
    result = np.zeros(kind.size, np.int64)
    if not chosen.any():
        return result
    result[:] = int(np.percentile(np.maximum(values[chosen], 0), _LOW_PERCENTILE))
    for one in np.unique(kind[chosen]):
        result[kind == one] = int(np.percentile(np.maximum(values[chosen & (kind == one)], 0), _LOW_PERCENTILE))
    return result
