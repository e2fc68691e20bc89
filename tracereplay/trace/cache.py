"""A cache of read traces: in, a trace file; out, its event table, read from parquet where the same content was read before.

Entries are named by the hash of the file's content and the schema number, so nothing ever goes stale. The cache lies where the
platform keeps caches (``TRACEREPLAY_CACHE`` names another place), is held under ``TRACEREPLAY_CACHE_BYTES`` by removing
what was used longest ago, and does without itself where it cannot be written.
"""

import os
import time
from pathlib import Path

import platformdirs

from tracereplay.errors import TraceError, UsageError
from tracereplay.trace.kineto import read_kineto
from tracereplay.trace.schema import SCHEMA_NUMBER
from tracereplay.trace.store import content_hash, read_table, write_table
from tracereplay.trace.table import EventTable

# A file below this size is read in less time than hashing, looking up and writing take together (about 20 ms).
SMALLEST_BYTES = 512 << 10
_DEFAULT_LIMIT_BYTES = 4 << 30
_ABANDONED_S = 3600
_IN_USE_S = 600


def cache_folder() -> Path:
    """Where entries lie."""
    return Path(os.environ.get("TRACEREPLAY_CACHE") or platformdirs.user_cache_path("tracereplay"))


def read_cached(path: Path) -> EventTable:
    """The event table of a trace file, from the cache where it is there, else read and put there.

    Raises:
        TraceError: as ``read_kineto``.
    """
    try:
        if path.stat().st_size < SMALLEST_BYTES:
            return read_kineto(path)
        entry = cache_folder() / f"{content_hash(path)}-{SCHEMA_NUMBER}.parquet"
    except OSError:
        return read_kineto(path)
    table = _look_up(entry, path)
    if table is None:
        table = read_kineto(path)
        _put(entry, table)
    return table


def _look_up(entry: Path, source: Path) -> EventTable | None:
    if not entry.is_file():
        return None
    try:
        table = read_table(entry, source=str(source))
        os.utime(entry)
    except (TraceError, OSError, KeyError, TypeError, ValueError):
        return None  # a damaged entry is written again
    return table


def _put(entry: Path, table: EventTable) -> None:
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        write_table(table, entry)
        _trim(entry.parent)
    except OSError:
        return  # a full disk or a read-only home must not stop an analysis


def _trim(folder: Path) -> None:
    """Remove what was used longest ago until the cache is within its limit, and what a killed writer left behind."""
    limit = _limit_bytes()
    entries = []
    for file in folder.iterdir():
        try:
            facts = file.stat()
        except OSError:
            continue  # another process removed it
        if file.name.startswith(".") and facts.st_mtime < time.time() - _ABANDONED_S:
            file.unlink(missing_ok=True)
        elif file.suffix == ".parquet":
            entries.append((facts.st_mtime, facts.st_size, file))
    total = sum(size for _, size, _ in entries)
    for used, size, file in sorted(entries):
        # What was used lately may still be read from by this or another process.
        if total <= limit or used > time.time() - _IN_USE_S:
            return
        file.unlink(missing_ok=True)
        total -= size


def _limit_bytes() -> int:
    text = os.environ.get("TRACEREPLAY_CACHE_BYTES") or str(_DEFAULT_LIMIT_BYTES)
    if not text.isdigit():
        raise UsageError(f"TRACEREPLAY_CACHE_BYTES is {text!r}", hint="set it to a number of bytes")
    return int(text)
