"""What the software of a step decides beside the model: in, a name; out, formats, fusions, how inputs and gradients travel."""

import difflib
from dataclasses import dataclass
from typing import Literal

from tracereplay.errors import UsageError
from tracereplay.hardware.memory.tables import Optimizer

Format = Literal["fp32", "tf32", "bf16", "fp16"]
InputExchange = Literal["first", "prefetched", "none"]
BYTES_OF: dict[Format, int] = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2}

# torch.nn.parallel.DistributedDataParallel: gradients are sent when so many bytes are ready; the first bucket is smaller.
_FIRST_BUCKET = 1024 * 1024
_BUCKET = 25 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Software:
    """One training stack.

    ``matrix``: the format of layers, their activations and of what the pooled all-to-all carries; ``tables``: that of embedding
    rows; ``gradients``: that of the all-reduce. ``fused``: bias, activation and their gradients run inside the matrix products,
    the interaction is one kernel. ``inputs``: indices are exchanged ``first``, ``prefetched`` for the next step behind the
    pooled all-to-all, or ``none`` where every rank reads what it looks up. ``buckets``: bytes of the first and the other
    all-reduces. ``hybrid``: its tables are hybrid unless a plan says otherwise; ``hierarchical``: over several
    nodes its even all-to-alls run in the node first, by its own code, in place of NCCL's choice; ``apart``: all-reduces have a
    stream of their own, beside that of the other collectives; ``grouped``: over several nodes all
    gradients travel in one all-reduce.
    """

    name: str
    matrix: Format = "fp32"
    tables: Format = "fp32"
    gradients: Format = "fp32"
    fused: bool = False
    inputs: InputExchange = "first"
    optimizer: Optimizer = Optimizer.SGD
    buckets: tuple[int, int] = (_FIRST_BUCKET, _BUCKET)
    hybrid: bool = False
    hierarchical: bool = False
    apart: bool = False
    grouped: bool = False


_STACKS = (
    Software("torchrec", inputs="prefetched", optimizer=Optimizer.ADAGRAD),
    Software("torchrec-tf32", matrix="tf32", inputs="prefetched", optimizer=Optimizer.ADAGRAD),
    # NVIDIA's DLRM of DeepLearningExamples: every rank reads the features of its tables for the whole batch.
    Software("nvidia-amp", matrix="fp16", gradients="fp16", fused=True, inputs="none"),
    Software("nvidia-fp32", inputs="none"),
    # HugeCTR before and since its version 3.1, whose release notes name hybrid embeddings, hierarchical all-to-alls and
    # the overlap of communication (``overlap_ar_a2a``) as new; its
    # configurations for several nodes set ``grouped_all_reduce``.
    Software("hugectr-2", matrix="fp16", gradients="fp16", fused=True, inputs="none"),
    Software(
        "hugectr-3",
        matrix="fp16",
        gradients="fp16",
        fused=True,
        inputs="none",
        hybrid=True,
        hierarchical=True,
        apart=True,
        grouped=True,
    ),
    Software("ipex-bf16", matrix="bf16", gradients="bf16", inputs="none"),
)
SOFTWARE = {stack.name: stack for stack in _STACKS}


def software_named(name: str) -> Software:
    """The stack of that name.

    Raises:
        UsageError: there is none.
    """
    wanted = name.lower().replace("_", "-")
    if wanted not in SOFTWARE:
        near = difflib.get_close_matches(wanted, SOFTWARE, n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else f"stacks are {', '.join(SOFTWARE)}"
        raise UsageError(f"no software {name!r}", hint=hint)
    return SOFTWARE[wanted]
