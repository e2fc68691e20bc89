"""What a calibration runs on one device: in, a device and how thorough to be; out, pieces of work with their code.

FLOP of a product of m x k by k x n: 2mnk. Bytes: what the algorithm asks for, each operand once, as STREAM counts them
(McCalpin 1995): a copy 2, a triad 3 arrays, without the reads that a store may cause.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from tracereplay.collectors.device import Device, Run
from tracereplay.collectors.measurement import Work

Dtype = torch.dtype

# Formats by the names of a hardware file. fp32 and tf32 are one type: what the units do with it is a setting of torch.
FORMATS: dict[str, Dtype] = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp64": torch.float64,
}
# Layers of a DLRM, batch 2048: outputs and inputs of the bottom MLP 13-512-256-64, and of a top MLP's last two layers.
_LAYERS = ((512, 13), (256, 512), (64, 256), (512, 415), (1, 256))
_BATCH = 2048
# Its interaction: 26 tables and the dense vector, of 64 numbers each.
_VECTORS, _DIM = 27, 64
# STREAM's rule: arrays of at least four times the last cache. A quick run takes three arrays of six times together, since
# touching fresh memory is what takes longest.
_CACHES, _CACHES_QUICK = 4, 2
_LEAST_BYTES = {"host": 64 * 2**20, "device": 2**30}
_SHARE_OF_MEMORY = 16
# Lookups of different calls fall on different rows, until they have touched this many caches.
_TOUCHED_CACHES = 2
_MOST_INDICES = 2**22
# Skew of the lookups that are not uniform: the k-th most wanted row is wanted in proportion to k^-1.05 (this project's choice).
ZIPF_EXPONENT = 1.05


@dataclass(frozen=True, slots=True)
class Case:
    """A piece of work and how to make what is timed. ``clock``: the device's own, or the host's for a statement, for launching
    without waiting (``launched``) or with (``finished``). ``needed``: a field of a platform rests on it, so that it is measured
    however late it is.
    """

    work: Work
    prepare: Callable[[], Run]
    clock: str = "device"
    needed: bool = False


class Arena:
    """Three arrays that no cache holds, made when first asked for; large tables are views of the first."""

    def __init__(self, device: Device, *, quick: bool) -> None:
        wanted = max(_LEAST_BYTES[device.place], (_CACHES_QUICK if quick else _CACHES) * device.cache_bytes)
        self.array_bytes = min(wanted, device.free_bytes // _SHARE_OF_MEMORY) // 4096 * 4096
        self._where = device.where
        self._arrays: tuple[Tensor, ...] = ()

    def arrays(self) -> tuple[Tensor, ...]:
        """The arrays, float32, every page written to: pages that were never written share one page of zeros."""
        if not self._arrays:
            shape = (self.array_bytes // 4,)
            self._arrays = tuple(torch.full(shape, value, device=self._where) for value in (1.0, 2.0, 3.0))
        return self._arrays

    def table(self, rows: int, dim: int) -> Tensor:
        """An embedding table of at most the arrays' size."""
        return self.arrays()[0][: rows * dim].view(rows, dim)

    def rows_of(self, dim: int) -> int:
        """Rows of the largest table."""
        return self.array_bytes // (4 * dim)


def square_products(device: Device, *, quick: bool) -> Iterator[Case]:
    """Square products by format and size."""
    on_gpu = device.place == "device"
    sizes = ((1024, 4096) if quick else (512, 1024, 2048, 4096, 8192)) if on_gpu else ((1024,) if quick else (256, 1024, 2048))
    for name in FORMATS:
        if device.has_tf32 or name != "tf32":
            yield from (_product(device, name, (n, n, n), needed=n == sizes[-1]) for n in sizes)


def dlrm_products(device: Device, *, quick: bool) -> Iterator[Case]:
    """Products as a DLRM has them: tall and thin ones (its layers), and a batch of small ones (its interaction)."""
    for name in ("fp32",) if quick and device.place == "host" else ("fp32", "bf16"):
        yield from (_product(device, name, (_BATCH, n, k)) for n, k in _LAYERS)
        yield _batched(device, name)


