from pathlib import Path

import pytest

from tests.fakes.hardware import ACCELERATOR, child, write
from tracereplay.errors import HardwareError, UsageError
from tracereplay.hardware.load import faults_of, load, load_accelerator, load_platform

HBM = '[hbm]\ncapacity = { value = 64, unit = "GB", kind = "spec", source = "ours" }'
A_LINK = 'direction = "one-way", kind = "spec", source = "ours" }'


def lines(name_or_file: str) -> list[str]:
    return [fault.line() for fault in faults_of(name_or_file)]


@pytest.mark.parametrize("name", ["zion", "Zion", "zion_like", "zion-like", "zion-fc"])
def test_a_platform_has_names(name: str) -> None:
    assert load_platform(name).description.name == "zion"


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("dgx1_v100", "dgx1-v100"), ("big_basin_v2", "big-basin-v2"), ("dgx_a100", "dgx-a100"), ("grand_teton", "grand-teton"),
        ("zion_host_proxy", "cpu-8s"), ("spr_node", "cpu-2s"), ("dgx_2", "dgx2h"), ("mi300x_node", "mi300x-node"),
    ],
)  # fmt: skip
def test_underscores_and_the_names_of_others_are_accepted(name: str, means: str) -> None:
    assert load_platform(name).description.name == means


def test_an_unknown_name_is_wrong_usage_and_names_what_is_near() -> None:
    with pytest.raises(UsageError, match=r"no hardware 'zionn' in the catalogue; did you mean zion, zionex, zion-hcm\?"):
        load("zionn")


def test_a_name_like_no_other_points_to_the_list() -> None:
    with pytest.raises(UsageError, match=r"no hardware 'qqqqqq' in the catalogue; `tracereplay hardware list` lists the names"):
        load("qqqqqq")


def test_a_platform_is_no_accelerator_and_the_other_way_round() -> None:
    with pytest.raises(UsageError, match="'zion' is a platform, not an accelerator"):
        load_accelerator("zion")
    with pytest.raises(UsageError, match="'v100' is an accelerator, not a platform"):
        load_platform("v100")


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    accelerator = load_accelerator(write(tmp_path, "fast.toml", ACCELERATOR))

    assert (accelerator.name, accelerator.hbm.bandwidth.base, accelerator.hbm.achievable.base) == ("fast", 800 * 10**9, None)
    assert accelerator.scale_up is not None
    assert accelerator.scale_up.bandwidth.base == 100 * 10**9


def test_a_file_inherits_what_it_does_not_say(tmp_path: Path) -> None:
    mine = load_accelerator(write(tmp_path, "mine.toml", child("v100-sxm2-32", HBM)))

    assert (mine.name, mine.title, mine.aliases) == ("mine", "Mine", ())
    assert (mine.hbm.capacity.value, mine.hbm.capacity.source) == (64, "ours")
    assert mine.hbm.bandwidth == load_accelerator("v100-sxm2-32").hbm.bandwidth
    assert mine.flops == load_accelerator("v100-sxm2-32").flops


def test_a_field_is_replaced_whole_so_that_no_number_keeps_anothers_source(tmp_path: Path) -> None:
    path = write(tmp_path, "mine.toml", child("v100-sxm2-32", "[hbm]\ncapacity = { value = 64 }"))

    message = f"{path}: hbm.capacity.{{}}: is missing"
    assert lines(path) == [message.format(key) for key in ("unit", "kind", "source")]


def test_a_path_is_relative_to_the_file_that_names_it(tmp_path: Path) -> None:
    write(tmp_path, "parts/fast.toml", ACCELERATOR)
    slots = '[accelerator]\nmodel = { value = "../parts/faster.toml", unit = "name", kind = "spec", source = "ours" }'
    write(tmp_path, "parts/faster.toml", child("fast.toml", HBM, "faster"))
    write(tmp_path, "nodes/base.toml", child("zion", slots, "base"))
    path = write(tmp_path, "mine.toml", child("nodes/base.toml"))

    platform = load_platform(path)

    assert platform.description.name == "mine"
    assert platform.accelerator is not None
    assert (platform.accelerator.name, platform.accelerator.hbm.capacity.value) == ("faster", 64)


def test_a_circle_is_refused(tmp_path: Path) -> None:
    first, second = str(tmp_path / "a.toml"), str(tmp_path / "b.toml")
    write(tmp_path, "a.toml", child("b.toml"))
    write(tmp_path, "b.toml", child("./a.toml"))

    assert lines(first) == [f"{first}: inherits: goes in a circle: {first} → {second} → {first}; break it in one of them"]


