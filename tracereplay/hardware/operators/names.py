"""Which formula an operator's name stands for: in, a call (name, input shapes, element types, scalar arguments, output shapes)
as PyTorch records it; out, its ``Work``, or None where the name has no formula or the shapes do not suffice.

One table, first match wins. Names are ATen's and FBGEMM's. Wrappers (``aten::linear``, ``aten::conv2d``) have the formula of
what they call: of a chain of calls the innermost that launches is the one to ask. A list of tensors has a tuple of shapes.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from tracereplay.errors import UsageError
from tracereplay.hardware.operators import formulas
from tracereplay.hardware.operators.formulas import Shape, Tables
from tracereplay.hardware.operators.work import Work, element_bytes

# A tensor's sizes, or a list of tensors: one level deeper.
Recorded = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One call. ``shapes``, ``dtypes`` and ``values`` have an entry an input, ``()``, ``""`` and None for what an input is not;
    ``values`` are scalars and lists of integers (``Concrete Inputs`` of a trace), ``outputs`` shapes; both may be left out.
    """

    name: str
    shapes: tuple[Recorded, ...]
    dtypes: tuple[str, ...]
    values: tuple[Any, ...] = ()
    outputs: tuple[Recorded, ...] = ()

    @property
    def dtype(self) -> str:
        """The element type of the first input that has one and that has elements of a known type.

        Raises:
            UsageError: none has.
        """
        for dtype in self.dtypes:
            try:
                element_bytes(dtype)
            except UsageError:
                continue
            return dtype
        raise UsageError(f"{self.name}: no input has a known element type", hint="record shapes and types")

    def shape(self, place: int) -> Shape:
        """The shape of one input; empty for a scalar or where it is not recorded."""
        found = self.shapes[place] if place < len(self.shapes) else ()
        return tuple(found) if all(isinstance(size, int) for size in found) else ()

    def value(self, place: int) -> Any:
        """The value of one scalar input, None where it is not recorded."""
        return self.values[place] if place < len(self.values) else None

    def tensors(self) -> list[Shape]:
        """The shapes of all inputs, lists of tensors taken apart; scalars left out."""
        return [shape for shape in _flat(self.shapes) if shape]


Formula = Callable[[Call], Work | None]


def _flat(shapes: Iterable[Recorded]) -> Iterable[Shape]:
    for shape in shapes:
        if all(isinstance(size, int) for size in shape):
            yield tuple(shape)
        else:
            yield from _flat(shape)


def work_of(call: Call) -> Work | None:
    """The work of a call; None where its name has no formula, or what that needs is not recorded or contradicts itself: such
    work is not modelled, and the caller counts it.
    """
    formula = next((found for pattern, found in FORMULAS if pattern.fullmatch(call.name)), None)
    if formula is None:
        return None
    try:
        return formula(call)
    except (IndexError, ZeroDivisionError, StopIteration, UsageError):
        return None


def _mm(call: Call) -> Work:
    return formulas.mm(call.shape(0), call.shape(1), call.dtype)


def _addmm(call: Call) -> Work:
    return formulas.addmm(call.shape(0), call.shape(1), call.shape(2), call.dtype)


def _linear(call: Call) -> Work:
    return formulas.linear(call.shape(0), call.shape(1), call.dtype, bias=bool(call.shape(2)))


def _attention(causal_at: int) -> Formula:
    def formula(call: Call) -> Work:
        query, key, value = (call.shape(i) for i in range(3))
        return formulas.attention(query, key, value, call.dtype, causal=call.value(causal_at) is True)

    return formula


def _heads_second(call: Call) -> Work:
    """``_flash_attention_forward`` has (batch, length, heads, head size)."""
    swapped = [(s[0], s[2], s[1], s[3]) for s in (call.shape(i) for i in range(3))]
    return formulas.attention(swapped[0], swapped[1], swapped[2], call.dtype, causal=call.value(8) is True)


def _attention_backward(call: Call) -> Work:
    _, query, key, value = (call.shape(i) for i in range(4))
    return formulas.attention_backward(query, key, value, call.dtype)


