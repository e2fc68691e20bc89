"""``--set from.KEY=VALUE``: what the job ran on, where its file does not know it. Hints are taken literally."""

import json
import re
from pathlib import Path

import pytest

from tests.fakes.hardware import child, write
from tracereplay.cli.main import main

SAMPLE = "sample_traces/dlrm_2rank"
VALUES = {"bandwidth": "20GB/s", "links": "2", "link_bandwidth": "10GB/s"}
_HINT = re.compile(r"give it with (--set) ([a-z0-9_.]+)=\.\.\.,")


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])


def hinted(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The settings that the refusals name, one after the other, until the question is answered."""
    named: list[str] = []
    while main(["whatif", SAMPLE, *words, *(f"--set={one}" for one in named), "--json"]):
        line = capsys.readouterr().err
        found = _HINT.search(line)
        assert found is not None, line
        key = found[2]
        assert all(not one.startswith(f"{key}=") for one in named), line
        named.append(f"{key}={VALUES[key.rpartition('.')[2]]}")
    assert json.loads(capsys.readouterr().out)["result"]["predicted_ns"] > 0
    return named


def test_what_the_source_lacks_is_supplied_for_the_source(capsys: pytest.CaptureFixture[str]) -> None:
    named = hinted(capsys, "--from", "cpu-2s", "--hardware", "cpu-8s")

    assert named[0] == "from.host.interconnect.bandwidth=20GB/s"
    assert all(one.startswith("from.") for one in named[:2])


def test_what_the_target_lacks_is_supplied_for_the_target(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rate = 'value = 20, unit = "GB/s", direction = "one-way", kind = "spec", source = "ours"'
    known = write(tmp_path, "known.toml", child("cpu-8s", f"[host.interconnect]\nbandwidth = {{ {rate} }}", name="known"))

    named = hinted(capsys, "--from", known, "--hardware", "cpu-2s")

    assert named == ["host.interconnect.bandwidth=20GB/s", "host.interconnect.links=2"]


def test_what_both_lack_is_asked_for_of_each(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    unknown = 'kind = "unknown", source = "nobody says"'
    body = f'[host.interconnect]\nbandwidth = {{ unit = "GB/s", {unknown} }}\nlinks = {{ unit = "1", {unknown} }}'
    other = write(tmp_path, "other.toml", child("cpu-8s", body, name="other"))

    named = hinted(capsys, "--from", "cpu-2s", "--hardware", other)

    keys = ("host.interconnect.bandwidth", "host.interconnect.links")
    assert sorted(one.partition("=")[0] for one in named) == sorted([*keys, *(f"from.{key}" for key in keys)])


def test_a_fact_that_nothing_depends_on_moved_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--from", "big-basin-v1", "--hardware", "zion", "--set", "from.host.memory.capacity=512GB")

    assert main(["whatif", SAMPLE, *words, "--json"]) == 0

    assert "from.host.memory.capacity=512GB" in json.loads(capsys.readouterr().out)["result"]["unmoved_knobs"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ("whatif", SAMPLE, "--from", "cpu-2s", "--hardware", "cpu-8s", "--set", "from.host.memory.bandwidth=2x"),
            "--set from.host.memory.bandwidth=2x: no ratio changes what the job ran on",
        ),
        (
            ("whatif", SAMPLE, "--from", "cpu-2s", "--hardware", "cpu-8s", "--set", "from.host.speed=2x"),
            "--set from.host.speed=2x: no ratio changes what the job ran on",
        ),
        (("whatif", SAMPLE, "--hardware", "zion", "--set", "from.host.link.bandwidth=2GB/s"), "name it with --from"),
        (("whatif", SAMPLE, "--set", "from.host.link.bandwidth=2GB/s"), "name it with --from"),
        (
            ("sweep", SAMPLE, "--from", "cpu-2s", "--hardware", "cpu-8s", "--set", "from.host.link.bandwidth=2GB/s,3GB/s"),
            "is of what a job ran on",
        ),
        (
            ("whatif", SAMPLE, "--from", "cpu-2s", "--hardware", "cpu-8s", "--set", "from.host.memory.bandwidth=2"),
            "--set from.host.memory.bandwidth=2: '2' has no unit",
        ),
    ],
)
def test_what_cannot_be_said_of_the_source_is_refused(
    words: tuple[str, ...], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words]) == 2

    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1


def test_a_sweep_takes_facts_about_the_source(capsys: pytest.CaptureFixture[str]) -> None:
    facts = ("from.host.interconnect.bandwidth=20GB/s", "from.host.interconnect.links=2")
    words = ("--from", "cpu-2s", "--hardware", "zion", "--set", "host.speed=1x,2x", *(f"--set={fact}" for fact in facts))

    assert main(["sweep", SAMPLE, *words, "--json"]) == 0

    assert len(json.loads(capsys.readouterr().out)["result"]["points"]) == 2
