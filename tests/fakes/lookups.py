"""Jobs whose embedding tables stand somewhere: in, weights on the device, in host memory and in its cache; out, a trace with
FBGEMM's lookups in them, with backwards and cache fills, one after the other.
"""

from typing import Any

from tests.fakes.kineto import TraceFile

SGD = "fbgemm::split_embedding_codegen_lookup_sgd_function"
FORWARD = "void split_embedding_codegen_forward_unweighted_kernel<float, float, float>"
BACKWARD = "void split_embedding_backward_codegen_sgd_unweighted_kernel_warp_per_row_1<float>"
INSERT = "void lru_cache_insert_kernel<float, float>"
SAMPLES = 100


class Lookups:
    """One rank's trace of one step, which ends when its device has drained; each lookup is of one table of 64 numbers a row
    and takes ``us`` forward and backward.
    """

    def __init__(self, rank: int = 0, world: int = 1, *, shapes: bool = True) -> None:
        self.shapes = shapes
        self._trace = TraceFile(rank, world, host_name="n")
        self._at, self._free, self._correlation = 10, 0, 0

    @property
    def trace(self) -> TraceFile:
        """The trace, with the end of its step."""
        end = max(self._at, self._free) + 5
        return self._trace.call("cudaDeviceSynchronize", self._at, end - self._at).step(1, 0, end + 5)

    def lookup(
        self, device: int, host: int = 0, cache: int = 0, indices: int = 1_000, *, dim: int | None = 64, us: int = 100
    ) -> "Lookups":
        """A lookup with its backward. A cache comes with the call that fills it, whose kernel takes 50 µs."""
        number = self._correlation
        if cache:
            self._op("fbgemm::lru_cache_populate", (INSERT, 50), [[host], [3]])
        dims = [
            [0],
            [device],
            [host],
            [cache, 1] if cache else [0, 0],
            [1],
            [1],
            [2],
            [],
            [],
            [2],
            [],
            [indices],
            [SAMPLES + 1],
        ]
        self._op(SGD, (FORWARD, us), dims, number)
        gradient = [] if dim is None else [[SAMPLES, dim]]
        self._op("torch::autograd::CppNode<SplitLookupFunction_sgd_Op>", (BACKWARD, us), gradient, number)
        return self

    def other(self) -> "Lookups":
        """Work that has nothing to do with tables."""
        self._op("aten::relu", ("vectorized_elementwise_kernel", 10), [[10]])
        return self

    def _op(self, name: str, kernel: tuple[str, int], dims: list[Any], sequence: int | None = None) -> None:
        self._correlation += 1
        args: dict[str, Any] = {"Input Dims": dims} if self.shapes else {}
        args |= {} if sequence is None else {"Sequence number": sequence}
        self._trace.op(name, self._at, 10, **args).call("cudaLaunchKernel", self._at + 2, 3, self._correlation)
        began = max(self._at + 10, self._free + 1)
        self._trace.kernel(kernel[0], began, kernel[1], 7, self._correlation)
        self._at, self._free = self._at + 15, began + kernel[1]
