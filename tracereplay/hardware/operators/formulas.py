"""Flops and bytes from shapes: in, plain tuples of sizes and names of element types; out, ``Work``.

Sources: counts of matrix products, convolutions and attention as in torch.utils.flop_counter (``mm_flop``, ``conv_flop_count``,
``sdpa_flop_count``); lookups as in the Lin et al. model of DLRM training (arXiv 2201.07821) and FBGEMM's table-batched
embedding; bytes count each operand once. Sizes of 0 give work of 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from tracereplay.errors import UsageError
from tracereplay.hardware.operators.work import OperatorClass, Work, element_bytes

Shape = tuple[int, ...]

# A GPU reads its memory in sectors of 32 bytes: a row of an embedding table is rounded up to whole ones
# (owensgroup/ml_perf_model, arXiv 2201.07821, section on embedding lookups).
SECTOR_BYTES: Final = 32

# Tensors of the size of the parameters that a step reads and writes, and flops an element (torch.optim's update rules).
_OPTIMIZERS: Final = {"sgd": (2, 1, 2), "momentum": (3, 2, 4), "adagrad": (3, 2, 6), "adam": (4, 3, 12), "adamw": (4, 3, 14)}


def elements(shape: Shape) -> int:
    """The number of elements of a tensor; 1 for the empty shape of a scalar."""
    return prod(shape)


def gemm(m: int, n: int, k: int, dtype: str, *, batch: int = 1) -> Work:
    """``batch`` products of (m, k) with (k, n): 2 m n k flops each; reads both operands, writes m n.

    torch.utils.flop_counter ``mm_flop``, ``bmm_flop``, ``addmm_flop`` (which leaves the bias out of the flops, as here).
    """
    size = element_bytes(dtype)
    read = size * batch * (m * k + k * n)
    return Work(OperatorClass.GEMM, 2 * batch * m * n * k, read, size * batch * m * n, dtype, m, n, k, batch)


def mm(a: Shape, b: Shape, dtype: str) -> Work:
    """``torch.mm``: (m, k) with (k, n). See ``gemm``.

    Raises:
        UsageError: the inner sizes differ.
    """
    return matmul(a, b, dtype)


def addmm(bias: Shape, a: Shape, b: Shape, dtype: str) -> Work:
    """``torch.addmm``: a bias of n or of (m, n), plus (m, k) with (k, n). See ``gemm``.

    Raises:
        UsageError: the inner sizes differ.
    """
    product = matmul(a, b, dtype)
    return replace(product, bytes_read=product.bytes_read + element_bytes(dtype) * elements(bias))


def linear(x: Shape, weight: Shape, dtype: str, *, bias: bool = False) -> Work:
    """``torch.nn.functional.linear``: (..., k) with a weight of (n, k) and a bias of n; the leading sizes are rows. See
    ``gemm``.

    Raises:
        UsageError: the inner sizes differ.
    """
    _same_inner(x[-1], weight[-1], x, weight)
    product = gemm(prod(x[:-1]), weight[0], x[-1], dtype)
    return replace(product, bytes_read=product.bytes_read + element_bytes(dtype) * weight[0]) if bias else product


def matmul(a: Shape, b: Shape, dtype: str) -> Work:
    """``torch.matmul`` of two tensors of two or more dimensions: leading sizes that both have are a batch, those that only
    the first has are rows.

    Raises:
        UsageError: fewer dimensions than two, or the inner sizes differ.
    """
    if min(len(a), len(b)) < 2:
        raise UsageError(f"no matrices: {a} and {b}", hint="a product takes two dimensions or more on both sides")
    _same_inner(a[-1], b[-2], a, b)
    if len(b) == 2:
        return gemm(prod(a[:-1]), b[-1], a[-1], dtype)
    return gemm(a[-2], b[-1], a[-1], dtype, batch=max(prod(a[:-2]), prod(b[:-2])))


def interaction(batch: int, features: int, dim: int, dtype: str) -> Work:
    """DLRM's dot interaction: each sample's (features, dim) with its own transpose, a batched product: 2 features² dim flops a
    sample (facebookresearch/dlrm ``interact_features``).
    """
    return gemm(features, features, dim, dtype, batch=batch)


def attention(query: Shape, key: Shape, value: Shape, dtype: str, *, causal: bool = False) -> Work:
    """Fused scaled-dot-product attention on (batch, heads, length, head size): two products, 2 b h q kv (d + dv) flops (half of
    it where causal); reads query, key and value, writes the output. The scores stay on the chip (FlashAttention,
    arXiv 2205.14135); flops as ``sdpa_flop_count``.
    """
    size, half = element_bytes(dtype), 2 if causal else 1
    groups, q, d = prod(query[:-2]), query[-2], query[-1]
    flops = 2 * groups * q * key[-2] * (d + value[-1]) // half
    read = size * (elements(query) + elements(key) + elements(value))
    return Work(OperatorClass.ATTENTION, flops, read, size * groups * q * value[-1], dtype)


def attention_backward(query: Shape, key: Shape, value: Shape, dtype: str, *, causal: bool = False) -> Work:
    """Backward of ``attention``: five products for the two of forward (scores again, and the gradients of value, probabilities,
    query and key), 2.5 times its flops (``sdpa_backward_flop_count``); reads query, key, value, output and its gradient,
    writes three gradients.
    """
    forward = attention(query, key, value, dtype, causal=causal)
    read = forward.bytes_read + 2 * forward.bytes_written
    return Work(OperatorClass.ATTENTION, forward.flops * 5 // 2, read, forward.bytes_read, dtype)


def convolved(
    x: Shape, weight: Shape, stride: Sequence[int] = (), padding: Sequence[int] = (), dilation: Sequence[int] = ()
) -> Shape:
    """The output's shape: (batch, channels out, positions...), positions floor((i + 2p - d (w - 1) - 1) / s) + 1
    (torch.nn.Conv2d). A stride, padding or dilation left out is 1, 0 or 1; one number holds for all dimensions.
    """
    spatial = len(x) - 2
    s, p, d = (_each(given, spatial, default) for given, default in ((stride, 1), (padding, 0), (dilation, 1)))
    sizes = ((x[2 + i] + 2 * p[i] - d[i] * (weight[2 + i] - 1) - 1) // s[i] + 1 for i in range(spatial))
    return (x[0], weight[0], *sizes)


def convolution(x: Shape, weight: Shape, output: Shape, dtype: str) -> Work:
    """A convolution as an implicit GEMM: rows are output positions, columns output channels of a group, inner size a group's
    channels times the window (cuDNN, arXiv 1410.0759): 2 m n k flops a group (``conv_flop_count``). There are as many groups as
    the weight's channels go into the input's.
    """
    size, groups = element_bytes(dtype), x[1] // weight[1]
    m, n, k = output[0] * prod(output[2:]), output[1] // groups, prod(weight[1:])
    read = size * (elements(x) + elements(weight))
    return Work(OperatorClass.CONV, 2 * groups * m * n * k, read, size * elements(output), dtype, m, n, k, groups)


def convolution_backward(grad: Shape, x: Shape, weight: Shape, dtype: str, *, wanted: tuple[bool, bool] = (True, True)) -> Work:
    """Backward of ``convolution``: one product of forward's size for each gradient ``wanted``, of input and of weight
    (``conv_backward_flop``); reads the output's gradient and the other operand for each, writes the gradients.
    """
    size, of_input, of_weight = element_bytes(dtype), *map(int, wanted)
    one, times = convolution(x, weight, grad, dtype), of_input + of_weight
    read = times * elements(grad) + of_input * elements(weight) + of_weight * elements(x)
    written = of_input * elements(x) + of_weight * elements(weight)
    return replace(one, flops=times * one.flops, bytes_read=size * read, bytes_written=size * written, batch=times * one.batch)


@dataclass(frozen=True, slots=True)
class Tables:
    """A lookup in several embedding tables at once: indices and bags (samples x tables) over all tables, how many tables
    there are, their widths summed, element types of rows and indices. Tables are taken as of one width and one share of the
    indices.
    """

    indices: int
    bags: int
    tables: int
    total_dim: int
    dtype: str
    index_dtype: str = "int64"

    @property
    def dim(self) -> float:
        """The mean width of a table."""
        return self.total_dim / max(self.tables, 1)

    def row_bytes(self) -> int:
        """Bytes that reading a row moves: its own, in whole sectors."""
        return _sectors(self.dim * element_bytes(self.dtype))

    def bag_bytes(self) -> int:
        """Bytes of all bags' sums."""
        return round(self.bags * self.dim * element_bytes(self.dtype))


