"""Trace files to a job: in, paths; out, a Job of ranks with their tables, hosts and what is missing."""

import glob
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracereplay.errors import TraceError
from tracereplay.trace.kineto import read_kineto
from tracereplay.trace.table import EventTable

if TYPE_CHECKING:
    from tracereplay.manifest import Manifest

_MANIFEST = "manifest.json"
_SUFFIXES = (".json", ".json.gz")
# The spellings that profilers' file names use: rank3, rank_3, rank-34, worker0.
_RANK_IN_NAME = re.compile(r"(?:^|[^a-zA-Z])(?:rank|worker)[_-]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RankTrace:
    """One rank of a job: its number (None where nothing says it), where the number comes from, its events, its host."""

    rank: int | None
    rank_source: str
    table: EventTable
    host: str | None


@dataclass(frozen=True, slots=True)
class Job:
    """The ranks of one job in rank order, its size as recorded, and what the reading had to assume."""

    ranks: tuple[RankTrace, ...]
    world_size: int | None
    manifest: "Manifest | None"
    warnings: tuple[str, ...]

    @property
    def ranks_present(self) -> tuple[int, ...]:
        """Rank numbers that are here."""
        return tuple(trace.rank for trace in self.ranks if trace.rank is not None)

    @property
    def ranks_missing(self) -> tuple[int, ...]:
        """Rank numbers below the recorded world size that are not here."""
        return tuple(sorted(set(range(self.world_size or 0)) - set(self.ranks_present)))

    @property
    def files(self) -> list[str]:
        """The files read, in rank order."""
        return [trace.table.path for trace in self.ranks]


def read_job(paths: Sequence[str], *, manifest: Path | None = None, ranks: frozenset[int] | None = None) -> Job:
    """The job whose ranks ``paths`` hold: trace files, directories, or quoted globs.

    ``manifest`` names a manifest file; without it a ``manifest.json`` beside the first trace is used. ``ranks`` keeps
    only those rank numbers.

    Raises:
        TraceError: nothing to read, an unreadable file, or two files that claim the same rank.
    """
    files = find_trace_files(paths)
    record = _manifest_for(files, manifest)
    with ThreadPoolExecutor(max_workers=2) as pool:
        tables = list(pool.map(read_kineto, files))
    traces = sorted((_identify(table, record, len(files) == 1) for table in tables), key=_order)
    kept = [trace for trace in traces if ranks is None or trace.rank in ranks]
    if not kept:
        raise TraceError(f"no trace of rank {sorted(ranks or ())}", where=", ".join(paths), hint="see `tracereplay info`")
    _refuse_conflicts(kept)
    world_size = _world_size(kept, record)
    return Job(tuple(kept), world_size, record, tuple(_warnings(kept, world_size)))


def find_trace_files(paths: Sequence[str]) -> list[Path]:
    """The trace files that ``paths`` name, in the order given and sorted within a directory or glob.

    Raises:
        TraceError: a path that does not exist, or a directory or glob without traces.
    """
    found: list[Path] = []
    for text in paths:
        path = Path(text)
        if path.is_dir():
            matches = sorted(p for p in path.iterdir() if p.name.endswith(_SUFFIXES) and p.name != _MANIFEST)
            if not matches:
                raise TraceError("a folder without traces", where=text, hint="it should hold *.json or *.json.gz files")
        elif path.exists():
            matches = [path]
        else:
            matches = sorted(Path(match) for match in glob.glob(text) if Path(match).name != _MANIFEST)  # noqa: PTH207 - may be absolute
            if not matches:
                raise TraceError("no such file or folder", where=text, hint="check the path")
        found.extend(match for match in matches if match not in found)
    return found


def _manifest_for(files: list[Path], given: Path | None) -> "Manifest | None":
    path = given or files[0].parent / _MANIFEST
    if given is None and not path.is_file():
        return None
    from tracereplay.manifest import read_manifest  # noqa: PLC0415 - pydantic's 0.1 s only where there is a manifest

    return read_manifest(path)


def _identify(table: EventTable, manifest: "Manifest | None", alone: bool) -> RankTrace:
    rank, source = table.header.rank, "metadata"
    if rank is None:
        match = _RANK_IN_NAME.search(Path(table.path).name)
        rank, source = (int(match.group(1)), "filename") if match and not alone else (None, "none")
    host = manifest.host_of(rank) if manifest is not None and rank is not None else None
    return RankTrace(rank, source, table, host or table.header.host)


def _order(trace: RankTrace) -> tuple[bool, int, str]:
    return (trace.rank is None, trace.rank or 0, trace.table.path)


def _refuse_conflicts(traces: list[RankTrace]) -> None:
    seen: dict[int, str] = {}
    for trace in traces:
        if trace.rank is None:
            continue
        if trace.rank in seen:
            raise TraceError(
                f"rank {trace.rank} is claimed by two files: {seen[trace.rank]} and {trace.table.path}",
                hint="pass one job at a time",
            )
        seen[trace.rank] = trace.table.path


def _world_size(traces: list[RankTrace], manifest: "Manifest | None") -> int | None:
    sizes = [t.table.header.world_size for t in traces if t.table.header.world_size is not None]
    if manifest is not None:
        sizes.append(manifest.world_size)
    return max(sizes) if sizes else None


def _warnings(traces: list[RankTrace], world_size: int | None) -> list[str]:
    warnings = []
    unknown = [Path(t.table.path).name for t in traces if t.rank is None]
    if unknown and len(traces) > 1:
        warnings.append(f"no rank in metadata or file name: {', '.join(unknown)}")
    present = {t.rank for t in traces}
    missing = [r for r in range(world_size or 0) if r not in present]
    if missing:
        shown = ", ".join(str(r) for r in missing[:16]) + (f" and {len(missing) - 16} more" if len(missing) > 16 else "")
        warnings.append(f"{len(missing)} of {world_size} ranks are missing: {shown}")
    return warnings
