from pathlib import Path

import pytest

from tests.fakes.platforms import small_platform
from tracereplay.errors import HardwareError
from tracereplay.hardware.load import load_platform
from tracereplay.hardware.memory.rates import MemoryRate, host_rate, ranks_of_node, ssd_rate

_UPLINK = 'uplink = { value = 31, unit = "GB/s", direction = "one-way", kind = "spec", source = "a sheet" }'
_NO_UPLINK = 'uplink = { unit = "GB/s", kind = "unknown", source = "none" }'
_LINK = 'bandwidth = { value = 31, unit = "GB/s", direction = "one-way", kind = "spec", source = "a sheet" }'


def test_the_narrowest_part_of_the_way_to_host_memory_binds(tmp_path: Path) -> None:
    platform = small_platform(tmp_path)

    # 31 GB/s of uplink over two accelerators behind each switch; 25 of the link; 160 of memory over 4.
    assert host_rate(platform, 4) == MemoryRate(15.5e9, "host.link.uplink")
    assert host_rate(platform, 16) == MemoryRate(10e9, "host.memory.achievable")
    assert host_rate(platform, 4, remote=True) == MemoryRate(10e9, "host.interconnect.bandwidth")


def test_an_unknown_uplink_does_not_bind_and_is_said(tmp_path: Path) -> None:
    platform = small_platform(tmp_path, (_UPLINK, _NO_UPLINK))

    assert host_rate(platform, 4) == MemoryRate(25e9, "host.link.achievable", ("host.link.uplink",))


def test_what_was_reached_counts_before_the_data_sheet(tmp_path: Path) -> None:
    unknown = 'achievable = { unit = "GB/s", kind = "unknown", source = "not measured" }'
    known = 'achievable = { value = 160, unit = "GB/s", kind = "measured", source = "a bench" }'

    assert host_rate(small_platform(tmp_path), 40) == MemoryRate(4e9, "host.memory.achievable")
    assert host_rate(small_platform(tmp_path, (known, unknown)), 40) == MemoryRate(5e9, "host.memory.bandwidth")


def test_a_socket_is_a_rank_where_there_are_no_accelerators() -> None:
    platform = load_platform("cpu-8s")

    assert ranks_of_node(platform) == 8
    assert host_rate(platform, 8) == MemoryRate(153.6e9, "host.memory.bandwidth")


def test_disks_are_shared_and_no_faster_than_the_way_to_the_host(tmp_path: Path) -> None:
    assert ssd_rate(small_platform(tmp_path), 4) == MemoryRate(2e9, "host.ssd.bandwidth")
    many = ("count = { value = 2, unit", "count = { value = 200, unit")
    assert ssd_rate(small_platform(tmp_path, many), 4).binds == "host.link.uplink"


def test_a_way_that_nobody_knows_stops_the_run_and_names_the_field(tmp_path: Path) -> None:
    known = 'achievable = { value = 25, unit = "GB/s", direction = "one-way", kind = "measured", source = "a bench" }'
    unknown = 'achievable = { unit = "GB/s", kind = "unknown", source = "none" }'
    nothing = 'bandwidth = { unit = "GB/s", kind = "unknown", source = "none" }'
    platform = small_platform(tmp_path, (_UPLINK, _NO_UPLINK), (_LINK, nothing), (known, unknown))

    with pytest.raises(HardwareError, match=r"host\.link\.bandwidth is unknown"):
        host_rate(platform, 4)
    with pytest.raises(HardwareError, match=r"host\.ssd is unknown"):
        ssd_rate(load_platform("dgx-a100"), 8)
