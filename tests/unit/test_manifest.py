import json
from pathlib import Path

import pytest

from tracereplay.errors import CollectError, TraceError
from tracereplay.manifest import HostRecord, Manifest, RankRecord, read_manifest, write_manifest

HOST = HostRecord(name="node0", cpu_model=None, cpu_count=2, memory_bytes=1024, kernel="6.1")
MANIFEST = Manifest(
    created="2026-01-01T00:00:00Z",
    world_size=1,
    backend="gloo",
    clock="realtime",
    hosts=(HOST,),
    ranks=(RankRecord(rank=0, trace="rank0.json.gz", host="node0", pid=7, steps=(3, 4)),),
    versions={"torch": "2.6"},
    workload={"batch": 256, "rows": (9, 7)},
    tracer={"shapes": True},
)


def test_a_manifest_survives_its_file(tmp_path: Path) -> None:
    write_manifest(MANIFEST, tmp_path / "manifest.json")

    assert read_manifest(tmp_path / "manifest.json") == MANIFEST


def test_the_file_carries_its_schema_number(tmp_path: Path) -> None:
    write_manifest(MANIFEST, tmp_path / "manifest.json")

    assert json.loads((tmp_path / "manifest.json").read_text())["schema"] == "tracereplay/manifest/1"


def test_nothing_is_left_beside_the_file(tmp_path: Path) -> None:
    write_manifest(MANIFEST, tmp_path / "manifest.json")

    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_the_host_of_a_rank_that_is_not_listed_is_unknown() -> None:
    assert (MANIFEST.host_of(0), MANIFEST.host_of(9)) == ("node0", None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", r"manifest\.json: not JSON"),
        ("{}", r"manifest\.json: not a manifest: field 'created': Field required"),
        ('{"schema": "tracereplay/manifest/9"}', r"not a manifest: field 'schema': Input should be"),
    ],
)
def test_what_is_no_manifest_is_refused_by_field(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "manifest.json").write_text(text)

    with pytest.raises(TraceError, match=words):
        read_manifest(tmp_path / "manifest.json")


def test_a_missing_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"cannot read the manifest \(No such file or directory\)"):
        read_manifest(tmp_path / "absent.json")


def test_a_manifest_that_cannot_be_written_is_an_error_of_the_recording(tmp_path: Path) -> None:
    with pytest.raises(CollectError, match=r"cannot write the manifest \(No such file or directory\)"):
        write_manifest(MANIFEST, tmp_path / "absent" / "manifest.json")
