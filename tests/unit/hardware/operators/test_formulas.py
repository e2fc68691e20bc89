"""Flops and bytes, worked out by hand for small shapes."""

import pytest

from tracereplay.errors import UsageError
from tracereplay.hardware.operators import formulas
from tracereplay.hardware.operators.formulas import Tables
from tracereplay.hardware.operators.work import OperatorClass, Work, Works, element_bytes, format_of


def amounts(work: Work) -> tuple[int, int, int]:
    return work.flops, work.bytes_read, work.bytes_written


def sizes(work: Work) -> tuple[int, int, int, int]:
    return work.batch, work.m, work.n, work.k


@pytest.mark.parametrize(
    ("work", "flops", "read", "written"),
    [
        # 2·3·5·4 flops; 3·4 + 4·5 elements of 2 bytes in, 3·5 out
        (formulas.mm((3, 4), (4, 5), "bf16"), 120, 64, 30),
        # the same in fp32, and a bias of 5
        (formulas.addmm((5,), (3, 4), (4, 5), "float"), 120, 148, 60),
        # 2 products of (3, 4) with (4, 5)
        (formulas.matmul((2, 3, 4), (2, 4, 5), "float"), 240, 256, 120),
        # leading sizes are rows: 6 rows of 4 with a weight of (5, 4), bias 5
        (formulas.linear((2, 3, 4), (5, 4), "float", bias=True), 240, 4 * (24 + 20 + 5), 120),
        # one matrix for all: rows 6
        (formulas.matmul((2, 3, 4), (4, 5), "float"), 240, 4 * (24 + 20), 120),
        # 16 samples, 27 features of 16: 16·2·27·27·16
        (formulas.interaction(16, 27, 16, "float"), 373_248, 4 * 2 * 16 * 27 * 16, 4 * 16 * 27 * 27),
        # 1 batch, 2 heads, 3 queries, 5 keys, head size 4: 2·2·3·5·(4 + 4); 24 + 40 + 40 elements in, 24 out
        (formulas.attention((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4), "half"), 480, 208, 48),
        (formulas.attention((1, 2, 4, 4), (1, 2, 4, 4), (1, 2, 4, 4), "half", causal=True), 256, 192, 64),
        # 2.5 times forward's flops; q, k, v, output and its gradient in, three gradients out
        (formulas.attention_backward((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4), "half"), 1_200, 304, 208),
        # 3x3 on 5x5 makes 3x3: 9 positions, 4 channels out, 2·3·3 inner: 2·9·4·18
        (formulas.convolution((1, 2, 5, 5), (4, 2, 3, 3), (1, 4, 3, 3), "float"), 1_296, 4 * (50 + 72), 4 * 36),
        # both gradients: twice; reads gradient twice, weight, input; writes input and weight
        (formulas.convolution_backward((1, 4, 3, 3), (1, 2, 5, 5), (4, 2, 3, 3), "float"), 2_592, 4 * (72 + 72 + 50), 4 * 122),
        (
            formulas.convolution_backward((1, 4, 3, 3), (1, 2, 5, 5), (4, 2, 3, 3), "float", wanted=(False, True)),
            1_296,
            4 * (36 + 50),
            4 * 72,
        ),
        # 10 rows of 16 floats (64 bytes, two sectors), 10 indices and 4 offsets of 8 bytes; 4 bags of 16 floats
        (formulas.lookup(10, 16, 4, "float"), 160, 10 * 72 + 32, 256),
        # rows of 4 floats are read as one sector of 32 bytes
        (formulas.lookup(10, 4, 4, "float"), 40, 10 * 40 + 32, 64),
        # 3 tables of 16: bags 3·128, indices 768
        (formulas.table_batched_lookup(Tables(768, 384, 3, 48, "float")), 12_288, 768 * 72 + 384 * 8, 384 * 64),
        # plain SGD: gradient, indices and rows in, rows out
        (formulas.table_batched_backward(Tables(768, 384, 3, 48, "float")), 24_576, 384 * 64 + 768 * 8 + 768 * 64, 768 * 64),
        # Adagrad has as many states as weights
        (
            formulas.table_batched_backward(Tables(768, 384, 3, 48, "float"), states=1.0),
            61_440,
            384 * 64 + 768 * 8 + 2 * 768 * 64,
            2 * 768 * 64,
        ),
        (formulas.embedding((100, 16), (2, 3), "float"), 0, 6 * 72, 6 * 64),
        (formulas.embedding_backward((2, 3, 16), (2, 3), "float"), 96, 6 * 64 + 48 + 6 * 64, 6 * 64),
        (formulas.elementwise([(2, 3), (3,)], (2, 3), "float"), 6, 36, 24),
        (formulas.reduction((2, 3), (2,), "float"), 6, 24, 8),
        (formulas.softmax((2, 3), "float"), 30, 24, 24),
        (formulas.normalisation((2, 3), (3,), "float"), 48, 48, 24),
        (formulas.normalisation_backward((2, 3), (3,), "float"), 84, 60, 48),
        # Adam: parameter, gradient and two moments in, all but the gradient out
        (formulas.optimizer(10, "adam", "float"), 120, 160, 120),
        (formulas.optimizer(10, "sgd", "float"), 20, 80, 40),
        (formulas.copy((2, 3), "float", "half"), 0, 24, 12),
        (formulas.memset((2, 3), "float"), 0, 0, 24),
    ],
)
def test_flops_and_bytes_are_those_worked_out_by_hand(work: Work, flops: int, read: int, written: int) -> None:
    assert amounts(work) == (flops, read, written)


