from pathlib import Path

import pytest

from tests.fakes.hardware import child, write
from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tracereplay.errors import HardwareError, UsageError
from tracereplay.hardware.knobs import Setting, parse_setting
from tracereplay.replay.site import Site, journey, source_of, supplied

OWN_CARD = '[accelerator]\nmodel = {{ value = "{}", unit = "name", kind = "measured", source = "ours" }}'


def device_job() -> TraceFile:
    trace = TraceFile(0).step(1, 0, 100).call("cudaLaunchKernel", 10, 5, 1).kernel("k", 20, 30, 7, 1)
    trace.header["deviceProperties"] = [{"id": 0, "name": "Tesla V100-SXM2-16GB"}]
    return trace


def settings(*texts: str) -> list[Setting]:
    return [setting for text in texts for setting in parse_setting(text)]


def test_what_the_trace_says_of_the_accelerators_wins_over_the_file(tmp_path: Path) -> None:
    source = source_of(graph_of(tmp_path, device_job()), "dgx1-v100")

    assert source is not None
    assert source.name == "dgx1-v100 with v100-sxm2-16"
    assert source.host_speed == 1.0


def test_a_platform_that_has_another_accelerator_for_certain_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--from dgx-h100 has h100-sxm, and the trace names v100-sxm2-16"):
        source_of(graph_of(tmp_path, device_job()), "dgx-h100")


def test_an_accelerator_of_the_user_s_own_file_stays(tmp_path: Path) -> None:
    card = write(tmp_path, "mine.toml", child("v100-sxm2-16", name="my-v100"))
    node = write(tmp_path, "node.toml", child("dgx1-v100", OWN_CARD.format(card), name="my-node"))

    source = source_of(graph_of(tmp_path, device_job()), node)

    assert source is not None
    assert source.name == "my-node with my-v100"


def test_a_value_for_what_the_file_does_not_know_is_a_fact_about_where_the_job_ran(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, device_job())
    texts = ("host.link.uplink=15GB/s", "accelerator.hbm.capacity=64GB")

    source = source_of(graph, "dgx1-v100", settings(*texts), is_target=True)

    assert source is not None
    facts = dict(source.platform.fields())
    assert facts["host.link.uplink"].kind == "spec"
    assert facts["accelerator.hbm.capacity"].text() == "16 GB"


def test_a_job_with_device_work_needs_to_say_what_it_ran_on(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--from; the trace names v100-sxm2-16, which is in big-basin-v2, dgx1-v100"):
        source_of(graph_of(tmp_path, device_job()), None)


def test_a_job_of_cpus_needs_not(tmp_path: Path) -> None:
    assert source_of(graph_of(tmp_path, TraceFile(0).step(1, 0, 100).op("aten::mm", 10, 20)), None) is None


def sites(tmp_path: Path, hardware: str | None, *texts: str) -> tuple[Site | None, Site]:
    source = source_of(graph_of(tmp_path, device_job()), "dgx1-v100")
    way = journey(source, hardware, settings(*texts))
    return way.source, way.target


def test_elsewhere_nobody_knows_how_fast_the_host_is_unless_a_setting_says_so(tmp_path: Path) -> None:
    assert sites(tmp_path, "zion")[1].host_speed is None
    assert sites(tmp_path, "zion", "host.speed=1.5x")[1].host_speed == 1.5
    assert sites(tmp_path, None, "host.speed=1.5x", "host.speed=2x")[1].host_speed == 3.0
    assert sites(tmp_path, None, "accelerator.flops=2x")[1].host_speed == 1.0
    assert sites(tmp_path, "dgx1_v100")[1].host_speed == 1.0


def test_an_accelerator_stands_in_the_slots_of_where_the_job_ran(tmp_path: Path) -> None:
    assert sites(tmp_path, "h100-sxm")[1].name == "dgx1-v100 with h100-sxm"


def test_a_host_s_speed_is_a_ratio(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the speed of hosts is known as a ratio only; write host\.speed=1\.5x"):
        sites(tmp_path, "zion", "host.speed=3GHz")


def test_without_any_platform_there_is_nothing_to_change() -> None:
    with pytest.raises(UsageError, match="no hardware to change"):
        journey(None, None, settings("accelerator.flops=2x"))


def lacking(where: str, key: str) -> HardwareError:
    return HardwareError("it is unknown", where=where, hint=f"give it with --set {key}=..., or in a file")


def test_a_fact_about_the_source_is_none_about_where_the_job_is_to_run(tmp_path: Path) -> None:
    graph, fact = graph_of(tmp_path, device_job()), settings("from.accelerator.hbm.bandwidth=1TB/s")

    source = source_of(graph, "dgx1-v100", fact)

    assert source is not None
    assert dict(source.platform.fields())["accelerator.hbm.bandwidth"].text() == "1 TB/s"
    with pytest.raises(UsageError, match=r"from\.accelerator\.hbm\.bandwidth=1TB/s is of what a job ran on"):
        journey(source, "zion", fact)


def test_the_hint_names_the_side_that_lacks_the_figure(tmp_path: Path) -> None:
    # dgx1-v100 does not know its PCIe uplinks; zionex neither; both know how many accelerators they have.
    source, target = sites(tmp_path, "zionex")

    of_source = supplied(lacking("dgx1-v100", "host.link.uplink"), source, target)
    of_target = supplied(lacking("zionex", "host.link.uplink"), source, target)
    known_here = supplied(lacking("zionex", "accelerator.count"), source, target)
    nobody = supplied(lacking("zionex", "host.link.uplink"), None, target)

    assert of_source.hint == "give it with --set from.host.link.uplink=..., or in a file"
    assert (of_source.what, of_source.where) == ("it is unknown", "dgx1-v100")
    assert of_target.hint == nobody.hint == "give it with --set host.link.uplink=..., or in a file"
    assert known_here.hint == "give it with --set accelerator.count=..., or in a file"


def test_of_one_platform_the_hint_names_the_source_which_is_the_target_too(tmp_path: Path) -> None:
    source, target = sites(tmp_path, None)

    found = supplied(lacking("dgx1-v100", "host.link.uplink"), source, target)

    assert found.hint == "give it with --set from.host.link.uplink=..., or in a file"
    again = source_of(graph_of(tmp_path, device_job()), "dgx1-v100", settings("from.host.link.uplink=15GB/s"))
    fields = dict(journey(again, None, []).target.platform.fields())
    assert fields["host.link.uplink"].text() == "15 GB/s one way"
