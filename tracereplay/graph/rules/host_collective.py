"""A CPU backend runs collectives on threads of its own: who enqueued one, and where the host waits for it.

    host       |c10d::alltoall_base_|--ops--|··· waits ···|--ops--|
    gloo thread        |------ gloo:all_to_all ------|

The wait is not recorded. Its place in the program is the same in every step and on every rank: a collective's wait site is
the stretch of host time (a gap, an annotation, a Python autograd function; never the body of a compute operator) that
ended with the end of the collective where it was waited for, and that no occurrence refutes by having passed it earlier.
Collectives that nobody was seen waiting for end, by the semantics of their callers, before the backward pass ends (DDP)
or before it begins (forward exchange), else before the step ends.

Where threads share a core, the thread that was waited for may lose it to the one that it woke, before it has written down its
own end::

    host       |··· waits ···|--ops--|
    gloo thread --------------   .   --|      written: the last end; when it had ended: when the host went on

Such an end is cut to when the host went on (``ended_when_waited_for``) before anything is made of it.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace

import numpy as np

from tracereplay.graph.bursts import engine_codes
from tracereplay.graph.draft import HostThread, RankDraft
from tracereplay.graph.edges import Found, found, make_edges
from tracereplay.graph.kinds import Basis, Why
from tracereplay.trace.classify import collective_of
from tracereplay.trace.schema import Role
from tracereplay.trace.table import EventTable
from tracereplay.trace.times import Int64s

_CALL = re.compile(r"^c10d::")
# Bodies of compute: ATen operators and the C++ autograd nodes, whose names end in a digit (MmBackward0).
_COMPUTE_BODY = re.compile(r"^(aten|fbgemm|torchvision|quantized)::|Backward\d+$")
_STEP_NUMBER = re.compile(r"(?<=^ProfilerStep)#\d+$")
# A thread resumes within the wake-up time of the end it waited for: half a millisecond covers a wake-up where threads
# compete for cores (0.1-0.4 ms in sample_traces/), a tenth of the wait covers longer ones.
_RESUME_NS = 500_000
_RESUME_SHARE = 10
# A thread that lost its core has it back after some time slices of the others' (3 to 4 ms each, Linux EEVDF).
_PREEMPTED_NS = 10_000_000
# One occurrence in so many that were seen to wait may contradict a site: clocks and calls that were not matched do so.
_SEEN_A_CONTRADICTION = 4


@dataclass(frozen=True, slots=True)
class _Occurrence:
    """One collective of one rank: its work index, the thread that enqueued it, the first segment after the call."""

    draft: RankDraft
    work: int
    thread: HostThread
    after: int
    until: int
    end_ns: int
    in_backward: bool


@dataclass(frozen=True, slots=True)
class _Site:
    """A place in the program after a call: names of the segment's owner and of what follows, and which such place it is."""

    owner: str
    follower: str
    ordinal: int


def match_calls(table: EventTable, work_rows: Int64s) -> Int64s:
    """The row of the c10d call that enqueued each annotated collective, -1 where none fits.

    Collectives of one kind run in the order of their calls; a call fits if it began before the collective did.
    """
    calls: dict[str, list[int]] = defaultdict(list)
    ts = table.column("ts_ns")
    rows = table.rows_of(Role.CPU_OP)
    codes = [code for code, name in enumerate(table.names) if _CALL.match(name) and collective_of(name)]
    rows = rows[np.isin(table.codes("name")[rows], codes)]
    for row in rows[np.argsort(ts[rows], kind="stable")]:
        calls[collective_of(table.name_of(int(row))) or ""].append(int(row))
    matched = np.full(work_rows.size, -1, np.int64)
    for i in np.argsort(ts[work_rows], kind="stable"):
        waiting = calls[collective_of(table.name_of(int(work_rows[i]))) or ""]
        if waiting and ts[waiting[0]] <= ts[work_rows[i]]:
            matched[i] = waiting.pop(0)
    return matched


def ended_when_waited_for(drafts: list[RankDraft]) -> tuple[list[RankDraft], int]:
    """The ranks with the ends of collectives whose threads lost their core before they wrote them down, and how many those are:
    a collective had ended when who waited for it went on.
    """
    cut: dict[int, dict[int, int]] = defaultdict(dict)
    for members in _grouped(drafts).values():
        site = _site(members)
        for m in members:
            segment = None if site is None else _locate(m, site)
            if segment is not None and _is_preempted(m, segment):
                cut[m.draft.index][m.work] = int(m.thread.tiling.end_ns[segment])
    return [_cut(draft, cut[draft.index]) for draft in drafts], sum(len(ends) for ends in cut.values())


