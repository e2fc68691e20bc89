"""A host thread waits for another: a batch that a loader's thread prepares, a lock that another thread's call holds.

    loader     |---- aten::_pin_memory ----|
    main          |····· waits ······|-- aten::to --|        goes on within the wake-up time of the other's end

    thread A   |------------ cudaMalloc ------------|
    thread B      |·········· cudaLaunchKernel ·········|    a call many times its usual length that ends with another's

Neither is recorded. What shows it is time that no operator covers (a gap, an annotation, a Python function) or a runtime call
of unusual length that ends right after an outermost event of another thread ended, more than once at the same place of the
program, or once with a fit that is no accident. Backward threads and the threads of CPU collectives have rules of their own.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tracereplay.graph.draft import HostThread, RankDraft
from tracereplay.graph.edges import Found, found, make_edges
from tracereplay.graph.kinds import Basis, Why
from tracereplay.graph.rules.autograd import engine_codes, returns_ns
from tracereplay.graph.stretches import Stretch, open_stretches, place_name, visits, without
from tracereplay.trace.schema import Role
from tracereplay.trace.times import Int64s

# Shorter stretches are not told apart from what a thread does itself; a wake-up takes up to 50 µs on busy cores.
_SHORTEST_NS = 20_000
_WAKE_NS = 50_000
# A place is one where a thread waits if the wait was this many times longer than the time between the end waited for and
# going on: once, or twice with less. Where it is, shorter waits are taken for what they look like.
_FIT_ALONE, _FIT_REPEATED, _FIT_THERE = 8, 3, 0.3
# What was waited for lasted a good part of the wait: a poll that happens to end then did not hold anybody up.
_GIVER_SHARE = 0.25
_UNUSUAL_TIMES = 10
_UNUSUAL_NS = 50_000


@dataclass(frozen=True, slots=True)
class _Match:
    stretch: Stretch
    giver: HostThread
    end_ns: int
    name: str

    @property
    def fit(self) -> float:
        """How many times longer the wait is than the time between the other's end and going on."""
        waited = self.end_ns - self.stretch.start_ns
        return waited / max(self.stretch.end_ns - self.end_ns, 1)


def thread_wait(draft: RankDraft) -> Found:
    """Hand-offs from other threads' events to what a thread does after it waited for them."""
    places: dict[tuple[tuple[str, str], str], list[_Match]] = defaultdict(list)
    for match in _matches(draft):
        places[match.stretch.place, match.name].append(match)
    pairs, waits = [], []
    for matches in places.values():
        if not _is_shown(matches):
            continue
        taken = [match for match in matches if match.fit >= _FIT_THERE]
        for match in taken:
            node = match.stretch.thread.first_node + match.stretch.segment
            pairs.append((match.giver.node_after(match.end_ns), node + 1))
            waits.append((node, match.stretch.own_ns))
        pairs += _in_step(draft, taken)
    columns = np.array(sorted(pairs), np.int64).reshape(-1, 2)
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
    rows, ends = _outermost(draft, giver, in_call=taken[0].stretch.in_call)
    ends = np.sort(ends[[draft.table.name_of(int(row)) == taken[0].name for row in rows]])
    shifts = {int(np.searchsorted(ends, m.end_ns)) - int(np.searchsorted(stops, m.stretch.segment)) for m in taken}
    if len(shifts) != 1:
        return []
    waited = {m.stretch.segment for m in taken}
    pairs = []
    for number, segment in enumerate(stops.tolist()):
        place = number + next(iter(shifts))
        if segment in waited or not 0 <= place < ends.size:
            continue
        if ends[place] <= thread.tiling.start_ns[segment + 1]:
            pairs.append((giver.node_after(int(ends[place])), thread.first_node + segment + 1))
    return pairs


def _is_shown(matches: list[_Match]) -> bool:
    fits = sorted((match.fit for match in matches), reverse=True)
    return fits[0] >= _FIT_ALONE or (len(fits) > 1 and fits[1] >= _FIT_REPEATED)


def _matches(draft: RankDraft) -> list[_Match]:
    """Each stretch with the last event of another thread that ended in it, shortly before its end."""
    engine = engine_codes(draft.table)
    codes = draft.table.codes("name")
    threads = [
        t for n, t in enumerate(draft.threads) if n == draft.main or not np.isin(codes[t.rows[t.rows >= 0]], engine).any()
    ]
    calls = [_outermost(draft, thread, in_call=True) for thread in threads]
    events = [_outermost(draft, thread, in_call=False) for thread in threads]
    device_ends = np.sort(draft.work.end_ns)
    matches = []
    returns = returns_ns(draft)
    for thread in threads:
        free = open_stretches(draft, thread, _SHORTEST_NS)
        free = without(free, returns) if draft.main >= 0 and thread is draft.threads[draft.main] else free
        for stretch in [*free, *_unusual_calls(draft, thread, device_ends)]:
            best: _Match | None = None
            for giver, (rows, ends) in zip(threads, calls if stretch.in_call else events, strict=True):
                place = int(np.searchsorted(ends, stretch.end_ns, side="right")) - 1
                if giver is thread or place < 0 or stretch.end_ns - ends[place] > _WAKE_NS:
                    continue
                waited = int(ends[place]) - stretch.start_ns
                # All that outlasts the recording seems to end with it.
                if ends[place] >= draft.high_ns or not giver.ends_at(int(ends[place])):
                    continue
                if waited <= 0 or draft.table.column("dur_ns")[rows[place]] < _GIVER_SHARE * waited:
                    continue
                match = _Match(stretch, giver, int(ends[place]), draft.table.name_of(int(rows[place])))
                if best is None or match.end_ns > best.end_ns:
                    best = match
            if best is not None:
                matches.append(best)
    return matches


def _outermost(draft: RankDraft, thread: HostThread, *, in_call: bool) -> tuple[Int64s, Int64s]:
    """Outermost operators, or all calls, of a thread and their ends, in order of their ends."""
    real = thread.rows >= 0
    runtime = real & (draft.table.column("role")[thread.rows] == Role.RUNTIME)
    rows = thread.rows[runtime if in_call else real & (thread.tiling.parent < 0) & ~runtime]
    ends = draft.table.column("ts_ns")[rows] + draft.table.column("dur_ns")[rows]
    order = np.argsort(ends, kind="stable")
    return rows[order], ends[order]


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
        unusual = mine & (table.column("dur_ns")[rows] > max(_UNUSUAL_TIMES * usual, _UNUSUAL_NS))
        for position, row in zip(positions[unusual].tolist(), rows[unusual].tolist(), strict=True):
            segment = int(tiling.end_boundary[position]) - 1
            start, end = int(table.column("ts_ns")[row]), int(tiling.end_ns[segment])
            near = np.searchsorted(device_ends, [end - _WAKE_NS, end], side="right")
            if tiling.owner[segment] == position and near[0] == near[1]:
                place = (table.names[code], place_name(draft, int(thread.rows[max(int(tiling.parent[position]), 0)])))
                stretches.append(Stretch(thread, segment, start, end, place, usual, True))
    return stretches
