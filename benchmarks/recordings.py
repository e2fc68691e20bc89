"""Which recordings a folder of traces holds: in, a folder; out, jobs to replay, and files left out with the reason.

Both are decided by what the files hold, never by what they are called. A folder is one job where its files say that they are
different ranks of a job of one size; otherwise each file is a job of its own.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from tracereplay.trace.job import Job, RankTrace, survey_job
from tracereplay.trace.schema import DEVICE_ROLES, HOST_ROLES, Role
from tracereplay.trace.table import EventTable

_SUFFIX = re.compile(r"(\.pt)?(\.trace)?\.json(\.\w+)?$")
# HTA's overlay of a critical path marks each event on it with ``args.critical`` (``overlay_critical_path_analysis``).
_OVERLAY_KEY = "critical"


@dataclass(frozen=True, slots=True)
class Recording:
    """One job: the set that it belongs to, what it is called in tables, and its files."""

    set_name: str
    name: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that is no recording to replay, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Recordings:
    """What one or several folders hold."""

    jobs: tuple[Recording, ...]
    left_out: tuple[LeftOut, ...]


def find_recordings(folders: Sequence[Path]) -> Recordings:
    """The recordings of all folders, each a set, in the given order.

    Raises:
        TracereplayError: a file that cannot be read.
    """
    found = [_of_folder(folder) for folder in folders]
    return Recordings(
        tuple(job for one in found for job in one.jobs),
        tuple(file for one in found for file in one.left_out),
    )


def _of_folder(folder: Path) -> Recordings:
    job = survey_job([str(folder)])
    reasons = {trace.table.path: reason_to_leave_out(trace.table) for trace in job.ranks}
    kept = [trace for trace in job.ranks if reasons[trace.table.path] is None]
    left_out = sorted((path, reason) for path, reason in reasons.items() if reason is not None)
    return Recordings(_jobs(folder, job, kept), tuple(LeftOut(_called(folder, path), reason) for path, reason in left_out))


def _jobs(folder: Path, job: Job, kept: Sequence[RankTrace]) -> tuple[Recording, ...]:
    paths = sorted(trace.table.path for trace in kept)
    if len(paths) > 1 and _is_one_job(job, kept):
        return (Recording(folder.name, folder.name, tuple(paths)),)
    return tuple(Recording(folder.name, _called(folder, path), (path,)) for path in paths)


def _is_one_job(job: Job, traces: Sequence[RankTrace]) -> bool:
    ranks = {trace.rank for trace in traces}
    sizes = {trace.table.header.world_size or (job.manifest and job.manifest.world_size) for trace in traces}
    return len(ranks) == len(traces) and None not in ranks and len(sizes) == 1 and None not in sizes


def reason_to_leave_out(table: EventTable) -> str | None:
    """Why a file is no recording of a host and its work; None where it is one."""
    if not table.rows_of(*HOST_ROLES).size:
        return "holds no host rows: nothing says what enqueued its work"
    if not table.rows_of(Role.CPU_OP, *DEVICE_ROLES).size:
        return "holds no work: neither operators nor device work"
    if _is_overlay(table):
        return "is another tool's output: HTA's overlay of a critical path on a trace"
    return None


def _is_overlay(table: EventTable) -> bool:
    found = pc.match_substring(table.with_text().column("text"), f'"{_OVERLAY_KEY}"')
    rows = np.flatnonzero(found.to_numpy()).tolist()
    return any(_OVERLAY_KEY in table.args_of(row) for row in rows)


def _called(folder: Path, path: str) -> str:
    return f"{folder.name}/{_SUFFIX.sub('', Path(path).name)}"
