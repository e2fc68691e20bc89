"""``synth dlrm``: what a person asks, what it answers, what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.platforms import small_platform
from tracereplay.cli.main import main
from tracereplay.units import format_ns

JOB = ("--ranks", "8", "--batch", "128", "--hardware", "dgx1-v100")
RECORDED = ("--preset", "param-v100x8", *JOB)


def result(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["synth", "dlrm", *words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "tracereplay/synth/1"
    found: dict[str, Any] = document["result"]
    assert found["label"] == "calibrated analytic replay"
    return found


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["synth", "dlrm", *words])
    printed = capsys.readouterr()
    assert printed.out == ""
    return code, printed.err


def test_the_recorded_job_has_its_recorded_volumes_and_memory(capsys: pytest.CaptureFixture[str]) -> None:
    found = result(capsys, *RECORDED)

    assert {v["pooled_elements"] for v in found["volumes"]} == {6_144}
    assert {v["all_reduce_elements"] for v in found["volumes"]} == {621_313}
    # Twice the recorded weights of rank 0, 4 bytes each, for Adagrad's state, and the two replicated tables.
    assert found["memory"]["ranks"][0]["tables"] == 2 * 4 * (640_649_648 + 112)
    assert sum(part["ns"] for part in found["parts"]) == found["step_ns"]
    assert found["unmodelled"]


def test_people_are_told_that_nothing_was_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["synth", "dlrm", *RECORDED]) == 0

    text = capsys.readouterr().out
    assert "calibrated analytic replay: no trace was recorded; batch 128 (16 a rank), software torchrec" in text
    assert "activations (estimated)" in text


def test_an_architecture_string_is_as_good_as_its_preset(capsys: pytest.CaptureFixture[str]) -> None:
    by_name = result(capsys, "--preset", "bench", *JOB)
    by_string = result(capsys, "--arch", "512-512-64/1024-1024-1024-1/8x1000000:100", *JOB)

    assert by_string["step_ns"] == by_name["step_ns"]
    assert by_string["volumes"] == by_name["volumes"]


def test_faster_hardware_is_never_slower(capsys: pytest.CaptureFixture[str]) -> None:
    base = result(capsys, *RECORDED)["step_ns"]

    for knob in ("fabric.scale_up.bandwidth", "accelerator.hbm.bandwidth", "accelerator.flops"):
        assert result(capsys, *RECORDED, "--set", f"{knob}=2x")["step_ns"] <= base


def test_tables_in_host_memory_are_slower_than_cached_and_cached_than_in_hbm(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--preset", "terabyte", "--ranks", "8", "--batch", "8192", "--hardware", "dgx-a100", "--skew", "1")

    answers = {tier: result(capsys, *words, "--placement", tier) for tier in ("hbm", "cached", "host")}

    times = [answers[tier]["step_ns"] for tier in ("hbm", "cached", "host")]
    assert times == sorted(times)
    assert len(set(times)) == 3
    assert answers["hbm"]["ways"] == []
    assert [(way["tier"], way["binds"]) for way in answers["host"]["ways"]] == [("host", "host.link.bandwidth")]
    assert answers["host"]["memory"]["nodes"][0]["used"] == 2 * 49_126_297 * 64 * 4


def test_more_hbm_brings_tables_in_and_the_step_down(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--preset", "mlperf-v1", "--ranks", "2", "--batch", "4096", "--hardware", "dgx-a100", "--placement", "auto")

    now = result(capsys, *words)
    more = result(capsys, *words, "--set", "accelerator.hbm.capacity=4x")

    assert {t for table in now["architecture"]["tables"] for t in table["tiers"]} == {"hbm", "host"}
    assert {t for table in more["architecture"]["tables"] for t in table["tiers"]} == {"hbm"}
    assert more["step_ns"] < now["step_ns"]


def test_what_does_not_fit_is_refused_with_ways_out_that_work(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--preset", "mlperf-v1", "--ranks", "2", "--batch", "4096", "--hardware", "dgx-a100")

    code, line = refusal(capsys, *words)

    assert code == 3
    assert "bytes are missing" in line
    factor = line.partition("accelerator.hbm.capacity=")[2].partition(";")[0]
    assert main(["synth", "dlrm", *words, "--set", f"accelerator.hbm.capacity={factor}"]) == 0


def test_a_placement_file_says_it_table_by_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "placement.toml"
    file.write_text(
        'schema = "tracereplay/placement/1"\n[[table]]\nname = "t0"\ntier = "host"\n'
        '[[table]]\nname = "t1"\nsharding = "row-wise"\n'
    )

    found = result(capsys, "--preset", "bench", *JOB, "--placement", str(file))

    tables = found["architecture"]["tables"]
    assert [(t["sharding"], t["tiers"]) for t in tables[:3]] == [
        ("table-wise", ["host"]),
        ("row-wise", ["hbm"]),
        ("table-wise", ["hbm"]),
    ]
    assert {e["op"] for e in found["exchanges"]} == {"all_to_all", "reduce_scatter", "all_gather", "all_reduce"}


def test_several_nodes_go_over_the_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small_platform(tmp_path)
    words = ("--preset", "bench", "--ranks", "4", "--batch", "256", "--hardware", str(tmp_path / "small.toml"))

    near, far = result(capsys, *words), result(capsys, *words, "--nodes", "2")

    assert (near["nodes"], far["nodes"]) == (1, 2)
    assert far["step_ns"] > near["step_ns"]


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (JOB, 2, "no architecture, or two"),
        (("--preset", "rm1", "--arch", "1-2/1/3", *JOB), 2, "no architecture, or two"),
        (("--preset", "rm9", *JOB), 2, "no preset 'rm9'"),
        (("--arch", "1/2/3", *JOB), 2, "bottom has 1 width"),
        (("--preset", "rm1", *JOB, "--software", "tensor"), 2, "no software 'tensor'"),
        (("--preset", "rm1", *JOB, "--sharding", "column"), 2, "no such sharding"),
        (("--preset", "rm1", *JOB, "--sharding", "recorded"), 2, "no recorded sharding"),
        (("--preset", "rm1", *JOB, "--placement", "tape"), 2, "no such placement"),
        (("--preset", "rm1", *JOB, "--nodes", "3"), 2, "8 ranks on 3 nodes"),
        (("--preset", "rm1", "--ranks", "8", "--batch", "10", "--hardware", "dgx1"), 2, "a batch of 10 over 8 ranks"),
        (("--preset", "rm1", "--ranks", "8", "--batch", "8", "--hardware", "cpu-8s"), 2, "no data sheet of its sockets"),
        (("--preset", "rm1", *JOB, "--placement", "ssd"), 3, "host.ssd is unknown"),
        (("--preset", "rm1", *JOB, "--skew", "-1"), 2, "a Zipf exponent"),
    ],
)
def test_what_cannot_be_asked_is_answered_in_one_line(
    words: tuple[str, ...], code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, said = refusal(capsys, *words)

    assert found == code
    assert line in said
    assert said.count("\n") == 1


def test_tables_in_host_memory_count_on_the_nodes_that_the_ranks_are_spread_over(capsys: pytest.CaptureFixture[str]) -> None:
    found = result(capsys, "--preset", "rm2", "--ranks", "8", "--nodes", "2", "--batch", "4096", "--hardware", "dgx1-v100",
                   "--placement", "host")  # fmt: skip

    assert [node["node"] for node in found["memory"]["nodes"]] == [0, 1]


def test_what_a_step_on_one_node_assumes_is_what_it_uses(capsys: pytest.CaptureFixture[str]) -> None:
    found = result(capsys, "--preset", "rm2", "--ranks", "8", "--batch", "4096", "--hardware", "zion")

    assert "accelerator.model" in found["assumed"]
    assert not any(key.startswith("fabric.scale_out") for key in found["assumed"])


def test_the_interval_is_printed_and_is_the_same_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = result(capsys, *RECORDED)
    assert main(["synth", "dlrm", *RECORDED]) == 0

    interval, text = found["interval"], capsys.readouterr().out
    assert 0 < interval["low_ns"] < found["step_ns"] < interval["high_ns"]
    assert interval["level"] == 0.9
    bounds = f"{format_ns(interval['low_ns'])} and {format_ns(interval['high_ns'])}"
    assert text.startswith(f"{format_ns(found['step_ns'])} a step (90.0 % between {bounds}), ")
    assert "in the interval: the models' known errors" in text


def test_what_is_assumed_to_stand_in_the_slots_is_drawn_and_a_setting_narrows_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--preset", "rm2", "--ranks", "8", "--batch", "4096", "--hardware", "zion")

    assumed = result(capsys, *words)["interval"]
    known = result(capsys, *words, "--set", "accelerator.model=v100-sxm2-32")["interval"]

    # The other accelerators of that time are faster, and so is a part of the samples; none is slower.
    assert assumed["low_ns"] < 0.8 * known["low_ns"]
    assert assumed["high_ns"] < 1.1 * known["high_ns"]