def _product(device: Device, name: str, mnk: tuple[int, int, int], *, needed: bool = False) -> Case:
    m, n, k = mnk
    work = Work("gemm", "torch.mm", device.place, name, {"m": m, "n": n, "k": k}, "FLOP/s", 2.0 * m * n * k)

    def prepare() -> Run:
        a, b, out = (_random(device, name, shape) for shape in ((m, k), (k, n), (m, n)))
        torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
        return lambda: torch.mm(a, b, out=out)

    return Case(work, prepare, needed=needed)


def _batched(device: Device, name: str) -> Case:
    shape = {"batch": _BATCH, "m": _VECTORS, "n": _VECTORS, "k": _DIM}
    work = Work("gemm", "torch.bmm", device.place, name, {**shape}, "FLOP/s", 2.0 * _BATCH * _VECTORS * _VECTORS * _DIM)

    def prepare() -> Run:
        a, out = (_random(device, name, (_BATCH, _VECTORS, last)) for last in (_DIM, _VECTORS))
        b = a.transpose(1, 2)
        torch.set_float32_matmul_precision("highest")
        return lambda: torch.bmm(a, b, out=out)

    return Case(work, prepare)


def _random(device: Device, name: str, shape: tuple[int, ...]) -> Tensor:
    """Numbers as a training has them: a GPU's clock depends on what it multiplies."""
    return torch.randn(shape, device=device.where).to(FORMATS[name])


def memory(device: Device, arena: Arena) -> Iterator[Case]:
    """Copy, read and triad of arrays that no cache holds."""
    size, place = arena.array_bytes, device.place
    numbers = {"array_bytes": size, "cache_bytes": device.cache_bytes}

    def copy() -> Run:
        a, b, _ = arena.arrays()
        return lambda: a.copy_(b)

    def read() -> Run:
        a, _, _ = arena.arrays()
        return lambda: torch.sum(a)

    def triad() -> Run:
        a, b, c = arena.arrays()
        return lambda: torch.add(b, c, alpha=3.0, out=a)

    for run, arrays, prepare in (("triad", 3, triad), ("copy", 2, copy), ("read", 1, read)):
        yield Case(Work("memory", run, place, "fp32", {**numbers}, "B/s", float(arrays * size)), prepare, needed=run == "triad")


@dataclass(frozen=True, slots=True)
class Lookup:
    """Sum-pooled lookups: ``bags`` sums of ``pooling`` rows of ``dim`` float32 numbers each."""

    rows: int
    dim: int
    pooling: int
    bags: int
    indices: str

    @property
    def bytes_moved(self) -> int:
        """Rows read, indices (int64) read, sums written."""
        lookups = self.bags * self.pooling
        return lookups * (4 * self.dim + 8) + self.bags * 4 * self.dim


def lookups(device: Device, arena: Arena, *, quick: bool) -> Iterator[Case]:
    """Lookups in a table that fits into caches and in one that does not, uniform and skewed; then other widths and poolings."""
    bags = 65536 if device.place == "device" else _BATCH
    largest = arena.rows_of(_DIM)
    sizes = (largest, 10_000) if quick else (largest, min(1_000_000, largest), 10_000)
    shapes = [(rows, _DIM, 20) for rows in dict.fromkeys(sizes)]
    shapes += [(largest, _DIM, 1)]
    shapes += [] if quick else [(arena.rows_of(16), 16, 20), (arena.rows_of(128), 128, 20), (largest, _DIM, 80)]
    for (rows, dim, pooling), indices in itertools.product(shapes, ("uniform", "zipf")):
        needed = (rows, dim, pooling, indices) == (largest, _DIM, 20, "uniform")
        yield _lookup(device, arena, Lookup(rows, dim, pooling, bags, indices), needed=needed)


