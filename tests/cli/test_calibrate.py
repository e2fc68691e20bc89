"""``tracereplay hardware calibrate`` without torch: from a measurement file, and what it refuses."""

import json
import sys
from pathlib import Path

import pytest

from tests.fakes.measurements import gloo_rows, gpu_rows, gpus, host_rows, measurements, write
from tracereplay.cli.main import main


def test_a_platform_is_made_from_a_measurement_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, measurements([*host_rows(), *gloo_rows()]))
    output = tmp_path / "Our_Host.toml"

    status = main(["hardware", "calibrate", "--from-measurements", str(file), "--output", str(output), "--json"])

    document = json.loads(capsys.readouterr().out)
    assert (status, document["schema"], document["warnings"]) == (0, "tracereplay/hardware/1", [])
    result = document["result"]
    assert result | {"fields": [], "device": {}} == {
        "name": "our-host", "platform": str(output), "accelerator": None, "measurements_file": str(file), "measurements": 16,
        "device": {}, "ranks": 4, "fields": [], "skipped": [],
    }  # fmt: skip
    fields = {field["key"]: field for field in result["fields"]}
    assert (fields["host.lookup"]["value"], fields["host.lookup"]["unit"]) == (4, "GB/s")
    assert main(["hardware", "validate", str(output)]) == 0


def test_a_person_reads_what_was_measured_and_where_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, measurements(host_rows()))

    main(["hardware", "calibrate", "--from-measurements", str(file), "--output", str(tmp_path / "ours.toml")])

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ours: A processor, 16 cores"
    assert ["host.memory.achievable", "30", "GB/s", "triad", "fp32"] in [line.split() for line in lines]
    assert f"{file}: 11 measurements" in lines


def test_gpus_whose_wiring_nobody_said_can_be_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [*gpu_rows(), *gloo_rows()]
    file = write(tmp_path, measurements(rows, device=gpus(4)))
    output = str(tmp_path / "ours.toml")
    main(["hardware", "calibrate", "--from-measurements", str(file), "--output", output])
    capsys.readouterr()

    assert main(["hardware", "show", output]) == 0
    assert "wiring not known: fabric.scale_up.layout is unknown" in capsys.readouterr().out
    assert main(["hardware", "show", output, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["result"]["topology"] is None
    assert "no topology: fabric.scale_up.layout is unknown" in document["warnings"]


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--from-measurements", "{file}", "--quick"], 2, "--from-measurements measures nothing; leave out --quick"),
        (["--from-measurements", "{file}", "--ranks", "2"], 2, "--from-measurements measures nothing"),
        (["--from-measurements", "{folder}/none.json"], 3, "cannot read the measurements (No such file or directory)"),
        (["--from-measurements", "{folder}/text.json"], 3, "not JSON"),
        (["--from-measurements", "{file}", "--inherits", "zoin"], 2, "no hardware 'zoin' in the catalogue"),
        (["--from-measurements", "{file}", "--inherits", "none.toml"], 3, "cannot read the hardware file"),
        (["--ranks", "0"], 2, "--ranks is 0; it must be at least 1"),
    ],
)
def test_wrong_words_leave_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], status: int, words: str
) -> None:
    file = write(tmp_path, measurements([]))
    (tmp_path / "text.json").write_text("text")
    words_of_it = [option.format(file=file, folder=tmp_path) for option in options]

    found = main(["hardware", "calibrate", "--output", str(tmp_path / "ours.toml"), *words_of_it])

    printed = capsys.readouterr()
    assert (found, printed.out) == (status, "")
    assert words in printed.err
    assert printed.err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {file.name, "text.json"}


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, measurements([]))

    status = main(["hardware", "calibrate", "--from-measurements", str(file), "--output", str(tmp_path / "none" / "ours.toml")])

    assert status == 3
    assert "cannot write the platform (No such file or directory); choose another --output" in capsys.readouterr().err


def test_missing_torch_is_one_line_that_says_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = str(tmp_path / "ours.toml")
    main(["hardware", "calibrate", "--ranks", "0", "--output", output])  # loads what the verb needs
    capsys.readouterr()
    monkeypatch.setattr(sys, "path", [])  # nothing installed can be found

    status = main(["hardware", "calibrate", "--output", output])

    assert status == 3
    assert "calibrating needs torch; pip install 'tracereplay[collect]'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
