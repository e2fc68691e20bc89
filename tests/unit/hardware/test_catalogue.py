"""The catalogue beside the collected facts on hardware, and what holds of each of its files."""

import json
import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from tracereplay.hardware.checks import unchecked
from tracereplay.hardware.facts import Fact, Measure, Pairs
from tracereplay.hardware.load import catalogue, faults_of, load
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.schema import Accelerator, fields_of

ROOT = Path(__file__).parents[3]
SHELF = resources.files("tracereplay.hardware") / "catalog"
REQUIRED = {
    "p100-sxm2", "v100-sxm2-16", "v100-sxm2-32", "a100-40-sxm", "a100-80-sxm", "a100-40-pcie", "a100-80-pcie", "h100-sxm",
    "h100-pcie", "h200", "b200", "gb200", "mi250x", "mi300x", "big-basin-v1", "big-basin-v2", "dgx1-v100", "dgx2h", "zion",
    "zion-hcm", "zionex", "dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200", "grand-teton", "mi300x-node", "cpu-4s", "cpu-8s",
}  # fmt: skip

# Where the facts give an entry's numbers: how the lines begin.
A100, H100, V100 = "| A100 SXM", "| H100 SXM", "| V100 SXM2"
INTEL, LATENCY, PAIRS = "8x Xeon Platinum 8380H", "Link latency", "Hybrid cube mesh"
ROWS = {
    "p100-sxm2": ("| P100 SXM2",),
    "v100-sxm2-16": (V100,),
    "v100-sxm2-32": (V100,),
    "v100-sxm3-32": (V100, "| dgx2h"),
    "a100-40-sxm": (A100, "| A100 PCIe"),
    "a100-80-sxm": (A100, "| A100 PCIe"),
    "a100-40-pcie": (A100, "| A100 PCIe"),
    "a100-80-pcie": (A100, "| A100 PCIe"),
    "h100-sxm": (H100, "| dgx_h100"),
    "h100-pcie": ("| H100 PCIe",),
    "h200": (H100, "| H200", "| dgx_h100"),
    "b200": ("| B200 SXM",),
    "gb200": ("| GB200",),
    "mi250x": (),
    "mi300x": ("| MI300X", "| H100 PCIe"),
    "big-basin-v1": ("| big_basin_v1", "| P100 SXM2", "| big_basin_v2", PAIRS),
    "big-basin-v2": ("| big_basin_v2", V100, PAIRS),
    "dgx1-v100": ("| dgx1_v100", V100, PAIRS),
    "dgx2h": ("| dgx2h", V100),
    "zion": ("| zion_like", "| zion_host_proxy", INTEL),
    "zion-hcm": ("| zion_like", "| zion_host_proxy", INTEL, PAIRS),
    "zionex": ("| zionex", A100),
    "dgx-a100": ("| dgx_a100", A100),
    "dgx-a100-80": ("| dgx_a100", A100),
    "dgx-h100": ("| dgx_h100", H100),
    "dgx-h200": ("| dgx_h100", H100, "| H200"),
    "dgx-b200": ("| b200 node", "| B200 SXM"),
    "gb200-tray": ("| gb200 ", "| GB200"),
    "grand-teton": ("| grand_teton", H100, "| H100 PCIe"),
    "mi300x-node": ("| mi300x node", "| MI300X", "| H100 PCIe"),
    "cpu-8s": ("| zion_host_proxy", INTEL),
    "cpu-4s": ("| zion_host_proxy", INTEL, "| 1-node-4s"),
    "cpu-2s": ("| spr_node", "| dgx_h100"),
}
# Cards of the facts' ground truth alone: ``ground_truth/neusight/device_configs`` has their numbers, by these names.
CONFIGS = {
    "p4": "Tesla_P4",
    "t4": "Tesla_T4",
    "p100-pcie": "Tesla_P100-PCIE-16GB",
    "v100-pcie-32": "Tesla_V100-PCIE-32GB",
    "a100-40-pcie": "NVIDIA_A100-PCIE-40GB",
    "mi100": "AMD_Instinct_MI100",
    "mi210": "AMD_Instinct_MI210",
    "l4": "NVIDIA_L4",
}
# What the collected facts do not have: units, process in nm, watts, from the pages that the entries name.
SHEETS = {
    "p4": (40, 16, 75),
    "t4": (40, 12, 70),
    "p100-pcie": (56, 16, 250),
    "p100-sxm2": (56, 16, 300),
    "v100-pcie-32": (80, 12, 250),
    "v100-sxm2-16": (80, 12, 300),
    "v100-sxm2-32": (80, 12, 300),
    "v100-sxm3-32": (80, 12, 450),
    "a100-40-pcie": (108, 7, 250),
    "a100-80-pcie": (108, 7, 300),
    "a100-40-sxm": (108, 7, 400),
    "a100-80-sxm": (108, 7, 400),
    "l4": (60, 5, 72),
    "h100-pcie": (114, 4, 350),
    "h100-sxm": (132, 4, 700),
    "h200": (132, 4, 700),
    "b200": (148, 4, 1000),
    "gb200": (148, 4, 1200),
    "mi100": (120, 7, 300),
    "mi210": (104, 6, 300),
}
UNITS_PROCESS_POWER = ("compute_units", "process", "power")
# Rates of matrix units in fp16, from the pages that the entries name.
ELSEWHERE = {("t4", "flops.fp16"), ("p100-pcie", "flops.fp16"), ("v100-pcie-32", "flops.fp16"), ("mi100", "flops.fp16")} | {
    ("mi210", "flops.fp16"), ("l4", "flops.bf16")
}  # fmt: skip
# Half of what the facts say of the same machine with 8 sockets.
HALVED = {("cpu-4s", "host.memory.capacity"): 1536, ("cpu-4s", "host.memory.bandwidth"): 1229}


