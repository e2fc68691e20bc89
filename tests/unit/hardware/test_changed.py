from pathlib import Path

import pytest

from tests.fakes.platforms import small_platform
from tracereplay.errors import UsageError
from tracereplay.hardware.changed import with_setting
from tracereplay.hardware.facts import Measure
from tracereplay.hardware.load import load_platform
from tracereplay.hardware.platform import Platform


def value(platform: Platform, key: str) -> object:
    fact = dict(platform.fields())[key]
    return fact.base if isinstance(fact, Measure) else None


@pytest.mark.parametrize(
    ("setting", "key", "expected"),
    [
        ("accelerator.hbm.capacity=2x", "accelerator.hbm.capacity", 32 * 10**9),
        ("accelerator.hbm.capacity=64 GB", "accelerator.hbm.capacity", 64 * 10**9),
        ("accelerator.flops=2x", "accelerator.flops.fp32", 20 * 10**12),
        ("accelerator.count=2x", "accelerator.count", 8),
        ("fabric.scale_up.latency=500 ns", "fabric.scale_up.latency", 500),
        ("fabric.*.bandwidth=2x", "fabric.scale_out.bandwidth", 25 * 10**9),
        ("host.memory.bandwidth=0.5x", "host.memory.bandwidth", 100 * 10**9),
    ],
)
def test_a_setting_changes_the_field_that_it_names(tmp_path: Path, setting: str, key: str, expected: int) -> None:
    platform = with_setting(small_platform(tmp_path), setting)

    assert value(platform, key) == expected
    assert dict(platform.fields())[key].source == f"--set {setting}"
    assert platform.fields()[0] == small_platform(tmp_path).fields()[0]


def test_what_is_achieved_of_a_bandwidth_moves_with_it(tmp_path: Path) -> None:
    by_ratio = with_setting(small_platform(tmp_path), "fabric.scale_up.bandwidth=2x")
    by_value = with_setting(small_platform(tmp_path), "fabric.scale_up.bandwidth=50 GB/s")

    assert value(by_ratio, "fabric.scale_up.achievable") == 160 * 10**9
    assert value(by_value, "fabric.scale_up.achievable") == 40 * 10**9


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("accelerator.hbm.capacity", "is not KEY=VALUE"),
        ("accelerator.hbm.colour=2x", "has no number"),
        ("host.processor=2x", "has no number"),
        ("accelerator.hbm.capacity=-2x", "is no number"),
        ("accelerator.hbm.capacity=0x", "no positive ratio"),
        ("accelerator.hbm.capacity=2 GB/s", "measures bytes a second"),
        ("accelerator.count=1.1x", "no whole number"),
    ],
)
def test_what_cannot_be_set_says_why(tmp_path: Path, setting: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        with_setting(small_platform(tmp_path), setting)


def test_a_ratio_of_what_is_unknown_is_refused_and_a_value_supplies_it() -> None:
    dgx = load_platform("dgx-a100")

    with pytest.raises(UsageError, match="the field is unknown"):
        with_setting(dgx, "host.link.uplink=2x")
    assert value(with_setting(dgx, "host.link.uplink=25 GB/s"), "host.link.uplink") == 25 * 10**9
