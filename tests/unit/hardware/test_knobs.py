import pytest

from tracereplay.errors import UsageError
from tracereplay.hardware.knobs import KNOBS, parse_setting
from tracereplay.hardware.load import load_platform
from tracereplay.hardware.settings import adjusted


def named(text: str) -> list[tuple[str, float | None]]:
    return [(setting.name, setting.ratio) for setting in parse_setting(text)]


def test_a_knob_and_its_ratio() -> None:
    assert named("accelerator.hbm.bandwidth=2x") == [("accelerator.hbm.bandwidth", 2.0)]


@pytest.mark.parametrize(("text", "ratio"), [("0.5x", 0.5), ("1e1x", 10.0), ("2.5e-1x", 0.25)])
def test_a_ratio_may_have_a_fraction_or_an_exponent(text: str, ratio: float) -> None:
    assert named(f"host.speed={text}") == [("host.speed", ratio)]


def test_a_star_stands_for_one_level() -> None:
    assert named("fabric.*.bandwidth=4x") == [("fabric.scale_up.bandwidth", 4.0), ("fabric.scale_out.bandwidth", 4.0)]


def test_a_star_does_not_stand_for_two_levels() -> None:
    (setting,) = parse_setting("fabric.*=2x")

    with pytest.raises(UsageError, match=r"no knob 'fabric\.\*'"):
        adjusted(load_platform("zion"), [setting])


def test_a_value_keeps_its_unit_and_a_field_may_stand_for_a_knob() -> None:
    (bandwidth,) = parse_setting("accelerator.hbm.bandwidth= 2 TB/s")
    (uplink,) = parse_setting("host.link.uplink=15GB/s")

    assert (bandwidth.ratio, bandwidth.value, bandwidth.text) == (None, "2 TB/s", "accelerator.hbm.bandwidth=2 TB/s")
    assert (uplink.name, uplink.knob) == ("host.link.uplink", None)


@pytest.mark.parametrize("text", ["host.speed=1e300x", "host.speed=1e400x", "host.speed=1e-30x"])
def test_a_ratio_beyond_any_hardware_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no such hardware; give a ratio between 1e-09x and 1e\\+12x"):
        parse_setting(text)


@pytest.mark.parametrize("text", ["host.speed", "host.speed=", "host.speed=0x", "=2x"])
def test_what_has_no_value_or_no_positive_ratio_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not KNOB=VALUE; write a positive ratio such as host\.speed=2x|no knob ''"):
        parse_setting(text)


def test_an_unknown_knob_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(UsageError, match=r"no knob 'magic'; knobs are accelerator\.hbm\.bandwidth, .*host\.speed"):
        parse_setting("magic=2x")


def test_every_knob_of_the_contract_is_there() -> None:
    assert [knob.name for knob in KNOBS] == [
        "accelerator.hbm.bandwidth",
        "accelerator.flops",
        "accelerator.hbm.capacity",
        "fabric.scale_up.bandwidth",
        "fabric.scale_up.latency",
        "fabric.scale_out.bandwidth",
        "fabric.scale_out.latency",
        "host.memory.bandwidth",
        "host.link.bandwidth",
        "host.speed",
    ]


def test_a_fact_about_what_the_job_ran_on_is_a_setting_of_that() -> None:
    (fact,) = parse_setting("from.host.link.bandwidth=16GB/s")

    assert (fact.name, fact.value, fact.of_source) == ("host.link.bandwidth", "16GB/s", True)
    assert fact.text == "from.host.link.bandwidth=16GB/s"
    assert [one.of_source for one in parse_setting("host.link.bandwidth=16GB/s")] == [False]


def test_from_is_said_once() -> None:
    with pytest.raises(UsageError, match=r"says from\. twice; write from\.host\.link\.bandwidth=16GB/s"):
        parse_setting("from.from.host.link.bandwidth=16GB/s")
