"""A host thread waits for another: a batch that a loader's thread prepares, a lock that another thread's call holds.

    loader     |---- aten::_pin_memory ----|
    main          |····· waits ······|-- aten::to --|        goes on within the wake-up time of the other's end

    thread A   |------------ cudaMalloc ------------|
    thread B      |·········· cudaLaunchKernel ·········|    a call many times its usual length that ends with another's

Neither is recorded. What shows it is time that no operator covers (a gap, an annotation, a Python function) or a runtime call
of unusual length that ends right after long work of one name on another thread, at the visits of one place of the program
on all ranks, more often and more closely than accident allows. Backward threads and the threads of CPU collectives have
rules of their own.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tracereplay.graph.bursts import engine_codes
from tracereplay.graph.chance import BELIEVED, by_accident, coincidence
from tracereplay.graph.draft import HostThread, RankDraft
from tracereplay.graph.edges import Found, found, make_edges
from tracereplay.graph.kinds import Basis, Why
from tracereplay.graph.rules.autograd import returns_ns
from tracereplay.graph.stretches import Stretch, open_stretches, place_name, visits, without
from tracereplay.trace.schema import Role
from tracereplay.trace.times import Int64s

# Chosen: shorter stretches are not told apart from what a thread does itself, and a wake-up takes up to 50 µs on busy cores.
# How sensitive: docs/design/constants.md.
SHORTEST_NS = 20_000
LONGEST_WAKE_NS = 50_000
# What was waited for lasted a good part of the wait: a poll that happens to end then did not hold anybody up. The share is
# chosen; half or twice of it changes nothing on the corpus.
GIVER_SHARE = 0.25
# Calls scatter by a few times their usual length; a lock shows by far more than that. Chosen; half or twice of either changes
# nothing on the corpus.
UNUSUAL_TIMES = 10
UNUSUAL_NS = 50_000

_Place = tuple[bool, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Givers:
    """What threads did that others may have waited for, in order of the ends: table rows, thread numbers, ends, durations."""

    row: Int64s
    thread: Int64s
    end_ns: Int64s
    dur_ns: Int64s


@dataclass(frozen=True, slots=True)
class _Match:
    """A stretch with the end of another thread's work shortly before its own, and how probable that is by accident."""

    draft: RankDraft
    stretch: Stretch
    giver: HostThread
    end_ns: int
    name: str
    chance: float


def thread_wait(drafts: list[RankDraft]) -> list[Found]:
    """Hand-offs from other threads' work to what a thread does after it waited for it, one result a rank."""
    seen: dict[_Place, int] = defaultdict(int)
    groups: dict[tuple[_Place, str], list[_Match]] = defaultdict(list)
    for draft in drafts:
        givers = {in_call: _givers(draft, in_call=in_call) for in_call in (False, True)}
        for number, stretch in _stretches(draft):
            place = (number == draft.main, stretch.place)
            seen[place] += 1
            match = _matched(draft, number, stretch, givers[stretch.in_call])
            if match is not None:
                groups[place, match.name].append(match)
    believed = BELIEVED / max(len(groups), 1)
    shown = [
        matches
        for (place, _), matches in groups.items()
        if by_accident([m.chance for m in matches] + [1.0] * (seen[place] - len(matches))) < believed
    ]
    return [_found(draft, [[m for m in matches if m.draft is draft] for matches in shown]) for draft in drafts]


def _found(draft: RankDraft, shown: list[list[_Match]]) -> Found:
    pairs, waits = [], []
    for matches in shown:
        for match in matches:
            pairs.append((match.giver.node_after(match.end_ns), match.stretch.node + 1))
            waits.append((match.stretch.node, match.stretch.own_ns))
        pairs += _in_step(draft, matches) if matches else []
    columns = np.array(sorted(set(pairs)), np.int64).reshape(-1, 2)
    edges = make_edges(Why.THREAD_WAIT, Basis.INFERRED, columns[:, 0], columns[:, 1], from_start=True)
    return found(edges, waits)


def _in_step(draft: RankDraft, taken: list[_Match]) -> list[tuple[int, int]]:
    """Hand-overs at the same place that came early enough: the n-th end there is for the n-th time that the thread comes by,
    if all waits agree on the difference of the two numbers. Such an edge is slack.
    """
    thread, giver = taken[0].stretch.thread, taken[0].giver
    if any(m.stretch.thread is not thread or m.giver is not giver for m in taken):
        return []
    stops = visits(draft, thread, taken[0].stretch.place)
    rows = _work_of(draft, giver, in_call=taken[0].stretch.in_call)
    named = rows[draft.table.codes("name")[rows] == draft.table.names.index(taken[0].name)]
    ends = np.sort(draft.table.column("ts_ns")[named] + draft.table.column("dur_ns")[named])
    shifts = {int(np.searchsorted(ends, m.end_ns)) - int(np.searchsorted(stops, m.stretch.segment)) for m in taken}
    if len(shifts) != 1:
        return []
    waited = {m.stretch.segment for m in taken}
    shift = next(iter(shifts))
    pairs = []
    for number, segment in enumerate(stops.tolist()):
        early = 0 <= number + shift < ends.size and ends[number + shift] <= thread.tiling.start_ns[segment + 1]
        if segment not in waited and early:
            pairs.append((giver.node_after(int(ends[number + shift])), thread.first_node + segment + 1))
    return pairs


