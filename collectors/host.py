"""The facts of this machine for the manifest: in, the operating system; out, a HostRecord and the name of its clock."""

import os
import platform
import re
import socket
from pathlib import Path

from tracereplay.manifest import HostRecord

_CPU_INFO = Path("/proc/cpuinfo")
_MEMORY_INFO = Path("/proc/meminfo")
_CPUS = Path("/sys/devices/system/cpu")
_CONTROL_GROUP = Path("/sys/fs/cgroup")
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


def available_bytes() -> int:
    """Memory that this process may still take without swapping, the limit of its control group (version 2) included."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    said = re.search(r"^MemAvailable:\s+(\d+) kB", _text(_MEMORY_INFO), re.MULTILINE)
    if said is not None:
        free = int(said[1]) * 1024
    limit, used = (_text(_CONTROL_GROUP / name).strip() for name in ("memory.max", "memory.current"))
    return max(min(free, int(limit) - int(used)), 0) if limit.isdigit() and used.isdigit() else free


def last_level_cache_bytes() -> int | None:
    """The last level of cache, all of those that the usable cores share added up; None where the system does not say."""
    found: dict[tuple[int, str], int] = {}
    for core in sorted(os.sched_getaffinity(0)):
        for cache in _CPUS.glob(f"cpu{core}/cache/index*"):
            level, shared, size = (_text(cache / name).strip() for name in ("level", "shared_cpu_list", "size"))
            if level.isdigit() and re.fullmatch(r"\d+K", size):
                found[int(level), shared] = int(size[:-1]) * 1024
    last = max((level for level, _ in found), default=None)
    return None if last is None else sum(size for (level, _), size in found.items() if level == last)


def sockets() -> int | None:
    """How many processor packages hold the usable cores; None where the system does not say."""
    names = {_text(_CPUS / f"cpu{core}/topology/physical_package_id").strip() for core in os.sched_getaffinity(0)}
    return None if "" in names else len(names)


def read_clock() -> str:
    """The clock behind the traces' time stamps: torch converts them to CLOCK_REALTIME, once for each process."""
    source = _text(_CLOCK_SOURCE).strip()
    return f"CLOCK_REALTIME ({source})" if source else "CLOCK_REALTIME"


def _read_cpu_model() -> str | None:
    lines = _text(_CPU_INFO).splitlines()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, None)


def _text(path: Path) -> str:
    """What a file of the operating system holds; nothing where it is not there."""
    try:
        return path.read_text()
    except OSError:
        return ""
