"""What ``collect run`` shows when the job has ended: a table for each recording and what tracing cost, or a JSON document."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tracereplay.collectors.run import JobRecording, RunResult
from tracereplay.errors import ExitCode
from tracereplay.manifest import FILE_NAME, OverheadRecord, RankRecord
from tracereplay.report import jsonout
from tracereplay.units import format_ns


def exit_code(result: RunResult) -> int:
    """The job's own code; where the job went well and a rank has no trace, that of a recording that could not be made."""
    missing = any(recording.manifest.missing_ranks for recording in result.recordings)
    return int(ExitCode.INPUT) if result.exit_code == 0 and missing else result.exit_code


def envelope(folder: Path, result: RunResult) -> str:
    """The recordings as ``collect``'s JSON document."""
    recordings = [_fields(recording) for recording in result.recordings]
    fields = {"folder": str(folder), "job_exit_code": result.exit_code, "recordings": recordings}
    return jsonout.envelope("collect", [], list(result.warnings), fields)


def _fields(recording: JobRecording) -> dict[str, Any]:
    manifest = recording.manifest
    return {
        "folder": str(recording.folder),
        "manifest": FILE_NAME,
        "world_size": manifest.world_size,
        "platform": manifest.platform,
        "missing_ranks": [missing.model_dump() for missing in manifest.missing_ranks],
        "ranks": [
            {
                "rank": row.rank,
                "trace": row.trace,
                "size_bytes": recording.trace_bytes[row.rank],
                "steps": list(row.steps),
                "overhead": None if row.overhead is None else row.overhead.model_dump(),
            }
            for row in manifest.ranks
        ],
    }


def show(folder: Path, result: RunResult) -> None:
    """Print the recordings as tables, warnings and the job's end on stderr."""
    notes, screen = Console(stderr=True, highlight=False), Console(highlight=False)
    for line in result.warnings:
        notes.print(f"warning: {line}", markup=False, soft_wrap=True)
    if result.exit_code:
        notes.print(f"the job ended with exit code {result.exit_code}, which is passed on", markup=False)
    for recording in result.recordings:
        screen.print(_headline(recording), markup=False, soft_wrap=True)
        screen.print(_table(recording))
    if result.recordings:
        screen.print(f"Next: tracereplay replay {result.recordings[-1].folder}", markup=False, soft_wrap=True)
    elif not result.warnings:
        notes.print(f"nobody asked for a recording: {folder} is empty", markup=False, soft_wrap=True)


def _headline(recording: JobRecording) -> str:
    found, world = len(recording.manifest.ranks), recording.manifest.world_size
    ranks = "1 rank" if world == 1 else f"{world} ranks" if found == world else f"{found} of {world} ranks"
    return f"Recorded {ranks} in {recording.folder}"


def _table(recording: JobRecording) -> Table:
    table = Table("rank", "size", "steps", "traced step", "before", "overhead", "writing", box=None)
    for row in recording.manifest.ranks:
        size = f"{recording.trace_bytes[row.rank] / 1024:,.0f} KiB"
        table.add_row(str(row.rank), size, _numbers(row), *_costs(row.overhead))
    return table


def _numbers(row: RankRecord) -> str:
    return f"{row.steps[0]} to {row.steps[-1]}"


def _costs(overhead: OverheadRecord | None) -> tuple[str, str, str, str]:
    if overhead is None:
        return "", "", "", ""
    before = "not timed" if overhead.plain_ns is None else format_ns(overhead.plain_ns)
    share = "unknown" if overhead.share is None else f"{overhead.share:+.1%}"
    return format_ns(overhead.traced_ns), before, share, format_ns(overhead.write_ns)