def test_a_product_keeps_its_sizes_and_a_convolution_has_those_of_its_implicit_product() -> None:
    assert sizes(formulas.matmul((2, 3, 4), (2, 4, 5), "float")) == (2, 3, 5, 4)
    assert sizes(formulas.convolution((1, 4, 5, 5), (6, 2, 3, 3), (1, 6, 3, 3), "float")) == (2, 9, 3, 18)
    assert sizes(formulas.softmax((2, 3), "float")) == (0, 0, 0, 0)


def test_a_convolutions_output_follows_stride_padding_and_dilation() -> None:
    assert formulas.convolved((8, 3, 224, 224), (64, 3, 7, 7), (2, 2), (3, 3)) == (8, 64, 112, 112)
    assert formulas.convolved((1, 1, 9), (1, 1, 3), dilation=(2,)) == (1, 1, 5)


def test_shapes_broadcast_as_torch_broadcasts_them() -> None:
    assert formulas.broadcast([(8, 1, 5), (3, 1)]) == (8, 3, 5)
    assert formulas.broadcast([(0, 3), (1, 3)]) == (0, 3)
    assert formulas.broadcast([]) == ()


def test_work_of_nothing_is_nothing() -> None:
    assert amounts(formulas.mm((0, 4), (4, 5), "float"))[0] == 0
    assert amounts(formulas.lookup(0, 16, 0, "float")) == (0, 0, 0)


@pytest.mark.parametrize(
    ("name", "size", "number"),
    [
        ("float", 4, "fp32"),
        ("c10::Half", 2, "fp16"),
        ("torch.bfloat16", 2, "bf16"),
        ("long int", 8, "int64"),
        ("Float8_e4m3fn", 1, "fp8"),
    ],
)
def test_an_element_type_has_many_spellings(name: str, size: int, number: str) -> None:
    assert (element_bytes(name), format_of(name)) == (size, number)


def test_what_cannot_be_is_refused_with_the_way_out() -> None:
    with pytest.raises(UsageError, match=r"no element type 'quaternion'; write one of bf16"):
        element_bytes("quaternion")
    with pytest.raises(UsageError, match=r"inner sizes 4 and 3 of \(2, 4\) and \(3, 5\) differ"):
        formulas.mm((2, 4), (3, 5), "float")
    with pytest.raises(UsageError, match=r"no matrices: \(4,\) and \(4, 5\)"):
        formulas.matmul((4,), (4, 5), "float")
    with pytest.raises(UsageError, match="no optimizer 'magic'; write one of sgd"):
        formulas.optimizer(1, "magic", "float")
    with pytest.raises(UsageError, match="negative amount"):
        Work(OperatorClass.COPY, 0, -1, 0, "float")


def test_classes_that_the_contract_lacks_count_where_it_counts_them() -> None:
    assert [kind.contract for kind in OperatorClass] == [
        "gemm", "attention", "conv", "embedding", "elementwise", "reduction", "reduction", "elementwise", "copy", "memset",
        "other",
    ]  # fmt: skip


def test_columns_hold_what_the_works_hold() -> None:
    works = Works.of([formulas.mm((3, 4), (4, 5), "bf16"), formulas.softmax((2, 3), "float")])

    assert works.flops.tolist() == [120, 30]
    assert works.bytes_moved.tolist() == [94, 48]
    assert works.format.tolist() == ["bf16", "fp32"]
    assert works.is_kind(OperatorClass.GEMM).tolist() == [True, False]
    assert works.take(works.is_kind(OperatorClass.REDUCTION)).flops.tolist() == [30]
