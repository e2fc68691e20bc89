"""Times on other hardware: the model by hand on a made-up sheet, and the laws that hold whatever the coefficients are."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracereplay.errors import HardwareError, UsageError
from tracereplay.hardware.facts import Name
from tracereplay.hardware.load import load_accelerator as load
from tracereplay.hardware.operators import formulas
from tracereplay.hardware.operators.carry import Basis, Carried, analytic_times, carry_over, carry_over_all
from tracereplay.hardware.operators.fitted import (
    Energy,
    Fitted,
    Matrix,
    Memory,
    Residuals,
    Single,
    Span,
    as_text,
    parsed,
    shipped,
)
from tracereplay.hardware.operators.model import modelled_ns, sheet_of, sustained
from tracereplay.hardware.operators.work import OperatorClass, Work, Works
from tracereplay.hardware.schema import Accelerator

SPAN = Span(math.log(0.8), math.log(1.5))
ROUND = Fitted(
    2_000.0,
    0.5,
    Matrix(0.5, 0.5, 10_000.0, 100.0, 1_000.0),
    Single(0.5, 0.25, 0.4),
    Energy(1e12, 1.0),
    Memory(0.5, 0.25, 0.125, 0.1),
    Residuals(SPAN, SPAN, SPAN),
)


def field(value: float | str, unit: str) -> dict[str, Any]:
    return {"value": value, "unit": unit, "kind": "spec", "source": "a sheet"}


def made(**changes: Any) -> Accelerator:
    """An accelerator of 100 units, 10 TFLOP/s in fp32, 100 in bf16, 1 TB/s; ``changes`` replace or remove (None) fields."""
    content: dict[str, Any] = {
        "schema": "tracereplay/hardware/1",
        "type": "accelerator",
        "name": "made",
        "title": "Made up",
        "architecture": field("own", "name"),
        "compute_units": field(100, "1"),
        "flops": {"fp32": field(10, "TFLOP/s"), "bf16": field(100, "TFLOP/s")},
        "hbm": {
            "capacity": field(1, "GB"),
            "bandwidth": field(1, "TB/s"),
            "achievable": {**field(1, "GB/s"), "kind": "measured"},
        },
        "l2": {"capacity": field(1, "MiB")},
    }
    content["hbm"]["achievable"] = {"unit": "GB/s", "kind": "unknown", "source": "not measured"}
    content |= {"hbm": content["hbm"] | changes.pop("hbm", {}), "flops": content["flops"] | changes.pop("flops", {})}
    return Accelerator.model_validate({key: value for key, value in (content | changes).items() if value is not None})


def model(work: Work, accelerator: Accelerator) -> float:
    return float(modelled_ns(Works.of([work]), sheet_of(accelerator), ROUND)[0])


def test_the_model_of_a_product_on_matrix_units_by_hand() -> None:
    # 2·128·128·1000 flops at half of 100 TFLOP/s: 655.36 ns; 2·(128·1000·2 + 128·128) bytes at half of 1 TB/s: 1,089.536 ns;
    # 10,000 flops a step for 1,000 + 100 steps at 1 TFLOP/s a unit: 11,000 ns
    expected = 2_000 + 11_000 + math.hypot(655.36, 1_089.536)

    assert model(formulas.gemm(128, 128, 1_000, "bf16"), made()) == pytest.approx(expected)


def test_a_product_is_padded_to_tiles_and_a_long_k_is_split() -> None:
    # 1 x 130 is a tile of 64 x 256; 2,000 steps count as 1,000
    expected = 2_000 + 11_000 + math.hypot(2 * 64 * 256 * 2_000 / 50_000, 2 * (2_000 + 2_000 * 130 + 130) / 500)

    assert model(formulas.gemm(1, 130, 2_000, "bf16"), made()) == pytest.approx(expected)


def test_on_vector_units_the_last_wave_counts_whole() -> None:
    # 300 x 300 is padded to 320 x 384; 3 x 2 pairs of blocks fill 4 units one and a half times, which takes two waves
    arithmetic = 2 * 320 * 384 * 1_000 * (2 / 1.5) / 5_000
    memory = 4 * (2 * 300 * 1_000 + 300 * 300) / 500

    assert model(formulas.gemm(300, 300, 1_000, "float"), made(compute_units=field(4, "1"))) == pytest.approx(
        2_000 + math.hypot(arithmetic, memory)
    )


def test_the_model_of_what_the_memory_bounds_by_hand() -> None:
    # 3 x 4 MB at half of 1 TB/s; 1 M operations at half of 10 TFLOP/s
    assert model(formulas.elementwise([(1_000, 1_000)] * 2, (1_000, 1_000), "float"), made()) == pytest.approx(
        2_000 + math.hypot(24_000, 200)
    )
    assert model(formulas.copy((1_000_000,), "float"), made()) == pytest.approx(2_000 + 16_000)
    assert model(formulas.memset((0,), "float"), made()) == 2_000


def test_power_bounds_what_vector_units_sustain() -> None:
    # 1e12 flops a joule at 16 nm, twice that at 8 nm
    small = made(power=field(1, "W"), process=field(8, "nm"))
    expected = 5e12 * (1 + (5e12 / 2e12) ** 8) ** (-1 / 8)

    assert sustained(sheet_of(small), ROUND, "fp32") == pytest.approx(expected)
    assert sustained(sheet_of(small), ROUND, "bf16") == 50e12
    assert sustained(sheet_of(made()), ROUND, "fp32") == 5e12
    assert sustained(sheet_of(made()), ROUND, "fp32", OperatorClass.CONV) == 4e12


def test_a_sheet_says_which_formats_run_on_matrix_units() -> None:
    own = sheet_of(made(vector_flops={"fp32": field(5, "TFLOP/s")}, flops={"fp16": field(20, "TFLOP/s")}))
    packed = sheet_of(made(flops={"fp16": field(20, "TFLOP/s")}, architecture=field("pascal", "name")))

    assert [own.on_matrix_units(number) for number in ("fp32", "bf16", "fp16")] == [True, True, True]
    assert [packed.on_matrix_units(number) for number in ("fp32", "fp16")] == [False, False]
    assert sustained(own, ROUND, "fp32") == 2.5e12


def test_on_one_architecture_a_time_keeps_its_distance_from_the_model() -> None:
    work = formulas.copy((1_000_000,), "float")  # 18,000 ns here, 2,000 + 8,000 there
    there = made(hbm={"bandwidth": field(2, "TB/s")})

    found = carry_over(work, 36_000, made(), there, ROUND)

    assert (found.time_ns, found.basis) == (20_000, "calibrated roofline, copy")
    assert (found.low_ns, found.high_ns) == (16_000, 30_000)  # twice the bandwidth: the known errors in full


def test_on_another_architecture_a_part_of_the_deviation_recurs() -> None:
    work = formulas.copy((1_000_000,), "float")
    there = made(hbm={"bandwidth": field(2, "TB/s")}, architecture=field("new", "name"))

    # the floor is 1/9 of 18,000 ns: half of the deviation for 8/9 of the time
    expected = 10_000 * 2 ** (1 - 0.5 * (8 / 9))

    assert carry_over(work, 36_000, made(), there, ROUND).time_ns == round(expected)


def test_a_class_alone_goes_by_the_ratio_of_its_resource() -> None:
    there = made(hbm={"bandwidth": field(2, "TB/s")}, flops={"fp32": field(80, "TFLOP/s"), "bf16": field(800, "TFLOP/s")})

    memory = carry_over(OperatorClass.ELEMENTWISE, 12_000, made(), there, ROUND)
    product = carry_over(OperatorClass.GEMM, 12_000, made(), there, ROUND)
    other = carry_over(OperatorClass.OTHER, 12_000, made(), there, ROUND)

    assert (memory.time_ns, memory.basis) == (7_000, "class alone, elementwise: ratio of data sheets")
    assert product.time_ns == round(2_000 + 10_000 * (1 / 2 * 1 / 8) ** (1 / 2))
    assert product.low_ns <= 2_000 + 10_000 / 8
    assert product.high_ns >= 7_000
    assert (other.time_ns, other.basis) == (12_000, "not modelled: kept as measured")
    assert other.low_ns < 12_000 <= other.high_ns


def modelled(work: Work, card: Accelerator, fitted: Fitted = ROUND) -> tuple[float, float, float]:
    times = analytic_times(Works.of([work]), card, fitted)
    return float(times.time_ns[0]), float(times.low_ns[0]), float(times.high_ns[0])


def test_work_without_a_measurement_has_the_model_s_time() -> None:
    assert modelled(formulas.copy((1_000_000,), "float"), made()) == pytest.approx((18_000, 14_400, 27_000))


def test_what_a_data_sheet_lacks_is_asked_for_where_it_matters() -> None:
    product, copied = formulas.gemm(64, 64, 64, "bf16"), formulas.copy((10,), "bf16")
    unknown = {"unit": "TB/s", "kind": "unknown", "source": "nobody says"}

    assert modelled(copied, made(compute_units=None))[0] == pytest.approx(2_000, rel=1e-3)
    with pytest.raises(HardwareError, match="made: compute_units: how many compute units it has is unknown"):
        modelled(product, made(compute_units=None))
    with pytest.raises(HardwareError, match=r"made: flops.fp8: its rate in fp8 is unknown"):
        modelled(formulas.gemm(64, 64, 64, "fp8"), made())
    with pytest.raises(HardwareError, match=r"made: hbm.bandwidth: its memory bandwidth is unknown; give it with --set"):
        modelled(copied, made(hbm={"bandwidth": unknown}))
    with pytest.raises(UsageError, match="a measured time is negative"):
        carry_over(copied, -1, made(), made(name="two"), ROUND)


WORKS = st.one_of(
    st.builds(
        lambda m, n, k, dtype, batch: formulas.gemm(m, n, k, dtype, batch=batch),
        *[st.integers(1, 20_000)] * 3,
        st.sampled_from(["bf16", "float"]),
        st.integers(1, 64),
    ),
    st.builds(lambda n: formulas.elementwise([(n,)], (n,), "float"), st.integers(0, 10**9)),
    st.builds(lambda n: formulas.softmax((n,), "half"), st.integers(0, 10**8)),
    st.builds(lambda i, d: formulas.lookup(i, d, max(i // 10, 1), "float"), st.integers(0, 10**7), st.integers(1, 512)),
)
TIMES = st.floats(1.0, 1e10)
NAMES = ("v100-sxm2-32", "a100-80-sxm", "h100-sxm", "h200", "b200", "mi210")
FACTORS = st.floats(1.0, 16.0)
LAW = settings(deadline=None)
NEXT = Name(unit="name", kind="spec", value="next", source="made up")
load_accelerator = cache(load)


def faster(accelerator: Accelerator, arithmetic: float, memory: float) -> Accelerator:
    """The same with that much more of either."""
    flops = {
        name: fact.model_copy(update={"value": fact.value * arithmetic}) if fact.value is not None else fact
        for name, fact in accelerator.flops.items()
    }
    bandwidth = accelerator.hbm.bandwidth
    assert bandwidth.value is not None
    hbm = accelerator.hbm.model_copy(update={"bandwidth": bandwidth.model_copy(update={"value": bandwidth.value * memory})})
    return accelerator.model_copy(update={"flops": flops, "hbm": hbm})


def runs(work: Work, accelerator: Accelerator) -> bool:
    return work.dtype != "bf16" or "bf16" in accelerator.flops or "fp16" in accelerator.flops


@LAW
@given(WORKS, TIMES, st.sampled_from(NAMES))
def test_the_same_accelerator_gives_the_measured_time_back_exactly(work: Work, time: float, name: str) -> None:
    here = load_accelerator(name)
    renamed = here.model_copy(update={"name": "other", "title": "Another name"})

    assert carry_over(work, time, here, renamed) == Carried(round(time), round(time), round(time), "same data sheet")
    assert carry_over(work.kind, time, here, renamed).time_ns == round(time)


@LAW
@given(WORKS, TIMES, st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), FACTORS, FACTORS)
def test_more_of_a_resource_is_never_slower(
    work: Work, time: float, names: tuple[str, str], flops: float, memory: float
) -> None:
    here, there = map(load_accelerator, names)
    if not (runs(work, here) and runs(work, there)):
        return
    before = carry_over(work, time, here, there)
    after = carry_over(work, time, here, faster(there, flops, memory))

    assert after.time_ns <= before.time_ns
    assert after.low_ns <= after.time_ns <= after.high_ns


@LAW
@given(WORKS, TIMES, st.sampled_from(NAMES), FACTORS, FACTORS)
def test_a_faster_accelerator_is_never_slower_than_the_measurement_and_a_slower_one_never_faster(
    work: Work, time: float, name: str, flops: float, memory: float
) -> None:
    here = load_accelerator(name)
    there = faster(here, flops, memory).model_copy(update={"architecture": NEXT})
    if not runs(work, here):
        return
    assert carry_over(work, time, here, there).time_ns <= round(time)
    assert carry_over(work, time, there, here).time_ns >= round(time)


@LAW
@given(WORKS, TIMES, st.sampled_from(NAMES), FACTORS)
def test_k_times_a_resource_saves_at_most_what_k_divides(work: Work, time: float, name: str, factor: float) -> None:
    here = load_accelerator(name)
    if runs(work, here):
        found = carry_over(work, time, here, faster(here, factor, factor))
        assert time / factor - 1 <= found.time_ns <= time + 1


@LAW
@given(WORKS, TIMES, st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_no_time_falls_below_the_floor_unless_the_measurement_did(work: Work, time: float, source: str, target: str) -> None:
    here, there = load_accelerator(source), load_accelerator(target)
    if runs(work, here) and runs(work, there):
        assert carry_over(work, time, here, there).time_ns >= math.floor(min(time, shipped().floor_ns))


@LAW
@given(WORKS, st.sampled_from(NAMES))
def test_no_work_takes_less_than_the_floor(work: Work, name: str) -> None:
    if runs(work, load_accelerator(name)):
        assert float(analytic_times(Works.of([work]), load_accelerator(name)).time_ns[0]) >= math.floor(shipped().floor_ns)


@LAW
@given(WORKS, TIMES, st.sampled_from(NAMES), st.data())
def test_more_of_one_figure_alone_is_never_slower(work: Work, time: float, name: str, data: st.DataObject) -> None:
    here = load_accelerator(name)
    if not runs(work, here):
        return
    number = data.draw(st.sampled_from([key for key, fact in here.flops.items() if fact.value is not None]))
    fact, factor = here.flops[number], data.draw(FACTORS)
    assert fact.value is not None
    more = fact.model_copy(update={"value": fact.value * factor})
    there = here.model_copy(update={"flops": {**here.flops, number: more}})

    assert carry_over(work, time, here, there).time_ns <= round(time)


def test_four_times_the_fp32_rate_leaves_a_product_in_fp16_as_it_is() -> None:
    here = load_accelerator("v100-sxm2-32")
    fp32 = here.flops["fp32"]
    assert fp32.value is not None
    more = fp32.model_copy(update={"value": fp32.value * 4})
    there = here.model_copy(update={"flops": {**here.flops, "fp32": more}})

    found = carry_over(formulas.gemm(4096, 4096, 4096, "half"), 1e6, here, there)

    assert (found.time_ns, found.low_ns, found.high_ns) == (1_000_000,) * 3


def test_a_float_product_faster_than_fp32_ran_in_tf32() -> None:
    # 137.4 GFLOP in 1.4 ms are 98 TFLOP/s; the A100 has 19.5 in fp32 and 156 in tf32. On the V100 it runs in fp32: 15.7.
    here, there = load_accelerator("a100-80-sxm"), load_accelerator("v100-sxm2-32")
    work = formulas.gemm(4096, 4096, 4096, "float")

    fast, slow = (carry_over(work, time, here, there) for time in (1.4e6, 8e6))

    assert fast.basis == "calibrated roofline, gemm, in tf32: faster than the source's fp32 peak"
    assert slow.basis == "calibrated roofline, gemm"
    assert fast.time_ns > 137.4e9 / 15.7e12 * 1e9


def test_a_product_whose_kernel_computes_in_fp32_is_none_of_tf32_however_fast_it_looks() -> None:
    works = Works.of(2 * [formulas.gemm(4096, 4096, 4096, "float")])
    cards = load_accelerator("a100-80-sxm"), load_accelerator("v100-sxm2-32")

    found = carry_over_all(works, np.full(2, 1.4e6), *cards, in_fp32=np.array([True, False]))

    assert found.basis.tolist() == [Basis.MODEL, Basis.IN_TF32]


def test_bounds_of_a_class_come_in_with_the_difference_of_the_figures() -> None:
    near, power = made(hbm={"bandwidth": field(1.0001, "TB/s")}), made(power=field(500, "W"))

    for there in (near, power):
        found = carry_over(OperatorClass.ELEMENTWISE, 1e6, made(), there, ROUND)
        assert 999_500 < found.low_ns <= found.time_ns <= found.high_ns < 1_000_500


def test_a_product_in_a_format_that_no_sheet_has_goes_by_its_class() -> None:
    there = made(hbm={"bandwidth": field(2, "TB/s")}, flops={"bf16": field(800, "TFLOP/s")})

    found = carry_over(formulas.gemm(64, 64, 64, "long"), 12_000, made(), there, ROUND)

    assert (found.time_ns, found.basis) == (4_500, "class alone, gemm: neither data sheet has its format")


def test_the_file_of_coefficients_is_read_as_it_is_written() -> None:
    names = ("floor_ns", "persistence", "matrix", "single", "energy", "memory")
    sources = dict.fromkeys((*names, "residuals.matrix", "residuals.vector", "residuals.memory"), "somewhere")
    rounded = replace(ROUND, residuals=Residuals(*[Span(-0.25, 0.5)] * 3))

    text = as_text(rounded, sources)

    assert parsed(text, "here") == rounded
    assert rounded.count() == 16
    with pytest.raises(HardwareError, match="here: lacks 'persistence'"):
        parsed(text.replace("persistence", "constancy"), "here")
    with pytest.raises(HardwareError, match=r"here: schema is 'tracereplay/operators/2', not 'tracereplay/operators/1'"):
        parsed(text.replace("operators/1", "operators/2"), "here")
    with pytest.raises(HardwareError, match="here: is no TOML"):
        parsed("{", "here")


def test_the_shipped_coefficients_are_plausible() -> None:
    fitted = shipped()
    shares = (
        fitted.matrix.efficiency,
        fitted.matrix.memory,
        *(getattr(fitted.single, n) for n in ("vector", "matrix", "conv")),
    )

    assert all(0.2 < share < 1 for share in shares)
    assert 0 <= fitted.persistence <= 1
    assert 1_000 < fitted.floor_ns < 5_000
    assert all(span.low < 0 < span.high for span in (fitted.residuals.matrix, fitted.residuals.vector, fitted.residuals.memory))
