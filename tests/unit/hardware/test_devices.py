import pytest

from tracereplay.hardware.devices import accelerator_of
from tracereplay.hardware.load import catalogue, load_accelerator


@pytest.mark.parametrize(
    ("reported", "name"),
    [
        ("Tesla V100-SXM2-32GB", "v100-sxm2-32"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2-16"),
        ("Tesla P100-SXM2-16GB", "p100-sxm2"),
        ("NVIDIA A100-PG509-200", "a100-40-sxm"),
        ("NVIDIA A100-SXM4-40GB", "a100-40-sxm"),
        ("NVIDIA A100-SXM4-80GB", "a100-80-sxm"),
        ("NVIDIA A100 80GB PCIe", "a100-80-pcie"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA B200", "b200"),
        ("AMD Instinct MI300X", "mi300x"),
        ("AMD Instinct MI100", "mi100"),
        ("AMD Instinct MI210", "mi210"),
        ("AMD Instinct MI250X", "mi250x"),
        ("Tesla P4", "p4"),
        ("Tesla T4", "t4"),
        ("NVIDIA L4", "l4"),
        ("Tesla P100-PCIE-16GB", "p100-pcie"),
        ("Tesla V100-PCIE-32GB", "v100-pcie-32"),
        ("Tesla V100-SXM3-32GB", "v100-sxm3-32"),
        ("NVIDIA A100-PCIE-40GB", "a100-40-pcie"),
    ],
)
def test_what_drivers_report_is_in_the_catalogue(reported: str, name: str) -> None:
    assert accelerator_of(reported) == name
    assert name in catalogue()
    assert load_accelerator(name).name == name


@pytest.mark.parametrize("reported", ["NVIDIA GH200 480GB", "NVIDIA H200 NVL", "NVIDIA L40", "Tesla V100-PCIE-16GB"])
def test_a_name_within_another_is_another_device(reported: str) -> None:
    assert accelerator_of(reported) is None


def test_what_is_not_in_the_catalogue_has_no_name() -> None:
    assert accelerator_of("NVIDIA GeForce RTX 2080 Ti") is None
