"""Operators by name, with shapes as PyTorch records them."""

from typing import Any

import pytest

from tracereplay.hardware.operators import formulas
from tracereplay.hardware.operators.formulas import Tables
from tracereplay.hardware.operators.names import Call, work_of
from tracereplay.hardware.operators.work import OperatorClass, Work

F, L = "float", "long int"
HEADS = (16, 16, 559, 64)

# As the execution traces of a TorchRec DLRM have it: 3 tables of 16, 128 samples, 768 indices.
SPLIT_SHAPES = (
    (0,), (640_649_648,), (0,), (0, 0), (3,), (3,), (4,), (), (), (4,), (), (768,), (385,), (), (), (), (0,), (), (), (),
    (640_649_648,), (0,), (3,), (3,), (), (), (),
)  # fmt: skip
SPLIT_TYPES = (
    F, F, F, F, "int", L, "int", "Int", "Int", L, "Int", L, L, "Int", "None", "None", "int", "Bool", "Double", "Bool", F, F,
    "int", L, "Double", "Double", "Int",
)  # fmt: skip
DENSE_SHAPES = ((112,), (2,), (3,), (), (), (3,), (), (32,), (33,), (), (), (), ())
DENSE_TYPES = (F, L, "int", "Int", "Int", L, "Int", L, L, "Int", "None", "None", "Int")


def call(name: str, *shapes: Any, dtypes: tuple[str, ...] = (), values: tuple[Any, ...] = (), outputs: Any = ()) -> Work | None:
    return work_of(Call(name, shapes, dtypes or tuple(F if shape else "Scalar" for shape in shapes), values, outputs))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (call("aten::mm", (16, 1), (1, 256)), formulas.mm((16, 1), (1, 256), F)),
        (call("aten::addmm", (256,), (16, 13), (13, 256), (), ()), formulas.addmm((256,), (16, 13), (13, 256), F)),
        (call("aten::bmm", (16, 27, 16), (16, 16, 27)), formulas.interaction(16, 27, 16, F)),
        (call("aten::linear", (2, 3, 4), (5, 4), (5,)), formulas.linear((2, 3, 4), (5, 4), F, bias=True)),
        (
            call(
                "aten::conv2d", (1, 2, 5, 5), (4, 2, 3, 3), (), (), (), (), (), values=(None,) * 3 + ([1, 1], [0, 0], [1, 1], 1)
            ),
            formulas.convolution((1, 2, 5, 5), (4, 2, 3, 3), (1, 4, 3, 3), F),
        ),
        (
            call(
                "aten::cudnn_convolution", (4, 3, 224, 224), (768, 3, 16, 16), values=(None, None, [0, 0], [16, 16], [1, 1], 1)
            ),
            formulas.convolution((4, 3, 224, 224), (768, 3, 16, 16), (4, 768, 14, 14), F),
        ),
        (
            call(
                "aten::convolution_backward",
                (1, 4, 3, 3),
                (1, 2, 5, 5),
                (4, 2, 3, 3),
                values=(None,) * 10 + ([False, True, False],),
            ),
            formulas.convolution_backward((1, 4, 3, 3), (1, 2, 5, 5), (4, 2, 3, 3), F, wanted=(False, True)),
        ),
        (
            call("aten::scaled_dot_product_attention", *[(16, 16, 559, 64)] * 3, (), (), (), values=(None,) * 5 + (True,)),
            formulas.attention(HEADS, HEADS, HEADS, F, causal=True),
        ),
        (
            call("aten::_scaled_dot_product_flash_attention", *[(16, 16, 559, 64)] * 3, values=(None,) * 4 + (True, False)),
            formulas.attention(HEADS, HEADS, HEADS, F, causal=True),
        ),
        (
            call("aten::_flash_attention_forward", *[(1, 141, 8, 64)] * 3, values=(None,) * 8 + (False,)),
            formulas.attention((1, 8, 141, 64), (1, 8, 141, 64), (1, 8, 141, 64), F),
        ),
        (call("aten::embedding", (30_522, 512), (1, 141), dtypes=(F, L)), formulas.embedding((30_522, 512), (1, 141), F)),
        (call("aten::embedding_bag", (100, 16), (10,), (4,), dtypes=(F, L, L)), formulas.lookup(10, 16, 4, F)),
        (
            call(
                "fbgemm::split_embedding_codegen_lookup_adagrad_function",
                *SPLIT_SHAPES,
                dtypes=SPLIT_TYPES,
                outputs=((128, 48),),
            ),
            formulas.table_batched_lookup(Tables(768, 384, 3, 48, F)),
        ),
        (
            call(
                "fbgemm::dense_embedding_codegen_lookup_function",
                *DENSE_SHAPES,
                dtypes=DENSE_TYPES,
                values=(None,) * 3 + (32, 16),
            ),
            formulas.table_batched_lookup(Tables(32, 32, 2, 32, F)),
        ),
        (call("aten::add_", (2, 3), (3,), ()), formulas.elementwise([(2, 3), (3,)], (2, 3), F, flops_each=2)),
        (call("aten::relu", (2, 3)), formulas.elementwise([(2, 3)], (2, 3), F)),
        (call("aten::sum", (2, 3), outputs=((2,),)), formulas.reduction((2, 3), (2,), F)),
        (call("aten::_softmax", (2, 3), (), ()), formulas.softmax((2, 3), F)),
        (call("aten::native_layer_norm", (2, 3), (), (3,), (3,), ()), formulas.normalisation((2, 3), (3,), F)),
        (call("aten::copy_", (2, 3), (2, 3), (), dtypes=("half", F, "Bool")), formulas.copy((2, 3), F, "half")),
        (call("aten::cat", ((1, 2), (3, 2)), (), dtypes=(F, "Scalar")), formulas.copy((8,), F)),
        (call("aten::zero_", (2, 3)), formulas.memset((2, 3), F)),
        (
            call("aten::_foreach_add_", ((4, 4), (4,)), ((4, 4), (4,)), (), dtypes=(F, F, "Scalar")),
            formulas.elementwise([(40,)], (20,), F),
        ),
    ],
)
def test_a_name_leads_to_its_formula(found: Work | None, expected: Work) -> None:
    assert found == expected


