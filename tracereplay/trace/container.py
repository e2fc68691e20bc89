"""Bytes of one trace file by its magic bytes, whatever its name says: in, a path; out, blocks of JSON text.

Plain text, gzip of any number of members, zstd of any number of frames, and a zip archive that holds one file, which may
itself be compressed. A stream that is cut or damaged ends early and says where; what had been inflated is kept.
"""

import io
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from isal import igzip_lib, isal_zlib

from tracereplay.errors import TraceError

BLOCK_BYTES = 2 << 20
# Traces compress 10 to 20 times: this much compressed text is one block of a size that stays in a cache.
_COMPRESSED_BYTES = 128 << 10
# Small, so that a damaged stream still gives what lies before the damage.
_ZSTD_BYTES = 4 << 10
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZIP_MAGIC = b"PK\x03\x04"
_EMPTY_ZIP_MAGIC = b"PK\x05\x06"
_BOM = b"\xef\xbb\xbf"
_GZIP_WINDOW = 31


@dataclass(slots=True)
class Source:
    """One file's text: iterate ``blocks`` once; then ``damage`` says why it ended early (None: it did not), and
    ``read_bytes`` how much text came out.
    """

    path: Path
    blocks: Iterator[bytes] = field(init=False)
    damage: str | None = None
    read_bytes: int = 0

    def __post_init__(self) -> None:
        self.blocks = self._counted()

    def _counted(self) -> Iterator[bytes]:
        with _open(self.path) as file:
            first = True
            for block in _inflated(file, self):
                text = block.removeprefix(_BOM) if first else block
                first = False
                self.read_bytes += len(text)
                if text:
                    yield text


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise TraceError(f"cannot be read ({error.strerror})", where=str(path), hint="check the path") from error


def _inflated(file: IO[bytes], source: Source) -> Iterator[bytes]:
    magic = file.read(4)
    file.seek(0)
    if magic.startswith(_GZIP_MAGIC):
        return _gunzip(file, source)
    if magic == _ZSTD_MAGIC:
        return _unzstd(file, source)
    if magic in (_ZIP_MAGIC, _EMPTY_ZIP_MAGIC):
        return _unzip(file, source)
    return iter(lambda: file.read(BLOCK_BYTES), b"")


def _gunzip(file: IO[bytes], source: Source) -> Iterator[bytes]:
    """Members one after another; anything after the last member that is no member is damage."""
    inflater = isal_zlib.decompressobj(_GZIP_WINDOW)
    pending = b""
    while True:
        raw = pending or file.read(_COMPRESSED_BYTES)
        pending = b""
        if not raw:
            if not inflater.eof:
                source.damage = f"truncated gzip stream (the file ends at byte {file.tell()} inside a member)"
            return
        try:
            yield inflater.decompress(raw)
        except (zlib.error, igzip_lib.IsalError, OSError) as error:  # type: ignore[misc]  # its stub says it is no exception
            source.damage = f"damaged gzip stream near byte {file.tell()} ({error})"
            return
        if inflater.eof:
            pending = inflater.unused_data or file.read(_COMPRESSED_BYTES)
            pending = pending.lstrip(b"\0")  # padding after a member is allowed (RFC 1952, section 2.2)
            if not pending:
                return
            if not pending.startswith(_GZIP_MAGIC[: len(pending)]):
                source.damage = f"{len(pending)} bytes after the gzip stream that are no gzip"
                return
            inflater = isal_zlib.decompressobj(_GZIP_WINDOW)


def _unzstd(file: IO[bytes], source: Source) -> Iterator[bytes]:
    import pyarrow as pa  # noqa: PLC0415 - its codec saves a library of its own

    reader = pa.CompressedInputStream(file, "zstd")  # closing it would close the file
    pieces: list[bytes] = []
    read = 0
    try:
        while piece := reader.read(_ZSTD_BYTES):
            pieces.append(piece)
            read += len(piece)
            if len(pieces) * _ZSTD_BYTES >= BLOCK_BYTES:
                yield b"".join(pieces)
                pieces = []
    except (OSError, pa.ArrowException) as error:
        pieces += _up_to_damage(file, read)
        source.damage = f"damaged zstd stream after {read + sum(map(len, pieces[-1:]))} bytes of text ({error})"
    if pieces:
        yield b"".join(pieces)


def _up_to_damage(file: IO[bytes], skip: int) -> list[bytes]:
    """What a damaged stream gives after ``skip`` bytes: a read that meets the damage gives nothing, so byte by byte."""
    import pyarrow as pa  # noqa: PLC0415

    file.seek(0)
    reader = pa.CompressedInputStream(file, "zstd")
    left = skip
    found = bytearray()
    try:
        while left and (piece := reader.read(min(left, _ZSTD_BYTES))):
            left -= len(piece)
        while byte := reader.read(1):
            found += byte
    except (OSError, pa.ArrowException):
        return [bytes(found)]
    return [bytes(found)]


def _unzip(file: IO[bytes], source: Source) -> Iterator[bytes]:
    try:
        archive = zipfile.ZipFile(file)
        members = [m for m in archive.infolist() if not m.is_dir()]
        if len(members) != 1:
            names = ", ".join(m.filename for m in members[:4]) or "none"
            raise TraceError(
                f"a zip archive of {len(members)} files ({names})", where=str(source.path), hint="pass an archive of one trace"
            )
        member = io.BytesIO(archive.read(members[0]))
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise TraceError(f"a damaged zip archive ({error})", where=str(source.path), hint="copy the file again") from error
    return _inflated(member, source)
