"""The one classifier: names of operators and device work to the contract's classes and collective names.

In: names and roles. Out: a ``WorkClass`` code a name. Rules are tables of (class, pattern), first match wins; patterns are
the vendors' and libraries' own kernel name parts (cuBLAS/CUTLASS, Tensile ``Cijk_``, NCCL/RCCL, FBGEMM, ATen).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

import numpy as np
import numpy.typing as npt

from tracereplay.trace.schema import Role


class WorkClass(IntEnum):
    """The contract's classes of work; HOST is host time that no operator covers."""

    HOST = 0
    GEMM = 1
    ATTENTION = 2
    CONV = 3
    EMBEDDING = 4
    ELEMENTWISE = 5
    REDUCTION = 6
    COPY = 7
    MEMSET = 8
    COLLECTIVE = 9
    OTHER = 10


CLASS_NAMES = {work.name.lower(): work for work in WorkClass if work is not WorkClass.HOST}

COLLECTIVE_NAMES = (
    "all_to_all",
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "send_recv",
    "barrier",
    "other",
)

# Spellings of collectives in NCCL/RCCL/oneCCL kernels, gloo annotations and c10d operators, without separators.
_COLLECTIVE_SPELLINGS = (
    ("alltoall", "all_to_all"),
    ("allreduce", "all_reduce"),
    ("crossdevicereduce", "all_reduce"),  # vLLM's and SGLang's own all-reduce over peer memory
    ("allgather", "all_gather"),
    ("reducescatter", "reduce_scatter"),
    ("broadcast", "broadcast"),
    ("barrier", "barrier"),
    ("sendrecv", "send_recv"),
    ("send", "send_recv"),
    ("recv", "send_recv"),
    ("reduce", "reduce"),
    ("gather", "gather"),
    ("scatter", "scatter"),
)

_COMMUNICATION = re.compile(
    r"nccl|rccl|oneccl|hccl::|^(gloo|mpi|ucc):|c10d::|cross_device_reduce|allreduce_(one|two)shot|all_?reduce.*(one|two)_?shot",
    re.I,
)

_KERNEL_RULES = (
    (WorkClass.COLLECTIVE, _COMMUNICATION),
    (WorkClass.COPY, re.compile(r"memcpy|copyBuffer|copy_device_to_device|CatArrayBatchedCopy", re.I)),
    (WorkClass.MEMSET, re.compile(r"memset|fillBuffer", re.I)),
    (WorkClass.ATTENTION, re.compile(r"flash|fmha|attention|attn", re.I)),
    (
        WorkClass.EMBEDDING,
        re.compile(
            r"(?<!rotary_)embedding|fbgemm_gpu.*(split|dense|bounds_check)|bounds_check_indices|indexing_backward|jagged", re.I
        ),
    ),
    (
        WorkClass.CONV,
        re.compile(
            r"conv(?!ert)|winograd|implicit_gemm|igemm_(fwd|bwd|wrw)|scudnn|cudnn.*(fprop|dgrad|wgrad)|dgrad|wgrad|miopen.*(Conv|Winograd)",
            re.I,
        ),
    ),
    (WorkClass.GEMM, re.compile(r"(?<!fb)gemm|gemv|_?matmul|cutlass|cublas|Cijk_|xmma|wgmma|splitK|dot_kernel|nvjet", re.I)),
    (
        WorkClass.REDUCTION,
        re.compile(r"reduce|softmax|norm(?!al)|cudnn::bn_|batchnorm|scan|sort|DeviceScan|argmax|welford", re.I),
    ),
    (
        WorkClass.ELEMENTWISE,
        re.compile(
            r"elementwise|pointwise|foreach|multi_tensor|_kernel_cuda|triton_poi|dropout|index|gather|scatter|fill|rotary|permute",
            re.I,
        ),
    ),
)

