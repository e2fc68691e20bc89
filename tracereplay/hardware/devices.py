"""Accelerators by the names that drivers report: in, ``Tesla V100-SXM2-32GB``; out, the catalogue's name, or None.

The names are those of ``cudaDeviceProp.name`` and ``hipDeviceProp_t.name``, as ``deviceProperties`` of a trace has them.
"""

import re
from typing import Final

_REPORTED: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (r"P100-SXM2", "p100-sxm2"),
        (r"V100-SXM2-16GB", "v100-sxm2-16"),
        (r"V100-SXM2-32GB", "v100-sxm2-32"),
        (r"V100-SXM3-32GB", "v100-sxm3-32"),
        (r"A100-(SXM4|PG509)", "a100-40-sxm"),
        (r"A100-SXM4-80GB", "a100-80-sxm"),
        (r"A100-PCIE-40GB", "a100-40-pcie"),
        (r"A100 80GB PCIe|A100-PCIE-80GB", "a100-80-pcie"),
        (r"H100 PCIe", "h100-pcie"),
        (r"H100( 80GB HBM3)?$|H100-SXM5?", "h100-sxm"),
        (r"H200", "h200"),
        (r"\bGB200", "gb200"),
        (r"\bB200", "b200"),
        (r"MI250X", "mi250x"),
        (r"MI300X", "mi300x"),
    )
)


def accelerator_of(reported: str) -> str | None:
    """The catalogue's name of a device; the last name that fits is the more precise one. None where it is not in it."""
    return next((name for pattern, name in reversed(_REPORTED) if pattern.search(reported)), None)
