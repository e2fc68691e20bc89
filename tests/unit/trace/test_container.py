import gzip
import io
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from tracereplay.errors import TraceError
from tracereplay.trace.container import BLOCK_BYTES, Source

TEXT = b'{"a": 1}'


def zstd(text: bytes) -> bytes:
    """One zstd frame."""
    return bytes(pa.compress(text, "zstd", asbytes=True))


def source_of(folder: Path, content: bytes, name: str = "rank0.json") -> Source:
    path = folder / name
    path.write_bytes(content)
    return Source(path)


def read(source: Source) -> bytes:
    return b"".join(source.blocks)


def archive(**files: bytes) -> bytes:
    """A zip archive of the files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as writer:
        for name, content in files.items():
            writer.writestr(name, content)
    return out.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        TEXT,
        b"\xef\xbb\xbf" + TEXT,
        gzip.compress(TEXT),
        gzip.compress(b"\xef\xbb\xbf" + TEXT),
        gzip.compress(b'{"a": ') + gzip.compress(b"1}"),
        gzip.compress(b'{"a": ') + gzip.compress(b"") + gzip.compress(b"1}"),
        gzip.compress(b'{"a": ') + b"\0" * 9 + gzip.compress(b"1}") + b"\0" * 512,
        zstd(TEXT),
        zstd(b'{"a": ') + zstd(b"1}"),
        archive(a=TEXT),
        archive(a=gzip.compress(TEXT)),
        archive(a=zstd(TEXT)),
    ],
    ids=[
        "plain", "BOM", "gzip", "BOM in gzip", "two members", "empty member", "padded members", "zstd", "two frames", "zip",
        "gzip in zip", "zstd in zip",
    ],
)  # fmt: skip
def test_text_comes_out_of_every_container(tmp_path: Path, content: bytes) -> None:
    source = source_of(tmp_path, content)

    assert (read(source), source.damage, source.read_bytes) == (TEXT, None, 8)


@pytest.mark.parametrize("name", ["rank0.json.gz", "rank0.json", "rank0"])
def test_gzip_is_known_by_its_first_bytes_whatever_the_name(tmp_path: Path, name: str) -> None:
    assert read(source_of(tmp_path, gzip.compress(TEXT), name)) == TEXT


def test_plain_text_may_be_called_gz(tmp_path: Path) -> None:
    assert read(source_of(tmp_path, b"[]", "rank0.json.gz")) == b"[]"


def test_a_zip_with_a_folder_beside_its_file_holds_one_file(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as writer:
        writer.mkdir("traces")
        writer.writestr("traces/rank0.json", TEXT)

    assert read(source_of(tmp_path, out.getvalue())) == TEXT


def test_a_large_file_comes_in_blocks(tmp_path: Path) -> None:
    source = source_of(tmp_path, b"x" * (BLOCK_BYTES + 5))

    assert [len(block) for block in source.blocks] == [BLOCK_BYTES, 5]


@pytest.mark.parametrize("kept", range(2, len(gzip.compress(TEXT, mtime=0))))
def test_a_gzip_stream_cut_anywhere_gives_what_was_inflated_and_says_where_it_ends(tmp_path: Path, kept: int) -> None:
    source = source_of(tmp_path, gzip.compress(TEXT, mtime=0)[:kept])

    assert TEXT.startswith(read(source))
    assert source.damage == f"truncated gzip stream (the file ends at byte {kept} inside a member)"


def test_a_gzip_stream_cut_in_its_checksum_gives_all_its_text(tmp_path: Path) -> None:
    source = source_of(tmp_path, gzip.compress(TEXT)[:-1])

    assert read(source) == TEXT
    assert source.damage is not None


def test_a_second_member_that_is_cut_leaves_the_first(tmp_path: Path) -> None:
    second = gzip.compress(b"second member")[:-12]
    source = source_of(tmp_path, gzip.compress(TEXT) + second)

    assert read(source).startswith(TEXT)
    assert source.damage is not None


def test_what_follows_a_gzip_stream_and_is_none_is_damage(tmp_path: Path) -> None:
    source = source_of(tmp_path, gzip.compress(TEXT) + b"hello")

    assert (read(source), source.damage) == (TEXT, "5 bytes after the gzip stream that are no gzip")


def test_a_gzip_stream_with_a_wrong_byte_is_damaged(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(TEXT * 50, mtime=0))
    content[12] ^= 0xFF
    source = source_of(tmp_path, bytes(content))

    read(source)

    assert source.damage is not None
    assert source.damage.startswith("damaged gzip stream near byte ")


def test_a_zstd_frame_with_a_wrong_byte_is_damaged(tmp_path: Path) -> None:
    content = bytearray(zstd(bytes(range(256)) * 40))
    content[6] ^= 0xFF
    source = source_of(tmp_path, bytes(content))

    read(source)

    assert source.damage is not None
    assert source.damage.startswith("damaged zstd stream after ")


@pytest.mark.parametrize("cut", [1, 50])
def test_a_cut_zstd_stream_keeps_the_blocks_that_came_out(tmp_path: Path, cut: int) -> None:
    text = b"".join(b'{"a": %d}' % i for i in range(100_000))
    source = source_of(tmp_path, zstd(text)[:-cut])

    out = read(source)

    assert (source.damage is not None, len(out) > 500_000, text.startswith(out)) == (True, True, True)


@pytest.mark.parametrize(("content", "words"), [(archive(), "0 files (none)"), (archive(a=TEXT, b=TEXT), "2 files (a, b)")])
def test_a_zip_of_none_or_several_files_is_refused_with_their_names(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(TraceError) as caught:
        read(source_of(tmp_path, content))

    assert caught.value.what == f"a zip archive of {words}"


@pytest.mark.parametrize("kept", [4, 30, 60, -1])
def test_a_cut_zip_is_refused(tmp_path: Path, kept: int) -> None:
    with pytest.raises(TraceError, match=r"rank0\.json: a damaged zip archive"):
        read(source_of(tmp_path, archive(a=TEXT)[:kept]))


def test_an_empty_file_has_no_text(tmp_path: Path) -> None:
    source = source_of(tmp_path, b"")

    assert (list(source.blocks), source.read_bytes) == ([], 0)


def test_a_missing_file_is_refused_with_the_systems_reason(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"cannot be read \(No such file or directory\)"):
        read(Source(tmp_path / "absent.json"))


def test_a_folder_is_refused_with_the_systems_reason(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"cannot be read \(Is a directory\)"):
        read(Source(tmp_path))
