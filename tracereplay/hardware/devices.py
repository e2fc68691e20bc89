"""Accelerators by the names that drivers report: in, ``Tesla V100-SXM2-32GB``; out, the catalogue's name, or None.

The names are those of ``cudaDeviceProp.name`` and ``hipDeviceProp_t.name``, as ``deviceProperties`` of a trace has them.
"""

import re
from typing import Final

_REPORTED: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (r"\bP4\b", "p4"),
        (r"\bP100-PCIE-16GB", "p100-pcie"),
        (r"\bP100-SXM2", "p100-sxm2"),
        (r"\bV100-PCIE-32GB", "v100-pcie-32"),
        (r"\bV100-SXM2-16GB", "v100-sxm2-16"),
        (r"\bV100-SXM2-32GB", "v100-sxm2-32"),
        (r"\bV100-SXM3-32GB", "v100-sxm3-32"),
        (r"\bT4\b", "t4"),
        (r"\bL4\b", "l4"),
        (r"\bA100-(SXM4|PG509)", "a100-40-sxm"),
        (r"\bA100-SXM4-80GB", "a100-80-sxm"),
        (r"\bA100-PCIE-40GB", "a100-40-pcie"),
        (r"\bA100 80GB PCIe|\bA100-PCIE-80GB", "a100-80-pcie"),
        (r"\bH100 PCIe", "h100-pcie"),
        (r"\bH100( 80GB HBM3)?$|\bH100-SXM5?", "h100-sxm"),
        (r"\bH200\b(?! NVL)", "h200"),
        (r"\bGB200", "gb200"),
        (r"\bB200", "b200"),
        (r"\bMI100\b", "mi100"),
        (r"\bMI210\b", "mi210"),
        (r"\bMI250X\b", "mi250x"),
        (r"\bMI300X\b", "mi300x"),
    )
)


def accelerator_of(reported: str) -> str | None:
    """The catalogue's name of a device; the last name that fits is the more precise one. None where it is not in it."""
    return next((name for pattern, name in reversed(_REPORTED) if pattern.search(reported)), None)