def test_a_file_that_inherits_itself_is_a_circle(tmp_path: Path) -> None:
    path = write(tmp_path, "a.toml", child("a.toml"))

    assert lines(path) == [f"{path}: inherits: goes in a circle: {path} → {path}; break it in one of them"]


def test_a_fault_names_the_file_that_says_it(tmp_path: Path) -> None:
    parent = write(tmp_path, "parent.toml", child("zion", "[host]\nsockets = 4", "parent"))
    path = write(tmp_path, "mine.toml", child("parent.toml", "[host.memory]\ncapacity = 5"))

    assert lines(path) == [
        f"{parent}: host.sockets: is no table; write {{ value, unit, kind, source }}",
        f"{path}: host.memory.capacity: is no table; write {{ value, unit, kind, source }}",
    ]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("a = = 3", "not TOML: Invalid value (at line 1, column 5)"),
        ("", "schema: says 'nothing'; this version reads schema = 'tracereplay/hardware/1'"),
        ('schema = "tracereplay/hardware/9"', "schema: says 'tracereplay/hardware/9'; this version reads schema ="),
        ('schema = "tracereplay/hardware/1"', "type: says 'nothing'; write type = 'accelerator' or 'platform'"),
        ("a = " + "[" * 5_000, "not TOML: "),
        ('schema = "tracereplay/hardware/1"\ntype = [1]', "type: says [1]; write type = 'accelerator' or 'platform'"),
        (child("none.toml"), "inherits: "),
        (child("no-such"), "inherits: no hardware 'no-such' in the catalogue"),
        ("inherits = 3", "inherits: is no text; write a catalogue name or a path in quotes"),
        (child("zion", name="My_Zion"), "name: 'My_Zion' is no name; write lower-case letters, digits and single hyphens"),
        (child("zion", "[host]\nsocket = 3"), "host.socket: is not known here; keys are processor, sockets, cores, memory"),
        (child("zion", "host = 3"), "host: is no table; write its keys"),
        (child("v100", "[flops]\nfp31 = 3"), "flops.fp31: input should be 'fp64', 'fp32',"),
        (ACCELERATOR.replace("[l2]", "[l3]"), "l2: is missing"),
        (
            child("zion", '[accelerator]\nmodel = { value = "zionex", unit = "name", kind = "spec", source = "x" }'),
            "accelerator.model: 'zionex' is a platform, not an accelerator",
        ),
        (
            child("zion", '[accelerator]\nmodel = { value = "v101", unit = "name", kind = "spec", source = "x" }'),
            "accelerator.model: no hardware 'v101' in the catalogue",
        ),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(tmp_path: Path, content: str, line: str) -> None:
    path = write(tmp_path, "wrong.toml", content)

    found = lines(path)

    assert found[0].startswith(f"{path}: {line}")
    assert "\n" not in found[0]
    with pytest.raises(HardwareError, match=r"wrong\.toml"):
        load(path)


@pytest.mark.parametrize(
    ("parent", "reason"), [("none.toml", "No such file or directory"), ("a\\u0000.toml", "embedded null byte")]
)
def test_a_parent_that_cannot_be_read_is_named_with_its_child(tmp_path: Path, parent: str, reason: str) -> None:
    path = write(tmp_path, "mine.toml", child(parent))

    (line,) = lines(path)

    assert line.startswith(f"{path}: inherits: {tmp_path}/")
    assert line.endswith(f".toml: cannot read the hardware file ({reason})")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = str(tmp_path / "none.toml")

    assert lines(path) == [f"{path}: cannot read the hardware file (No such file or directory)"]


def test_a_load_gives_the_first_fault_and_counts_the_others(tmp_path: Path) -> None:
    path = write(tmp_path, "mine.toml", child("zion", "[host]\nsockets = 4\ncores = 4"))

    with pytest.raises(HardwareError, match=r"host\.sockets: is no table; .*; 1 more: tracereplay hardware validate"):
        load(path)


