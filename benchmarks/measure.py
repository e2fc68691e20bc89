"""How figures are taken: in, a call and a number of repeats; out, median, spread and peak memory, each from its own process."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

MB = 1e6


def timed(call: Callable[[], object], repeats: int, *, warm_up: bool = True) -> dict[str, float]:
    """Median, least and most seconds of ``repeats`` calls after one that is not counted, and the process's peak memory."""
    if warm_up:
        call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return {"seconds": statistics.median(times), "low": min(times), "high": max(times), "peak_mb": peak_bytes() / MB}


def peak_bytes() -> int:
    """The most memory this process has held. Not ``ru_maxrss``, which a child inherits from its parent."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def in_a_process(module: str, arguments: Sequence[str], *, python: str = sys.executable) -> dict[str, Any] | str:
    """The figures that ``python -m module arguments`` prints as its last line; where it fails the last line of its errors."""
    command = [python, "-m", module, *arguments]
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    except OSError as error:
        return str(error)
    if done.returncode != 0:
        return done.stderr.strip().split("\n")[-1]
    figures: dict[str, Any] = json.loads(done.stdout.strip().split("\n")[-1])
    return figures


def spread(row: dict[str, float], unit: str = "s") -> str:
    """``median s (least to most)``, or in milliseconds with ``unit`` ms."""
    scale = {"s": 1, "ms": 1e3}[unit]
    return f"{row['seconds'] * scale:8.3f} {unit} ({row['low'] * scale:.3f} to {row['high'] * scale:.3f})"
