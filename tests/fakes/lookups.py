"""A job that looks rows of embedding tables up with FBGEMM's operators."""

from typing import Any

from tests.fakes.kineto import TraceFile

LOOKUP = "fbgemm::split_embedding_codegen_lookup_sgd_function"
BACKWARD = "torch::autograd::CppNode<SplitLookupFunction_sgd_Op>"
LAUNCH = "cudaLaunchKernel"
FORWARD_KERNEL, BACKWARD_KERNEL = "split_embedding_codegen_forward_kernel", "split_embedding_backward_codegen_kernel"


def weights_of(device: int, host: int, cache: int = 0) -> dict[str, Any]:
    """Of two tables, 5 bags each, 40 indices."""
    dims = [[1], [device], [host], [cache, 1], [2], [2], [3], [], [], [3], [], [40], [11]]
    types = ["float"] * 4 + ["int", "long", "int", "Scalar", "Scalar", "long", "Scalar", "long", "long"]
    return {"Input Dims": dims, "Input type": types}


def looking_up(weights: dict[str, Any]) -> TraceFile:
    """A step with one lookup, forward and backward, and other work between them."""
    trace = TraceFile(0).step(1, 0, 2_000)
    trace = trace.op(LOOKUP, 10, 40, **weights).call(LAUNCH, 20, 5, 1).kernel(FORWARD_KERNEL, 60, 300, 7, 1)
    trace = trace.op("aten::mul", 400, 20).call(LAUNCH, 405, 5, 2).kernel("vectorized_elementwise_kernel", 430, 100, 7, 2)
    return trace.op(BACKWARD, 600, 40).call(LAUNCH, 610, 5, 3).kernel(BACKWARD_KERNEL, 650, 600, 7, 3)
