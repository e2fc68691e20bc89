"""One piece of a step's work before anything is known of its time: in, shapes; out, operations and bytes."""

from dataclasses import dataclass

from tracereplay.synth.architecture import Layer
from tracereplay.synth.software import BYTES_OF, Format
from tracereplay.trace.classify import WorkClass


@dataclass(frozen=True, slots=True)
class Operation:
    """A kernel. ``flops`` in ``number`` format, ``local_bytes`` read and written in the rank's own memory, ``host_bytes`` over
    its way to host memory and ``ssd_bytes`` to disks; ``shape`` is (m, n, k) of a matrix product and (batch, m, n, k) of a
    batched one.
    """

    name: str
    work_class: WorkClass
    number: Format
    flops: int = 0
    local_bytes: int = 0
    host_bytes: int = 0
    ssd_bytes: int = 0
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective. ``kind`` is the contract's name, ``bytes`` what each rank contributes (an all-reduce's buffer, an
    all-to-all's input, an all-gather's and a reduce-scatter's whole); ``split`` the bytes by destination, a row a rank, of an
    all-to-all that is uneven.
    """

    name: str
    kind: str
    bytes: int
    split: tuple[tuple[int, ...], ...] | None = None


def matrix_product(name: str, shape: tuple[int, int, int], number: Format) -> Operation:
    """``(m, k) @ (k, n)``: ``2 m n k`` operations; each matrix is moved once."""
    m, n, k = shape
    size = BYTES_OF[number]
    return Operation(name, WorkClass.GEMM, number, 2 * m * n * k, (m * k + k * n + m * n) * size, shape=shape)


def batched_product(name: str, shape: tuple[int, int, int, int], number: Format) -> Operation:
    """``batch`` matrix products side by side."""
    batch, m, n, k = shape
    size = BYTES_OF[number]
    return Operation(name, WorkClass.GEMM, number, 2 * batch * m * n * k, batch * (m * k + k * n + m * n) * size, shape=shape)


def moved(name: str, work_class: WorkClass, numbers: int, number: Format, flops: int = 0) -> Operation:
    """Work that is bound by the numbers that it reads and writes."""
    return Operation(name, work_class, number, flops, numbers * BYTES_OF[number])


@dataclass(frozen=True, slots=True)
class LayerWork:
    """What a layer does with some samples. ``fused``: its bias, its activation and their gradients run inside the products."""

    name: str
    layer: Layer
    samples: int
    number: Format
    fused: bool

    def forward(self) -> list[Operation]:
        """The product with the bias; the activation reads and writes the result once more where not fused."""
        layer = self.layer
        product = matrix_product(f"{self.name} forward", (self.samples, layer.outputs, layer.inputs), self.number)
        if self.fused:
            return [product]
        outputs = self.samples * layer.outputs
        return [product, moved(f"{self.name} activation", WorkClass.ELEMENTWISE, 2 * outputs, self.number)]

    def backward(self, *, to_inputs: bool) -> list[Operation]:
        """Gradients: through the activation, to the bias, to the inputs if asked for, to the weights."""
        layer, samples, work = self.layer, self.samples, []
        if not self.fused:
            outputs = samples * layer.outputs
            work.append(moved(f"{self.name} activation backward", WorkClass.ELEMENTWISE, 3 * outputs, self.number))
            work.append(moved(f"{self.name} bias gradient", WorkClass.REDUCTION, outputs + layer.outputs, self.number))
        if to_inputs:
            work.append(matrix_product(f"{self.name} input gradient", (samples, layer.inputs, layer.outputs), self.number))
        return [*work, matrix_product(f"{self.name} weight gradient", (layer.inputs, layer.outputs, samples), self.number)]
