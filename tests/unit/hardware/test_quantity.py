import pytest

from tracereplay.hardware.quantity import UNITS, Dimension, parse_quantity, unit_of


@pytest.mark.parametrize(
    ("text", "dimension", "base"),
    [
        ("40 GB", Dimension.BYTES, 40_000_000_000),
        ("40 GiB", Dimension.BYTES, 42_949_672_960),
        ("6MiB", Dimension.BYTES, 6_291_456),
        ("1.5 kB", Dimension.BYTES, 1_500),
        ("1.555 TB/s", Dimension.RATE, 1_555_000_000_000),
        ("100 Gb/s", Dimension.RATE, 12_500_000_000),
        ("100 Gbit/s", Dimension.RATE, 12_500_000_000),
        ("100 GB/s", Dimension.RATE, 100_000_000_000),
        ("1 GiB/s", Dimension.RATE, 1_073_741_824),
        ("15.7 TFLOP/s", Dimension.FLOPS, 15_700_000_000_000),
        ("4.5 PFLOP/s", Dimension.FLOPS, 4_500_000_000_000_000),
        ("450 W", Dimension.POWER, 450),
        ("0.45 kW", Dimension.POWER, 450),
        ("1.41 GHz", Dimension.FREQUENCY, 1_410_000_000),
        ("20 µs", Dimension.TIME, 20_000),
        ("20us", Dimension.TIME, 20_000),
        ("936.25 ns", Dimension.TIME, 936.25),
        ("1e-3 s", Dimension.TIME, 1_000_000),
        ("8", Dimension.COUNT, 8),
    ],
)
def test_a_quantity_is_read_in_base_units(text: str, dimension: Dimension, base: float) -> None:
    quantity = parse_quantity(text, dimension)

    assert quantity.base == base
    assert isinstance(quantity.base, type(base))


@pytest.mark.parametrize(
    ("text", "dimension", "message"),
    [
        ("fast", Dimension.RATE, r"'fast' is no number with a unit; units of bytes a second are B/s, kB/s"),
        ("-3 GB/s", Dimension.RATE, r"'-3 GB/s' is no number with a unit"),
        ("0 GB/s", Dimension.RATE, r"'0 GB/s' is not a positive number"),
        ("1e999 GB/s", Dimension.RATE, r"'1e999 GB/s' is not a positive number"),
        ("900", Dimension.RATE, r"'900' has no unit; units of bytes a second are"),
        ("900 GB", Dimension.RATE, r"'GB' measures bytes, not bytes a second; units of bytes a second are"),
        ("900 gb/s", Dimension.RATE, r"no unit 'gb/s'; write GB/s or Gb/s \(B is bytes, b is bits\)"),
        ("900 Gbps", Dimension.RATE, r"no unit 'Gbps'; write GB/s or Gb/s \(B is bytes, b is bits\)"),
        ("8 GT/s", Dimension.RATE, r"no unit 'GT/s'; units of bytes a second are"),
        ("3 MHZ", Dimension.FREQUENCY, r"no unit 'MHZ'; write MHz$"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_way_out(text: str, dimension: Dimension, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_quantity(text, dimension)


def test_a_unit_of_bits_says_so() -> None:
    assert (unit_of("Gb/s", Dimension.RATE).bits, unit_of("GB/s", Dimension.RATE).bits) == (True, False)


@pytest.mark.parametrize("sign", sorted(UNITS.keys() - {"1"}))
def test_every_unit_is_read_back(sign: str) -> None:
    assert parse_quantity(f"3 {sign}", UNITS[sign].dimension).unit is UNITS[sign]
