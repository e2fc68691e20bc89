import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.measurements import host_rows, measurements, row, write
from tracereplay.errors import HardwareError
from tracereplay.hardware.measurements import read_measurements


def test_a_file_is_read_with_every_row(tmp_path: Path) -> None:
    found = read_measurements(write(tmp_path, measurements(host_rows())))

    assert [r.run for r in found.of("memory", "host")] == ["triad", "copy"]
    assert found.of("memory", "device") == []
    assert found.of("memory", "host")[0].words() == "triad fp32 (array_bytes 1000000000, cache_bytes 250000000), median of 5"
    assert found.doubts() == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": "tracereplay/measurements/2"}, "no measurements: schema: "),
        ({"measurements": [row("gemm", "torch.mm", "host", -1.0, 5)]}, "measurements.0.value: Input should be greater than 0"),
        ({"measurements": [row("gemm", "torch.mm", "host", 1.0, 5) | {"unit": "B/s"}]}, "a gemm is in FLOP/s, not B/s"),
        ({"path": "/home/me"}, "path: Extra inputs are not permitted"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    path = write(tmp_path, measurements([]) | change)

    with pytest.raises(HardwareError) as caught:
        read_measurements(path)

    assert words in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"), [("{", "not JSON"), ('{"value": NaN}', "no measurements"), ("[]", "no measurements")]
)
def test_another_file_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "other.json").write_text(text)

    with pytest.raises(HardwareError, match=words):
        read_measurements(tmp_path / "other.json")


def test_a_missing_file_says_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(
        HardwareError, match=r"cannot read the measurements \(No such file or directory\); tracereplay hardware cali"
    ):
        read_measurements(tmp_path / "none.json")


def test_a_busy_machine_and_uneven_times_are_doubts(tmp_path: Path) -> None:
    uneven = row("memory", "copy", "host", 1e9, 151) | {"least_ns": 100}
    even = row("memory", "read", "host", 1e9, 150) | {"least_ns": 100}
    content = measurements([uneven, even])
    content["host"] |= {"load": 8.1}  # more than half of 16 cores

    doubts = read_measurements(write(tmp_path, content)).doubts()

    assert doubts == [
        "the machine was busy before the run (load 8.1 on 16 cores): measure again when it is idle",
        "in 1 of 2 measurements the median time is more than 1.5 times the least, most of all in copy fp32 (), "
        "median of 5, 1.51 times the least",
    ]


def test_a_file_written_by_hand_needs_no_more_than_the_schema(tmp_path: Path) -> None:
    text = json.dumps(
        measurements([]) | {"device": {"kind": "cpu", "name": None, "count": 1, "memory_bytes": None, "cache_bytes": None}}
    )
    (tmp_path / "m.json").write_text(text)

    assert read_measurements(tmp_path / "m.json").measurements == ()
