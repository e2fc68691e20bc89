"""How long work takes on an accelerator: in, columns of work, a data sheet and fitted coefficients; out, nanoseconds.

A roofline (Williams, Waterman, Patterson, CACM 52(4), 2009) with what its corners leave out:

    time = floor + tile + sqrt(arithmetic² + memory²)

- *floor*: a kernel that does nothing takes it on every accelerator, it does not scale.
- *tile*: the one tile that the last unit still works on when all others are done. It takes k steps at the rate of a single
  unit, peak / units: the wave effect. A long k is split over units, so beyond some k it grows no more.
- *arithmetic*: flops of the product padded to whole tiles of 64 x 128, at the share of peak that large products reach; on
  vector units whole waves count: of 2.4 waves the last takes as long as the others.
- *memory*: bytes at the share of bandwidth that large operators reach.

The root of squares stands between full overlap of arithmetic and memory (their maximum) and none (their sum).

What vector units sustain is also bounded by power: a joule pays for so many flops at 16 nm, and for (16 nm / process)^exponent
as many on another process. The lower of the two bounds holds, with a soft corner. Cards of 70 W show it.
"""

from dataclasses import dataclass
from typing import Final, get_args

import numpy as np
import numpy.typing as npt

from tracereplay.errors import HardwareError
from tracereplay.hardware.facts import Measure
from tracereplay.hardware.operators.fitted import Fitted
from tracereplay.hardware.operators.work import Floats, OperatorClass, Works
from tracereplay.hardware.schema import Accelerator, Format

# A thread block's tile, its short side along the product's short side: between the smallest and largest of cuBLAS and CUTLASS.
TILE_SHORT: Final = 64
TILE_LONG: Final = 128
# What a vector unit works on at a time: two blocks of 128 x 128 (sgemm_128x128 of cuBLAS, two resident blocks).
WAVE_SHORT: Final = 128
WAVE_LONG: Final = 256
# Sharpness of the corner between the arithmetic and the power bound.
_CORNER: Final = 8
_REFERENCE_NM: Final = 16.0
# Formats that vector units run wherever a sheet has no vector rate beside their peak.
_SINGLE: Final = frozenset({"fp32", "fp64"})
# Architectures without matrix units: what they run faster than fp32 is packed vector arithmetic (NVIDIA's Volta white paper:
# the first with tensor cores; AMD's CDNA white paper: the first with matrix cores; Intel's instruction set reference: AVX-512
# multiplies pairs of bf16 on Cooper Lake, tiles begin with Sapphire Rapids).
_WITHOUT_MATRIX_UNITS: Final = frozenset({"kepler", "maxwell", "pascal", "gcn", "vega", "cooper-lake"})
_SECOND_NS: Final = 1e9

PRODUCTS: Final = (OperatorClass.GEMM, OperatorClass.CONV, OperatorClass.ATTENTION)
# Which format's rate stands in where the sheet has none of its own: the same units run both at one rate.
_STAND_IN: Final = {"bf16": "fp16", "fp16": "bf16"}
_ON_SHEETS: Final = frozenset(get_args(Format))


@dataclass(frozen=True, slots=True)
class Sheet:
    """What the model knows of an accelerator, from its data sheet: FLOP/s by format, those of vector units where they differ,
    bytes a second; units, watts, process and architecture where known.
    """

    name: str
    peak: dict[str, float]
    vector: dict[str, float]
    bandwidth: float
    units: float | None
    power: float | None
    process_nm: float | None
    architecture: str | None

    def has(self, number: str) -> bool:
        """Whether the peak of products in a format is known, under its name or that of the format that stands in."""
        return number in self.peak or _STAND_IN.get(number) in self.peak

    def rate(self, number: str) -> float:
        """Peak FLOP/s of products in a format.

        Raises:
            HardwareError: the sheet has none.
        """
        if not self.has(number):
            hint = f"give it with --set accelerator.flops.{number}=..." if number in _ON_SHEETS else "no data sheet has it"
            raise HardwareError(f"its rate in {number} is unknown", where=f"{self.name}: flops.{number}", hint=hint)
        return self.peak[number] if number in self.peak else self.peak[_STAND_IN[number]]

    def on_matrix_units(self, number: str) -> bool:
        """Whether products in a format run on matrix units.

        It follows from the architecture and from which rates a sheet has, never from how high they are: a sheet that has a
        vector rate beside the peak says so, fp32 and fp64 otherwise run on vector units.
        """
        return number in self.vector or (number not in _SINGLE and self.architecture not in _WITHOUT_MATRIX_UNITS)

    def unit_rate(self, number: str) -> float:
        """Peak FLOP/s of one unit in a format.

        Raises:
            HardwareError: the number of units is unknown.
        """
        if self.units is None:
            raise HardwareError(
                "how many compute units it has is unknown",
                where=f"{self.name}: compute_units",
                hint="give it with --set accelerator.compute_units=N, or in a file that inherits",
            )
        return self.rate(number) / self.units

    def vector_rate(self) -> float:
        """Peak FLOP/s of element-wise arithmetic, which fp32 vector units do whatever the format; infinite where unknown."""
        return self.vector.get("fp32", self.peak.get("fp32", float("inf")))

    def power_bound(self, fitted: Fitted) -> float:
        """FLOP/s of vector units that the power pays for; infinite where power or process are unknown."""
        if self.power is None or self.process_nm is None:
            return float("inf")
        gain = float((_REFERENCE_NM / self.process_nm) ** fitted.energy.exponent)
        return fitted.energy.flops_per_joule * self.power * gain


