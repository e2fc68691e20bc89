"""Hardware files for tests: small, whole and in order, to be written with one thing wrong."""

from pathlib import Path

ACCELERATOR = """
schema = "tracereplay/hardware/1"
type = "accelerator"
name = "fast"
title = "A fast accelerator"
[flops]
fp32 = { value = 10, unit = "TFLOP/s", kind = "spec", source = "a sheet" }
[hbm]
capacity = { value = 16, unit = "GB", kind = "spec", source = "a sheet" }
bandwidth = { value = 800, unit = "GB/s", kind = "spec", source = "a sheet" }
achievable = { unit = "GB/s", kind = "unknown", source = "not measured" }
[l2]
capacity = { value = 4, unit = "MiB", kind = "spec", source = "a sheet" }
[scale_up]
technology = { value = "nvlink2", unit = "name", kind = "spec", source = "a sheet" }
links = { value = 4, unit = "1", kind = "spec", source = "a sheet" }
link_bandwidth = { value = 25, unit = "GB/s", direction = "one-way", kind = "spec", source = "a sheet" }
bandwidth = { value = 200, unit = "GB/s", direction = "both-ways", kind = "spec", source = "a sheet" }
achievable = { unit = "GB/s", kind = "unknown", source = "not measured" }
"""


def write(folder: Path, name: str, text: str) -> str:
    """Write a file and return its path as a command line has it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def child(parent: str, body: str = "", name: str = "mine") -> str:
    """The text of a file that inherits."""
    return f'schema = "tracereplay/hardware/1"\ninherits = "{parent}"\nname = "{name}"\ntitle = "Mine"\n{body}\n'
