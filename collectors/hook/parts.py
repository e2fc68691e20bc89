"""What each rank tells of itself, and the manifest made of it: in, a file a rank in ``.parts``; out, ``manifest.json``.

Ranks write the manifest, each anew when its trace is in its place, so that it needs no launcher and survives whoever is killed:
the last one to finish has all ranks in it, and one that lacks a rank says which.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tracereplay.collectors.hook.platforms import platform_of
from tracereplay.collectors.hook.publish import write_json

PARTS = ".parts"
MANIFEST = "manifest.json"
SCHEMA = "tracereplay/manifest/1"  # as tracereplay.manifest has it, which a job's own Python may not be able to import

Part = dict[str, Any]  # JSON


def claim(folder: Path, part: Part) -> tuple[Path, str]:
    """Where the traces of the process that ``part`` describes belong, and the name of its part there.

    Processes of one job that were given no ranks each say that they are rank 0 of 1: the first has ``folder``, each
    other one a folder of its own in it. A rank that was started again takes the place of its dead self, unless that left a
    trace.
    """
    name = f"rank{part['rank']}"
    file = folder / PARTS / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with file.open("x") as taken:
            json.dump(part, taken)
    except FileExistsError:
        holder = read_part(file) or {}
        same = holder.get("pid") == part["pid"] and holder.get("host") == part["host"]
        gone = holder.get("host") == part["host"] and not _is_alive(int(holder.get("pid") or 0))
        if not same and (not gone or holder.get("trace")):
            own = folder / f"pid{part['pid']}"
            (own / PARTS).mkdir(parents=True, exist_ok=True)
            write_json(part, own / PARTS / f"{name}.json")
            return own, name
        write_json(part, file)
    return folder, name


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return pid > 0


def read_part(file: Path) -> Part | None:
    """A part, or None where a dying rank left half of one."""
    try:
        part = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    return part if isinstance(part, dict) and "rank" in part else None


def read_parts(folders: Sequence[Path]) -> list[Part]:
    """The parts in ``folders``, one a rank, the later telling of a rank before the earlier; by rank."""
    found: dict[int, Part] = {}
    for folder in folders:
        for file in sorted((folder / PARTS).glob("rank*.json")):
            part = read_part(file)
            if part is not None and part["told"] >= found.get(part["rank"], part)["told"]:
                found[part["rank"]] = part
    return [found[rank] for rank in sorted(found)]


def write_manifest_of(folder: Path, *, keep_parts: bool) -> None:
    """Write the manifest of the traces that are in ``folder`` by now; with all ranks in it the parts have served, unless
    they are kept.
    """
    with _one_at_a_time(folder / PARTS):
        fields = manifest_fields(read_parts([folder]))
        if fields is None:
            return
        write_json(fields, folder / MANIFEST)
        if not keep_parts and not fields["missing_ranks"]:
            shutil.rmtree(folder / PARTS)


def manifest_fields(parts: Sequence[Part]) -> dict[str, Any] | None:
    """The manifest as JSON; None where no rank has a trace."""
    traced = [part for part in parts if part["trace"] is not None]
    if not traced:
        return None
    first = traced[0]
    world = max(part["world"] for part in parts)
    hosts = {part["host"]: part["machine"] for part in traced}
    return {
        "schema": SCHEMA,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),  # noqa: UP017 - a job's Python may be 3.10
        "world_size": world,
        "backend": first["backend"],
        "clock": first["clock"],
        "hosts": list(hosts.values()),
        "ranks": [
            {key: part[key] for key in ("rank", "trace", "host", "pid", "steps", "device", "overhead")} for part in traced
        ],
        "versions": first["versions"],
        "workload": first["facts"].get("workload", {}),
        "tracer": first["tracer"],
        "missing_ranks": missing_ranks(parts, world),
        "environment": first["environment"],
        "command": first["facts"].get("command"),
        "git_commit": first["facts"].get("git_commit"),
        "platform": first["facts"].get("platform") or platform_of(list(hosts.values())),
    }


def missing_ranks(parts: Sequence[Part], world: int) -> list[dict[str, Any]]:
    """The ranks of a world without a trace here, and why as far as it is known."""
    told = {part["rank"]: part for part in parts}
    missing = [rank for rank in range(world) if rank not in told or told[rank]["trace"] is None]
    return [{"rank": rank, "why": told[rank]["why"] if rank in told else "nothing was heard of it"} for rank in missing]


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Keep other ranks from writing a manifest meanwhile, where the file system has locks."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # without locks the last one wins, and the launcher writes it once more at the end
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
