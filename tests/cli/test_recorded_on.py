"""The platform that a manifest names stands for ``--from``."""

import json
import shutil
from pathlib import Path

import pytest

from tracereplay.cli.main import main


@pytest.fixture
def job(samples: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "job"
    shutil.copytree(samples / "dlrm_2rank", folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"platform": "no-such-machine"}))
    return folder


@pytest.mark.parametrize(
    "words", [["whatif", "--hardware", "zion"], ["sweep", "--hardware", "zion", "--set", "host.speed=1x,2x"]]
)
def test_the_manifest_names_the_platform_and_from_comes_first(
    job: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    verb, *rest = words

    assert main([verb, str(job), *rest]) == 2
    assert "no-such-machine" in capsys.readouterr().err
    assert main([verb, str(job), *rest, "--from", "cpu-2s"]) == 0
