"""Where work runs and by which clock it is timed: in, a piece of work; out, the time of a block of calls.

``HostDevice`` is this machine's processor, timed by its monotonic clock; ``GpuDevice`` a CUDA or HIP device (torch names both
``cuda``), timed by events in its stream, so that the host's time to launch is not in it.
"""

import time
from collections.abc import Callable
from typing import Any, Literal, Protocol

import torch

from tracereplay.collectors.host import available_bytes, last_level_cache_bytes
from tracereplay.collectors.measurement import Place

Run = Callable[[], object]

# Compute capability 8.0, Ampere (CUDA C++ Programming Guide, tensor core input types).
_FIRST_WITH_TF32 = 8


class Device(Protocol):
    """What measuring needs to know of a device. ``cache_bytes`` is 0 where nobody says."""

    place: Place
    where: torch.device
    free_bytes: int
    cache_bytes: int
    has_tf32: bool

    def block_ns(self, run: Run, calls: int) -> float:
        """Run something that many times and give the time from the first to the end of the last."""
        ...

    def wait(self) -> None:
        """Return when all that was launched has ended."""
        ...


class HostDevice:
    """The processor of this machine."""

    place: Place = "host"
    where = torch.device("cpu")
    has_tf32 = False

    def __init__(self) -> None:
        self.free_bytes = available_bytes()
        self.cache_bytes = last_level_cache_bytes() or 0

    def block_ns(self, run: Run, calls: int) -> float:
        """By the monotonic clock: operators of a CPU have ended when their call returns."""
        start = time.perf_counter_ns()
        for _ in range(calls):
            run()
        return time.perf_counter_ns() - start

    def wait(self) -> None:
        """Nothing is ever pending."""


class GpuDevice:
    """The GPU of a number; ``cuda`` stands for ``torch.cuda``."""

    place: Place = "device"

    def __init__(self, number: int, cuda: Any = torch.cuda) -> None:  # Any: a module, or what a test puts in its place
        self._cuda = cuda
        self.where = torch.device("cuda", number)
        cuda.set_device(number)
        self.free_bytes = int(cuda.mem_get_info(number)[0])
        properties = cuda.get_device_properties(number)
        self.cache_bytes = int(getattr(properties, "L2_cache_size", 0))
        self.has_tf32 = torch.version.hip is None and properties.major >= _FIRST_WITH_TF32

    def block_ns(self, run: Run, calls: int) -> float:
        """By two events in the current stream; what was launched before has ended when the first is recorded."""
        start, end = self._cuda.Event(enable_timing=True), self._cuda.Event(enable_timing=True)
        self.wait()
        start.record()
        for _ in range(calls):
            run()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e6  # it gives milliseconds

    def wait(self) -> None:
        """Return when the device is idle."""
        self._cuda.synchronize(self.where.index)


def has_gpu() -> bool:
    """Whether torch sees a CUDA or HIP device."""
    return torch.cuda.is_available()


def describe_device() -> dict[str, Any]:  # JSON
    """What is measured: the GPUs where there are any, else the processor."""
    if not has_gpu():
        return {"kind": "cpu", "name": None, "count": 1, "memory_bytes": None, "cache_bytes": last_level_cache_bytes()}
    first = torch.cuda.get_device_properties(0)
    kind: Literal["cuda", "hip"] = "hip" if torch.version.hip else "cuda"
    return {
        "kind": kind,
        "name": first.name,
        "count": torch.cuda.device_count(),
        "memory_bytes": int(first.total_memory),
        "cache_bytes": int(getattr(first, "L2_cache_size", 0)) or None,
    }


def launched_block_ns(device: Device, run: Run, calls: int) -> float:
    """The host's time to launch a block of calls on an idle device, without waiting for them."""
    device.wait()
    start = time.perf_counter_ns()
    for _ in range(calls):
        run()
    elapsed = time.perf_counter_ns() - start
    device.wait()
    return elapsed


def finished_block_ns(device: Device, run: Run, calls: int) -> float:
    """The host's time for a block of calls each of which is waited for."""
    device.wait()
    start = time.perf_counter_ns()
    for _ in range(calls):
        run()
        device.wait()
    return time.perf_counter_ns() - start