@pytest.fixture(scope="module")
def facts() -> str:
    path = ROOT.parent / "shared" / "facts" / "hardware.md"
    if not path.is_file():
        pytest.skip(f"no collected facts at {path}")
    return path.read_text()


def own_fields(name: str) -> list[tuple[str, Fact]]:
    """An entry's fields; not those of the accelerator in a platform's slots, which is an entry of its own."""
    entry = load(name)
    return list(fields_of(entry.description if isinstance(entry, Platform) else entry))


def numbers_of(facts: str, rows: tuple[str, ...]) -> set[float]:
    lines = [line for line in facts.splitlines() if line.startswith(rows)]
    found = re.findall(r"\d[\d,]*(?:\.\d+)?", " ".join(lines))
    return {float(number.replace(",", "")) for number in found}


# What the facts do not have.
CLOCKS_MHZ = {
    "p100-sxm2": 1480, "v100-sxm2-16": 1530, "v100-sxm2-32": 1530, "v100-sxm3-32": 1530,
    "a100-40-sxm": 1410, "a100-80-sxm": 1410, "a100-40-pcie": 1410, "a100-80-pcie": 1410,
    "h100-sxm": 1830, "h100-pcie": 1750, "h200": 1830, "b200": 1965, "gb200": 2062, "mi250x": 1700, "mi300x": 2100,
}  # fmt: skip


def sourced(name: str) -> Iterator[tuple[str, float]]:
    """The numbers that somebody published, measured or derived: what is assumed is a choice and says so."""
    for key, fact in own_fields(name):
        if isinstance(fact, Measure) and fact.value is not None and fact.kind != "assumed" and key != "clock":
            yield key, float(fact.value)