def _lookup(device: Device, arena: Arena, of: Lookup, *, needed: bool) -> Case:
    numbers = {name: getattr(of, name) for name in Lookup.__slots__}
    work = Work("lookup", "embedding_bag", device.place, "fp32", numbers, "B/s", float(of.bytes_moved))

    def prepare() -> Run:
        table = arena.table(of.rows, of.dim)
        turns = itertools.cycle(draw_indices(of, index_sets(of, device.cache_bytes), device.where))
        return lambda: embedding_bag(next(turns), table, mode="sum")

    return Case(work, prepare, needed=needed)


def index_sets(of: Lookup, cache_bytes: int) -> int:
    """How many calls use indices of their own, so that no cache holds the rows of all of them where the table is larger."""
    of_one_call = of.bags * of.pooling * of.dim * 4
    touched = min(_TOUCHED_CACHES * cache_bytes, of.rows * of.dim * 4)
    return max(min(-(-touched // of_one_call), _MOST_INDICES // (of.bags * of.pooling)), 1)


def draw_indices(of: Lookup, sets: int, where: torch.device) -> list[Tensor]:
    """``sets`` tensors of (bags, pooling) row numbers; skewed ones by the inverse of their distribution, hot rows spread over
    the table.
    """
    generator = torch.Generator(where).manual_seed(1)
    shape = (sets, of.bags, of.pooling)
    if of.indices == "uniform":
        return list(torch.randint(of.rows, shape, generator=generator, device=where))
    weights = torch.arange(1, of.rows + 1, dtype=torch.float64, device=where).pow_(-ZIPF_EXPONENT)
    reached = weights.cumsum(0)
    drawn = torch.rand(shape, generator=generator, device=where, dtype=torch.float64) * reached[-1]
    ranks = torch.searchsorted(reached, drawn).clamp_(max=of.rows - 1)
    return list(torch.randperm(of.rows, generator=generator, device=where)[ranks])


def host_copies(device: Device, *, quick: bool) -> Iterator[Case]:
    """Copies between the host's memory and a GPU's, from pinned and from pageable memory, both ways."""
    for size in (64 * 2**20,) if quick else (64 * 2**10, 2**20, 64 * 2**20):
        for memory_kind, way in itertools.product(("pinned", "pageable"), ("to_device", "to_host")):
            yield _host_copy(device, size, memory_kind, way)


def _host_copy(device: Device, size: int, memory_kind: str, way: str) -> Case:
    work = Work("host_copy", way, device.place, "fp32", {"bytes": size, "memory": memory_kind}, "B/s", float(size))

    def prepare() -> Run:
        host = torch.ones(size // 4, pin_memory=memory_kind == "pinned")
        there = torch.ones(size // 4, device=device.where)
        source, target = (host, there) if way == "to_device" else (there, host)
        return lambda: target.copy_(source, non_blocking=memory_kind == "pinned")

    return Case(work, prepare, needed=(size, memory_kind) == (64 * 2**20, "pinned"))


def overheads(device: Device) -> Iterator[Case]:
    """What one operator costs when it has nothing to compute: the host's time for it, and on a GPU the way there and back."""

    def prepare() -> Run:
        x, y, out = (torch.ones(1, device=device.where) for _ in range(3))
        return lambda: torch.add(x, y, out=out)

    if device.place == "host":
        yield Case(Work("overhead", "torch.add", "host", "fp32", {"numbers": 1}, "ns"), prepare, "statement", needed=True)
        return
    yield Case(Work("overhead", "torch.add, launched", "host", "fp32", {"numbers": 1}, "ns"), prepare, "launched", needed=True)
    yield Case(Work("launch", "torch.add, waited for", "device", "fp32", {"numbers": 1}, "ns"), prepare, "finished")
    yield Case(Work("launch", "torch.add, one after another", "device", "fp32", {"numbers": 1}, "ns"), prepare)
