"""Measured rows become fields: values worked out by hand from the rows of ``tests.fakes.measurements``."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.hardware import child
from tests.fakes.hardware import write as write_hardware
from tests.fakes.measurements import gloo_rows, gpu_rows, gpus, host_rows, measurements, row
from tracereplay.errors import HardwareError, UsageError
from tracereplay.hardware.calibration import rounded
from tracereplay.hardware.load import load_platform
from tracereplay.hardware.measurements import Measurements
from tracereplay.hardware.platform_file import Written, write_platform
from tracereplay.hardware.validation import validate

FROM = "ours.measurements.json, 2026-03-04, tracereplay hardware calibrate --quick: "


def made(folder: Path, content: dict[str, Any], inherits: str | None = None, name: str = "ours.toml") -> Written:
    found = Measurements.model_validate(content)
    return write_platform(found, "ours.measurements.json", folder / name, inherits)


def values(folder: Path, kind: str = "measured", name: str = "ours.toml") -> dict[str, Any]:
    """Values of a platform's fields, its accelerator's too, with their units."""
    fields = load_platform(str(folder / name)).fields()
    return {key: (getattr(fact, "value", None), fact.unit) for key, fact in fields if fact.kind == kind}


def test_a_host_is_what_was_measured_of_it(tmp_path: Path) -> None:
    made(tmp_path, measurements([*host_rows(), *gloo_rows()]))

    assert values(tmp_path) == {
        "host.processor": ("A processor", "name"),
        "host.sockets": (2, "1"),
        "host.cores": (8, "1"),
        "host.memory.capacity": (64, "GB"),
        "host.memory.achievable": (30, "GB/s"),
        "host.achievable_flops.fp32": (100, "GFLOP/s"),
        "host.achievable_flops.bf16": (50, "GFLOP/s"),
        "host.lookup": (4, "GB/s"),
        "host.overhead": (2500, "ns"),
        "fabric.scale_up.achievable": (2, "GB/s"),
        "fabric.scale_up.latency": (50_000, "ns"),
    }
    assert values(tmp_path, "derived") == {
        "fabric.scale_up.technology": ("loopback", "name"), "fabric.scale_up.layout": ("switch", "name"),
    }  # fmt: skip
    assert values(tmp_path, "assumed") == values(tmp_path, "spec") == {}


def test_each_measured_field_names_file_date_command_and_work(tmp_path: Path) -> None:
    written = made(tmp_path, measurements([*host_rows(), *gloo_rows()]))

    sources = {key: fact.source for key, fact in written.measured if fact.kind == "measured"}
    assert all(source.startswith(FROM) for source in sources.values())
    assert sources["host.achievable_flops.fp32"] == f"{FROM}torch.mm fp32 (m 1000, n 1000, k 1000), median of 5"
    assert sources["host.memory.capacity"] == f"{FROM}the operating system"


def test_what_was_not_measured_is_unknown(tmp_path: Path) -> None:
    made(tmp_path, measurements([]))

    verdict = validate(str(tmp_path / "ours.toml"))
    assert (verdict.valid, verdict.name, verdict.unchecked) == (True, "ours", ())
    assert set(values(tmp_path, "unknown")) == {
        "host.memory.bandwidth", "host.memory.achievable", "fabric.scale_out.technology", "fabric.scale_out.nics",
        "fabric.scale_out.attached_to", "fabric.scale_out.bandwidth", "fabric.scale_out.achievable", "fabric.scale_out.latency",
    }  # fmt: skip


def test_cores_that_sockets_do_not_share_evenly_are_unknown(tmp_path: Path) -> None:
    content = measurements([])
    content["host"] |= {"cpu_count": 15}

    made(tmp_path, content)

    assert "host.cores" in values(tmp_path, "unknown")


def test_a_table_that_a_cache_may_hold_gives_no_rate_of_lookups(tmp_path: Path) -> None:
    small = [r for r in host_rows() if r["parameters"].get("rows") != 4_000_000]

    made(tmp_path, measurements(small))

    assert "host.lookup" not in values(tmp_path)


def test_a_parent_gives_what_was_not_measured(tmp_path: Path) -> None:
    made(tmp_path, measurements([*host_rows(), *gloo_rows()]), inherits="cpu_2s")

    found = tomllib.loads((tmp_path / "ours.toml").read_text())
    assert found["inherits"] == "cpu_2s"
    assert found["host"]["memory"].keys() == {"capacity", "achievable"}
    assert "scale_out" not in found["fabric"]
    assert values(tmp_path)["host.memory.achievable"] == (30, "GB/s")
    assert values(tmp_path, "derived")["host.memory.bandwidth"] == (614.4, "GB/s")
    assert values(tmp_path, "spec")["fabric.scale_out.bandwidth"] == (100, "Gb/s")


def test_a_parent_in_a_file_is_named_as_seen_from_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_hardware(tmp_path, "there/parent.toml", child("cpu-2s"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "there")

    made(tmp_path / "here", measurements(host_rows()), inherits="parent.toml")

    assert tomllib.loads((tmp_path / "here" / "ours.toml").read_text())["inherits"] == "./../there/parent.toml"
    assert validate(str(tmp_path / "here" / "ours.toml")).valid


def test_processes_of_a_host_say_nothing_of_a_fabric_between_accelerators(tmp_path: Path) -> None:
    written = made(tmp_path, measurements([*host_rows(), *gloo_rows()]), inherits="dgx1-v100")

    assert "fabric.scale_up.achievable" not in dict(written.measured)
    assert load_platform(str(tmp_path / "ours.toml")).description.fabric.scale_up is not None
    assert written.notes == ("fabric.scale_up is inherited: it joins accelerators, and only processes of a host were measured",)


def test_one_gpu_is_a_platform_with_an_accelerator_beside_it(tmp_path: Path) -> None:
    written = made(tmp_path, measurements([*host_rows(), *gpu_rows()], device=gpus(1), ranks=1))

    assert written.accelerator == tmp_path / "ours-accelerator.toml"
    found = values(tmp_path)
    assert {key: value for key, value in found.items() if not key.startswith("host.")} == {
        "accelerator.model": ("./ours-accelerator.toml", "name"),
        "accelerator.count": (1, "1"),
        "accelerator.achievable_flops.fp16": (100_000, "GFLOP/s"),
        "accelerator.hbm.capacity": (32, "GB"),
        "accelerator.hbm.achievable": (800, "GB/s"),
        "accelerator.l2.capacity": (6, "MiB"),
    }
    assert found["host.link.achievable"] == (12, "GB/s")  # the slower way of the largest pinned copies
    assert found["host.overhead"] == (6_000, "ns")  # of a launch, not of an operator of the processor
    unknown = values(tmp_path, "unknown")
    assert {"accelerator.flops.fp16", "accelerator.hbm.bandwidth", "host.link.technology"} <= unknown.keys()
    assert not [key for key in unknown if key.startswith("fabric.scale_up")]
    assert validate(str(written.accelerator)).valid


def test_gpus_inherit_what_the_catalogue_has_on_those_of_their_parent(tmp_path: Path) -> None:
    nccl = [r | {"parameters": r["parameters"] | {"backend": "nccl"}} for r in gloo_rows()]

    made(tmp_path, measurements([*host_rows(), *gpu_rows(), *nccl], device=gpus(8)), inherits="dgx1-v100")

    assert tomllib.loads((tmp_path / "ours-accelerator.toml").read_text())["inherits"] == "v100-sxm2-32"
    platform = load_platform(str(tmp_path / "ours.toml"))
    assert platform.accelerator is not None
    assert platform.accelerator.flops["fp16"].base == 125e12
    assert values(tmp_path)["accelerator.hbm.achievable"] == (800, "GB/s")
    assert values(tmp_path)["fabric.scale_up.achievable"] == (2, "GB/s")
    assert platform.bisection() is not None  # the parent's wiring


def test_a_parent_whose_peak_was_passed_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    faster = [r | {"value": 2000e9} if r["run"] == "triad" and r["place"] == "device" else r for r in gpu_rows()]
    (tmp_path / "ours.toml").write_text("the earlier one")

    with pytest.raises(
        HardwareError,
        match=r"what was measured does not fit: hbm.achievable: .* more than the peak of 0.9 TB/s; .*inherit another",
    ):
        made(tmp_path, measurements(faster, device=gpus(8)), inherits="dgx1-v100")

    assert [path.name for path in tmp_path.iterdir()] == ["ours.toml"]
    assert (tmp_path / "ours.toml").read_text() == "the earlier one"


@pytest.mark.parametrize(
    ("name", "inherits", "words"),
    [
        ("ours.json", None, "is no name for a platform's file; end it in .toml"),
        ("__.toml", None, "is no name for a platform's file"),
        ("ours.toml", "v100", "is an accelerator, not a platform"),
        ("ours.toml", "dgx9", "no hardware 'dgx9' in the catalogue"),
    ],
)
def test_wrong_words_are_refused(tmp_path: Path, name: str, inherits: str | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        made(tmp_path, measurements([]), inherits, name)

    assert list(tmp_path.iterdir()) == []


def test_a_file_does_not_inherit_from_itself(tmp_path: Path) -> None:
    made(tmp_path, measurements([]))

    with pytest.raises(UsageError, match="inherits from itself"):
        made(tmp_path, measurements([]), inherits=str(tmp_path / "ours.toml"))


def test_what_was_left_out_is_noted_once_for_each_reason(tmp_path: Path) -> None:
    left_out = [("a", "out of time"), ("b", "not supported"), ("c", "out of time")]

    written = made(tmp_path, measurements([], skipped=[{"what": what, "why": why} for what, why in left_out]))

    assert written.notes == ("not measured: a and 1 more: out of time", "not measured: b: not supported")


def test_words_of_an_operating_system_cannot_break_the_file(tmp_path: Path) -> None:
    content = measurements([row("overhead", "torch.add", "host", 3.0, 3)])
    content["host"] |= {"cpu_model": 'CPU "X"\n\\ \x7f µ'}

    made(tmp_path, content)

    assert values(tmp_path)["host.processor"] == ('CPU "X"\n\\ \x7f µ', "name")


@pytest.mark.parametrize(
    ("value", "expected"), [(123_456.0, 123_500), (0.000123456, 0.0001235), (2.0, 2), (99.996, 100), (31.25, 31.25)]
)
def test_values_have_four_digits(value: float, expected: float) -> None:
    assert rounded(value) == expected