_OPERATOR_RULES = (
    (WorkClass.COLLECTIVE, _COMMUNICATION),
    (WorkClass.EMBEDDING, re.compile(r"embedding|EmbeddingBag|fbgemm::|IndexSelect", re.I)),
    (WorkClass.ATTENTION, re.compile(r"attention", re.I)),
    (WorkClass.CONV, re.compile(r"conv(?!ert)", re.I)),
    (
        WorkClass.GEMM,
        re.compile(
            r"^aten::(add|ba)?d?d?(bmm|mm|mv|matmul|linear|einsum|addmm|addmv|dot)|^(Addmm|Bmm|Mm|Linear)Backward", re.I
        ),
    ),
    (
        WorkClass.COPY,
        re.compile(r"^aten::(copy_|_to_copy|to$|cat$|clone|contiguous|stack|concat|index_copy)|copy_bucket_to_grad", re.I),
    ),
    (
        WorkClass.MEMSET,
        re.compile(
            r"^aten::(zero_|zeros|fill_|ones|zeros_like|ones_like|new_zeros|new_ones|full|full_like|new_full)(?![a-z])", re.I
        ),
    ),
    (
        WorkClass.REDUCTION,
        re.compile(
            r"^aten::_?(sum|mean|softmax|log_softmax|max|min|norm|[a-z_]*_norm|linalg_[a-z]*norm|cumsum|argmax|sort|topk)_?(?![a-z])",
            re.I,
        ),
    ),
    (
        WorkClass.ELEMENTWISE,
        re.compile(
            r"^aten::_?(add|sub|rsub|mul|div|neg|exp|log|log1p|sqrt|rsqrt|pow|relu|threshold|threshold_backward|sigmoid|log_sigmoid|"
            r"sigmoid_backward|tanh|gelu|silu|clamp|clamp_min|where|addcmul|addcdiv|foreach_[a-z_]*|binary_cross_entropy[a-z_]*|random|normal|"
            r"uniform|bernoulli|index|index_put|index_add|index_select|gather|scatter|scatter_add|masked_fill|lt|gt|le|ge|eq|ne|sgn|abs|"
            r"lerp|reciprocal)_?(?![a-z])|reducer::mul_out",
            re.I,
        ),
    ),
)

_ROLE_CLASS = {Role.MEMCPY: WorkClass.COPY, Role.MEMSET: WorkClass.MEMSET}


@dataclass(frozen=True, slots=True)
class UserRules:
    """Rules that are asked before the built-in ones: (class, pattern) for kernels and operators, (name, pattern) for
    collectives; the first match wins.
    """

    kernels: tuple[tuple[WorkClass, re.Pattern[str]], ...] = ()
    operators: tuple[tuple[WorkClass, re.Pattern[str]], ...] = ()
    collectives: tuple[tuple[str, re.Pattern[str]], ...] = ()


NO_RULES = UserRules()


@cache
def class_of_kernel(name: str, rules: UserRules = NO_RULES) -> WorkClass:
    """The class of device work by its kernel name."""
    return _first_match((*rules.kernels, *_KERNEL_RULES), name)


@cache
def class_of_operator(name: str, rules: UserRules = NO_RULES) -> WorkClass:
    """The class of a host operator's own time, for CPU-only traces."""
    return _first_match((*rules.operators, *_OPERATOR_RULES), name)


@cache
def collective_of(name: str, rules: UserRules = NO_RULES) -> str | None:
    """The contract's collective name of communication work or of a c10d operator; None where it is no communication."""
    own = next((collective for collective, pattern in rules.collectives if pattern.search(name)), None)
    if own is not None:
        return own
    if not _COMMUNICATION.search(name):
        return "other" if WorkClass.COLLECTIVE in (work for work, pattern in rules.kernels if pattern.search(name)) else None
    squeezed = re.sub(r"[_\s:]", "", name).lower()
    return next((collective for spelling, collective in _COLLECTIVE_SPELLINGS if spelling in squeezed), "other")


def classes_of_names(names: Iterable[str], *, operators: bool, rules: UserRules = NO_RULES) -> npt.NDArray[np.int8]:
    """Class codes of distinct names, to be indexed by name codes."""
    classify = class_of_operator if operators else class_of_kernel
    return np.array([int(classify(name, rules)) for name in names], np.int8)


def class_of_role(role: Role) -> WorkClass | None:
    """The class that a role fixes whatever the name says: copies and memory sets."""
    return _ROLE_CLASS.get(role)


def _first_match(rules: tuple[tuple[WorkClass, re.Pattern[str]], ...], name: str) -> WorkClass:
    return next((work for work, pattern in rules if pattern.search(name)), WorkClass.OTHER)
