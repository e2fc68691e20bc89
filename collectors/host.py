"""The facts of this machine for the manifest and for planning: in, the operating system; out, a HostRecord, cores and bytes."""

import os
import re
from pathlib import Path

from tracereplay.collectors.hook.machine import describe_machine, text_of
from tracereplay.manifest import HostRecord

_MEMORY_INFO = Path("/proc/meminfo")
_CPUS = Path("/sys/devices/system/cpu")
_CONTROL_GROUP = Path("/sys/fs/cgroup")


def read_host(name: str | None = None) -> HostRecord:
    """The facts of this machine under its own name, or under ``name``."""
    return HostRecord.model_validate(describe_machine(name))


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
    said = re.search(r"^MemAvailable:\s+(\d+) kB", text_of(_MEMORY_INFO), re.MULTILINE)
    if said is not None:
        free = int(said[1]) * 1024
    limit, used = (text_of(_CONTROL_GROUP / name).strip() for name in ("memory.max", "memory.current"))
    return max(min(free, int(limit) - int(used)), 0) if limit.isdigit() and used.isdigit() else free


def last_level_cache_bytes() -> int | None:
    """The last level of cache, all of those that the usable cores share added up; None where the system does not say."""
    found: dict[tuple[int, str], int] = {}
    for core in sorted(os.sched_getaffinity(0)):
        for cache in _CPUS.glob(f"cpu{core}/cache/index*"):
            level, shared, size = (text_of(cache / name).strip() for name in ("level", "shared_cpu_list", "size"))
            if level.isdigit() and re.fullmatch(r"\d+K", size):
                found[int(level), shared] = int(size[:-1]) * 1024
    last = max((level for level, _ in found), default=None)
    return None if last is None else sum(size for (level, _), size in found.items() if level == last)


def sockets() -> int | None:
    """How many processor packages hold the usable cores; None where the system does not say."""
    names = {text_of(_CPUS / f"cpu{core}/topology/physical_package_id").strip() for core in os.sched_getaffinity(0)}
    return None if "" in names else len(names)
