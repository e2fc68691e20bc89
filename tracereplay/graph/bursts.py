"""The stretches in which the autograd engine runs a backward pass: in, rows of host threads; out, one burst a pass.

A burst is what a thread of the engine does while the forward thread does nothing of its own: leaves of the graph that the
engine runs on the forward thread (``autograd::engine::evaluate_function`` there) belong to the burst.
"""

from dataclasses import dataclass

import numpy as np

from tracereplay.trace.table import EventTable
from tracereplay.trace.times import Int64s

ENGINE_PREFIX = "autograd::engine::evaluate_function"


@dataclass(frozen=True, slots=True)
class Burst:
    """One backward pass on a thread of the engine: thread index, begin, end."""

    thread: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Bursts:
    """The backward passes of a rank, and how many stretches of the engine overlap with work of the forward thread."""

    passes: tuple[Burst, ...]
    refuted: int


def engine_codes(table: EventTable) -> Int64s:
    """Name codes of the engine's own events."""
    return np.array([code for code, name in enumerate(table.names) if name.startswith(ENGINE_PREFIX)], np.int64)


def find_bursts(table: EventTable, threads: list[Int64s], main: int) -> Bursts:
    """Bursts of every backward thread while ``main`` is silent, and how many overlap with work of ``main``."""
    codes = engine_codes(table)
    if main < 0 or codes.size == 0:
        return Bursts((), 0)
    progress = _progress(table, threads[main], codes)
    bursts, refuted = [], 0
    for number, rows in enumerate(threads):
        if number == main or not np.isin(table.codes("name")[rows], codes).any():
            continue
        for start, end in _runs(table, rows, progress):
            silent = np.searchsorted(progress, start, side="left") == np.searchsorted(progress, end, side="left")
            if silent:
                bursts.append(Burst(number, start, end))
            else:
                refuted += 1
    return Bursts(tuple(bursts), refuted)


def _progress(table: EventTable, rows: Int64s, codes: Int64s) -> Int64s:
    """Start times of the forward thread's own events: those that begin outside every event of the engine."""
    engine = rows[np.isin(table.codes("name")[rows], codes)]
    starts = np.sort(table.column("ts_ns")[rows])
    if engine.size == 0:
        return starts
    begin = table.column("ts_ns")[engine]
    reach = np.maximum.accumulate(begin + table.column("dur_ns")[engine])
    position = np.searchsorted(begin, starts, side="right") - 1
    return starts[(position < 0) | (starts >= reach[np.maximum(position, 0)])]


def _runs(table: EventTable, rows: Int64s, progress: Int64s) -> list[tuple[int, int]]:
    """(begin, end) of the stretches of a thread between which the forward thread made progress."""
    starts = table.column("ts_ns")[rows]
    reach = np.maximum.accumulate(starts + table.column("dur_ns")[rows])
    gap = np.flatnonzero(starts[1:] > reach[:-1])
    moved = np.searchsorted(progress, starts[gap + 1], side="right") > np.searchsorted(progress, reach[gap], side="left")
    borders = gap[moved] + 1
    begins, ends = np.concatenate([[0], borders]), np.concatenate([borders, [rows.size]]) - 1
    return [(int(starts[b]), int(reach[e])) for b, e in zip(begins, ends, strict=True)]