def _cut(draft: RankDraft, ends: dict[int, int]) -> RankDraft:
    if not ends:
        return draft
    end_ns = draft.work.end_ns.copy()
    end_ns[list(ends)] = list(ends.values())
    return replace(draft, work=replace(draft.work, end_ns=end_ns), _memory={})


def host_collective(drafts: list[RankDraft]) -> list[Found]:
    """Hand-offs from collectives of a CPU backend to the host threads that wait for them, one result a rank."""
    groups = _grouped(drafts)
    edges: dict[int, list[tuple[int, int]]] = defaultdict(list)
    waits: dict[int, list[tuple[int, int]]] = defaultdict(list)
    refuted: Counter[int] = Counter()
    for members in groups.values():
        for occurrence, segment, own_ns in _placed(members):
            index = occurrence.draft.index
            if segment is None:
                refuted[index] += 1
                continue
            node = occurrence.thread.first_node + segment
            edges[index].append((int(occurrence.draft.work_last_node[occurrence.work]), node + 1))
            if occurrence.end_ns > occurrence.thread.tiling.start_ns[segment]:
                waits[index].append((node, own_ns))
    return [_found(edges[d.index], waits[d.index], refuted[d.index]) for d in drafts]


def _grouped(drafts: list[RankDraft]) -> dict[tuple[str, int], list[_Occurrence]]:
    """Occurrences of the same collective of the program, over ranks and steps."""
    groups: dict[tuple[str, int], list[_Occurrence]] = defaultdict(list)
    for draft in drafts:
        for key, occurrence in _occurrences(draft):
            groups[key].append(occurrence)
    return groups


def _found(pairs: list[tuple[int, int]], waits: list[tuple[int, int]], refuted: int) -> Found:
    src, dst = [p[0] for p in pairs], [p[1] for p in pairs]
    return found(make_edges(Why.HOST_COLLECTIVE, Basis.INFERRED, src, dst), waits, refuted)


def _occurrences(draft: RankDraft) -> list[tuple[tuple[str, int], _Occurrence]]:
    """Each linked collective of a rank with its key: kind, and which of that kind it is in its step."""
    work, table = draft.work, draft.table
    linked = np.flatnonzero(work.on_host & (work.call_thread >= 0))
    linked = linked[np.argsort(work.start_ns[linked], kind="stable")]
    engine = set(engine_codes(table).tolist())
    enqueued = draft.call_ns
    seen: Counter[tuple[int, str]] = Counter()
    found_here = []
    for w in linked:
        thread = draft.threads[work.call_thread[w]]
        position = int(work.call_position[w])
        call_ns = int(enqueued[w])
        step = sum(s.start_ns <= call_ns for s in draft.marks.whole)
        kind = collective_of(table.name_of(int(work.row[w]))) or ""
        key = (kind, seen[step, kind])
        seen[step, kind] += 1
        until = _segment_at(thread, draft.marks.whole[max(step - 1, 0)].end_ns)
        after = int(thread.tiling.end_boundary[position])
        backward = _inside(draft, thread, position, engine)
        found_here.append((key, _Occurrence(draft, int(w), thread, after, until, int(work.end_ns[w]), backward)))
    return found_here


def _segment_at(thread: HostThread, time_ns: int) -> int:
    """The last segment that ends by a time; never the closing one, which has no length."""
    last = int(np.searchsorted(thread.tiling.end_ns, time_ns, side="right")) - 1
    return min(last, thread.node_count - 2)


def _inside(draft: RankDraft, thread: HostThread, position: int, codes: set[int]) -> bool:
    """True where an event lies under one of the engine's."""
    while position >= 0:
        row = int(thread.rows[position])
        if row >= 0 and int(draft.table.codes("name")[row]) in codes:
            return True
        position = int(thread.tiling.parent[position])
    return False


def _placed(members: list[_Occurrence]) -> list[tuple[_Occurrence, int | None, int]]:
    """Each occurrence with its wait segment (None: timing refutes every place) and that segment's own CPU time."""
    site = _site(members)
    if site is None:
        return [(m, _by_semantics(m), 0) for m in members]
    segments = [s if (s := _locate(m, site)) is not None and not _passed(m, s) else None for m in members]
    own = _own_time(members, segments)
    return [(m, s if s is not None else _by_semantics(m), own) for m, s in zip(members, segments, strict=True)]


