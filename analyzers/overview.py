"""What a job's traces hold: in, a Job; out, the numbers of ``tracereplay info``.

An interval is half open. Device work is kernels, copies and memory sets; window = first start to last end; busy = length of
the union over the streams of one device. Law: busy + idle = window on every device.
"""

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracereplay.trace.classify import WorkClass, classes_of_names
from tracereplay.trace.clock import RankClock
from tracereplay.trace.collectives import collective_rows
from tracereplay.trace.job import Conflict, Job, RankTrace
from tracereplay.trace.links import OwnerKind
from tracereplay.trace.schema import DEVICE_ROLES, Role
from tracereplay.trace.steps import find_steps
from tracereplay.trace.table import Device, EventTable, Quality
from tracereplay.trace.times import Int64s, union_ns

# Categories that hold no work: the profiler's own span, its overhead, counters and host instants.
_WITHOUT_WORK = frozenset({"Trace", "overhead", "cpu_instant_event", "gpu_pm_counter", "cuda_profiler_range", "ac2g", "fwdbwd"})
_LAUNCH_CALL = re.compile(r"(Launch(Cooperative)?Kernel|GraphLaunch|Memcpy|Memset)")
_MEMORY_KERNEL = re.compile(r"^(__amd_rocclr_)?(copyBuffer|fillBuffer)|^Mem(cpy|set)", re.I)


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step of a rank: its number, the length of its mark (None where it is cut), whether it is whole."""

    number: int
    dur_ns: int | None
    whole: bool


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """Busy and idle time of one device within the rank's window."""

    device: int
    busy_ns: int
    idle_ns: int | None


@dataclass(frozen=True, slots=True)
class StreamUse:
    """Work of one stream."""

    device: int
    stream: int | None
    events: int
    busy_ns: int


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """The device side of a rank; unions, except ``work_ns``, which is a sum of durations. ``raw_`` figures are those of
    the recorded durations, before impossible ones were cut. Window and idle are None where the end of the file is lost.
    """

    window_ns: int | None
    busy_ns: int
    idle_ns: int | None
    compute_ns: int
    comm_ns: int
    memory_ns: int
    overlap_ns: int
    exposed_comm_ns: int
    work_ns: int
    same_stream_overlap_ns: int
    raw_work_ns: int
    raw_window_ns: int
    devices: tuple[DeviceUse, ...]
    streams: tuple[StreamUse, ...]


@dataclass(frozen=True, slots=True)
class Links:
    """Device work with and without a launching call, launching calls without work, and how owners are known. The first
    three are None where no calls are recorded at all.
    """

    linked: int | None
    orphans: int | None
    launches_without_work: int | None
    owners: dict[str, int]


@dataclass(frozen=True, slots=True)
class CategoryCount:
    """How many events a category has."""

    category: str
    events: int