def lookup(indices: int, dim: int, bags: int, dtype: str) -> Work:
    """A lookup in one table (torch ``embedding_bag``) with 64-bit indices. See ``table_batched_lookup``."""
    return table_batched_lookup(Tables(indices, bags, 1, dim, dtype))


def table_batched_lookup(wanted: Tables) -> Work:
    """A lookup that sums rows into bags (FBGEMM's table-batched embedding): reads a row an index in sectors of 32 bytes, the
    indices and an offset a bag, writes a row a bag; one addition an element read.

    With a pooling factor of L = indices / bags rows are B L D e bytes (TorchRec, Lin et al.); sectors as in Lin et al.
    """
    at = element_bytes(wanted.index_dtype)
    read = wanted.indices * (wanted.row_bytes() + at) + wanted.bags * at
    return Work(OperatorClass.EMBEDDING, round(wanted.indices * wanted.dim), read, wanted.bag_bytes(), wanted.dtype)


def table_batched_backward(wanted: Tables, *, states: float = 0.0) -> Work:
    """Backward of a table-batched lookup with the optimizer fused in: reads a bag's gradient and, for each index, its row and
    ``states`` rows of optimizer state, writes row and state back. Rows move 2x forward's bytes with SGD (``states`` 0), 4x
    with Adagrad (1), a little more than 2x with row-wise Adagrad (1 / width) (FBGEMM ``split_embedding_backward_codegen``;
    Lin et al.: 2x weights). Every index counts as a row of its own, though FBGEMM merges those that repeat.
    """
    rows = round(wanted.indices * wanted.row_bytes() * (1 + states))
    read = wanted.bag_bytes() + wanted.indices * element_bytes(wanted.index_dtype) + rows
    flops = round(wanted.indices * wanted.dim * (2 + 3 * states))
    return Work(OperatorClass.EMBEDDING, flops, read, rows, wanted.dtype)


