"""FBGEMM lookups as files record them: where the weights stood, and what is not said."""

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.jobs import table_of
from tests.fakes.kineto import TraceFile
from tracereplay.trace.embedding import is_lookup, lookup_of, recorded_lookups

SPLIT = "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function"
DENSE = "fbgemm::dense_embedding_codegen_lookup_function"


def split_shapes(device: int, host: int = 0, cache: tuple[int, int] = (0, 0)) -> list[list[int]]:
    """Two tables, 7 indices, 4 samples."""
    return [[0], [device], [host], list(cache), [2], [2], [3], [], [], [3], [], [7], [9]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [(SPLIT, True), (f"{SPLIT}_pt2", True), (DENSE, True), ("fbgemm::bounds_check_indices", False), ("aten::embedding", False)],
)
def test_the_lookups_are_known_by_name(name: str, expected: bool) -> None:
    assert is_lookup(name) is expected


@pytest.mark.parametrize(
    ("shapes", "tier"),
    [
        (split_shapes(80), "hbm"),
        (split_shapes(0, 80), "host"),
        (split_shapes(0, 80, (2, 8)), "cached"),
        (split_shapes(40, 40), None),
    ],
)
def test_the_weights_say_where_the_tables_stood(shapes: list[list[int]], tier: str | None) -> None:
    lookup = lookup_of(SPLIT, shapes)

    assert lookup is not None
    assert lookup.tier == tier
    assert lookup.device_elements + lookup.host_elements == 80
    assert (lookup.optimizer, lookup.tables, lookup.indices, lookup.samples) == ("rowwise_adagrad", 2, 7, 4)
    assert (lookup.total_dim, lookup.state_elements) == (None, None)


def test_a_schema_names_the_arguments_in_whatever_order_they_stand() -> None:
    schema = f"{SPLIT}(Tensor indices, Tensor offsets, Tensor dev_weights, Tensor uvm_weights, Tensor lxu_cache_weights, " + (
        "Tensor weights_offsets, int total_D, Tensor momentum1_dev, float eps=0.) -> Tensor"
    )
    shapes = [[7], [9], [80], [0], [0, 0], [2], [], [10], []]

    lookup = lookup_of(SPLIT, shapes, schema, [1, 2, 3, 4, 5, 6, 16, 8, 0.1])

    assert lookup is not None
    assert (lookup.device_elements, lookup.total_dim, lookup.state_elements) == (80, 16, 10)


@pytest.mark.parametrize(
    "shapes", [None, [], "cut", [[0]] * 5, [[], [], [0], [0, 0], [2], [2], [3], [], [], [3], [], [7], [9]]]
)
def test_without_shapes_nothing_is_known(shapes: object) -> None:
    assert lookup_of(SPLIT, shapes) is None


def test_lookups_of_a_trace_stand_in_file_order(tmp_path: Path) -> None:
    recorded: dict[str, Any] = {"Input Dims": split_shapes(80)}
    dense: dict[str, Any] = {"Input Dims": [[24], [2], [3], [], [], [3], [], [8], [9]]}
    trace = TraceFile().op(SPLIT, 10, 5, **recorded).op("aten::mm", 20, 5).op(DENSE, 30, 5, **dense).op(SPLIT, 40, 5)

    found = recorded_lookups(table_of(tmp_path, trace))

    assert [(lookup.replicated, lookup.device_elements, lookup.samples) for lookup in found] == [(False, 80, 4), (True, 24, 4)]
