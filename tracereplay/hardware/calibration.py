"""Measurements as fields of a platform: in, a measurement file's records; out, facts by key, of platform and accelerator.

An achievable rate is the best that was reached: of square matrix products, of lookups in the largest table. A fabric's is that
of the all-reduce of most ranks and largest size, a memory's is STREAM's triad. What was not measured is no fact here.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tracereplay.hardware.facts import Count, Fact, Flops, Latency, Layout, LinkRate, MemoryRate, Name, Size
from tracereplay.hardware.measurements import Measurement, Measurements
from tracereplay.hardware.technology import LOOPBACK

# Significant digits: repeats differ in the third.
_DIGITS = 4
# A table of fewer caches than this may be held by them in part.
_CACHES_OF_A_TABLE = 2
_BY_RANKS = "gloo between processes of one host: through its own memory, each reaches each"

Facts = dict[str, Fact]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where measurements are from, for the source of each field: the name of their file, when and by which command."""

    file: str
    measurements: Measurements

    def source(self, what: str) -> str:
        """The source of a field that rests on ``what``."""
        m = self.measurements
        return f"{self.file}, {m.created[:10]}, {m.command}: {what}"


def has_gpu(m: Measurements) -> bool:
    """Whether the measured machine has accelerators."""
    return m.device.kind != "cpu"


def platform_facts(origin: Origin, *, fabric: bool = True) -> Facts:
    """What was measured of the host and, where ``fabric`` is wanted, of what joins its ranks."""
    m = origin.measurements
    facts = _system(origin) | _host_rates(origin)
    if has_gpu(m):
        facts |= {"accelerator.count": _count(origin, m.device.count)} | _host_link(origin)
    return facts | (_fabric(origin) if fabric else {})


def accelerator_facts(origin: Origin) -> Facts:
    """What was measured of the first GPU; nothing on a machine without."""
    m = origin.measurements
    if not has_gpu(m):
        return {}
    facts: Facts = _square_products(origin, m.of("gemm", "device"), "achievable_flops")
    driver = origin.source(f"the driver of {m.device.name}")
    if m.device.memory_bytes is not None:
        facts["hbm.capacity"] = _size(m.device.memory_bytes, "GB", 1e9, driver)
    if (row := _triad(m.of("memory", "device"))) is not None:
        facts["hbm.achievable"] = _memory_rate(origin, row)
    if m.device.cache_bytes is not None:
        facts["l2.capacity"] = _size(m.device.cache_bytes, "MiB", 2**20, driver)
    return facts


def rounded(value: float) -> int | float:
    """A value of four significant digits, whole where it has no more."""
    short = float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() else short


def _system(origin: Origin) -> Facts:
    """What the operating system says of the host."""
    host, says = origin.measurements.host, origin.source("the operating system")
    facts: Facts = {"host.memory.capacity": _size(host.memory_bytes, "GB", 1e9, says)}
    if host.cpu_model is not None:
        facts["host.processor"] = Name(unit="name", kind="measured", value=host.cpu_model, source=says)
    if host.sockets is not None:
        facts["host.sockets"] = Count(unit="1", kind="measured", value=host.sockets, source=says)
        each, left = divmod(host.cpu_count, host.sockets)
        if not left:
            facts["host.cores"] = Count(unit="1", kind="measured", value=each, source=says)
    return facts


def _host_rates(origin: Origin) -> Facts:
    m = origin.measurements
    facts: Facts = _square_products(origin, m.of("gemm", "host"), "host.achievable_flops")
    if (row := _triad(m.of("memory", "host"))) is not None:
        facts["host.memory.achievable"] = _memory_rate(origin, row)
        if (lookup := _best_lookup(m.of("lookup", "host"), row.number("cache_bytes"))) is not None:
            facts["host.lookup"] = _memory_rate(origin, lookup)
    # With accelerators, operators are launched: that is what the host's time goes into.
    rows = [row for row in m.of("overhead", "host") if row.run.endswith("launched") == has_gpu(m)]
    if rows:
        facts["host.overhead"] = _latency(origin, rows[0], rows[0].value)
    return facts


