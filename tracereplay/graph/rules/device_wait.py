"""A host thread waits for the device in a call that the profiler does not record.

    host     |launch k|-- DistributedDataParallel.forward ··· waits ···|-- cudaEventElapsedTime --|
    stream       |----------------- k -----------------|

Profilers leave some calls out (cudaEventSynchronize and cudaEventQuery among them), and loops that poll an event show the
polls at most. What shows the wait is host time that no operator and no call covers and that ends right after work of one
name ended, at the visits of one place of the program on all ranks, more often and more closely than accident allows. A
forward thread that waits for its backward pass does not count.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tracereplay.graph.chance import BELIEVED, by_accident, coincidence
from tracereplay.graph.draft import RankDraft
from tracereplay.graph.edges import Found, found, make_edges
from tracereplay.graph.kinds import Basis, Why
from tracereplay.graph.rules.autograd import returns_ns
from tracereplay.graph.stretches import Stretch, open_stretches, without
from tracereplay.trace.times import Int64s

# A wake-up takes up to 100 µs on the corpus traces; stretches not longer than that cannot be told from it. Chosen: twice that
# is the shortest wait. How sensitive: docs/design/constants.md.
SHORTEST_NS = 200_000
LONGEST_WAKE_NS = 100_000

_Place = tuple[bool, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Ending:
    """The device work of a rank in order of its ends: work indices, ends, when each was enqueued, name codes."""

    work: Int64s
    end_ns: Int64s
    enqueued_ns: Int64s
    name: Int64s


@dataclass(frozen=True, slots=True)
class _Match:
    """A stretch with the work that ended last in it, and how probable that is by accident."""

    draft: RankDraft
    stretch: Stretch
    work: int
    chance: float


def device_wait(drafts: list[RankDraft]) -> list[Found]:
    """Edges from device work to what a thread does after it waited for it in a call that is not recorded, one result a rank."""
    visits: dict[_Place, int] = defaultdict(int)
    groups: dict[tuple[_Place, str], list[_Match]] = defaultdict(list)
    for draft in drafts:
        ending = _ending(draft)
        for place, stretch in _stretches(draft):
            visits[place] += 1
            match = _matched(draft, ending, stretch)
            if match is not None:
                groups[place, draft.table.name_of(int(draft.work.row[match.work]))].append(match)
    believed = BELIEVED / max(len(groups), 1)
    chosen = [
        match
        for (place, _), matches in groups.items()
        if len(matches) > 1 and by_accident([m.chance for m in matches] + [1.0] * (visits[place] - len(matches))) < believed
        for match in matches
    ]
    return [_found([m for m in chosen if m.draft is draft]) for draft in drafts]


def _found(matches: list[_Match]) -> Found:
    src = [int(m.draft.work_last_node[m.work]) for m in matches]
    dst = [m.stretch.node + 1 for m in matches]
    edges = make_edges(Why.UNRECORDED_SYNC, Basis.INFERRED, src, dst)
    return found(edges, [(m.stretch.node, 0) for m in matches])


def _stretches(draft: RankDraft) -> list[tuple[_Place, Stretch]]:
    """Stretches of every thread with their place; those of the forward thread that are waits for the backward pass aside."""
    returns = returns_ns(draft)
    result = []
    for number, thread in enumerate(draft.threads):
        stretches = open_stretches(draft, thread, SHORTEST_NS)
        main = number == draft.main
        result += [((main, s.place), s) for s in (without(stretches, returns) if main else stretches)]
    return result


def _ending(draft: RankDraft) -> _Ending:
    members = np.flatnonzero(~draft.work.on_host)
    members = members[np.argsort(draft.work.end_ns[members], kind="stable")]
    names = draft.table.codes("name")[draft.work.row[members]].astype(np.int64)
    return _Ending(members, draft.work.end_ns[members], draft.enqueued_ns[members], names)


def _matched(draft: RankDraft, ending: _Ending, stretch: Stretch) -> _Match | None:
    """The last work that ended in a stretch, shortly before its end, if it was enqueued before the stretch began."""
    first, past = np.searchsorted(ending.end_ns, [stretch.start_ns, stretch.end_ns], side="right").tolist()
    if past <= first:
        return None
    last = past - 1
    lag = stretch.end_ns - int(ending.end_ns[last])
    if lag > LONGEST_WAKE_NS or ending.enqueued_ns[last] >= stretch.start_ns:
        return None
    alike = int(np.count_nonzero(ending.name[first:past] == ending.name[last]))
    return _Match(draft, stretch, int(ending.work[last]), coincidence(alike, lag, stretch.end_ns - stretch.start_ns))