@pytest.mark.parametrize(
    ("platform", "body", "line"),
    [
        (
            "zion",
            f'[host.link]\nbandwidth = {{ value = 31.5, unit = "GB/s", {A_LINK}',
            "host.link.bandwidth: 31.5 GB/s one way is twice what pcie3-x16 (15.75 GB/s one way) has: were both directions",
        ),
        (
            "zion",
            f'[fabric.scale_out]\nbandwidth = {{ value = 100, unit = "GB/s", {A_LINK}',
            "fabric.scale_out.bandwidth: 100 GB/s one way is 8 times what network-100g (12.5 GB/s one way) has: Gb/s written",
        ),
        (
            "dgx-a100",
            f'[fabric.scale_up]\nlink_bandwidth = {{ value = 25, unit = "Gb/s", {A_LINK}',
            "fabric.scale_up.link_bandwidth: 3.125 GB/s one way is an eighth of what nvlink3 (25 GB/s one way) has: GB/s",
        ),
        (
            "dgx-a100",
            f'[fabric.scale_up]\nbandwidth = {{ value = 600, unit = "GB/s", {A_LINK}',
            "fabric.scale_up.bandwidth: 600 GB/s one way is not 12 links times 25; check units and directions",
        ),
        (
            "dgx-b200",
            f'[fabric.scale_up]\nbandwidth = {{ value = 1800, unit = "GB/s", {A_LINK}',
            "fabric.scale_up.bandwidth: 1800 GB/s one way is twice what nvlink5 (900 GB/s one way) has: were both directions",
        ),
        (
            "dgx-a100",
            f'[fabric.scale_up]\nachievable = {{ value = 470, unit = "GB/s", {A_LINK}',
            "fabric.scale_up.achievable: 470 GB/s one way is more than the peak of 300 GB/s one way; check unit and direction",
        ),
        (
            "dgx-a100",
            f'[fabric.scale_out]\nachievable = {{ value = 160, unit = "GB/s", {A_LINK}',
            "fabric.scale_out.achievable: 160 GB/s one way is more than the peak of 200 Gb/s one way",
        ),
        (
            "dgx1-v100",
            '[fabric.scale_up]\npairs = { value = [[0, 1, 7]], unit = "links", kind = "spec", source = "ours" }',
            "fabric.scale_up.pairs: accelerator 0 has 7 links; links says 6",
        ),
        (
            "dgx1-v100",
            '[fabric.scale_up]\npairs = { value = [[0, 8, 1]], unit = "links", kind = "spec", source = "ours" }',
            "fabric.scale_up.pairs: names accelerator 8; there are 8, from 0 on",
        ),
        (
            "dgx-a100",
            '[fabric.scale_up]\nlayout = { value = "hybrid-cube-mesh", unit = "name", kind = "spec", source = "ours" }',
            "fabric.scale_up.pairs: is missing; a hybrid-cube-mesh says which accelerators are wired",
        ),
        (
            "dgx-a100",
            '[fabric.scale_up]\nlayout = { value = "fully-connected", unit = "name", kind = "spec", source = "ours" }',
            "fabric.scale_up.links: 12 links cannot be spread evenly over 7 peers",
        ),
        (
            "zion",
            '[host]\nsockets = { value = 4, unit = "1", kind = "spec", source = "ours" }',
            "host.interconnect.layout: a cube has 8 sockets, not 4",
        ),
        (
            "cpu-8s",
            '[host.interconnect]\nlayout = { value = "fully-connected", unit = "name", kind = "spec", source = "ours" }',
            "host.interconnect.links: 6 links do not reach 7 other sockets",
        ),
        (
            "cpu-8s",
            '[fabric.scale_out]\nattached_to = { value = "accelerator", unit = "name", kind = "spec", source = "ours" }',
            "fabric.scale_out.attached_to: there is no accelerator; write 'socket'",
        ),
        (
            "dgx-a100",
            '[accelerator]\ncount = { value = 100000, unit = "1", kind = "spec", source = "ours" }',
            "accelerator.count: 100,000 are more than one node has; a file describes one node (at most 1,024)",
        ),
        (
            "v100",
            '[hbm]\nachievable = { value = 7.2, unit = "TB/s", kind = "measured", source = "ours" }',
            "hbm.achievable: 7.2 TB/s is more than the peak of 0.9 TB/s; check unit and direction of both",
        ),
        (
            "v100",
            '[achievable_flops]\nfp32 = { value = 154, unit = "TFLOP/s", kind = "measured", source = "ours" }',
            "achievable_flops.fp32: 154 TFLOP/s is more than the peak of 15.7 TFLOP/s",
        ),
    ],
)
def test_units_directions_and_wiring_that_do_not_fit_are_caught(tmp_path: Path, platform: str, body: str, line: str) -> None:
    path = write(tmp_path, "mine.toml", child(platform, body))

    found = lines(path)

    assert len(found) == 1
    assert found[0].startswith(f"{path}: {line}")


def test_a_technology_and_its_rate_change_together(tmp_path: Path) -> None:
    body = f"""[host.link]
technology = {{ value = "pcie4-x16", unit = "name", kind = "spec", source = "ours" }}
bandwidth = {{ value = 63, unit = "GB/s", {A_LINK.replace("one-way", "both-ways")}"""

    assert lines(write(tmp_path, "mine.toml", child("zion", body))) == []
