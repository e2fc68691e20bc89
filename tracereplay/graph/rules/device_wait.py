"""A host thread waits for the device in a call that the profiler does not record.

    host     |launch k|-- DistributedDataParallel.forward ··· waits ···|-- cudaEventElapsedTime --|
    stream       |----------------- k -----------------|

Profilers leave some calls out (cudaEventSynchronize and cudaEventQuery among them), and loops that poll an event show the
polls at most. What shows the wait is host time that no operator and no call covers and that ends right after the same piece
of work ended, every time that the program comes to the place. A forward thread that waits for its backward pass does not.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tracereplay.graph.draft import RankDraft
from tracereplay.graph.edges import Found, found, make_edges
from tracereplay.graph.kinds import Basis, Why
from tracereplay.graph.rules.autograd import returns_ns
from tracereplay.graph.stretches import Stretch, open_stretches, without
from tracereplay.trace.times import Int64s

# Shorter stretches end near the end of some kernel by accident; a wake-up takes up to 100 µs on the corpus traces.
_SHORTEST_NS = 200_000
_WAKE_NS = 100_000
# The wait is at least this many times the wake-up, at least twice at a place, and nearly always there.
_FIT = 8
# Where short work follows on short work, something always ends shortly before: the work itself must outlast the wake-up.
_RAN = 2
_TIMES = 2
_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class _Ending:
    """The device work of a rank in order of its ends: work indices, ends, when each was enqueued."""

    work: Int64s
    end_ns: Int64s
    enqueued_ns: Int64s


def device_wait(draft: RankDraft) -> Found:
    """Edges from device work to what a thread does after it waited for it in a call that is not recorded."""
    ending = _ending(draft)
    returns = returns_ns(draft)
    places: dict[tuple[int, tuple[str, str]], list[Stretch]] = defaultdict(list)
    for number, thread in enumerate(draft.threads):
        stretches = open_stretches(draft, thread, _SHORTEST_NS)
        for stretch in without(stretches, returns) if number == draft.main else stretches:
            places[number, stretch.place].append(stretch)
    src, dst, waits = [], [], []
    for stretches in places.values():
        matched = [(stretch, work) for stretch in stretches if (work := _ended_with(draft, ending, stretch)) is not None]
        if not _is_shown(draft, stretches, [work for _, work in matched]):
            continue
        for stretch, work in matched:
            src.append(int(draft.work_last_node[work]))
            dst.append(stretch.node + 1)
            waits.append((stretch.node, 0))
    return found(make_edges(Why.UNRECORDED_SYNC, Basis.INFERRED, src, dst), waits)


def _ending(draft: RankDraft) -> _Ending:
    members = np.flatnonzero(~draft.work.on_host)
    members = members[np.argsort(draft.work.end_ns[members], kind="stable")]
    return _Ending(members, draft.work.end_ns[members], draft.enqueued_ns[members])


def _ended_with(draft: RankDraft, ending: _Ending, stretch: Stretch) -> int | None:
    """The last work that ended in a stretch, shortly before its end, if it was enqueued before the stretch began."""
    place = int(np.searchsorted(ending.end_ns, stretch.end_ns, side="right")) - 1
    if place < 0:
        return None
    end, work = int(ending.end_ns[place]), int(ending.work[place])
    ran_ns = end - int(draft.work.start_ns[work])
    fits = stretch.end_ns - end <= min(_WAKE_NS, (end - stretch.start_ns) / _FIT, ran_ns / _RAN)
    return work if fits and ending.enqueued_ns[place] < stretch.start_ns else None


def _is_shown(draft: RankDraft, stretches: list[Stretch], works: list[int]) -> bool:
    """True where nearly all stretches of a place end with work of one name."""
    names = {int(draft.table.codes("name")[draft.work.row[work]]) for work in works}
    return len(names) == 1 and len(works) >= max(_TIMES, _SHARE * len(stretches))