def _site(members: list[_Occurrence]) -> _Site | None:
    """Where they are waited for: the place at which most were seen to be, of those that timing does not refute."""
    votes = Counter(site for m in members if (site := _observed(m)) is not None)
    for site, seen in sorted(votes.items(), key=lambda item: (-item[1], item[0].ordinal, item[0].owner, item[0].follower)):
        passed = [m for m in members if (s := _locate(m, site)) is not None and _passed(m, s) and not _is_preempted(m, s)]
        if len(passed) <= seen // _SEEN_A_CONTRADICTION:
            return site
    return None


def _passed(m: _Occurrence, segment: int) -> bool:
    """Whether the host left a segment before the collective's end, as written."""
    return int(m.thread.tiling.end_ns[segment]) < m.end_ns


def _is_preempted(m: _Occurrence, segment: int) -> bool:
    """Whether the host left a segment after it had waited there for a collective, whose thread wrote its end down late: by no
    more than some time slices, and no more than what the host had waited.
    """
    tiling = m.thread.tiling
    left = int(tiling.end_ns[segment])
    waited = left - max(int(tiling.start_ns[segment]), int(m.draft.work.start_ns[m.work]))
    return 0 < m.end_ns - left <= min(_PREEMPTED_NS, waited)


def _observed(m: _Occurrence) -> _Site | None:
    """The site at which the host was seen to go on when the collective ended."""
    tiling = m.thread.tiling
    segment = int(np.searchsorted(tiling.end_ns, m.end_ns, side="left"))
    if not m.after <= segment < min(m.until, m.thread.node_count - 1):
        return None
    owner = _owner(m, segment)
    waited = m.end_ns - int(tiling.start_ns[segment])
    late = int(tiling.end_ns[segment]) - m.end_ns
    if _COMPUTE_BODY.search(owner) or late > max(_RESUME_NS, waited // _RESUME_SHARE):
        return None
    follower = _owner(m, segment + 1)
    same = [s for s in range(m.after, segment) if _owner(m, s) == owner and _owner(m, s + 1) == follower]
    return _Site(owner, follower, len(same))


def _owner(m: _Occurrence, segment: int) -> str:
    event = int(m.thread.tiling.owner[segment])
    row = int(m.thread.rows[event]) if event >= 0 else -1
    name = m.draft.table.name_of(row) if row >= 0 else ""
    # Marks of different steps are the same place.
    return _STEP_NUMBER.sub("", name)


def _locate(m: _Occurrence, site: _Site) -> int | None:
    """The segment of an occurrence that is the given site."""
    left = site.ordinal
    for segment in range(m.after, min(m.until, m.thread.node_count - 1)):
        if _owner(m, segment) == site.owner and _owner(m, segment + 1) == site.follower:
            if left == 0:
                return segment
            left -= 1
    return None


def _own_time(members: list[_Occurrence], segments: list[int | None]) -> int:
    """The site's own CPU time: the median where the collective had ended before the site was reached, else unknown (0)."""
    free = [
        int(m.thread.tiling.end_ns[s] - m.thread.tiling.start_ns[s])
        for m, s in zip(members, segments, strict=True)
        if s is not None and m.end_ns <= m.thread.tiling.start_ns[s]
    ]
    return int(np.median(free)) if free else 0


def _by_semantics(m: _Occurrence) -> int | None:
    """The last segment before the place by which a caller must have waited; None where the collective ended later."""
    codes = set(engine_codes(m.draft.table).tolist())
    tiling, rows = m.thread.tiling, m.thread.rows
    names = np.where(rows >= 0, m.draft.table.codes("name")[rows], -1)
    engine = np.flatnonzero(np.isin(names, list(codes)))
    if m.in_backward:
        inside = engine[(tiling.end_boundary[engine] > m.after) & (tiling.end_boundary[engine] <= m.until)]
        boundary = int(tiling.end_boundary[inside].max(initial=-1))
    else:
        later = engine[(tiling.begin_boundary[engine] > m.after) & (tiling.begin_boundary[engine] <= m.until)]
        boundary = int(tiling.begin_boundary[later].min()) if later.size else -1
    places = [b for b in (boundary, m.until + 1) if b > m.after]
    return next((b - 1 for b in places if tiling.end_ns[b - 1] >= m.end_ns), None)
