"""Presets against what their sources say of themselves: sums of rows, parameters, sizes."""

import pytest

from tracereplay.errors import UsageError
from tracereplay.synth.presets import PRESETS, architecture_of, preset_named


@pytest.mark.parametrize(
    ("name", "tables", "rows", "pooling", "parameters"),
    [
        ("kaggle", 26, 33_762_577, 26, 475_985),
        ("terabyte", 26, 49_126_297, 26, 762_177),
        ("mlperf-v1", 26, 187_767_399, 26, 2_368_897),
        ("mlperf-dcnv2", 26, 204_184_588, 214, 16_044_545),
        ("param-v100x8", 26, 204_184_588, 214, 621_201),
        ("bench", 8, 8_000_000, 800, 2_499_137),
        ("param", 64, 896_000, 6_400, 45_844_609),
        ("rm1", 8, 32_000_000, 640, 100_833),
        ("rm2", 32, 16_000_000, 3_840, 319_937),
        ("rm3", 10, 20_000_000, 200, 3_205_409),
    ],
)
def test_a_preset_is_as_large_as_its_source_says(name: str, tables: int, rows: int, pooling: int, parameters: int) -> None:
    arch = architecture_of(preset_named(name))

    assert len(arch.tables) == tables
    assert sum(t.rows for t in arch.tables) == rows
    assert sum(t.pooling for t in arch.tables) == pooling
    assert arch.dense_parameters == parameters


def test_names_may_have_underscores_and_a_wrong_one_is_answered_with_near_ones() -> None:
    assert preset_named("MLPERF_V1").name == "mlperf-v1"
    with pytest.raises(UsageError, match="did you mean rm"):
        preset_named("rm4")


def test_every_preset_can_be_read() -> None:
    assert [architecture_of(preset).name for preset in PRESETS.values()] == list(PRESETS)
