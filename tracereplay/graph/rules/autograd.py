"""The forward thread hands the backward pass to the engine's device thread and waits for it.

    forward    |-host-|............ waits ............|-host-|     cut where the burst begins
    backward          |--node--|--node--|--node--|
                      ^ handed over              ^ handed back

A burst is what the backward thread does while the forward thread does nothing of its own: leaves of the graph that the
engine runs on the forward thread (``autograd::engine::evaluate_function`` there) belong to the burst.
"""

from dataclasses import dataclass

import numpy as np

from tracereplay.graph.bursts import Burst, Bursts, engine_codes
from tracereplay.graph.draft import HostThread, RankDraft
from tracereplay.graph.edges import Found, concat_edges, found, make_edges
from tracereplay.graph.kinds import Basis, Why
from tracereplay.graph.wake_up import wake_up_ns
from tracereplay.trace.table import EventTable
from tracereplay.trace.times import Int64s


def returns_ns(draft: RankDraft) -> Int64s:
    """When backward passes give the forward thread back its turn, in order: time of it that contains one is such a wait."""
    return np.sort(np.array([burst.end_ns for burst in draft.bursts.passes], np.int64))


def cut_points(table: EventTable, threads: list[Int64s], main: int, bursts: Bursts) -> dict[int, list[int]]:
    """Where a thread's gap must be cut: the forward thread, where it hands over each burst."""
    return {main: _handed_over_ns(table, threads[main], bursts.passes)} if bursts.passes else {}


def _handed_over_ns(table: EventTable, forward: Int64s, bursts: tuple[Burst, ...]) -> list[int]:
    """When each burst was handed over: a thread's wake-up before it begins, but not before the forward thread's last event
    ended.
    """
    begin = np.array([burst.start_ns for burst in bursts], np.int64)
    ends = np.sort(table.column("ts_ns")[forward] + table.column("dur_ns")[forward])
    last = np.concatenate([[0], ends])[np.searchsorted(ends, begin, side="right")]
    handed: list[int] = np.maximum(begin - wake_up_ns(table), np.minimum(np.maximum(last, 0), begin)).tolist()
    return handed


def autograd(draft: RankDraft) -> Found:
    """Edges forward → backward at the begin of each burst, back at its end and at each leaf that the forward thread runs."""
    bursts, refuted = draft.bursts.passes, draft.bursts.refuted
    if not bursts:
        return found(make_edges(Why.AUTOGRAD, Basis.INFERRED, [], []), refuted=refuted)
    given_to: list[tuple[int, int]] = []
    given_back: list[tuple[int, int]] = []
    lags: list[int] = []
    waits = []
    main = draft.threads[draft.main]
    handed = _handed_over_ns(draft.table, main.rows[main.rows >= 0], bursts)
    leaves = _leaves(draft, main)
    for burst, handed_ns in zip(bursts, handed, strict=True):
        worker = draft.threads[burst.thread]
        given = _node_starting_at(main, handed_ns)
        taken = _node_starting_at(worker, burst.start_ns)
        if given is None or taken is None or given == main.first_node:
            refuted += 1
            continue
        given_to.append((given, taken))
        lags.append(burst.start_ns - handed_ns)
        if taken > worker.first_node:
            waits.append((taken - 1, 0))
        for node, time_ns in _resumptions(main, leaves, burst):
            given_back.append((worker.node_after(time_ns), node))
            waits.append((node - 1, 0))
    # The forward thread's gap is cut one wake-up before the burst begins: that is the lag.
    there = make_edges(Why.AUTOGRAD, Basis.INFERRED, *_columns(given_to), from_start=True, lag_ns=lags)
    back = make_edges(Why.AUTOGRAD, Basis.INFERRED, *_columns(given_back), from_start=True)
    return found(concat_edges([there, back]), waits, refuted)


def _columns(pairs: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [a for a, _ in pairs], [b for _, b in pairs]


def _node_starting_at(thread: HostThread, time_ns: int) -> int | None:
    position = int(np.searchsorted(thread.tiling.start_ns, time_ns))
    inside = position < thread.node_count and thread.tiling.start_ns[position] == time_ns
    return thread.first_node + position if inside else None


@dataclass(frozen=True, slots=True)
class _Leaves:
    """The engine's events on the forward thread in order: positions in its rows, starts."""

    position: Int64s
    start_ns: Int64s


def _leaves(draft: RankDraft, main: HostThread) -> _Leaves:
    real = np.flatnonzero(main.rows >= 0)
    leaves = real[np.isin(draft.table.codes("name")[main.rows[real]], engine_codes(draft.table))]
    starts = draft.table.column("ts_ns")[main.rows[leaves]]
    order = np.argsort(starts, kind="stable")
    return _Leaves(leaves[order], starts[order])


def _resumptions(main: HostThread, leaves: _Leaves, burst: Burst) -> list[tuple[int, int]]:
    """(node, time by which the backward thread had released it) of each point where the forward thread goes on."""
    low = np.searchsorted(leaves.start_ns, burst.start_ns, side="right")
    high = np.searchsorted(leaves.start_ns, burst.end_ns, side="left")
    inside = zip(leaves.position[low:high].tolist(), leaves.start_ns[low:high].tolist(), strict=True)
    points = [(int(main.node_at_begin(position)), start) for position, start in inside]
    last = int(np.searchsorted(main.tiling.end_ns, burst.end_ns, side="left"))
    if last + 1 < main.node_count:
        points.append((main.first_node + last + 1, burst.end_ns))
    return points
