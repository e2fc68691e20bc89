"""The facts of this machine for the manifest: in, the operating system; out, a HostRecord and the name of its clock."""

import os
import platform
import socket
from pathlib import Path

from tracereplay.manifest import HostRecord

_CPU_INFO = Path("/proc/cpuinfo")
_CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


def read_host(name: str | None = None) -> HostRecord:
    """The facts of this machine under its own name, or under ``name``."""
    return HostRecord(
        name=name or socket.gethostname(),
        cpu_model=_read_cpu_model(),
        cpu_count=usable_cores(),
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        kernel=f"{platform.system()} {platform.release()}",
    )


def usable_cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0))


def share_cores(ranks: int) -> tuple[tuple[int, ...], ...]:
    """The cores of each rank, equally many and none twice; empty where there are fewer cores than ranks.

    A rank that keeps to its own cores is not moved onto another's, so that its times are its own work's. Launchers of
    production jobs bind ranks in the same way (torchrun's ``--numa-binding``, ``numactl`` in the DLRM benchmarks).
    """
    usable = sorted(os.sched_getaffinity(0))
    each = len(usable) // ranks
    return tuple(tuple(usable[rank * each : (rank + 1) * each]) for rank in range(ranks)) if each else ()


def read_clock() -> str:
    """The clock behind the traces' time stamps: torch converts them to CLOCK_REALTIME, once for each process."""
    try:
        source = _CLOCK_SOURCE.read_text().strip()
    except OSError:
        return "CLOCK_REALTIME"
    return f"CLOCK_REALTIME ({source})"


def _read_cpu_model() -> str | None:
    try:
        text = _CPU_INFO.read_text()
    except OSError:
        return None
    models = (line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name"))
    return next(models, None)
