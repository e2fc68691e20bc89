"""Trace files to a job: in, paths; out, a Job of ranks with their tables, hosts and what is missing."""

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tracereplay.errors import TraceError
from tracereplay.trace.cache import read_cached
from tracereplay.trace.clock import SKEW_NS, UNKNOWN_CLOCK, RankClock, contradictions, fit_clock
from tracereplay.trace.collectives import (
    ENDS_TOGETHER,
    CollectiveKey,
    RecordedCollective,
    is_host_annotation,
    keys_of_job,
    recorded_collectives,
)
from tracereplay.trace.execution import attach, read_execution_trace
from tracereplay.trace.kineto import read_kineto
from tracereplay.trace.rules import read_rules
from tracereplay.trace.steps import find_steps
from tracereplay.trace.store import read_job_directory, read_job_manifest
from tracereplay.trace.table import EventTable

if TYPE_CHECKING:
    from tracereplay.manifest import Manifest

MANIFEST = "manifest.json"
_SUFFIXES = (".json", ".json.gz", ".json.zst", ".json.zip", ".zip")
# Compressed bytes from which starting processes (about 1 s each) pays: some 40 MB of JSON, 0.6 s to read.
_PARALLEL_BYTES = 16 << 20
# The spellings that profilers' file names use: rank3, rank_3, rank-34, worker0.
_RANK_IN_NAME = re.compile(r"(?:^|[^a-zA-Z])(?:rank|worker)[_-]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RankTrace:
    """One rank of a job: its number (None where nothing says it), where the number comes from, its events, its host, its
    clock. Times of ``table`` are on the job's clock where ``clock`` says so.
    """

    rank: int | None
    rank_source: str
    table: EventTable
    host: str | None
    clock: RankClock = UNKNOWN_CLOCK


@dataclass(frozen=True, slots=True)
class Extras:
    """What is read beside the traces: a manifest, execution traces, a user's classifier rules; whether the cache is used,
    and who is told of each file that has been read.
    """

    manifest: Path | None = None
    execution_traces: tuple[str, ...] = ()
    rules: Path | None = None
    cache: bool = False
    on_file: Callable[[int, int], None] | None = None


NO_EXTRAS = Extras()


@dataclass(frozen=True, slots=True)
class Conflict:
    """Several files that claim one rank."""

    rank: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """The ranks of one job in rank order, its size as recorded, files in conflict, and what the reading had to assume."""

    ranks: tuple[RankTrace, ...]
    world_size: int | None
    manifest: "Manifest | None"
    warnings: tuple[str, ...]
    conflicts: tuple[Conflict, ...] = ()

    @property
    def ranks_present(self) -> tuple[int, ...]:
        """Rank numbers that are here."""
        return tuple(trace.rank for trace in self.ranks if trace.rank is not None)

    @property
    def ranks_missing(self) -> tuple[int, ...]:
        """Rank numbers below the recorded world size that are not here."""
        return tuple(sorted(set(range(self.world_size or 0)) - set(self.ranks_present)))

    def host_of(self, rank: int | None) -> str | None:
        """The host of a rank, as its trace or, for one that is not here, the manifest says; None where neither does."""
        here = next((trace.host for trace in self.ranks if trace.rank == rank), None)
        if here is not None or rank is None or self.manifest is None:
            return here
        return self.manifest.host_of(rank)

    @property
    def files(self) -> list[str]:
        """The files read, in rank order."""
        return [trace.table.path for trace in self.ranks]


def read_job(paths: Sequence[str], *, ranks: frozenset[int] | None = None, extras: Extras = NO_EXTRAS) -> Job:
    """The job whose ranks ``paths`` hold: trace files, directories, or quoted globs.

    Without a manifest in ``extras`` a ``manifest.json`` beside the first trace is used. ``ranks`` keeps only those rank
    numbers.

    Raises:
        TraceError: nothing to read, an unreadable file, or two files that claim the same rank.
    """
    job = survey_job(paths, ranks=ranks, extras=extras)
    refuse_conflicts(job)
    return job


def refuse_conflicts(job: Job) -> None:
    """Raise for the first rank that several files claim.

    Raises:
        TraceError: naming the files.
    """
    for conflict in job.conflicts:
        raise TraceError(
            f"rank {conflict.rank} is claimed by {len(conflict.files)} files: {' and '.join(conflict.files)}",
            hint="pass one job at a time",
        )


def survey_job(
    paths: Sequence[str], *, ranks: frozenset[int] | None = None, extras: Extras = NO_EXTRAS, clocks: bool = True
) -> Job:
    """The same as ``read_job``, but files in conflict are listed instead of refused; they all stay among the ranks.
    Without ``clocks`` times stay on each rank's own clock.

    Raises:
        TraceError: nothing to read, or an unreadable file.
    """
    tables, record = _read_all(paths, extras)
    traces, notes = _with_extras(sorted((_identify(table, record) for table in tables), key=_order), extras)
    kept = [trace for trace in traces if ranks is None or trace.rank in ranks]
    if not kept:
        raise TraceError(f"no trace of rank {sorted(ranks or ())}", where=", ".join(paths), hint="see `tracereplay info`")
    absent = sorted((ranks or frozenset()) - {trace.rank for trace in kept if trace.rank is not None})
    if absent:
        notes.append(f"asked for ranks that are not there: {listed(absent)}")
    world_size = _world_size(kept, record)
    conflicts = _conflicts(kept)
    aligned = kept if conflicts or not clocks else align(kept)
    return Job(tuple(aligned), world_size, record, (*notes, *_warnings(aligned, world_size, clocks=clocks)), conflicts)


def _read_all(paths: Sequence[str], extras: Extras) -> tuple[list[EventTable], "Manifest | None"]:
    """The tables that ``paths`` hold, from job directories or trace files, and the manifest beside the first."""
    stored = [read_job_directory(Path(path)) if Path(path).is_dir() else None for path in paths]
    tables = [table for part in stored if part is not None for table in part]
    rest = [path for path, part in zip(paths, stored, strict=True) if part is None]
    files = find_trace_files(rest) if rest else []
    record = _manifest_for([*files, *(Path(path) / MANIFEST for path in paths)], extras.manifest)
    if record is None:
        record = next((m for path in paths if (m := _stored_manifest(Path(path))) is not None), None)
    return [*tables, *read_tables(files, extras)], record


def read_tables(files: Sequence[Path], extras: Extras = NO_EXTRAS) -> list[EventTable]:
    """The tables of several files, in their order; large sets are read by as many processes as there are cores."""
    read = read_cached if extras.cache else read_kineto
    total = sum(file.stat().st_size for file in files if file.exists())
    workers = min(len(files), os.cpu_count() or 1)
    if workers < 2 or total < _PARALLEL_BYTES:
        return list(_counted(map(read, files), len(files), extras))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(_counted(pool.map(read, files), len(files), extras))


def _counted(tables: Iterable[EventTable], total: int, extras: Extras) -> Iterator[EventTable]:
    for number, table in enumerate(tables, 1):
        if extras.on_file is not None:
            extras.on_file(number, total)
        yield table


def _with_extras(traces: list[RankTrace], extras: Extras) -> tuple[list[RankTrace], list[str]]:
    """The ranks with a user's rules and with the collectives of their execution traces; what matched is counted."""
    notes = []
    if extras.rules is not None:
        rules = read_rules(extras.rules)
        traces = [replace(t, table=replace(t.table, rules=rules, _columns={}, _memory={})) for t in traces]
    if extras.execution_traces:
        executions = [read_execution_trace(file) for file in find_trace_files(extras.execution_traces)]
        tables, counts = attach([(t.table, t.rank) for t in traces], executions)
        traces = [replace(t, table=table) for t, table in zip(traces, tables, strict=True)]
        notes.append(f"execution traces: {counts['matched']} ranks matched, {counts['unmatched']} files without a rank here")
    return traces, notes


def find_trace_files(paths: Sequence[str]) -> list[Path]:
    """The trace files that ``paths`` name, in the order given and sorted within a directory or glob.

    Raises:
        TraceError: a path that does not exist, or a directory or glob without traces.
    """
    found: list[Path] = []
    for text in paths:
        path = Path(text)
        if not text:
            raise TraceError("an empty path", where="''", hint="check the path")
        if path.is_dir():
            matches = sorted(p for p in path.iterdir() if p.name.endswith(_SUFFIXES) and p.name != MANIFEST)
            if not matches:
                raise TraceError("a folder without traces", where=text, hint="it should hold *.json or *.json.gz files")
        elif path.exists():
            matches = [path]
        else:
            matches = sorted(Path(match) for match in glob.glob(text) if Path(match).name != MANIFEST)  # noqa: PTH207 - may be absolute
            if not matches:
                raise TraceError("no such file or folder", where=text, hint="check the path")
        found.extend(match for match in matches if match not in found)
    return found


def align(traces: list[RankTrace]) -> list[RankTrace]:
    """The ranks with their clocks measured against the first rank's, and their times put on it where that is needed.

    Ranks that share a host share its clock; what their collectives say against that is counted. Another host's clock is
    measured at the collectives that its ranks share with ranks whose clock is known already; an offset within its interval is
    left alone.
    """
    shared = _ending_together([trace.table for trace in traces])
    ends = [{key: c.end_ns for key, c in own.items()} for own in shared]
    clocks: dict[int, RankClock] = {}
    known_ends: dict[CollectiveKey, int] = {}
    groups = _by_clock(traces)
    against = _contradictions(groups, traces, shared)
    _take(clocks, known_ends, ends, groups.pop(0), RankClock(traces[0].rank, 0, 0.0, 0, 0, len(ends[0])))
    while groups:
        common = [sum(key in known_ends for r in group for key in ends[r]) for group in groups]
        best = int(np.argmax(common))
        group = groups.pop(best)
        own = [(ends[r][key], known_ends[key]) for r in group for key in ends[r] if key in known_ends]
        clock = fit_clock(None, [a for a, _ in own], [b for _, b in own], apply=True)
        farthest = max(_drifted(clock, traces[r].table) for r in group)
        needed = max(abs(clock.offset_ns or 0), farthest) > 2 * (clock.interval_ns or 0) + SKEW_NS
        _take(clocks, known_ends, ends, group, replace(clock, applied=needed))
    return [_on_clock(trace, replace(clocks[n], contradicted=against[n])) for n, trace in enumerate(traces)]


def _by_clock(traces: list[RankTrace]) -> list[list[int]]:
    """Numbers of the ranks that share a clock: those of one host; a rank without a host stands alone."""
    groups: dict[str, list[int]] = {}
    for number, trace in enumerate(traces):
        groups.setdefault(trace.host if trace.host is not None else f"\0{number}", []).append(number)
    return list(groups.values())


def _contradictions(
    groups: list[list[int]], traces: list[RankTrace], shared: list[dict[CollectiveKey, RecordedCollective]]
) -> dict[int, int]:
    """For each rank how many collectives contradict the clock of its host. Those of CPU backends end too differently to
    tell.
    """
    found = {}
    for group in groups:
        known: dict[CollectiveKey, int] = {}
        for rank in group:
            table = traces[rank].table
            own = {key: c.end_ns for key, c in shared[rank].items() if not is_host_annotation(table.name_of(c.row))}
            both = [key for key in own if key in known]
            found[rank] = contradictions([own[key] for key in both], [known[key] for key in both])
            known = own | known
    return found


def _take(
    clocks: dict[int, RankClock],
    known_ends: dict[CollectiveKey, int],
    ends: list[dict[CollectiveKey, int]],
    group: list[int],
    clock: RankClock,
) -> None:
    """Give a clock to the ranks of a group, and their ends on the first rank's clock to those still to be measured."""
    for rank in group:
        clocks[rank] = clock
        if clock.offset_ns is not None:
            for key, end in ends[rank].items():
                known_ends.setdefault(key, int(clock.corrected(np.array([end], np.int64))[0]))


def _on_clock(trace: RankTrace, clock: RankClock) -> RankTrace:
    table = trace.table.at(clock.corrected(trace.table.column("ts_ns"))) if clock.applied else trace.table
    return replace(trace, table=table, clock=replace(clock, rank=trace.rank))


def _drifted(clock: RankClock, table: EventTable) -> int:
    """How far the drift carries the clock over the recording."""
    ts = table.column("ts_ns")
    return round(abs(clock.drift_ppm or 0.0) * 1e-6 * float(ts.max() - ts.min()))


def _ending_together(tables: list[EventTable]) -> list[dict[CollectiveKey, RecordedCollective]]:
    """For each rank the collectives that end together on all their ranks. A send/receive kernel counts where another rank
    knows it for an all-to-all: as point-to-point work its ends say nothing.
    """
    recorded = [recorded_collectives(table) for table in tables]
    keys = keys_of_job([(c, find_steps(table).whole) for c, table in zip(recorded, tables, strict=True)])
    pairs = [list(zip(own, collectives, strict=True)) for own, collectives in zip(keys, recorded, strict=True)]
    together = {key for own in pairs for key, c in own if c.name in ENDS_TOGETHER}
    return [{key: c for key, c in own if key in together} for own in pairs]


def _manifest_for(files: list[Path], given: Path | None) -> "Manifest | None":
    path = given or files[0].parent / MANIFEST
    if given is None and not path.is_file():
        return None
    from tracereplay.manifest import read_manifest  # noqa: PLC0415 - pydantic's 0.1 s only where there is a manifest

    return read_manifest(path)


def _stored_manifest(folder: Path) -> "Manifest | None":
    """The manifest in a job directory."""
    fields = read_job_manifest(folder)
    if fields is None:
        return None
    from tracereplay.manifest import manifest_of  # noqa: PLC0415 - pydantic's 0.1 s only where there is a manifest

    return manifest_of(fields, str(folder))


def _identify(table: EventTable, manifest: "Manifest | None") -> RankTrace:
    rank, source = table.header.rank, "metadata"
    if rank is None:
        match = _RANK_IN_NAME.search(Path(table.path).name)
        rank, source = (int(match.group(1)), "filename") if match else (None, "none")
    host = manifest.host_of(rank) if manifest is not None and rank is not None else None
    return RankTrace(rank, source, table, host or table.header.host)


def _order(trace: RankTrace) -> tuple[bool, int, str]:
    return (trace.rank is None, trace.rank or 0, trace.table.path)


def _conflicts(traces: list[RankTrace]) -> tuple[Conflict, ...]:
    files: dict[int, list[str]] = {}
    for trace in traces:
        if trace.rank is not None:
            files.setdefault(trace.rank, []).append(trace.table.path)
    return tuple(Conflict(rank, tuple(names)) for rank, names in sorted(files.items()) if len(names) > 1)


def _world_size(traces: list[RankTrace], manifest: "Manifest | None") -> int | None:
    sizes = [t.table.header.world_size for t in traces if t.table.header.world_size is not None]
    if manifest is not None:
        sizes.append(manifest.world_size)
    return max(sizes) if sizes else None


def _warnings(traces: list[RankTrace], world_size: int | None, *, clocks: bool) -> list[str]:
    warnings = []
    unknown = [Path(t.table.path).name for t in traces if t.rank is None]
    if unknown and len(traces) > 1:
        warnings.append(f"no rank in metadata or file name: {', '.join(unknown)}")
    damaged = [f"{Path(t.table.path).name} is {t.table.quality.damage}" for t in traces if t.table.quality.damage]
    warnings += damaged
    warnings += [f"{Path(t.table.path).name}: {t.table.quality.repairs}" for t in traces if t.table.quality.repairs]
    blind = [str(t.rank) for t in traces if t.clock.offset_ns is None and t.rank is not None]
    if clocks and blind and len({t.rank for t in traces}) == len(traces):
        warnings.append(
            f"no common collective aligns the clocks of ranks {', '.join(blind)}: nothing is said across these ranks"
        )
    warnings += [
        f"{t.clock.contradicted} collectives of rank {t.rank} contradict that it shares the clock of host {t.host}: they end "
        "farther apart than ends scatter, and times are compared as recorded"
        for t in traces
        if clocks and t.clock.contradicted
    ]
    present = {t.rank for t in traces}
    missing = [r for r in range(world_size or 0) if r not in present]
    if missing:
        warnings.append(f"{len(missing)} of {world_size} ranks are missing: {listed(missing)}")
    return warnings


def listed(ranks: Sequence[int]) -> str:
    """Rank numbers as text, the first 16 of many."""
    return ", ".join(str(r) for r in ranks[:16]) + (f" and {len(ranks) - 16} more" if len(ranks) > 16 else "")
