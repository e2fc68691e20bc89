"""Who took part in a collective when no recording says so: in, ends on a common clock; out, which ones ended together.

Participants of a collective end within microseconds of each other (8 µs at most on the corpus job dlrm_v100x8), each rank
once. That is how the groups of old recordings, which name none, show. Two groups may end at one time by accident; a process
group runs on one stream of each of its ranks, so that the set of streams which ended together again and again is the group.
"""

from collections import Counter

import numpy as np

from tracereplay.trace.times import Int64s

# Ends on aligned clocks differ by up to 8 µs, and the clocks by a few.
WITHIN_NS = 20_000
# A gap between the ends of two groups: at least a microsecond, and this many times wider than the groups' own ends scatter.
_GAP_NS = 1_000
_FAR_WIDER = 2
_FEWEST = 4


def ended_together(rank: Int64s, queue: Int64s, kind: Int64s, end_ns: Int64s) -> Int64s:
    """A number for each entry: entries of one number are of one kind, of different ranks, and ended together."""
    at_once = _at_once(rank, kind, end_ns)
    streams = [frozenset((int(rank[i]), int(queue[i])) for i in members) for members in at_once]
    seen = Counter(
        frozenset((int(rank[i]), int(queue[i])) for i in part) for members in at_once for part in _apart(members, end_ns)
    )
    numbers = np.zeros(end_ns.size, np.int64)
    count = 0
    for members, whole in zip(at_once, streams, strict=True):
        for part in _parts(whole, seen):
            numbers[[i for i in members if (int(rank[i]), int(queue[i])) in part]] = count
            count += 1
    return numbers


def _at_once(rank: Int64s, kind: Int64s, end_ns: Int64s) -> list[list[int]]:
    """Entries of one kind that ended within ``WITHIN_NS`` of the first of them, each rank once."""
    found: list[list[int]] = []
    ranks: set[int] = set()
    for place in np.lexsort((rank, end_ns, kind)).tolist():
        first = found[-1][0] if found else -1
        near = first >= 0 and kind[place] == kind[first] and end_ns[place] - end_ns[first] <= WITHIN_NS
        if not near or int(rank[place]) in ranks:
            found.append([])
            ranks = set()
        found[-1].append(place)
        ranks.add(int(rank[place]))
    return found


def _apart(members: list[int], end_ns: Int64s) -> list[list[int]]:
    """Entries in order of their ends, cut at the widest gap where that is far wider than what lies on its sides."""
    if len(members) < _FEWEST:
        return [members]
    ends = end_ns[members]
    gaps = np.diff(ends)
    cut = int(np.argmax(gaps)) + 1
    spread = max(int(ends[cut - 1] - ends[0]), int(ends[-1] - ends[cut]))
    return [members[:cut], members[cut:]] if gaps[cut - 1] >= max(_FAR_WIDER * spread, _GAP_NS) else [members]


def _parts(whole: frozenset[tuple[int, int]], seen: Counter[frozenset[tuple[int, int]]]) -> list[frozenset[tuple[int, int]]]:
    """A set of streams cut into the sets that were seen to end together more often than all of it."""
    parts = []
    left = whole
    often = [part for part in seen if part < whole and len(part) > 1 and seen[part] > max(seen[whole], 1)]
    for part in sorted(often, key=lambda part: (-seen[part], -len(part), sorted(part))):
        if part <= left:
            parts.append(part)
            left -= part
    return [*parts, left] if left else parts