def embedding(table: Shape, indices: Shape, dtype: str, *, index_dtype: str = "int64") -> Work:
    """``torch.embedding``: one row an index, read in whole sectors and copied out; nothing is added up."""
    size, count = element_bytes(dtype), elements(indices)
    read = count * (_sectors(table[-1] * size) + element_bytes(index_dtype))
    return Work(OperatorClass.EMBEDDING, 0, read, count * table[-1] * size, dtype)


def embedding_backward(grad: Shape, indices: Shape, dtype: str, *, index_dtype: str = "int64") -> Work:
    """``embedding_dense_backward``: reads a gradient row an index and adds it to a row of the weight's gradient, which is read
    and written. Zeroing that gradient is another kernel.
    """
    size, at, count = element_bytes(dtype), element_bytes(index_dtype), elements(indices)
    rows = count * _sectors(grad[-1] * size)
    return Work(OperatorClass.EMBEDDING, elements(grad), size * elements(grad) + count * at + rows, rows, dtype)


def elementwise(inputs: Sequence[Shape], output: Shape, dtype: str, *, flops_each: int = 1) -> Work:
    """An element-wise operator: reads each tensor input once (broadcast ones as they are), writes the output."""
    size = element_bytes(dtype)
    read = size * sum(elements(shape) for shape in inputs if shape)
    return Work(OperatorClass.ELEMENTWISE, flops_each * elements(output), read, size * elements(output), dtype)


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape that tensors of these shapes broadcast to (numpy's rule, which torch follows)."""
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(0 if 0 in sizes else max(sizes) for sizes in zip(*padded, strict=True))


def reduction(x: Shape, output: Shape, dtype: str) -> Work:
    """A reduction: reads the input, writes the output, one operation an element read."""
    size = element_bytes(dtype)
    return Work(OperatorClass.REDUCTION, elements(x), size * elements(x), size * elements(output), dtype)


def softmax(x: Shape, dtype: str) -> Work:
    """Softmax: reads and writes the tensor once (the row stays on the chip); maximum, difference, exponential, sum, quotient
    are 5 operations an element (ATen ``softmax_warp_forward``).
    """
    size = element_bytes(dtype)
    return Work(OperatorClass.REDUCTION, 5 * elements(x), size * elements(x), size * elements(x), dtype)


def normalisation(x: Shape, weight: Shape, dtype: str) -> Work:
    """Layer, group or batch normalisation: reads the tensor, weight and bias, writes the tensor; mean, variance, scale, shift
    are 8 operations an element (ATen ``vectorized_layer_norm_kernel``, one pass).
    """
    size = element_bytes(dtype)
    read = size * (elements(x) + 2 * elements(weight))
    return Work(OperatorClass.NORMALISATION, 8 * elements(x), read, size * elements(x), dtype)


def normalisation_backward(x: Shape, weight: Shape, dtype: str) -> Work:
    """Backward of ``normalisation``: reads the tensor and its gradient, writes the gradients of tensor, weight and bias."""
    size = element_bytes(dtype)
    read, written = size * (2 * elements(x) + elements(weight)), size * (elements(x) + 2 * elements(weight))
    return Work(OperatorClass.NORMALISATION, 14 * elements(x), read, written, dtype)


def optimizer(parameters: int, rule: str, dtype: str) -> Work:
    """One step of ``sgd``, ``momentum``, ``adagrad``, ``adam`` or ``adamw`` over that many parameters, fused: reads parameter,
    gradient and states, writes parameter and states (update rules of torch.optim).

    Raises:
        UsageError: no such rule.
    """
    if rule not in _OPTIMIZERS:
        raise UsageError(f"no optimizer {rule!r}", hint=f"write one of {', '.join(_OPTIMIZERS)}")
    read, written, flops = _OPTIMIZERS[rule]
    size = element_bytes(dtype)
    return Work(OperatorClass.OPTIMIZER, flops * parameters, read * size * parameters, written * size * parameters, dtype)


def copy(shape: Shape, dtype: str, to: str | None = None) -> Work:
    """A copy within one memory: reads each element, writes it in its new type (left out: the same)."""
    target = dtype if to is None else to
    count = elements(shape)
    return Work(OperatorClass.COPY, 0, element_bytes(dtype) * count, element_bytes(target) * count, target)


def indexed(output: Shape, indices: Shape, dtype: str, *, index_dtype: str = "int64") -> Work:
    """``torch.gather``, ``index_select`` and indexing: reads the indices and what they choose, however large the source is, and
    writes it.
    """
    chosen = element_bytes(dtype) * elements(output)
    return Work(OperatorClass.COPY, 0, chosen + element_bytes(index_dtype) * elements(indices), chosen, dtype)


def memset(shape: Shape, dtype: str) -> Work:
    """Filling a tensor: writes it."""
    return Work(OperatorClass.MEMSET, 0, 0, element_bytes(dtype) * elements(shape), dtype)


def _sectors(size: float) -> int:
    return -(-round(size) // SECTOR_BYTES) * SECTOR_BYTES


def _same_inner(left: int, right: int, a: Shape, b: Shape) -> None:
    if left != right:
        raise UsageError(f"inner sizes {left} and {right} of {a} and {b} differ", hint="check the order of the operands")


def _each(given: Sequence[int], count: int, default: int) -> tuple[int, ...]:
    return tuple(given) if len(given) == count else (given[0] if given else default,) * count
