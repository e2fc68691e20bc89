"""The facts of this machine as plain JSON values: in, the operating system; out, what a manifest's HostRecord holds.

Unknown is null, never guessed. No address of a network interface and no path is read.
"""

import os
import platform
import re
import socket
from pathlib import Path
from typing import Any

_CPU_INFO = Path("/proc/cpuinfo")
_CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_INTERFACES = Path("/sys/class/net")
_INFINIBAND = Path("/sys/class/infiniband")
_NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")
_AMD_DRIVER = Path("/sys/module/amdgpu/version")
_LOOPBACK_TYPE = "772"  # ARPHRD_LOOPBACK, linux/if_arp.h


def describe_machine(name: str | None = None) -> dict[str, Any]:  # JSON
    """The facts of this machine under its own name, or under ``name``; without its accelerators, which torch knows."""
    return {
        "name": name or socket.gethostname(),
        "cpu_model": _cpu_model(),
        "cpu_count": usable_cores(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "kernel": f"{platform.system()} {platform.release()}",
        "nics": [*_ethernet(), *_infiniband()],
        "driver": _driver(),
    }


def usable_cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0))


def read_clock() -> str:
    """The clock behind the traces' time stamps: torch converts them to CLOCK_REALTIME, once for each process."""
    source = text_of(_CLOCK_SOURCE).strip()
    return f"CLOCK_REALTIME ({source})" if source else "CLOCK_REALTIME"


def text_of(path: Path) -> str:
    """What a file of the operating system holds; nothing where it is not there or not to be read."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def git_commit(start: Path) -> str | None:
    """The commit of the checkout that holds ``start``, read from its files: no process is started for it."""
    for folder in (start, *start.parents):
        entry = folder / ".git"
        if entry.exists():
            return _head_of(_git_folder(entry))
    return None


def _git_folder(entry: Path) -> Path:
    """The folder of a checkout's own state; of a linked worktree ``.git`` is a file that names it."""
    named = re.fullmatch(r"gitdir: (.+)\s*", text_of(entry)) if entry.is_file() else None
    return entry if named is None else (entry.parent / named[1].strip())


def _head_of(git: Path) -> str | None:
    head = text_of(git / "HEAD").strip()
    common = git / (text_of(git / "commondir").strip() or ".")
    if head.startswith("ref: "):
        name = head[len("ref: ") :]
        loose = next((found for place in (git, common) if (found := text_of(place / name).strip())), "")
        packed = re.search(rf"^([0-9a-f]+) {re.escape(name)}$", text_of(common / "packed-refs"), re.MULTILINE)
        head = loose or (packed[1] if packed else "")
    return head if re.fullmatch(r"[0-9a-f]{40,64}", head) else None


def _cpu_model() -> str | None:
    lines = text_of(_CPU_INFO).splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def _ethernet() -> list[dict[str, Any]]:
    """Interfaces of the kernel's network stack that are up, the loopback left out; speed in bit/s."""
    found = []
    for entry in _listed(_INTERFACES):
        state, kind, speed, mtu = (text_of(entry / name).strip() for name in ("operstate", "type", "speed", "mtu"))
        if kind == _LOOPBACK_TYPE or state == "down":
            continue
        rate = int(speed) * 10**6 if speed.isdigit() and int(speed) > 0 else None
        found.append({"name": entry.name, "kind": "network", "bits_per_s": rate, "mtu": int(mtu) if mtu.isdigit() else None})
    return found


def _infiniband() -> list[dict[str, Any]]:
    """Ports of InfiniBand and RoCE adapters; the kernel writes a rate as ``200 Gb/sec (4X HDR)``."""
    found = []
    for adapter in _listed(_INFINIBAND):
        for port in _listed(adapter / "ports"):
            rate = re.match(r"([\d.]+) Gb/sec", text_of(port / "rate"))
            layer = text_of(port / "link_layer").strip().lower() or "infiniband"
            bits = None if rate is None else round(float(rate[1]) * 10**9)
            found.append({"name": f"{adapter.name}:{port.name}", "kind": f"rdma over {layer}", "bits_per_s": bits, "mtu": None})
    return found


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _driver() -> str | None:
    """The kernel driver of the accelerators."""
    nvidia = re.search(r"Kernel Module[^\d\n]*(?:x86_64|aarch64)?\s+(\d[\d.]*)", text_of(_NVIDIA_DRIVER))
    if nvidia is not None:
        return f"nvidia {nvidia[1]}"
    amd = text_of(_AMD_DRIVER).strip()
    return f"amdgpu {amd}" if amd else None
