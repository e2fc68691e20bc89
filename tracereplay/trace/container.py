"""Bytes of one trace file by its magic bytes, whatever its name says: in, a path; out, the JSON text as bytes."""

import gzip
from pathlib import Path

from isal import igzip

from tracereplay.errors import TraceError

_GZIP_MAGIC = b"\x1f\x8b"


def read_bytes(path: Path) -> bytes:
    """The uncompressed content of ``path``: plain, or gzip of one or several members.

    Raises:
        TraceError: the file is missing, unreadable, empty, or its compressed stream is cut or damaged.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise TraceError(f"cannot be read ({error.strerror})", where=str(path), hint="check the path") from error
    data = _inflate(raw, path) if raw.startswith(_GZIP_MAGIC) else raw
    if not data.strip():
        raise TraceError("empty file", where=str(path), hint="record the trace again")
    return data


def _inflate(raw: bytes, path: Path) -> bytes:
    try:
        return bytes(igzip.decompress(raw))
    except (EOFError, gzip.BadGzipFile, OSError, ValueError) as error:
        raise TraceError(
            f"truncated or damaged gzip stream of {len(raw)} bytes ({error})",
            where=str(path),
            hint="copy the file again",
        ) from error