def _stretches(draft: RankDraft) -> list[tuple[int, Stretch]]:
    """(thread number, stretch) of what may be waits; those of the forward thread for its backward pass aside."""
    device_ends = np.sort(draft.work.end_ns)
    returns = returns_ns(draft)
    result: list[tuple[int, Stretch]] = []
    for number in _threads(draft):
        thread = draft.threads[number]
        free = open_stretches(draft, thread, SHORTEST_NS)
        free = without(free, returns) if number == draft.main else free
        result += [(number, stretch) for stretch in [*free, *_unusual_calls(draft, thread, device_ends)]]
    return result


def _threads(draft: RankDraft) -> list[int]:
    """The threads but for those of the autograd engine; none where there is only one."""
    engine = engine_codes(draft.table)
    codes = draft.table.codes("name")
    numbers = [
        number
        for number, thread in enumerate(draft.threads)
        if number == draft.main or not np.isin(codes[thread.rows[thread.rows >= 0]], engine).any()
    ]
    return numbers if len(numbers) > 1 else []


def _work_of(draft: RankDraft, thread: HostThread, *, in_call: bool) -> Int64s:
    """The rows of a thread's outermost operators and annotations, or of its calls."""
    real = thread.rows >= 0
    runtime = real & (draft.table.column("role")[thread.rows] == Role.RUNTIME)
    return np.asarray(thread.rows[runtime if in_call else real & (thread.tiling.parent < 0) & ~runtime], np.int64)


def _givers(draft: RankDraft, *, in_call: bool) -> _Givers:
    """What others may have waited for: what ended inside the recording, and where a segment of its thread ends."""
    rows, threads = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for number in _threads(draft):
        rows.append(_work_of(draft, draft.threads[number], in_call=in_call))
        threads.append(np.full(rows[-1].size, number, np.int64))
    row, thread = np.concatenate(rows), np.concatenate(threads)
    end = draft.table.column("ts_ns")[row] + draft.table.column("dur_ns")[row]
    # All that outlasts the recording seems to end with it.
    inside = np.flatnonzero(end < draft.high_ns)
    order = inside[np.argsort(end[inside], kind="stable")]
    return _Givers(row[order], thread[order], end[order], draft.table.column("dur_ns")[row[order]])


def _matched(draft: RankDraft, number: int, stretch: Stretch, givers: _Givers) -> _Match | None:
    """The last end of another thread's long work in a stretch, if it lies within a wake-up of the stretch's own end."""
    first, past = np.searchsorted(givers.end_ns, [stretch.start_ns, stretch.end_ns], side="right").tolist()
    waited = givers.end_ns[first:past] - stretch.start_ns
    fits = (givers.thread[first:past] != number) & (givers.dur_ns[first:past] >= GIVER_SHARE * waited)
    places = first + np.flatnonzero(fits)
    if places.size == 0 or stretch.end_ns - givers.end_ns[places[-1]] > LONGEST_WAKE_NS:
        return None
    last = int(places[-1])
    end, giver = int(givers.end_ns[last]), draft.threads[int(givers.thread[last])]
    if not giver.ends_at(end):
        return None
    names = draft.table.codes("name")[givers.row[places]]
    alike = int(np.count_nonzero(names == names[-1]))
    chance = coincidence(alike, stretch.end_ns - end, stretch.end_ns - stretch.start_ns)
    return _Match(draft, stretch, giver, end, draft.table.name_of(int(givers.row[last])), chance)


def _unusual_calls(draft: RankDraft, thread: HostThread, device_ends: Int64s) -> list[Stretch]:
    """Runtime calls many times as long as their kind is in this recording, at whose end no device work ended."""
    table = draft.table
    tiling = thread.tiling
    positions = np.flatnonzero(thread.rows >= 0)
    rows = thread.rows[positions]
    runtime = table.column("role")[rows] == Role.RUNTIME
    positions, rows = positions[runtime], rows[runtime]
    stretches = []
    for code in np.unique(table.codes("name")[rows]):
        mine = table.codes("name")[rows] == code
        usual = int(np.median(table.column("dur_ns")[rows[mine]]))
        unusual = mine & (table.column("dur_ns")[rows] > max(UNUSUAL_TIMES * usual, UNUSUAL_NS))
        for position, row in zip(positions[unusual].tolist(), rows[unusual].tolist(), strict=True):
            segment = int(tiling.end_boundary[position]) - 1
            start, end = int(table.column("ts_ns")[row]), int(tiling.end_ns[segment])
            near = np.searchsorted(device_ends, [end - LONGEST_WAKE_NS, end], side="right")
            if tiling.owner[segment] == position and near[0] == near[1]:
                place = (table.names[code], place_name(draft, int(thread.rows[max(int(tiling.parent[position]), 0)])))
                stretches.append(Stretch(thread, segment, start, end, place, usual, in_call=True))
    return stretches