def _convolution(call: Call) -> Work | None:
    """Stride, padding and dilation stand behind the bias; in cuDNN's and MIOpen's own entries padding comes first, and
    cuDNN's has no bias.
    """
    x, weight = call.shape(0), call.shape(1)
    if call.outputs:
        return formulas.convolution(x, weight, tuple(call.outputs[0]), call.dtype)
    places = (3, 2, 4) if "cudnn" in call.name else (4, 3, 5) if "miopen" in call.name else (3, 4, 5)
    stride, padding, dilation = (call.value(place) for place in places)
    if not isinstance(stride, list | tuple):
        return None
    output = formulas.convolved(x, weight, stride, padding or (), dilation or ())
    return formulas.convolution(x, weight, output, call.dtype)


def _convolution_backward(call: Call) -> Work:
    grad, x, weight = (call.shape(i) for i in range(3))
    mask = call.value(10)
    wanted = (bool(mask[0]), bool(mask[1])) if isinstance(mask, list | tuple) else (True, True)
    return formulas.convolution_backward(grad, x, weight, call.dtype, wanted=wanted)


def _embedding(call: Call) -> Work:
    return formulas.embedding(call.shape(0), call.shape(1), call.dtype, index_dtype=_index_type(call, 1))


def _embedding_backward(call: Call) -> Work:
    return formulas.embedding_backward(call.shape(0), call.shape(1), call.dtype, index_dtype=_index_type(call, 1))


def _embedding_bag(call: Call) -> Work:
    weight, indices, offsets = (call.shape(i) for i in range(3))
    bags = offsets[0] - (1 if call.value(7) is True else 0)  # include_last_offset
    return formulas.table_batched_lookup(Tables(indices[0], bags, 1, weight[-1], call.dtype, _index_type(call, 1)))


def _index_type(call: Call, place: int) -> str:
    return call.dtypes[place] if place < len(call.dtypes) and call.dtypes[place] else "int64"


def _table_batched(first: int) -> Formula:
    """FBGEMM's lookups: offsets of the tables' widths (one more than tables) at ``first``, their sum behind it, indices and
    offsets (one more than bags) five and six inputs on in the split kernels, four and five in the dense one.
    """

    def formula(call: Call) -> Work | None:
        tables = call.shape(first)[0] - 1
        at = next(i for i in range(first + 1, len(call.shapes)) if _is_offsets(call, i, tables))
        total = call.value(first + 1)
        width = int(total) if total is not None else tuple(call.outputs[0])[-1] if call.outputs else None
        if width is None:
            return None
        indices, bags = call.shape(at - 1)[0], call.shape(at)[0] - 1
        return formulas.table_batched_lookup(Tables(indices, bags, tables, width, call.dtype, _index_type(call, at - 1)))

    return formula


def _is_offsets(call: Call, place: int, tables: int) -> bool:
    """Whether an input is the offsets of the bags: one dimension, behind one of one dimension, bags a whole number a table. The
    tables' first rows, which stand before, have one entry more than there are tables too: behind them stands a scalar.
    """
    shape, before = call.shape(place), call.shape(place - 1)
    return len(shape) == 1 and len(before) == 1 and tables > 0 and shape[0] > tables and (shape[0] - 1) % tables == 0


def _elementwise(flops: int = 1) -> Formula:
    def formula(call: Call) -> Work:
        inputs = call.tensors()
        output = tuple(call.outputs[0]) if call.outputs else formulas.broadcast(inputs)
        return formulas.elementwise(inputs, output, call.dtype, flops_each=flops)

    return formula


def _each_of_a_list(flops: int) -> Formula:
    """``_foreach`` operators: every tensor of the lists is read, those of the first list are written."""

    def formula(call: Call) -> Work | None:
        first = [shape for shape in _flat(call.shapes[:1]) if shape]
        if not first:
            return None  # recorded without the sizes of the list
        count = sum(formulas.elements(shape) for shape in first)
        read = [(sum(formulas.elements(shape) for shape in call.tensors()),)]
        return formulas.elementwise(read, (count,), call.dtype, flops_each=flops)

    return formula


