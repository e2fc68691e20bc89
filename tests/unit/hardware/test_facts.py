from typing import Any

import pytest
from pydantic import ValidationError

from tracereplay.hardware.facts import Clock, Count, Fact, Flops, Latency, Layout, LinkRate, MemoryRate, Name, Pairs, Size

SPEC: dict[str, Any] = {"kind": "spec", "source": "a sheet"}


def fault(model: type[Fact], **fields: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(fields)
    return str(caught.value.errors()[0]["msg"])


def test_a_size_knows_its_bytes() -> None:
    assert Size(value=16, unit="GiB", **SPEC).base == 17_179_869_184


def test_an_unknown_value_is_none_in_base_units_too() -> None:
    unknown = Size(unit="GB", kind="unknown", source="not disclosed")

    assert (unknown.base, unknown.base_range, unknown.text()) == (None, None, "unknown")


def test_an_assumed_value_has_its_range_in_base_units() -> None:
    latency = Latency(value=5, unit="µs", kind="assumed", range=(1, 20), source="a choice")

    assert (latency.base, latency.base_range, latency.text()) == (5_000, (1_000, 20_000), "5 µs (1 … 20)")


def test_both_ways_is_halved_to_one_way() -> None:
    both = LinkRate(value=50, unit="GB/s", direction="both-ways", **SPEC)
    one = LinkRate(value=200, unit="Gb/s", direction="one-way", **SPEC)

    assert both.base == one.base == 25_000_000_000
    assert (both.text(), one.text()) == ("50 GB/s both ways", "200 Gb/s one way")


def test_both_ways_halves_the_range_too() -> None:
    rate = LinkRate(value=50, unit="GB/s", direction="both-ways", kind="assumed", range=(40, 60), source="a choice")

    assert rate.base_range == (20_000_000_000, 30_000_000_000)


@pytest.mark.parametrize(
    ("model", "fields", "message"),
    [
        (Size, {"value": 16, "unit": "GB/s"}, "'GB/s' measures bytes a second, not bytes"),
        (Flops, {"value": 16, "unit": "TFLOPS"}, "no unit 'TFLOPS'"),
        (Size, {"unit": "GB"}, "has no value; say kind = 'unknown' or give one"),
        (Size, {"value": 1, "unit": "GB", "kind": "unknown"}, "is unknown and has a value"),
        (Size, {"value": 1, "unit": "GB", "kind": "assumed"}, "is assumed and has no range"),
        (Size, {"value": 1, "unit": "GB", "range": (1, 2)}, "has a range; only kind = 'assumed' has one"),
        (Size, {"value": 3, "unit": "GB", "kind": "assumed", "range": (1, 2)}, "3 lies outside its range [1, 2]"),
        (Size, {"value": 0, "unit": "GB"}, "0 is not a positive number below 1e+24"),
        (Size, {"value": float("inf"), "unit": "GB"}, "inf is not a positive number below 1e+24"),
        (Size, {"value": 10**400, "unit": "GB"}, "is not a positive number below 1e+24"),
        (Size, {"value": float("nan"), "unit": "GB"}, "nan is not a positive number below 1e+24"),
        (Size, {"value": "16", "unit": "GB"}, "'16' is not a number"),
        (Size, {"value": True, "unit": "GB"}, "True is not a number"),
        (Count, {"value": 1.5, "unit": "1"}, "1.5 is not a whole number"),
        (Clock, {"value": 1.5, "unit": "s"}, "'s' measures nanoseconds, not hertz"),
        (MemoryRate, {"value": 900, "unit": "Gb/s"}, "Gb/s is in bits; a memory's bandwidth is written in bytes"),
        (LinkRate, {"value": 900, "unit": "GB/s"}, "does not say its direction"),
        (Name, {"value": "x", "unit": "GB"}, "Input should be 'name'"),
        (Name, {"value": "x", "unit": "name", "kind": "assumed", "range": ["y"]}, "'x' is not in its range ['y']"),
        (Layout, {"value": "ring", "unit": "name"}, "Input should be 'switch'"),
        (Pairs, {"value": [[1, 0, 2]], "unit": "links"}, "[1, 0, 2] is no pair [a, b, links] with 0 <= a < b"),
        (Pairs, {"value": [[0, 1, 0]], "unit": "links"}, "[0, 1, 0] is no pair"),
        (Pairs, {"value": [[0, 1, 1], [0, 1, 2]], "unit": "links"}, "a pair is listed twice"),
        (Pairs, {"unit": "links"}, "pairs are spec, measured or derived with a value"),
    ],
)
def test_a_field_that_cannot_be_is_refused(model: type[Fact], fields: dict[str, Any], message: str) -> None:
    assert message in fault(model, **SPEC | fields)


@pytest.mark.parametrize("missing", ["unit", "kind", "source"])
def test_a_field_has_a_unit_a_kind_and_a_source(missing: str) -> None:
    fields = {"value": 16, "unit": "GB", **SPEC}
    del fields[missing]

    assert fault(Size, **fields) == "Field required"


def test_pairs_are_read_and_listed() -> None:
    pairs = Pairs(value=((0, 1, 1), (0, 2, 2)), unit="links", **SPEC)

    assert (pairs.text(), pairs.listed()) == ("2 pairs", "0-1, 0-2 x2")
