"""Measurement files for tests: rows with round times, on a host or a machine with GPUs."""

import json
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def row(group: str, run: str, place: str, value: float, median_ns: int, **numbers: Any) -> Row:
    """A measurement of 5 repeats of one call each; ``dtype`` may be among the numbers."""
    dtype = numbers.pop("dtype", "fp32")
    unit = {"gemm": "FLOP/s", "overhead": "ns", "launch": "ns"}.get(group, "B/s")
    return {
        "group": group, "run": run, "place": place, "dtype": dtype, "parameters": numbers, "unit": unit, "value": value,
        "repeats": 5, "calls": 1, "median_ns": median_ns, "least_ns": median_ns, "spread_ns": 0,
    }  # fmt: skip


def _lookup(value: float, median_ns: int, rows: int, pooling: int, indices: str) -> Row:
    numbers = {"rows": rows, "dim": 64, "pooling": pooling, "bags": 2048, "indices": indices}
    return row("lookup", "embedding_bag", "host", value, median_ns, **numbers)


def host_rows() -> list[Row]:
    """A host: 2 x 1000^3 FLOP in 20 ms are 100 GFLOP/s; a triad of 3 x 1 GB in 0.1 s is 30 GB/s."""
    return [
        row("overhead", "torch.add", "host", 2_500.0, 2_500, numbers=1),
        row("memory", "triad", "host", 30e9, 100_000_000, array_bytes=10**9, cache_bytes=250_000_000),
        row("memory", "copy", "host", 25e9, 80_000_000, array_bytes=10**9, cache_bytes=250_000_000),
        row("gemm", "torch.mm", "host", 100e9, 20_000_000, m=1000, n=1000, k=1000),
        row("gemm", "torch.mm", "host", 80e9, 200_000, m=200, n=200, k=200),
        row("gemm", "torch.mm", "host", 500e9, 4_000, m=2048, n=1, k=256),  # not square: no figure of the host
        row("gemm", "torch.mm", "host", 50e9, 40_000_000, m=1000, n=1000, k=1000, dtype="bf16"),
        _lookup(9e9, 1_000_000, 10_000, 20, "uniform"),
        _lookup(4e9, 2_500_000, 4_000_000, 20, "uniform"),
        _lookup(3e9, 400_000, 4_000_000, 1, "uniform"),
        _lookup(7e9, 1_400_000, 4_000_000, 20, "zipf"),
    ]  # fmt: skip


def gloo_rows() -> list[Row]:
    """Collectives: 16 MB all-reduced by 4 ranks in 12.582912 ms are 2 x 3/4 x 16777216 B / 12.582912 ms = 2 GB/s on the bus."""
    return [
        row("collective", "send_recv", "fabric", 20.48e6, 50_000, bytes=1024, ranks=2, backend="gloo"),
        row("collective", "send_recv", "fabric", 3e9, 350_000, bytes=1_048_576, ranks=2, backend="gloo"),
        row("collective", "all_reduce", "fabric", 5e9, 3_355_443, bytes=16_777_216, ranks=2, backend="gloo"),
        row("collective", "all_reduce", "fabric", 1e9, 1_572_864, bytes=1_048_576, ranks=4, backend="gloo"),
        row("collective", "all_reduce", "fabric", 2e9, 12_582_912, bytes=16_777_216, ranks=4, backend="gloo"),
    ]  # fmt: skip


def gpu_rows() -> list[Row]:
    """A GPU like a V100: 100 TFLOP/s in fp16, 800 GB/s, 12 and 13 GB/s over its host link from pinned memory."""
    pinned = {"bytes": 67_108_864, "memory": "pinned"}
    return [
        row("overhead", "torch.add, launched", "host", 6_000.0, 6_000, numbers=1),
        row("launch", "torch.add, waited for", "device", 15_000.0, 15_000, numbers=1),
        row("memory", "triad", "device", 800e9, 4_000_000, array_bytes=2**30, cache_bytes=6_291_456),
        row("host_copy", "to_device", "device", 12e9, 5_592_405, **pinned),
        row("host_copy", "to_host", "device", 13e9, 5_162_220, **pinned),
        row("host_copy", "to_device", "device", 20e9, 3_300, bytes=65_536, memory="pinned"),
        row("host_copy", "to_host", "device", 5e9, 13_421_772, bytes=67_108_864, memory="pageable"),
        row("gemm", "torch.mm", "device", 100e12, 1_374_389, m=4096, n=4096, k=4096, dtype="fp16"),
    ]


def measurements(rows: list[Row], **changes: Any) -> dict[str, Any]:
    """What a measurement file holds: a host of 2 sockets with 8 cores each, nothing skipped."""
    return {
        "schema": "tracereplay/measurements/1",
        "created": "2026-03-04T05:06:07+00:00",
        "command": "tracereplay hardware calibrate --quick",
        "versions": {"torch": "2.6.0"},
        "host": {
            "name": "node0", "cpu_model": "A processor", "cpu_count": 16, "memory_bytes": 64_000_000_000, "kernel": "Linux 6",
            "sockets": 2, "load": 0.1,
        },
        "device": {"kind": "cpu", "name": None, "count": 1, "memory_bytes": None, "cache_bytes": 250_000_000},
        "ranks": 4,
        "measurements": rows,
        "skipped": [],
    } | changes  # fmt: skip


def gpus(count: int) -> dict[str, Any]:
    """The device of a machine with so many V100."""
    return {"kind": "cuda", "name": "V100", "count": count, "memory_bytes": 32_000_000_000, "cache_bytes": 6_291_456}


def write(folder: Path, content: dict[str, Any], name: str = "ours.measurements.json") -> Path:
    """Write a measurement file."""
    path = folder / name
    path.write_text(json.dumps(content))
    return path