def _reduction(call: Call) -> Work:
    output = tuple(call.outputs[0]) if call.outputs else ()
    return formulas.reduction(call.shape(0), output, call.dtype)


def _softmax(call: Call) -> Work:
    return formulas.softmax(call.shape(0), call.dtype)


def _softmax_backward(call: Call) -> Work:
    return formulas.elementwise([call.shape(0), call.shape(1)], call.shape(0), call.dtype, flops_each=4)


def _normalisation(weight_at: int) -> Formula:
    return lambda call: formulas.normalisation(call.shape(0), call.shape(weight_at), call.dtype)


def _normalisation_backward(weight_at: int) -> Formula:
    return lambda call: formulas.normalisation_backward(call.shape(0), call.shape(weight_at), call.dtype)


def _copy(call: Call) -> Work:
    """``aten::copy_`` has destination, then source; the others have the source alone."""
    if call.name == "aten::copy_" and len(call.dtypes) > 1 and call.dtypes[1]:
        return formulas.copy(call.shape(0), call.dtypes[1], call.dtypes[0])
    return formulas.copy(call.shape(0), call.dtype)


def _cat(call: Call) -> Work | None:
    tensors = call.tensors()
    return formulas.copy((sum(map(formulas.elements, tensors)),), call.dtype) if tensors else None


def _gathered(call: Call) -> Work:
    """Copies of as many elements as the output has: permutations of pooled embeddings and of sparse features."""
    output = tuple(call.outputs[0]) if call.outputs else call.shape(0)
    return formulas.copy(output, call.dtype)


def _selected(call: Call) -> Work | None:
    """``gather`` takes an element an index, ``index_select`` a slice an index along a dimension."""
    source, index = call.shape(0), call.shape(2)
    dim = call.value(1)
    if call.outputs:
        output = tuple(call.outputs[0])
    elif call.name == "aten::gather":
        output = index
    elif isinstance(dim, int) or len(source) == 1:
        along = (dim or 0) % len(source)
        output = (*source[:along], formulas.elements(index), *source[along + 1 :])
    else:
        return None  # along which dimension is not recorded
    return formulas.indexed(output, index, call.dtype, index_dtype=_index_type(call, 2))


def _indexed(call: Call) -> Work | None:
    """``aten::index`` has a list of index tensors, one a leading dimension; they broadcast. One of two or more dimensions that
    are the source's own may be a mask, and how many elements that takes is not recorded.
    """
    source, indices = call.shape(0), [shape for shape in _flat(call.shapes[1:2]) if shape]
    taken = formulas.broadcast(indices)
    if call.outputs:
        output = tuple(call.outputs[0])
    elif not indices or (len(taken) > 1 and taken == source[: len(taken)]):
        return None
    else:
        output = (*taken, *source[len(indices) :])
    return formulas.indexed(output, (sum(map(formulas.elements, indices)),), call.dtype)


def _sparse_permutation(call: Call) -> Work:
    """``fbgemm::permute_2D_sparse_data``: lengths and values are read and written in another order."""
    count = formulas.elements(call.shape(1)) + formulas.elements(call.shape(2))
    return formulas.copy((count,), call.dtypes[2])


def _memset(call: Call) -> Work:
    return formulas.memset(call.shape(0), call.dtype)


def _rules(*rules: tuple[str, Formula]) -> tuple[tuple[re.Pattern[str], Formula], ...]:
    return tuple((re.compile(pattern), formula) for pattern, formula in rules)


