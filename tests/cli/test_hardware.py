"""``tracereplay hardware`` as scripts see it: exit codes, lines on stderr, one JSON document on stdout."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.hardware import ACCELERATOR, child, write
from tracereplay.cli.main import main

TWICE = '[host.link]\nbandwidth = { value = 31.5, unit = "GB/s", direction = "one-way", kind = "spec", source = "ours" }'
UPI = '[host.interconnect]\nbandwidth = { value = 20, unit = "GB/s", direction = "one-way", kind = "spec", source = "ours" }'


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["schema"] == "tracereplay/hardware/1"
    return document


def test_list_names_every_entry(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["hardware", "list", "--json"])

    result = printed(capsys)["result"]
    assert status == 0
    zion = next(row for row in result["platforms"] if row["name"] == "zion")
    assert zion | {"known": None, "title": ""} == {
        "name": "zion", "title": "", "aliases": ["zion-fc", "zion-like"], "accelerator": "v100-sxm2-32", "accelerators": 8,
        "sockets": 8, "host_memory_bytes": 1_536_000_000_000, "layout": "fully-connected",
        "scale_up_bytes_per_s": 175_000_000_000, "nics": 8, "scale_out_bytes_per_s": 12_500_000_000, "known": None,
    }  # fmt: skip
    h200 = next(row for row in result["accelerators"] if row["name"] == "h200")
    assert (h200["half_flops_per_s"], h200["hbm_capacity_bytes"]) == (989_000_000_000_000, 141_000_000_000)


def test_show_gives_every_field_as_its_source_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["hardware", "show", "dgx1_v100", "--json"])

    document = printed(capsys)
    fields = {field["key"]: field for field in document["result"]["fields"]}
    assert status == 0
    assert document["inputs"] == ["dgx1_v100"]
    assert fields["host.memory.capacity"] == {
        "key": "host.memory.capacity", "value": 512, "unit": "GB", "direction": None, "kind": "spec", "range": None,
        "source": "MLPerf system description",
    }  # fmt: skip
    assert fields["host.link.bandwidth"]["range"] == [7.88, 15.75]
    assert fields["accelerator.hbm.capacity"]["value"] == 32


def test_show_says_what_is_unknown_and_assumed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["hardware", "show", "zion", "--json"])

    document = printed(capsys)
    kinds = {field["key"]: field["kind"] for field in document["result"]["fields"]}
    assert document["result"]["unknown"] == [key for key, kind in kinds.items() if kind == "unknown"]
    assert document["result"]["assumed"] == [key for key, kind in kinds.items() if kind == "assumed"]
    assert "host.link.latency is unknown" in document["warnings"]


def test_show_gives_the_topology(capsys: pytest.CaptureFixture[str]) -> None:
    main(["hardware", "show", "dgx-a100", "--json"])

    topology = printed(capsys)["result"]["topology"]
    assert topology["bisection_bytes_per_s"] == 1_200_000_000_000
    assert {"name": "socket0", "kind": "socket", "capacity_bytes": None} in topology["nodes"]
    assert {
        "a": "accelerator0", "b": "switch0", "level": "fabric.scale_up", "links": 12,
        "bandwidth_bytes_per_s": 300_000_000_000, "latency_ns": 936, "duplex": True,
    } in topology["links"]  # fmt: skip


def test_an_accelerator_has_no_topology(capsys: pytest.CaptureFixture[str]) -> None:
    main(["hardware", "show", "v100", "--json"])

    assert printed(capsys)["result"]["topology"] is None


def test_show_puts_another_accelerator_into_the_slots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["hardware", "show", "zion", "--accelerator", write(tmp_path, "fast.toml", ACCELERATOR), "--json"])

    fields = {field["key"]: field for field in printed(capsys)["result"]["fields"]}
    assert status == 0
    assert (fields["accelerator.model"]["value"], fields["accelerator.model"]["source"]) == (
        "fast",
        "chosen with --accelerator",
    )
    assert fields["accelerator.hbm.capacity"]["value"] == 16
    assert fields["fabric.scale_up.link_bandwidth"]["value"] == 25


def test_a_file_is_shown_like_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["hardware", "show", write(tmp_path, "mine.toml", child("zion"))])

    assert status == 0
    assert capsys.readouterr().out.startswith("mine: Mine\n53 fields, 27 assumed, 7 unknown\n")


def test_output_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["hardware", "list", "--output", str(tmp_path / "list.txt")])

    assert status == 0
    assert capsys.readouterr().out == ""
    assert "big-basin-v2" in (tmp_path / "list.txt").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ["show", "zionn"],
        ["show", "zion", "--accelerator", "dgx-a100"],
        ["show", "v100", "--accelerator", "h100"],
        ["show", "cpu-8s", "--accelerator", "h100"],
        ["show"],
        ["validate"],
        ["validate", "zionn"],
        ["measure"],
    ],
    ids=" ".join,
)
def test_a_name_that_is_none_is_wrong_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["hardware", *words])

    captured = capsys.readouterr()
    assert status == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("verb", ["show", "validate"])
def test_a_file_that_cannot_be_read_is_one_line_and_code_3(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "none.toml")

    status = main(["hardware", verb, path])

    captured = capsys.readouterr()
    assert status == 3
    assert captured.out == ""
    assert captured.err == f"tracereplay: {path}: cannot read the hardware file (No such file or directory)\n"


def test_validate_says_what_is_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "fast.toml", ACCELERATOR)

    status = main(["hardware", "validate", path, "dgx_h100"])

    captured = capsys.readouterr()
    assert status == 0
    assert captured.out.splitlines()[0] == f"{path}: in order: accelerator fast, 10 fields, 0 assumed, 2 unknown"
    assert captured.out.splitlines()[1].startswith("dgx_h100: in order: platform dgx-h100, ")
    assert captured.err == ""


def test_validate_gives_one_line_a_fault_and_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write(tmp_path, "fast.toml", ACCELERATOR)
    wrong = write(tmp_path, "wrong.toml", child("zion", "[host]\nsockets = 4\ncores = 4"))
    twice = write(tmp_path, "twice.toml", child("zion", TWICE))

    status = main(["hardware", "validate", good, wrong, twice])

    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert status == 3
    assert captured.out.count("\n") == 1
    assert [line.split(": ")[1:3] for line in lines] == [
        [wrong, "host.sockets"],
        [wrong, "host.cores"],
        [twice, "host.link.bandwidth"],
    ]


def test_validate_lists_faults_as_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = write(tmp_path, "wrong.toml", child("zion", "[host]\nsockets = 4"))

    status = main(["hardware", "validate", "zion", wrong, "--json"])

    zion, mine = printed(capsys)["result"]["files"]
    assert status == 3
    assert (zion["valid"], zion["known"], zion["faults"]) == (True, {"fields": 53, "assumed": 27, "unknown": 7}, [])
    assert (mine["valid"], mine["known"]) == (False, None)
    what = "is no table; write { value, unit, kind, source }"
    assert mine["faults"] == [{"file": wrong, "key": "host.sockets", "what": what}]


def test_a_bandwidth_that_nothing_can_check_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "mine.toml", child("zion", UPI))

    status = main(["hardware", "validate", path])

    note = f"note: {path}: host.interconnect.bandwidth (upi): no nominal rate is known for this technology: unit and direction"
    assert status == 0
    assert capsys.readouterr().err.startswith(note)
