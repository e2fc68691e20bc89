"""One piece of a step's work before anything is known of its time: in, shapes; out, ``Work`` with a name.

Operations and bytes are counted by ``hardware.operators.formulas``; here stands which of them a layer runs.
"""

from dataclasses import dataclass

from tracereplay.hardware.collectives.schedules import Kind
from tracereplay.hardware.operators.formulas import gemm
from tracereplay.hardware.operators.work import OperatorClass, Work
from tracereplay.synth.architecture import Layer
from tracereplay.synth.software import BYTES_OF, Format


@dataclass(frozen=True, slots=True)
class Operation:
    """A kernel: its work in the rank's own memory, and the bytes that cross its way to host memory and to disks."""

    name: str
    work: Work
    host_bytes: int = 0
    ssd_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective. ``kind`` is the contract's name, ``bytes`` what each rank contributes (an all-reduce's buffer, an
    all-to-all's input, an all-gather's and a reduce-scatter's whole); ``split`` the bytes by destination, a row a rank, of an
    all-to-all that is uneven; ``hierarchical``: over several nodes in the node first, whatever NCCL would choose.
    """

    name: str
    kind: Kind
    bytes: int
    split: tuple[tuple[int, ...], ...] | None = None
    hierarchical: bool = False


def product(name: str, sizes: tuple[int, int, int], number: Format, batch: int = 1) -> Operation:
    """``batch`` products of (m, k) with (k, n), for ``sizes`` = (m, n, k)."""
    m, n, k = sizes
    return Operation(name, gemm(m, n, k, number, batch=batch))


def moved(name: str, kind: OperatorClass, numbers: tuple[int, int], number: Format, flops: int = 0) -> Operation:
    """Work that is bound by the numbers that it reads and writes: (read, written)."""
    size = BYTES_OF[number]
    return Operation(name, Work(kind, flops, numbers[0] * size, numbers[1] * size, number))


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
        layer, outputs = self.layer, self.samples * self.layer.outputs
        result = product(f"{self.name} forward", (self.samples, layer.outputs, layer.inputs), self.number)
        if self.fused:
            return [result]
        return [result, moved(f"{self.name} activation", OperatorClass.ELEMENTWISE, (outputs, outputs), self.number, outputs)]

    def backward(self, *, to_inputs: bool) -> list[Operation]:
        """Gradients: through the activation, to the bias, to the inputs if asked for, to the weights."""
        layer, samples, number = self.layer, self.samples, self.number
        outputs, work = samples * layer.outputs, []
        if not self.fused:
            through = moved(
                f"{self.name} activation backward", OperatorClass.ELEMENTWISE, (2 * outputs, outputs), number, outputs
            )
            bias = moved(f"{self.name} bias gradient", OperatorClass.REDUCTION, (outputs, layer.outputs), number, outputs)
            work += [through, bias]
        if to_inputs:
            work.append(product(f"{self.name} input gradient", (samples, layer.inputs, layer.outputs), number))
        return [*work, product(f"{self.name} weight gradient", (layer.inputs, layer.outputs, samples), number)]
