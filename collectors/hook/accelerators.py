"""The accelerators of this machine: in, torch and the operating system; out, plain JSON values for the manifest."""

import os
from pathlib import Path
from typing import Any

import torch

from tracereplay.collectors.hook.machine import text_of

_PCI = Path("/sys/bus/pci/devices")


def describe_accelerators() -> list[dict[str, Any]]:  # JSON
    """Every accelerator that this process sees, with its own link to the host and the peers that it reaches directly."""
    if not torch.cuda.is_available():
        return []
    count = torch.cuda.device_count()
    return [_accelerator(index, count) for index in range(count)]


def describe_device() -> str | None:
    """The accelerator that this process computes on; None where it has none."""
    if not torch.cuda.is_available():
        return None
    return f"cuda:{torch.cuda.current_device()} {torch.cuda.get_device_name()}"


def _accelerator(index: int, count: int) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(index)
    slot = _PCI / _pci_address(properties)
    width = text_of(slot / "current_link_width").strip()
    return {
        "index": index,
        "name": str(properties.name),
        "memory_bytes": int(properties.total_memory),
        "capability": f"{properties.major}.{properties.minor}",
        "compute_units": int(properties.multi_processor_count),
        "host_link_speed": text_of(slot / "current_link_speed").strip() or None,  # as the kernel writes it: 16.0 GT/s PCIe
        "host_link_width": int(width) if width.isdigit() else None,
        "peers": [peer for peer in range(count) if peer != index and torch.cuda.can_device_access_peer(index, peer)],
    }


def _pci_address(properties: Any) -> str:
    """The card's place as the kernel names it, ``0000:1b:00.0``; torch tells it from 2.4 on."""
    parts = [getattr(properties, f"pci_{name}_id", None) for name in ("domain", "bus", "device")]
    if None in parts:
        return os.devnull.strip("/")  # names no card
    domain, bus, device = parts
    return f"{domain:04x}:{bus:02x}:{device:02x}.0"