def tables(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "source" in value:
            yield value
        for inner in value.values():
            yield from tables(inner)


def test_everything_asked_for_is_there() -> None:
    assert set(catalogue()) >= REQUIRED


def test_every_entry_has_its_rows_in_the_facts() -> None:
    assert set(ROWS) | set(CONFIGS) == set(catalogue())


@pytest.mark.parametrize("name", [n for n in catalogue() if isinstance(load(n), Accelerator)])
def test_units_process_and_power_are_those_of_the_sheets(name: str) -> None:
    fields = dict(own_fields(name))
    given = tuple(fact.value if isinstance(fact := fields.get(key), Measure) else None for key in UNITS_PROCESS_POWER)

    assert given == SHEETS.get(name, (None, None, None))


@pytest.mark.parametrize(("name", "file"), CONFIGS.items())
def test_a_cards_numbers_are_those_of_its_device_config(name: str, file: str, corpus: Path) -> None:
    config = json.loads((corpus / "ground_truth" / "neusight" / "device_configs" / f"{file}.json").read_text())
    known = {float(config[key]) for key in ("Dev_Mem", "Mem_Bw", "Num_Sm", "L2Cache")}
    rates = {config[key] / 1000 for key in ("SingleFLOPs", "SingleFLOPsMM", "SingleFLOPsVEC") if key in config}
    kept = {key: n for key, n in sourced(name) if key not in {"process", "power"} and (name, key) not in ELSEWHERE}
    if name == "a100-40-pcie":  # the rest is the 80 GB card's
        kept = {key: n for key, n in kept.items() if key in {"hbm.capacity", "hbm.bandwidth", "compute_units"}}

    assert {key: n for key, n in kept.items() if n not in known | rates} == {}


@pytest.mark.parametrize("name", catalogue())
def test_an_entry_is_in_order_under_its_own_name(name: str) -> None:
    entry = load(name)

    assert faults_of(name) == []
    assert (entry.description if isinstance(entry, Platform) else entry).name == name


@pytest.mark.parametrize("name", catalogue())
def test_every_bandwidth_of_a_link_is_checked_against_its_technology(name: str) -> None:
    entry = load(name)

    assert unchecked(entry.description if isinstance(entry, Platform) else entry) == []


def test_no_two_entries_share_a_name() -> None:
    files = [tomllib.loads((SHELF / f"{name}.toml").read_text(encoding="utf-8")) for name in catalogue()]
    names = [name for file in files for name in (file["name"], *file.get("aliases", ()))]

    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", catalogue())
def test_every_field_of_a_file_has_unit_kind_and_source(name: str) -> None:
    content = tomllib.loads((SHELF / f"{name}.toml").read_text(encoding="utf-8"))
    fields = list(tables(content))

    assert all({"unit", "kind", "source"} <= set(field) and len(field["source"]) > 2 for field in fields)
    assert all(("range" in field) == (field["kind"] == "assumed") for field in fields)
    assert all(("value" in field) == (field["kind"] != "unknown") for field in fields)


def test_clocks() -> None:
    clocks = {name: fact.value for name in catalogue() for key, fact in own_fields(name) if key == "clock"}  # type: ignore[attr-defined]

    assert clocks == CLOCKS_MHZ


@pytest.mark.parametrize("name", ROWS)
def test_every_number_with_a_source_is_one_of_the_facts(name: str, facts: str) -> None:
    given = numbers_of(facts, ROWS[name]) if ROWS[name] else set()
    checked_elsewhere = {*UNITS_PROCESS_POWER, *(["hbm.bandwidth"] if name in CONFIGS else [])}
    wanted = {key: HALVED.get((name, key), number) for key, number in sourced(name) if key not in checked_elsewhere}

    assert {key: n for key, n in wanted.items() if not {n, float(round(n))} & given} == {}


@pytest.mark.parametrize("name", ["dgx1-v100", "big-basin-v2", "zion-hcm"])
def test_the_pairs_are_those_of_the_facts(name: str, facts: str) -> None:
    (line,) = [line for line in facts.splitlines() if line.startswith(PAIRS)]
    listed = tuple((int(a), int(b), int(n)) for a, b, n in re.findall(r"(\d)-(\d):(\d)", line))

    (pairs,) = [fact.value for _, fact in own_fields(name) if isinstance(fact, Pairs)]

    assert len(listed) == 16
    assert pairs == listed


@pytest.mark.parametrize(
    ("name", "key", "value", "unit", "kind"),
    [
        ("p100-sxm2", "flops.fp32", 10.6, "TFLOP/s", "spec"),
        ("p100-sxm2", "hbm.achievable", 543, "GB/s", "measured"),
        ("p100-sxm2", "host_link.achievable", 7.6, "GB/s", "measured"),
        ("v100-sxm2-16", "hbm.capacity", 16, "GB", "spec"),
        ("v100-sxm2-32", "hbm.capacity", 32, "GB", "spec"),
        ("v100-sxm2-32", "flops.fp16", 125, "TFLOP/s", "spec"),
        ("v100-sxm2-32", "scale_up.link_bandwidth", 25, "GB/s", "spec"),
        ("v100-sxm3-32", "power", 450, "W", "spec"),
        ("a100-40-sxm", "hbm.bandwidth", 1.555, "TB/s", "spec"),
        ("a100-40-sxm", "scale_up.achievable", 234.9, "GB/s", "measured"),
        ("a100-80-sxm", "hbm.bandwidth", 2.0, "TB/s", "spec"),
        ("a100-80-pcie", "hbm.bandwidth", 1.94, "TB/s", "spec"),
        ("a100-80-pcie", "achievable_flops.bf16", 252.9, "TFLOP/s", "measured"),
        ("a100-40-pcie", "hbm.bandwidth", 1555, "GB/s", "spec"),
        ("h100-sxm", "flops.fp8", 1979, "TFLOP/s", "spec"),
        ("h100-pcie", "flops.tf32", 378, "TFLOP/s", "spec"),
        ("h200", "hbm.capacity", 141, "GB", "spec"),
        ("h200", "hbm.bandwidth", 4.8, "TB/s", "spec"),
        ("h200", "scale_up.switched", 473.1, "GB/s", "measured"),
        ("b200", "l2.capacity", None, "MiB", "unknown"),
        ("b200", "flops.bf16", 2250, "TFLOP/s", "spec"),
        ("gb200", "l2.capacity", 126, "MB", "spec"),
        ("mi250x", "hbm.bandwidth", None, "TB/s", "unknown"),
        ("mi300x", "llc.capacity", 256, "MiB", "spec"),
        ("mi300x", "scale_up.bandwidth", 448, "GB/s", "spec"),
        ("big-basin-v1", "host.memory.capacity", None, "GB", "unknown"),
        ("dgx1-v100", "host.memory.capacity", 512, "GB", "spec"),
        ("dgx1-v100", "fabric.scale_out.nics", 4, "1", "spec"),
        ("dgx2h", "accelerator.count", 16, "1", "spec"),
        ("dgx2h", "host.memory.bandwidth", None, "GB/s", "unknown"),
        ("zion", "host.sockets", 8, "1", "assumed"),
        ("zion", "host.memory.capacity", 1536, "GB", "assumed"),
        ("zion", "fabric.scale_up.links", 7, "1", "assumed"),
        ("zion-hcm", "fabric.scale_up.links", 6, "1", "assumed"),
        ("zion", "fabric.scale_up.link_bandwidth", 25, "GB/s", "assumed"),
        ("zion", "fabric.scale_out.bandwidth", 100, "Gb/s", "assumed"),
        ("zionex", "host.memory.capacity", None, "GB", "unknown"),
        ("zionex", "fabric.scale_out.bandwidth", 200, "Gb/s", "spec"),
        ("dgx-a100", "host.link.bandwidth", 31, "GB/s", "spec"),
        ("dgx-h100", "host.cores", 56, "1", "spec"),
        ("grand-teton", "host.link.switches", 4, "1", "spec"),
        ("grand-teton", "host.ssd.count", 16, "1", "spec"),
        ("mi300x-node", "fabric.scale_out.bandwidth", None, "Gb/s", "unknown"),
        ("gb200-tray", "fabric.scale_up.domain", 72, "1", "spec"),
        ("cpu-8s", "host.memory.bandwidth", 1228.8, "GB/s", "derived"),
        ("cpu-4s", "host.memory.capacity", 768, "GB", "derived"),
        ("cpu-2s", "host.memory.bandwidth", 614.4, "GB/s", "derived"),
    ],
)
def test_a_number_stands_where_it_belongs(name: str, key: str, value: float | None, unit: str, kind: str) -> None:
    fact = dict(own_fields(name))[key]

    assert isinstance(fact, Measure)
    assert (fact.value, fact.unit, fact.kind) == (value, unit, kind)


def test_the_slots_of_zion_hold_a_v100_that_is_assumed() -> None:
    slot = dict(own_fields("zion"))["accelerator.model"]

    assert (slot.text(), slot.kind) == ("v100-sxm2-32", "assumed")


@pytest.mark.parametrize(
    "name", [n for n in catalogue() if isinstance(load(n), Platform) and not n.startswith(("cpu", "zion-"))]
)
def test_a_platforms_links_are_those_of_its_accelerator_unless_assumed(name: str) -> None:
    platform = load(name)
    assert isinstance(platform, Platform)
    assert isinstance(platform.accelerator, Accelerator)
    up, port = platform.description.fabric.scale_up, platform.accelerator.scale_up
    assert up is not None
    assert port is not None

    assert up.bandwidth.kind == "assumed" or (up.technology.value, up.bandwidth.base) == (
        port.technology.value,
        port.bandwidth.base,
    )