def test_indexing_moves_what_it_takes_whatever_the_size_of_the_source() -> None:
    # 10 rows of 16 floats, read and written, and 10 indices of 8 bytes
    expected = Work(OperatorClass.COPY, 0, 640 + 80, 640, F)

    chosen = call("aten::index_select", (10_000, 16), (), (10,), dtypes=(F, "Int", L), values=(None, 0, None))
    assert chosen == expected
    assert call("aten::index", (10_000, 16), ((10,),), dtypes=(F, "TensorList")) == expected
    assert call("aten::gather", (10_000, 16), (), (10, 16), dtypes=(F, "Int", L)) == Work(
        OperatorClass.COPY, 0, 640 + 1_280, 640, F
    )
    assert call("aten::index_select", (10_000, 16), (), (10,), dtypes=(F, "Int", L)) is None


def test_the_last_offset_of_a_bag_is_input_seven() -> None:
    values = (None, None, None, False, 0, False, None, True, -1)

    found = call("aten::_embedding_bag", (100, 16), (10,), (5,), (), (), (), (), (), (), dtypes=(F, L, L), values=values)

    assert found == formulas.lookup(10, 16, 4, F)


def test_the_pooled_lookup_of_a_recorded_dlrm_writes_its_6144_floats() -> None:
    found = call(
        "fbgemm::split_embedding_codegen_lookup_adagrad_function", *SPLIT_SHAPES, dtypes=SPLIT_TYPES, outputs=((128, 48),)
    )

    assert found is not None
    assert (found.kind, found.bytes_written) == (OperatorClass.EMBEDDING, 6_144 * 4)


def test_what_is_not_recorded_has_no_work() -> None:
    assert call("aten::view", (2, 3)) is None
    assert call("mine::op", (2, 3)) is None
    assert call("aten::_foreach_add_", (), (), (), dtypes=("TensorList", "TensorList", "Scalar")) is None
    assert call("aten::conv2d", (1, 2, 5, 5), (4, 2, 3, 3)) is None  # neither output nor stride
    assert call("aten::mm") is None