def sheet_of(accelerator: Accelerator) -> Sheet:
    """The figures of an accelerator that the model needs.

    Raises:
        HardwareError: its memory bandwidth is unknown.
    """
    bandwidth = accelerator.hbm.bandwidth.base
    if bandwidth is None:
        raise HardwareError(
            "its memory bandwidth is unknown",
            where=f"{accelerator.name}: hbm.bandwidth",
            hint="give it with --set accelerator.hbm.bandwidth=... or in a file that inherits",
        )
    return Sheet(
        accelerator.name,
        {str(name): float(fact.base) for name, fact in accelerator.flops.items() if fact.base is not None},
        {str(name): float(fact.base) for name, fact in accelerator.vector_flops.items() if fact.base is not None},
        float(bandwidth),
        _known(accelerator.compute_units),
        _known(accelerator.power),
        _known(accelerator.process),
        None if accelerator.architecture is None else accelerator.architecture.value,
    )


def _known(fact: Measure | None) -> float | None:
    return None if fact is None or fact.base is None else float(fact.base)


def sustained(sheet: Sheet, fitted: Fitted, number: str, kind: OperatorClass = OperatorClass.GEMM) -> float:
    """FLOP/s that large products of a class reach in a format: a share of peak, on vector units bounded by power too.

    Raises:
        HardwareError: the sheet has no rate for the format.
    """
    single = number in _SINGLE
    if sheet.on_matrix_units(number):
        return sheet.rate(number) * (fitted.single.matrix if single else fitted.matrix.efficiency)
    share = fitted.single.conv if kind is OperatorClass.CONV else fitted.single.vector
    reached = sheet.rate(number) * share
    over: float = (reached / sheet.power_bound(fitted)) ** _CORNER
    return float(reached * (1 + over) ** (-1 / _CORNER))


def modelled_ns(works: Works, sheet: Sheet, fitted: Fitted) -> Floats:
    """The model's time of each row in nanoseconds.

    Raises:
        HardwareError: a format's rate, or the number of units that a matrix product needs, is unknown.
    """
    products = works.is_kind(*PRODUCTS)
    arithmetic, tile, share = (np.zeros(len(works)) for _ in range(3))
    for number in np.unique(works.format[products]):
        rows = products & (works.format == number)
        for kind in PRODUCTS:
            chosen = rows & works.is_kind(kind)
            if chosen.any():
                arithmetic[chosen] = tiled_flops(works, sheet)[chosen] / sustained(sheet, fitted, str(number), kind)
        matrix = sheet.on_matrix_units(str(number)) and number != "fp32"
        share[rows] = fitted.matrix.memory if matrix else fitted.memory.elementwise
        tiled = rows & (works.m > 0) & matrix
        if tiled.any():
            tile[tiled] = _tile_flops(works.k[tiled], fitted) / sheet.unit_rate(str(number))
    arithmetic[~products] = works.flops[~products] / (sheet.vector_rate() * fitted.single.vector)
    share[~products] = _memory_share(works, fitted)[~products]
    memory = works.bytes_moved / (share * sheet.bandwidth)
    return fitted.floor_ns + _SECOND_NS * (tile + np.hypot(arithmetic, memory))


def padded_flops(works: Works) -> Floats:
    """Flops with the product's rows and columns rounded up to whole tiles; as given where there is no shape."""
    sides = (np.minimum(works.m, works.n), TILE_SHORT), (np.maximum(works.m, works.n), TILE_LONG)
    short, long = (np.ceil(size / tile) * tile for size, tile in sides)
    return np.where(works.m > 0, 2 * works.batch * short * long * works.k, works.flops)


def tiled_flops(works: Works, sheet: Sheet) -> Floats:
    """Padded flops, on vector units with the last wave counted whole; as padded where the number of units is unknown."""
    flops = padded_flops(works)
    if sheet.units is None:
        return flops
    short, long = np.minimum(works.m, works.n), np.maximum(works.m, works.n)
    waves = works.batch * np.ceil(short / WAVE_SHORT) * np.ceil(long / WAVE_LONG) / sheet.units
    vector = [number for number in sheet.peak if not sheet.on_matrix_units(number)]
    counted = (waves > 1) & np.isin(works.format, vector)
    return np.where(counted, flops * np.ceil(waves) / np.maximum(waves, 1.0), flops)


def _tile_flops(k: Floats, fitted: Fitted) -> Floats:
    shape = fitted.matrix
    return shape.unit_flops * (np.minimum(k, shape.split_steps) + shape.fill_steps)


def _memory_share(works: Works, fitted: Fitted) -> Floats:
    shares: npt.NDArray[np.float64] = np.full(len(works), fitted.memory.elementwise)
    shares[works.is_kind(OperatorClass.REDUCTION)] = fitted.memory.reduction
    shares[works.is_kind(OperatorClass.NORMALISATION)] = fitted.memory.normalisation
    shares[works.is_kind(OperatorClass.EMBEDDING)] = fitted.memory.embedding
    return shares