@dataclass(frozen=True, slots=True)
class RankOverview:
    """One rank of ``info``; ``gpu`` is None where no device work is recorded. ``not_interpreted`` counts the events of
    categories that this version gives no meaning.
    """

    rank: int | None
    rank_source: str
    world_size: int | None
    file: str
    events: int
    devices: tuple[Device, ...]
    steps: tuple[StepRow, ...]
    counts: dict[str, int]
    gpu: DeviceTime | None
    links: Links
    quality: Quality
    not_interpreted: tuple[CategoryCount, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """The result of ``tracereplay info``."""

    ranks: tuple[RankOverview, ...]
    ranks_present: tuple[int, ...]
    ranks_missing: tuple[int, ...]
    conflicts: tuple[Conflict, ...]
    common_steps: tuple[int, ...]
    clock: tuple[RankClock, ...]


def survey(job: Job, steps: frozenset[int] | None = None) -> Overview:
    """The overview of a job; ``steps`` lists those step numbers only."""
    ranks = tuple(_rank(trace, steps) for trace in job.ranks)
    whole = [{s.number for s in r.steps if s.whole} for r in ranks]
    clocks = tuple(t.clock for t in job.ranks)
    return Overview(ranks, job.ranks_present, job.ranks_missing, job.conflicts, tuple(sorted(set.intersection(*whole))), clocks)


def notes(overview: Overview) -> list[str]:
    """Why figures are missing, one line a reason."""
    cpu_only = [str(r.rank) for r in overview.ranks if r.gpu is None]
    gpu_only = [str(r.rank) for r in overview.ranks if r.gpu is not None and r.links.linked is None]
    cut = [str(r.rank) for r in overview.ranks if r.gpu is not None and r.gpu.window_ns is None]
    reasons = (
        (cpu_only, "no device work is recorded: gpu is null"),
        (gpu_only, "no runtime calls are recorded: linked, orphans and launches_without_work are null"),
        (cut, "the end of the file is lost: window_ns and idle_ns are null"),
    )
    odd = sorted({c.category for r in overview.ranks for c in r.not_interpreted})
    lines = [f"rank {', '.join(ranks)}: {reason}" for ranks, reason in reasons if ranks]
    early = [f"{r.quality.clock_violations} of rank {r.rank}" for r in overview.ranks if r.quality.clock_violations]
    if early:
        lines.append(f"pieces of work that start before their launch: {', '.join(early)}")
    if odd:
        total = sum(c.events for r in overview.ranks for c in r.not_interpreted)
        lines.append(f"{total:,} events of categories without a meaning here are not counted as work: {', '.join(odd)}")
    return lines


def _rank(trace: RankTrace, wanted: frozenset[int] | None) -> RankOverview:
    table = trace.table
    marks = find_steps(table)
    steps = [StepRow(s.number, s.dur_ns, True) for s in marks.whole] + [StepRow(n, None, False) for n in marks.cut]
    work = table.rows_of(*DEVICE_ROLES)
    calls = table.column("launch_row")[work]
    return RankOverview(
        rank=trace.rank,
        rank_source=trace.rank_source,
        world_size=table.header.world_size,
        file=table.path,
        events=table.recorded_events,
        devices=table.header.devices,
        steps=tuple(sorted((s for s in steps if wanted is None or s.number in wanted), key=lambda s: s.number)),
        counts=_counts(table),
        gpu=_device_time(table),
        links=_links(table, work, calls),
        quality=table.quality,
        not_interpreted=_not_interpreted(table),
    )


def _not_interpreted(table: EventTable) -> tuple[CategoryCount, ...]:
    categories = table.dictionary("category")
    rows = table.rows_of(Role.OTHER)
    numbers = np.bincount(table.codes("category")[rows], minlength=len(categories))
    pairs = zip(categories, numbers.tolist(), strict=True)
    return tuple(CategoryCount(name, n) for name, n in sorted(pairs) if n and name not in _WITHOUT_WORK)


def _counts(table: EventTable) -> dict[str, int]:
    counts = {
        name: int(table.rows_of(role).size)
        for name, role in (
            ("cpu_op", Role.CPU_OP),
            ("runtime", Role.RUNTIME),
            ("kernel", Role.KERNEL),
            ("memcpy", Role.MEMCPY),
            ("memset", Role.MEMSET),
        )
    }
    counts["collective"] = int(collective_rows(table).size)
    return counts


def _links(table: EventTable, work: Int64s, calls: Int64s) -> Links:
    launching = np.array([_LAUNCH_CALL.search(name) is not None for name in table.names], np.bool_)
    runtime = table.rows_of(Role.RUNTIME)
    linked = calls >= 0
    # A call that launched something is a launch whatever it is called; names only find those without work.
    without = np.setdiff1d(runtime[launching[table.codes("name")[runtime]]], calls[linked])
    owners = table.column("owner_row")[work]
    own_id = _own_id(table, work, calls)
    by_id = (owners >= 0) & (own_id >= 0) & (table.column("external_id")[owners] == own_id)
    counts = {OwnerKind.EXTERNAL_ID: by_id, OwnerKind.CONTAINMENT: (owners >= 0) & ~by_id, OwnerKind.NONE: owners < 0}
    recorded = runtime.size > 0
    return Links(
        int(np.count_nonzero(linked)) if recorded else None,
        int(np.count_nonzero(~linked)) if recorded else None,
        int(without.size) if recorded else None,
        {kind.name.lower(): int(np.count_nonzero(mask)) for kind, mask in counts.items()},
    )


def _own_id(table: EventTable, work: Int64s, calls: Int64s) -> Int64s:
    ids = table.column("external_id")
    return np.where(ids[work] >= 0, ids[work], np.where(calls >= 0, ids[calls], -1))


def _device_time(table: EventTable) -> DeviceTime | None:
    rows = table.rows_of(*DEVICE_ROLES)
    rows = rows[table.column("dur_ns")[rows] >= 0]
    if rows.size == 0:
        return None
    start = table.column("ts_ns")[rows]
    end = start + table.column("dur_ns")[rows]
    raw_end = start + table.column("raw_dur_ns")[rows]
    device = table.column("device")[rows]
    comm, memory = _split(table, rows)
    compute = ~comm & ~memory
    window = None if table.quality.end_lost else int(end.max() - start.min())
    parts = {name: _over_devices(device, start, end, mask) for name, mask in _masks(comm, memory, compute).items()}
    overlap = parts["comm"] + parts["compute"] - parts["both"]
    devices = tuple(
        DeviceUse(int(d), busy := union_ns(start[device == d], end[device == d]), None if window is None else window - busy)
        for d in np.unique(device)
    )
    streams, stream_overlap = _streams(table, rows, start, end)
    busy_ns = sum(d.busy_ns for d in devices)
    return DeviceTime(
        window_ns=window,
        busy_ns=busy_ns,
        idle_ns=None if window is None else sum(d.idle_ns or 0 for d in devices),
        compute_ns=parts["compute"],
        comm_ns=parts["comm"],
        memory_ns=parts["memory"],
        overlap_ns=overlap,
        exposed_comm_ns=parts["comm"] - overlap,
        work_ns=int((end - start).sum()),
        same_stream_overlap_ns=stream_overlap,
        raw_work_ns=int(raw_end.sum() - start.sum()),
        raw_window_ns=int(raw_end.max() - start.min()),
        devices=devices,
        streams=streams,
    )


def _masks(
    comm: npt.NDArray[np.bool_], memory: npt.NDArray[np.bool_], compute: npt.NDArray[np.bool_]
) -> dict[str, npt.NDArray[np.bool_]]:
    return {"comm": comm, "memory": memory, "compute": compute, "both": comm | compute}


def _over_devices(device: Int64s, start: Int64s, end: Int64s, mask: npt.NDArray[np.bool_]) -> int:
    return sum(union_ns(start[mask & (device == d)], end[mask & (device == d)]) for d in np.unique(device))


def _split(table: EventTable, rows: Int64s) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which device rows are communication and which move memory: by role, then by the vendor's copy kernels."""
    names = table.codes("name")[rows]
    kernel = table.column("role")[rows] == Role.KERNEL
    comm = kernel & (classes_of_names(table.names, operators=False, rules=table.rules)[names] == WorkClass.COLLECTIVE)
    copies = np.array([_MEMORY_KERNEL.search(name) is not None for name in table.names], np.bool_)[names]
    return comm, ~kernel | (copies & ~comm)


def _streams(table: EventTable, rows: Int64s, start: Int64s, end: Int64s) -> tuple[tuple[StreamUse, ...], int]:
    device, stream = table.column("device")[rows], table.column("stream")[rows]
    uses, overlap = [], 0
    for d, s in sorted({(int(a), int(b)) for a, b in zip(device, stream, strict=True)}):
        mine = (device == d) & (stream == s)
        busy = union_ns(start[mine], end[mine])
        uses.append(StreamUse(d, s if s >= 0 else None, int(mine.sum()), busy))
        overlap += int((end - start)[mine].sum()) - busy
    return tuple(uses), overlap
