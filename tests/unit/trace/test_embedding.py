"""FBGEMM lookups as files record them: where the weights stood, and what is not said."""

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.jobs import table_of
from tests.fakes.kineto import TraceFile
from tracereplay.trace.embedding import Access, is_lookup, lookup_of, recorded_lookups, table_calls, touches_tables

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


NODE = "torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>"
POPULATE = "fbgemm::lru_cache_populate"


def lookups_of(tmp_path: Path, trace: TraceFile) -> list[int | None]:
    """The place of the lookup that each call is a backward of, None for other calls."""
    found = table_calls(table_of(tmp_path, trace))
    index = {call.row: at for at, call in enumerate(found)}
    return [None if call.of is None else index[call.of] for call in found]


def test_a_backward_names_its_lookup_by_the_sequence_number(tmp_path: Path) -> None:
    trace = TraceFile()
    for at, name, number in ((10, SPLIT, 7), (20, SPLIT, 9), (30, NODE, 9), (40, NODE, 7), (50, NODE, 8)):
        trace.op(name, at, 5, **{"Sequence number": number})

    assert lookups_of(tmp_path, trace) == [None, None, 1, 0, None]


def test_without_numbers_of_lookups_the_order_of_their_backwards_tells(tmp_path: Path) -> None:
    trace = TraceFile().op(SPLIT, 10, 5).op(DENSE, 15, 5).op(SPLIT, 20, 5)
    for at, number in ((30, 9), (40, 4)):
        trace.op(NODE, at, 5, **{"Sequence number": number})
    trace.op("torch::autograd::CppNode<SplitLookupFunction_Dense_Op>", 50, 5, **{"Sequence number": 6})

    assert lookups_of(tmp_path, trace) == [None, None, None, 2, 0, 1]
    # One backward more than lookups: whose each is, is not known.
    trace.op(NODE, 60, 5, **{"Sequence number": 11})
    assert lookups_of(tmp_path, trace) == [None, None, None, None, None, 1, None]


def test_the_gradient_of_a_lookup_has_the_width_of_its_tables(tmp_path: Path) -> None:
    forward: dict[str, Any] = {"Input Dims": split_shapes(80), "Sequence number": 3}
    fits: dict[str, Any] = {"Input Dims": [[4, 16]], "Sequence number": 3}
    other: dict[str, Any] = {"Input Dims": [[5, 16]], "Sequence number": 3}  # of other samples than the lookup's

    found = [
        recorded_lookups(table_of(tmp_path, TraceFile().op(SPLIT, 10, 5, **forward).op(NODE, 20, 5, **a)))
        for a in (fits, other)
    ]

    assert [lookups[0].total_dim for lookups in found] == [16, None]


def test_values_and_types_of_arguments_are_read_where_they_are_recorded(tmp_path: Path) -> None:
    values = [""] * 7 + ["24", "16"] + [""] * 4
    args: dict[str, Any] = {"Input Dims": split_shapes(80), "Concrete Inputs": values, "Input type": ["float", "c10::Half"]}

    (found,) = recorded_lookups(table_of(tmp_path, TraceFile().op(SPLIT, 10, 5, **args)))

    assert (found.total_dim, found.element_bytes) == (24, 2)


def test_what_fills_a_cache_says_for_which_weights(tmp_path: Path) -> None:
    dims: dict[str, Any] = {"Input Dims": [[80], [3]]}

    (fill, bare) = table_calls(
        table_of(tmp_path, TraceFile().op(POPULATE, 10, 5, **dims).op("fb::lfu_cache_populate_byte", 20, 5))
    )

    assert [(call.access, call.host_elements) for call in (fill, bare)] == [(Access.FILL, 80), (Access.FILL, None)]


@pytest.mark.parametrize(
    ("access", "kernel", "expected"),
    [
        (Access.LOOKUP, "void split_embedding_codegen_forward_unweighted_kernel<float, float, float, false, long>", True),
        (Access.LOOKUP, "void at::native::vectorized_elementwise_kernel<4>", False),
        (Access.BACKWARD, "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1<float>", True),
        (Access.BACKWARD, "void split_embedding_codegen_grad_indice_weights_kernel<float, float, float, 1ul>", True),
        (Access.BACKWARD, "split_embedding_backward_codegen_find_long_segments(at::GenericPackedTensorAccessor<int>)", False),
        (Access.BACKWARD, "void linearize_index_kernel<long, int, false, false>", False),
        (Access.FILL, "void lru_cache_insert_kernel<float, float>", True),
        (Access.FILL, "Memcpy HtoD (Pageable -> Device)", True),
        (Access.FILL, "void lru_cache_find_uncached_kernel", False),
    ],
)
def test_kernels_that_touch_rows_are_known_by_name(access: Access, kernel: str, expected: bool) -> None:
    assert touches_tables(access, kernel) is expected
