import pytest

from tracereplay.errors import UsageError
from tracereplay.hardware.ranges import is_swept, parse_axis


@pytest.mark.parametrize(
    ("text", "values", "amounts"),
    [
        ("host.speed=1x,2x,4x", ("1x", "2x", "4x"), (1, 2, 4)),
        ("host.speed=1x:8x:8", ("1x", "2x", "3x", "4x", "5x", "6x", "7x", "8x"), (1, 2, 3, 4, 5, 6, 7, 8)),
        ("host.speed=1x:64x:7:log", ("1x", "2x", "4x", "8x", "16x", "32x", "64x"), (1, 2, 4, 8, 16, 32, 64)),
        ("host.speed=1x:2x:3:log", ("1x", "1.41x", "2x"), (1, 1.41, 2)),
        ("host.link.bandwidth=16GB/s:48GB/s:3", ("16GB/s", "32GB/s", "48GB/s"), (16, 32, 48)),
        ("host.link.bandwidth=900GB/s,1TB/s", ("900GB/s", "1TB/s"), (900, 1000)),
        ("accelerator.model=p100-sxm2,v100-sxm2-16", ("p100-sxm2", "v100-sxm2-16"), None),
        ("host.link.bandwidth=2x,16GB/s", ("2x", "16GB/s"), None),
    ],
)
def test_values_are_listed_or_spaced_evenly_or_by_one_factor(
    text: str, values: tuple[str, ...], amounts: tuple[float, ...] | None
) -> None:
    axis = parse_axis(text)

    assert is_swept(text)
    assert axis.values == values
    assert axis.amounts == (None if amounts is None else pytest.approx(amounts))


def test_close_values_have_as_many_digits_as_tell_them_apart() -> None:
    assert parse_axis("host.speed=1x:1.002x:3").values == ("1x", "1.001x", "1.002x")


def test_a_name_with_a_star_sets_several_knobs_at_each_value() -> None:
    axis = parse_axis("fabric.*.bandwidth=1x,2x")

    assert [[(s.name, s.ratio) for s in point] for point in axis.settings] == [
        [("fabric.scale_up.bandwidth", 1.0), ("fabric.scale_out.bandwidth", 1.0)],
        [("fabric.scale_up.bandwidth", 2.0), ("fabric.scale_out.bandwidth", 2.0)],
    ]


def test_less_latency_is_more_of_a_machine_and_words_have_no_order() -> None:
    assert parse_axis("host.speed=4x,1x,2x").upwards() == [1, 2, 0]
    assert parse_axis("fabric.scale_up.latency=4x,1x,2x").upwards() == [0, 2, 1]
    assert parse_axis("accelerator.model=a,b").upwards() == []


@pytest.mark.parametrize(
    "text",
    [
        "host.speed=1x,",
        "host.speed=1x,1x",
        "host.speed=1x:8x",
        "host.speed=1x:8x:1",
        "host.speed=1x:8x:9999",
        "host.speed=1x:8x:4:cubic",
        "host.speed=1x:8GB/s:4",
        "host.speed=0x:8x:4",
        "host.speed=a:b:4",
        "bogus=1x,2x",
    ],
)
def test_what_is_no_axis_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_axis(text)
