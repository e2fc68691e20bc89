"""Event tables in parquet: a job directory that a user keeps, and a cache that keeps itself.

A table becomes ``NAME.parquet`` (all columns, zstd; the events' own texts in row groups that are read only when asked for)
with its header and quality as JSON in the file's own metadata. A job directory is ``job.json`` (schema number, one entry a
rank with the hash of its source) beside one such file a rank. Everything is written under a temporary name beside its
place and renamed when whole: a reader never sees half of it, and of two writers the last one wins with the same bytes.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tracereplay.errors import TraceError, UsageError
from tracereplay.trace.schema import SCHEMA, SCHEMA_NUMBER
from tracereplay.trace.table import Device, EventTable, Group, Header, Quality

JOB_FILE = "job.json"
JOB_SCHEMA = "tracereplay/job"
_META_KEY = b"tracereplay"
_HASH_BLOCK = 1 << 20
_COLUMNS = [name for name in SCHEMA.names if name != "text"]


@dataclass(frozen=True, slots=True)
class StoredText:
    """The events' own texts in a parquet file, read when first asked for."""

    path: Path

    def load(self) -> pa.ChunkedArray:
        """The text column."""
        return pq.read_table(self.path, columns=["text"]).column("text")


def content_hash(path: Path) -> str:
    """BLAKE2b of a file's bytes as they lie on disk, 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(_HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def write_table(table: EventTable, path: Path) -> None:
    """Write one table; whole or not at all."""
    meta = {
        "schema": SCHEMA_NUMBER,
        "path": table.path,
        "recorded_events": table.recorded_events,
        "header": asdict(table.header),
        "quality": asdict(table.quality),
    }
    whole = table.with_text().replace_schema_metadata({_META_KEY: json.dumps(meta).encode()})
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as scratch:
        name = Path(scratch.name)
        try:
            pq.write_table(
                whole, scratch, compression="zstd", compression_level=1, use_dictionary=False, write_statistics=False
            )
            scratch.flush()
            os.fsync(scratch.fileno())
        except BaseException:
            name.unlink(missing_ok=True)
            raise
    name.replace(path)


def read_table(path: Path, *, source: str | None = None) -> EventTable:
    """The table at ``path``; ``source`` is the trace it is called after.

    Raises:
        TraceError: not a table of ours, damaged, or of another schema number.
    """
    try:
        file = pq.ParquetFile(path)
        meta = json.loads((file.schema_arrow.metadata or {}).get(_META_KEY, b"null"))
        found = meta.get("schema") if isinstance(meta, dict) else None
        if found != SCHEMA_NUMBER:
            what = f"written with schema {found}, this version reads {SCHEMA_NUMBER}"
            raise TraceError(what, where=str(path), hint="convert the trace again")
        columns = file.read(columns=_COLUMNS).replace_schema_metadata(None)
    except (OSError, pa.ArrowException, ValueError) as error:
        raise TraceError(f"a damaged parquet file ({error})", where=str(path), hint="convert the trace again") from error
    return EventTable(
        source or str(meta["path"]),
        columns,
        _header(meta["header"]),
        Quality(**meta["quality"]),
        meta["recorded_events"],
        StoredText(path),
    )


def write_job(tables: Sequence[tuple[EventTable, int | None]], target: Path, *, force: bool) -> None:
    """Write a job directory; whole or not at all.

    Raises:
        UsageError: the target exists and ``force`` is not given, or it cannot be written.
    """
    if target.exists() and not force:
        raise UsageError("exists already", where=str(target), hint="choose another --output or pass --force")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise UsageError(f"cannot write there ({error.strerror})", where=str(target), hint="choose another --output") from error
    try:
        _fill(scratch, tables)
        _swap(scratch, target)
    except OSError as error:
        raise UsageError(
            f"cannot write ({error.strerror})", where=str(target), hint="free space or choose another --output"
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def read_job_directory(folder: Path) -> list[EventTable] | None:
    """The tables of a job directory in their order; None where the folder is none.

    Raises:
        TraceError: a job directory of another schema number, or damaged.
    """
    index = folder / JOB_FILE
    if not index.is_file():
        return None
    try:
        entry: Any = json.loads(index.read_bytes())
    except (OSError, ValueError) as error:
        raise TraceError(f"not a job directory ({error})", where=str(index), hint="convert the traces again") from error
    if not isinstance(entry, dict) or entry.get("schema") != f"{JOB_SCHEMA}/{SCHEMA_NUMBER}":
        found = entry.get("schema") if isinstance(entry, dict) else None
        raise TraceError(
            f"job directory of schema {found!r}, this version reads {JOB_SCHEMA}/{SCHEMA_NUMBER}",
            where=str(index),
            hint="convert the traces again",
        )
    return [read_table(folder / row["file"], source=row["source"]) for row in entry["ranks"]]


def stored_bytes(folder: Path) -> list[int]:
    """Size of each rank's file in a job directory, in the directory's order."""
    entry = json.loads((folder / JOB_FILE).read_bytes())
    return [(folder / row["file"]).stat().st_size for row in entry["ranks"]]


def _fill(folder: Path, tables: Sequence[tuple[EventTable, int | None]]) -> None:
    rows = []
    for number, (table, rank) in enumerate(tables):
        name = f"rank{rank}.parquet" if rank is not None else f"unranked{number}.parquet"
        write_table(table, folder / name)
        source = Path(table.path)
        rows.append(
            {
                "file": name,
                "rank": rank,
                "source": source.name,
                "hash": content_hash(source) if source.is_file() else None,
                "events": len(table),
            }
        )
    (folder / JOB_FILE).write_text(
        json.dumps({"schema": f"{JOB_SCHEMA}/{SCHEMA_NUMBER}", "ranks": rows}, indent=2) + "\n", encoding="utf-8"
    )


def _swap(scratch: Path, target: Path) -> None:
    """Put a whole directory in place of what is there; what was there goes away last."""
    old = None
    if target.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent)) / "old"
        target.replace(old)
    scratch.replace(target)
    if old is not None:
        shutil.rmtree(old.parent, ignore_errors=True)


def _header(fields: dict[str, Any]) -> Header:
    groups = tuple(Group(**{**row, "ranks": None if row["ranks"] is None else tuple(row["ranks"])}) for row in fields["groups"])
    return Header(**{**fields, "devices": tuple(Device(**row) for row in fields["devices"]), "groups": groups})
