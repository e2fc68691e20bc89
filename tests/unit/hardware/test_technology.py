import pytest

from tracereplay.hardware.technology import Rate, is_known, misreading, rate_of_link, rate_of_port

GB = 1_000_000_000


@pytest.mark.parametrize(
    ("technology", "one_way"),
    [
        ("nvlink2", 25 * GB),
        ("pcie3-x16", 15.7538 * GB),  # 8 GT/s x 16 / 8 x 128/130
        ("pcie5-x8", 31.5077 * GB),
        ("ethernet-100g", 12.5 * GB),
        ("infiniband-200g", 25 * GB),
        ("network-400g", 50 * GB),
    ],
)
def test_a_link_has_its_nominal_rate(technology: str, one_way: float) -> None:
    rate = rate_of_link(technology)

    assert rate is not None
    assert rate.low == pytest.approx(one_way, rel=1e-5)
    assert rate.high == rate.low


@pytest.mark.parametrize("technology", ["upi", "pcie3", "pcie3-x3", "pcie9-x16", "nvlink", "ethernet", "infinity-fabric"])
def test_a_technology_without_a_rate_is_not_known(technology: str) -> None:
    assert not is_known(technology)


def test_all_links_of_an_accelerator_have_a_rate_where_one_link_has_none() -> None:
    rate = rate_of_port("nvlink5")

    assert rate_of_link("nvlink5") is None
    assert rate is not None
    assert rate.low == 900 * GB


@pytest.mark.parametrize("times", [0.95, 1, 1.05])
def test_a_rate_fits_give_or_take_rounding(times: float) -> None:
    assert misreading(25 * GB * times, Rate(25 * GB, 25 * GB), "nvlink2") is None


@pytest.mark.parametrize(
    ("times", "mistake"),
    [
        (2, "50 GB/s one way is twice what nvlink2 (25 GB/s one way) has: were both directions added up?"),
        (0.5, "12.5 GB/s one way is half of what nvlink2 (25 GB/s one way) has: was a one-way number called both-ways?"),
        (8, "200 GB/s one way is 8 times what nvlink2 (25 GB/s one way) has: Gb/s written as GB/s?"),
        (0.125, "3.125 GB/s one way is an eighth of what nvlink2 (25 GB/s one way) has: GB/s written as Gb/s?"),
        (16, "400 GB/s one way is 16 times what nvlink2 (25 GB/s one way) has: Gb/s of both directions written as GB/s"),
        (
            0.0625,
            "1.562 GB/s one way is a sixteenth of what nvlink2 (25 GB/s one way) has: GB/s one way written as Gb/s of both",
        ),
        (5, "125 GB/s one way is not what nvlink2 (25 GB/s one way) has; check number, unit, direction and technology"),
    ],
)
def test_a_rate_that_is_off_says_by_which_mistake(times: float, mistake: str) -> None:
    said = misreading(25 * GB * times, Rate(25 * GB, 25 * GB), "nvlink2")

    assert said is not None
    assert said.startswith(mistake)