def _square_products(origin: Origin, rows: list[Measurement], section: str) -> Facts:
    square = [row for row in rows if row.number("m") == row.number("n") == row.number("k") > 0]
    best = {row.dtype: max((other for other in square if other.dtype == row.dtype), key=_value) for row in square}
    return {
        f"{section}.{name}": Flops(
            unit="GFLOP/s", kind="measured", value=rounded(row.value / 1e9), source=origin.source(row.words())
        )
        for name, row in best.items()
    }


def _triad(rows: list[Measurement]) -> Measurement | None:
    return next((row for row in rows if row.run == "triad"), None)


def _best_lookup(rows: list[Measurement], cache_bytes: int) -> Measurement | None:
    """The fastest of the uniform lookups in the largest table, where that is larger than caches; the widths of rows differ, so
    tables are as large that are so to a hundredth.
    """
    uniform = [row for row in rows if row.parameters.get("indices") == "uniform"]
    largest = max(map(_table_bytes, uniform), default=0)
    if largest < _CACHES_OF_A_TABLE * cache_bytes:
        return None
    return max((row for row in uniform if _table_bytes(row) >= 0.99 * largest), key=_value, default=None)


def _table_bytes(row: Measurement) -> int:
    return row.number("rows") * row.number("dim") * 4


def _host_link(origin: Origin) -> Facts:
    """The slower direction of the largest copies from and to pinned memory: one figure stands for both."""
    rows = [row for row in origin.measurements.of("host_copy", "device") if row.parameters.get("memory") == "pinned"]
    largest = max((row.number("bytes") for row in rows), default=0)
    ways = [row for row in rows if row.number("bytes") == largest]
    return {} if not ways else {"host.link.achievable": _link_rate(origin, min(ways, key=_value))}


def _fabric(origin: Origin) -> Facts:
    """Bus bandwidth of the largest all-reduce of most ranks, latency of the smallest message from rank to rank."""
    rows = origin.measurements.of("collective", "fabric")
    facts: Facts = {}
    sums = [row for row in rows if row.run == "all_reduce"]
    if sums:
        largest = max(sums, key=lambda row: (row.number("ranks"), row.number("bytes")))
        facts["fabric.scale_up.achievable"] = _link_rate(origin, largest)
    messages = [row for row in rows if row.run == "send_recv"]
    if messages:
        smallest = min(messages, key=lambda row: row.number("bytes"))
        facts["fabric.scale_up.latency"] = _latency(origin, smallest, smallest.median_ns)
    if facts and not has_gpu(origin.measurements):
        facts["fabric.scale_up.technology"] = Name(unit="name", kind="derived", value=LOOPBACK, source=_BY_RANKS)
        facts["fabric.scale_up.layout"] = Layout(unit="name", kind="derived", value="switch", source=_BY_RANKS)
    return facts


def _value(row: Measurement) -> float:
    return row.value


def _count(origin: Origin, number: int) -> Count:
    return Count(unit="1", kind="measured", value=number, source=origin.source("devices that torch sees"))


def _size(number: int, unit: str, factor: float, source: str) -> Size:
    return Size(unit=unit, kind="measured", value=rounded(number / factor), source=source)


def _memory_rate(origin: Origin, row: Measurement) -> MemoryRate:
    return MemoryRate(unit="GB/s", kind="measured", value=rounded(row.value / 1e9), source=origin.source(row.words()))


def _link_rate(origin: Origin, row: Measurement) -> LinkRate:
    value, source = rounded(row.value / 1e9), origin.source(row.words())
    return LinkRate(unit="GB/s", direction="one-way", kind="measured", value=value, source=source)


def _latency(origin: Origin, row: Measurement, value_ns: float) -> Latency:
    return Latency(unit="ns", kind="measured", value=rounded(value_ns), source=origin.source(row.words()))


def ordered(facts: Facts, keys: Iterable[str]) -> Facts:
    """Facts in the order of the keys of a schema; of a format, ``flops.fp32``, the schema has the key above it."""
    order = {key: number for number, key in enumerate(keys)}
    return dict(sorted(facts.items(), key=lambda item: order.get(item[0], order.get(item[0].rpartition(".")[0], len(order)))))
