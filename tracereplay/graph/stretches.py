"""Stretches of host time that no operator and no call covers: in, a thread of a draft; out, where and how long they are.

Such time is host time unless something shows that it was a wait. What shows it is that it ends with the end of something
else, again and again at one place of the program; a place is between an owner and a follower of certain names.
"""

from dataclasses import dataclass

import numpy as np

from tracereplay.graph.draft import HostThread, RankDraft
from tracereplay.trace.schema import Role
from tracereplay.trace.times import Int64s

_COMPUTE = (int(Role.CPU_OP), int(Role.RUNTIME))


@dataclass(frozen=True, slots=True)
class Stretch:
    """Time of a thread that may be a wait: its segment, begin and end, the place in the program, its own time if it waited,
    whether it is the time of a call.
    """

    thread: HostThread
    segment: int
    start_ns: int
    end_ns: int
    place: tuple[str, str]
    own_ns: int
    in_call: bool

    @property
    def node(self) -> int:
        """The node of the segment."""
        return self.thread.first_node + self.segment


def open_stretches(draft: RankDraft, thread: HostThread, shortest_ns: int) -> list[Stretch]:
    """Segments of a thread, at least so long, that no operator and no call covers."""
    tiling = thread.tiling
    owners = _owners(thread)
    roles = np.where(owners >= 0, draft.table.column("role")[owners], -1)
    long = tiling.end_ns - tiling.start_ns >= shortest_ns
    found = np.flatnonzero(long & ~np.isin(roles, _COMPUTE))
    # What ends at a cut ends with nothing of the thread's own.
    cuts = tiling.begin_boundary[thread.rows < 0] - 1
    found = found[(found + 1 < tiling.start_ns.size) & ~np.isin(found, cuts)]
    stretches = []
    for segment in found.tolist():
        place = (place_name(draft, int(owners[segment])), place_name(draft, int(owners[segment + 1])))
        start, end = int(tiling.start_ns[segment]), int(tiling.end_ns[segment])
        stretches.append(Stretch(thread, segment, start, end, place, 0, in_call=False))
    return stretches


def without(stretches: list[Stretch], times_ns: Int64s) -> list[Stretch]:
    """The stretches that contain none of the times, which are in order."""
    bounds = np.array([(s.start_ns, s.end_ns) for s in stretches], np.int64).reshape(-1, 2)
    passed = np.searchsorted(times_ns, bounds, side="right")
    return [stretch for stretch, (a, b) in zip(stretches, passed.tolist(), strict=True) if a == b]


def visits(draft: RankDraft, thread: HostThread, place: tuple[str, str]) -> Int64s:
    """The segments of a thread at a place."""
    places = draft.remembered(f"places {thread.pid} {thread.tid}", lambda: _places(draft, thread))
    return places.get(place, np.empty(0, np.int64))


def _places(draft: RankDraft, thread: HostThread) -> dict[tuple[str, str], Int64s]:
    """The segments of a thread at each of its places, in order."""
    own: dict[str, int] = {"": 0}
    stripped = [own.setdefault(_unnumbered(name), len(own)) for name in draft.table.names]
    owners = _owners(thread)
    codes = np.where(owners >= 0, np.array([*stripped, 0], np.int64)[draft.table.codes("name")[owners]], 0)
    pairs = codes[:-1] * len(own) + codes[1:]
    order = np.argsort(pairs, kind="stable")
    names = list(own)
    parts = np.split(order, np.flatnonzero(np.diff(pairs[order])) + 1) if order.size else []
    return {(names[codes[part[0]]], names[codes[part[0] + 1]]): part for part in parts}


def place_name(draft: RankDraft, row: int) -> str:
    """The name of a row without what numbers it (``ProfilerStep#3``), empty for a gap."""
    return _unnumbered(draft.table.name_of(row)) if row >= 0 else ""


def _unnumbered(name: str) -> str:
    return name.partition("#")[0]


def _owners(thread: HostThread) -> Int64s:
    """The table row of each segment's innermost event, -1 for a gap."""
    tiling = thread.tiling
    return np.where(tiling.owner >= 0, thread.rows[np.maximum(tiling.owner, 0)], -1)