_UNARY = (
    "relu|threshold_backward|sigmoid|tanh|gelu|silu|neg|abs|sgn|exp|log|log1p|log2|sqrt|rsqrt|reciprocal|cos|sin|clamp|clamp_min|"
    "clamp_max|nan_to_num|pow|logical_not|bitwise_not|native_dropout|dropout|bernoulli|log_sigmoid_forward|remainder"
)
_BINARY = (
    "add|sub|rsub|mul|div|divide|maximum|minimum|lt|gt|le|ge|eq|ne|logical_and|logical_or|where|masked_fill|addcmul|addcdiv|lerp|"
    "sigmoid_backward|tanh_backward|gelu_backward|silu_backward|native_dropout_backward|mse_loss|mse_loss_backward|"
    "binary_cross_entropy|binary_cross_entropy_backward|binary_cross_entropy_with_logits"
)

FORMULAS: Final = _rules(
    (r"aten::(mm|matmul|bmm)", _mm),
    (r"aten::addmm_?", _addmm),
    (r"aten::baddbmm_?", _addmm),
    (r"aten::linear", _linear),
    (r"aten::_flash_attention_forward", _heads_second),
    (r"aten::_scaled_dot_product_flash_attention", _attention(4)),
    (r"aten::_scaled_dot_product_(efficient|cudnn)_attention", _attention(6)),
    (r"aten::_?scaled_dot_product_attention(_math)?", _attention(5)),
    (r"aten::_?scaled_dot_product_(flash|efficient|cudnn)_attention_backward", _attention_backward),
    (r"aten::(conv[123]d|_?convolution|cudnn_convolution|miopen_convolution)", _convolution),
    (r"aten::convolution_backward", _convolution_backward),
    (r"aten::embedding", _embedding),
    (r"aten::embedding_dense_backward", _embedding_backward),
    (r"aten::_?embedding_bag(_forward_only)?", _embedding_bag),
    (r"fbgemm::split_embedding_codegen_(lookup_\w+_function|forward_\w+)", _table_batched(6)),
    (r"fbgemm::dense_embedding_codegen_lookup_function", _table_batched(2)),
    (r"fbgemm::permute_2D_sparse_data", _sparse_permutation),
    (r"fbgemm::(permute_sparse_features|permute_pooled_embs\w*|recat_embedding_grad_output\w*)", _gathered),
    (r"(fbgemm|fb)::(asynchronous_complete_cumsum|offsets_range|bounds_check_indices|fast_gather)", _elementwise()),
    (r"aten::_foreach_(sqrt|mul|div|add|neg)_?", _each_of_a_list(1)),
    (r"aten::_foreach_(addcmul|addcdiv|lerp)_?", _each_of_a_list(3)),
    (r"aten::_?(log_)?softmax", _softmax),
    (r"aten::_(log_)?softmax_backward_data", _softmax_backward),
    (r"aten::(native_)?layer_norm", _normalisation(2)),
    (r"aten::(native_batch_norm|cudnn_batch_norm|miopen_batch_norm|batch_norm|_batch_norm_impl_index)", _normalisation(1)),
    (r"aten::native_layer_norm_backward", _normalisation_backward(5)),
    (r"aten::(native|cudnn|miopen)_batch_norm_backward", _normalisation_backward(2)),
    (r"aten::(sum|mean|max|min|argmax|norm|linalg_vector_norm|cumsum|all|any|nll_loss_forward|diff)", _reduction),
    (r"aten::(adaptive_|_adaptive_)?(avg|max)_pool2d(_with_indices)?", _reduction),
    (r"aten::(copy_|clone|contiguous|_to_copy|to|type_as)", _copy),
    (r"aten::(index_select|gather)", _selected),
    (r"aten::index", _indexed),
    (r"aten::(_?cat|concat|stack|flatten_dense_tensors)", _cat),
    (r"torch\.distributed\.ddp\.reducer::copy_bucket_to_grad", _copy),
    (r"aten::(fill_|zero_|ones_like|zeros_like|ones|zeros|full|new_zeros|new_empty_filled)", _memset),
    (rf"aten::({_UNARY})_?", _elementwise()),
    (rf"aten::({_BINARY})_?", _elementwise(2)),
    (r"torch::distributed::reducer::mul_out|aten::max_pool2d_with_indices_backward", _elementwise()),
)
