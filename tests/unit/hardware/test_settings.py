import pytest

from tracereplay.errors import HardwareError, UsageError
from tracereplay.hardware.facts import Fact, Measure
from tracereplay.hardware.knobs import parse_setting
from tracereplay.hardware.load import load_platform
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.settings import adjusted


def zion_with(*texts: str) -> Platform:
    return adjusted(load_platform("zion"), [setting for text in texts for setting in parse_setting(text)])


def changed(*texts: str) -> dict[str, float | str | None]:
    """The fields that differ, in base units."""
    before, after = dict(load_platform("zion").fields()), dict(zion_with(*texts).fields())
    return {key: value_of(fact) for key, fact in after.items() if key not in before or value_of(before[key]) != value_of(fact)}


def value_of(fact: Fact) -> float | str | None:
    return fact.base if isinstance(fact, Measure) else fact.text()


def test_a_ratio_moves_all_fields_that_say_the_same() -> None:
    # V100: 900 GB/s of peak, 817 GB/s measured.
    assert changed("accelerator.hbm.bandwidth=2x") == {
        "accelerator.hbm.bandwidth": 1_800_000_000_000,
        "accelerator.hbm.achievable": 1_634_000_000_000,
    }


def test_a_value_is_the_field_s_and_what_it_is_of_the_old_one_holds_for_the_others() -> None:
    # Twice the 175 GB/s of 7 links, so twice each link, and twice what is achieved of them.
    found = changed("fabric.scale_up.bandwidth=350GB/s")

    assert found["fabric.scale_up.bandwidth"] == 350_000_000_000
    assert found["fabric.scale_up.link_bandwidth"] == 50_000_000_000
    assert found["fabric.scale_up.achievable"] == 280_000_000_000


def test_a_value_supplies_an_unknown_field_and_ends_an_assumption() -> None:
    facts = dict(zion_with("host.link.uplink=15GB/s", "fabric.scale_up.latency=2us").fields())

    assert value_of(facts["host.link.uplink"]) == 15_000_000_000
    assert value_of(facts["fabric.scale_up.latency"]) == 2_000
    assert {facts[key].kind for key in ("host.link.uplink", "fabric.scale_up.latency")} == {"spec"}


def test_settings_follow_each_other() -> None:
    assert changed("accelerator.hbm.capacity=64GB", "accelerator.hbm.capacity=2x") == {
        "accelerator.hbm.capacity": 128_000_000_000
    }


def test_another_accelerator_stands_in_the_slots_and_the_rest_of_the_platform_stays() -> None:
    platform = zion_with("accelerator.model=a100-40-sxm")

    assert platform.accelerator is not None
    assert platform.accelerator.name == "a100-40-sxm"
    assert dict(platform.fields())["fabric.scale_up.layout"].text() == "fully-connected"


def test_a_value_supplies_a_field_that_a_file_leaves_out() -> None:
    node = adjusted(load_platform("mi300x-node"), parse_setting("accelerator.compute_units=304"))

    assert node.accelerator is not None
    assert node.accelerator.compute_units is not None
    assert node.accelerator.compute_units.value == 304
    assert changed("accelerator.flops.int8=250TFLOP/s") == {"accelerator.flops.int8": 250_000_000_000_000}


def test_how_many_there_are_is_whole() -> None:
    assert changed("accelerator.count=0.5x") == {"accelerator.count": 4}


def test_a_star_stands_for_one_level_of_a_field_s_name() -> None:
    found = changed("accelerator.l2.*=2x")

    assert found == {"accelerator.l2.capacity": 12_582_912, "accelerator.l2.achievable": 5_694_000_000_000}


def test_the_speed_of_the_host_is_no_field() -> None:
    assert changed("host.speed=2x") == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("host.link.uplink=2x", "the field is unknown, and so is a ratio of it; give it a value"),
        ("fabric.scale_up.bandwidth=350", "has no unit"),
        ("fabric.scale_up.bandwidth=350GB", "measures bytes, not bytes a second"),
        ("accelerator.flops=20TFLOP/s", "one value for 3 fields; name one, such as accelerator.flops.fp32"),
        ("accelerator.count=1.1x", "gives 8.8, which is no whole number"),
        ("accelerator.hbm.capacity=-2x", "is no number with a unit"),
        ("accelerator.magic.wand=2GB", "no knob 'accelerator.magic.wand'"),
        ("accelerator.flops.fp3=2TFLOP/s", "no knob 'accelerator.flops.fp3'"),
        ("accelerator.magic.wand=2x", "no knob 'accelerator.magic.wand'"),
        ("fabric.scale_up.layout=2x", "the field is no number"),
        ("fabric.scale_up.layout=knot", "fabric.scale_up.layout=knot"),
    ],
)
def test_what_does_not_fit_the_platform_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        zion_with(text)

    assert words in str(error.value)


def test_a_knob_of_what_a_platform_does_not_have_moves_nothing() -> None:
    node = load_platform("cpu-8s")

    assert adjusted(node, parse_setting("accelerator.hbm.bandwidth=2x")) == node


def test_an_accelerator_that_is_none_is_refused() -> None:
    with pytest.raises((UsageError, HardwareError)):
        zion_with("accelerator.model=zionex")
