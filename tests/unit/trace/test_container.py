import gzip
from pathlib import Path

import pytest

from tracereplay.errors import TraceError
from tracereplay.trace.container import read_bytes


def test_plain_text_is_returned_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json"
    path.write_bytes(b'{"a": 1}')

    assert read_bytes(path) == b'{"a": 1}'


@pytest.mark.parametrize("name", ["rank0.json.gz", "rank0.json", "rank0"])
def test_gzip_is_known_by_its_first_bytes_whatever_the_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(b'{"a": 1}'))

    assert read_bytes(path) == b'{"a": 1}'


def test_plain_text_may_be_called_gz(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json.gz"
    path.write_bytes(b"[]")

    assert read_bytes(path) == b"[]"


def test_members_of_a_gzip_file_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json.gz"
    path.write_bytes(gzip.compress(b'{"a": ') + gzip.compress(b"1}"))

    assert read_bytes(path) == b'{"a": 1}'


@pytest.mark.parametrize("kept", [2, 12, -9, -1])
def test_a_cut_gzip_stream_is_refused_with_its_name_and_size(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "rank0.json.gz"
    cut = gzip.compress(bytes(range(256)) * 8)[:kept]
    path.write_bytes(cut)

    with pytest.raises(TraceError, match=rf"rank0\.json\.gz: truncated or damaged gzip stream of {len(cut)} bytes"):
        read_bytes(path)


@pytest.mark.parametrize("content", [b"", b" \n", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rank0.json"
    path.write_bytes(content)

    with pytest.raises(TraceError, match=r"rank0\.json: empty file; record the trace again"):
        read_bytes(path)


def test_a_missing_file_is_refused_with_the_systems_reason(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"cannot be read \(No such file or directory\)"):
        read_bytes(tmp_path / "absent.json")
