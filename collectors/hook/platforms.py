"""The name by which the hardware catalogue knows a machine: in, hosts of a manifest; out, what ``--from`` takes, where that
is plain.
"""

from collections.abc import Sequence
from typing import Any

# Accelerators of one host, by what the driver calls them and how many there are, and the platform of the catalogue that has
# these. Where several platforms have the same (a DGX H100, a Grand Teton), the one whose figures are published; --platform
# names another.
_PLATFORMS = {
    ("Tesla P100-SXM2-16GB", 8): "big-basin-v1",
    ("Tesla V100-SXM2-16GB", 8): "big-basin-v2",
    ("Tesla V100-SXM2-32GB", 8): "dgx1-v100",
    ("Tesla V100-SXM3-32GB", 16): "dgx2h",
    ("NVIDIA A100-SXM4-40GB", 8): "dgx-a100",
    ("NVIDIA A100-SXM4-80GB", 8): "dgx-a100-80",
    ("NVIDIA H100 80GB HBM3", 8): "dgx-h100",
    ("NVIDIA H200", 8): "dgx-h200",
    ("NVIDIA B200", 8): "dgx-b200",
    ("NVIDIA GB200", 4): "gb200-tray",
    ("AMD Instinct MI300X", 8): "mi300x-node",
}


def platform_of(hosts: Sequence[dict[str, Any]]) -> str | None:
    """The platform of ``hosts``, which are all alike; None where the catalogue has none or more than one kind is there."""
    names = {_PLATFORMS.get(key) if (key := _accelerators_of(host)) else None for host in hosts}
    return names.pop() if len(names) == 1 else None


def _accelerators_of(host: dict[str, Any]) -> tuple[str, int] | None:
    found = host.get("accelerators", [])
    kinds = {accelerator["name"] for accelerator in found}
    return (kinds.pop(), len(found)) if len(kinds) == 1 else None
