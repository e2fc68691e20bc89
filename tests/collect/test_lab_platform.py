"""The hardware file of a laboratory's host, read by who needs it."""

from pathlib import Path

import pytest

from tracereplay.collectors.lab_platform import platform_text
from tracereplay.collectors.link import Link, parse_link
from tracereplay.hardware.load import load_platform
from tracereplay.manifest import HostRecord

HOST = HostRecord(name="h", cpu_model='A "quoted" CPU', cpu_count=2, memory_bytes=25_000_000_000, kernel="Linux 6")


def test_a_shaped_link_carries_its_rate_less_the_headers(tmp_path: Path) -> None:
    file = tmp_path / "platform.toml"
    file.write_text(platform_text(parse_link("1gbit", "50us"), HOST, 1))

    scale_out = load_platform(str(file)).description.fabric.scale_out

    assert (scale_out.bandwidth.base, scale_out.bandwidth.kind) == (125_000_000, "spec")
    assert scale_out.achievable.base == pytest.approx(125e6 * 8948 / 9014)
    assert (scale_out.latency.base, scale_out.latency.base_range) == (55_000, (51_000, 70_000))


def test_what_is_not_shaped_is_assumed_to_be_no_limit(tmp_path: Path) -> None:
    file = tmp_path / "platform.toml"
    file.write_text(platform_text(Link(), HOST, 1))

    platform = load_platform(str(file))

    assert platform.description.name == "lab-unshaped"
    assert platform.description.fabric.scale_out.bandwidth.base_range == (12.5e9, 125e9)
    assert platform.description.host.processor.value == 'A "quoted" CPU'
