"""Platforms for tests of models: in, changes to a small whole one; out, a Platform. Round numbers, everything known."""

from pathlib import Path

from tests.fakes.hardware import ACCELERATOR, write
from tracereplay.hardware.load import load_platform
from tracereplay.hardware.platform import Platform

PLATFORM = """
schema = "tracereplay/hardware/1"
type = "platform"
name = "small"
title = "Four accelerators of 16 GB, two sockets"
[accelerator]
model = { value = "./fast.toml", unit = "name", kind = "spec", source = "a sheet" }
count = { value = 4, unit = "1", kind = "spec", source = "a sheet" }
[host]
processor = { value = "CPU", unit = "name", kind = "spec", source = "a sheet" }
sockets = { value = 2, unit = "1", kind = "spec", source = "a sheet" }
cores = { value = 16, unit = "1", kind = "spec", source = "a sheet" }
[host.memory]
capacity = { value = 100, unit = "GB", kind = "spec", source = "a sheet" }
bandwidth = { value = 200, unit = "GB/s", kind = "spec", source = "a sheet" }
achievable = { value = 160, unit = "GB/s", kind = "measured", source = "a bench" }
[host.interconnect]
technology = { value = "upi", unit = "name", kind = "spec", source = "a sheet" }
layout = { value = "fully-connected", unit = "name", kind = "spec", source = "a sheet" }
links = { value = 2, unit = "1", kind = "spec", source = "a sheet" }
bandwidth = { value = 5, unit = "GB/s", direction = "one-way", kind = "spec", source = "a sheet" }
latency = { unit = "ns", kind = "unknown", source = "none" }
[host.link]
technology = { value = "pcie4-x16", unit = "name", kind = "spec", source = "a sheet" }
bandwidth = { value = 31, unit = "GB/s", direction = "one-way", kind = "spec", source = "a sheet" }
achievable = { value = 25, unit = "GB/s", direction = "one-way", kind = "measured", source = "a bench" }
latency = { unit = "ns", kind = "unknown", source = "none" }
switches = { value = 2, unit = "1", kind = "spec", source = "a sheet" }
uplink = { value = 31, unit = "GB/s", direction = "one-way", kind = "spec", source = "a sheet" }
[host.ssd]
count = { value = 2, unit = "1", kind = "spec", source = "a sheet" }
capacity = { value = 1, unit = "TB", kind = "spec", source = "a sheet" }
bandwidth = { value = 4, unit = "GB/s", kind = "spec", source = "a sheet" }
[fabric.scale_up]
technology = { value = "nvlink2", unit = "name", kind = "spec", source = "a sheet" }
layout = { value = "switch", unit = "name", kind = "spec", source = "a sheet" }
links = { value = 4, unit = "1", kind = "spec", source = "a sheet" }
link_bandwidth = { value = 25, unit = "GB/s", direction = "one-way", kind = "spec", source = "a sheet" }
bandwidth = { value = 100, unit = "GB/s", direction = "one-way", kind = "spec", source = "a sheet" }
achievable = { value = 80, unit = "GB/s", direction = "one-way", kind = "measured", source = "a bench" }
latency = { value = 1, unit = "µs", kind = "spec", source = "a sheet" }
[fabric.scale_out]
technology = { value = "ethernet-100g", unit = "name", kind = "spec", source = "a sheet" }
nics = { value = 4, unit = "1", kind = "spec", source = "a sheet" }
attached_to = { value = "accelerator", unit = "name", kind = "spec", source = "a sheet" }
bandwidth = { value = 100, unit = "Gb/s", direction = "one-way", kind = "spec", source = "a sheet" }
achievable = { value = 80, unit = "Gb/s", direction = "one-way", kind = "measured", source = "a bench" }
latency = { value = 10, unit = "µs", kind = "spec", source = "a sheet" }
"""


def small_platform(folder: Path, *changes: tuple[str, str]) -> Platform:
    """The small platform with pieces of its text replaced, each of which must be there."""
    text, accelerator = PLATFORM, ACCELERATOR
    for old, new in changes:
        assert old in text + accelerator
        text, accelerator = text.replace(old, new), accelerator.replace(old, new)
    write(folder, "fast.toml", accelerator)
    return load_platform(write(folder, "small.toml", text))
