"""The pages say what the program does: tables, outputs, options and JSON keys."""

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

from tests.fakes.kineto import TraceFile
from tests.fakes.lookups import Lookups
from tests.fakes.measurements import host_rows, measurements
from tests.fakes.measurements import write as write_measurements
from tests.fakes.workloads import late_peer, waits_longer
from tracereplay.cli.main import app, main

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
CLI = (DOCS / "reference" / "cli.md").read_text()
JSON = (DOCS / "reference" / "json.md").read_text()
IDEAL = ("--ideal", "stragglers")
HARDWARE = ("hardware list", "hardware show", "hardware validate", "hardware calibrate")
NAMED_BY_THE_JOB = re.compile(r"\b(edges|moved|by_class|by_kind)\.\w+|(unmoved_reasons)\..*")


@pytest.fixture
def render() -> ModuleType:
    spec = importlib.util.spec_from_file_location("render", DOCS / "render.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options_of(verb: str) -> list[str]:
    command = typer.main.get_command(app)
    group: Any = command  # click's types are vendored by typer and have no public name
    for word in verb.split():
        group = group.commands[word]
    return sorted(name for parameter in group.params for name in parameter.opts if name.startswith("--"))


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """Paths of what is no object and no list of objects."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list | tuple) and any(isinstance(inner, dict) for inner in value):
        for inner in value:
            yield from leaves(inner, f"{path}[]")
    else:
        yield f"{path}[]" if isinstance(value, list | tuple) else path


def printed_keys(capsys: pytest.CaptureFixture[str], *words: str) -> set[str]:
    main([*words, "--json"])
    found = leaves(json.loads(capsys.readouterr().out)["result"])
    return {NAMED_BY_THE_JOB.sub(lambda match: f"{match[1] or match[2]}.<name>", key) for key in found}


def documented_keys(verb: str) -> set[str]:
    section = JSON.split(f"\n## `{verb}`\n", 1)[1].split("\n## ", 1)[0]
    first_cells = re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
    return {key for cell in first_cells for key in re.findall(r"`(.+?)`", cell)}


def whole_job(folder: Path) -> str:
    """Two ranks and two steps, with everything that the results can show."""
    for trace in late_peer():
        trace.header["deviceProperties"] = [{"id": 0, "name": "V100"}]
        trace.call("cudaLaunchKernel", 160, 5, 9).kernel("k", 170, 5, 7, 9)
        trace.step(2, 200, 100).op("aten::add", 210, 10).write(folder)
    return str(folder)


def test_pages_show_what_the_program_prints_today() -> None:
    command = [sys.executable, str(DOCS / "render.py"), "--check"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, f"{done.stderr}run: python docs/render.py"


def test_a_page_gets_the_table_of_reasons(render: ModuleType) -> None:
    page = render.rendered("before\n<!-- reasons -->\nold\n<!-- /reasons -->\nafter\n")

    assert page.startswith("before\n<!-- reasons -->\n| edge | why |")
    assert "| `thread_order` | a host thread does one thing after another" in page
    assert page.endswith("<!-- /reasons -->\nafter\n")


def test_a_prompt_with_output_gets_the_output_of_today(render: ModuleType) -> None:
    page = render.rendered("```console\n$ tracereplay \\\n    --version  # exit 0\nold\nlines\n```\n")

    assert re.fullmatch(r"```console\n\$ tracereplay \\\n    --version  # exit 0\ntracereplay \d\S*\n```\n", page)


def test_a_prompt_without_output_stays_without(render: ModuleType) -> None:
    page = "```console\n$ tracereplay --version\n```\n```console\n$ make demo\nwhatever\n```\n"

    assert render.rendered(page) == page


def test_the_examples_of_the_graph_page_run(monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", (DOCS / "concepts" / "dependency-graph.md").read_text(), re.M | re.S)
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}

    exec(compile(example, "dependency-graph.md", "exec"), names)

    assert names["drawn"].number_of_nodes() == len(names["graph"])


@pytest.mark.parametrize(
    "verb",
    [
        "info",
        "replay",
        "whatif",
        "sweep",
        "attribute",
        "why",
        "graph",
        "convert",
        "collect dlrm",
        "collect run",
        "collect trigger",
        "synth dlrm",
        *HARDWARE,
    ],
)
def test_every_option_of_a_verb_is_documented(verb: str) -> None:
    documented = set(re.findall(r"`(--[a-z-]+)", CLI))

    assert set(options_of(verb)) <= documented


def test_the_examples_of_the_hardware_page_are_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (DOCS / "reference" / "hardware.md").read_text()
    (example,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    whole, part = re.findall(r"^```toml\n(.*?)^```", page, re.M | re.S)
    latency, uplink = part.splitlines()
    own = tmp_path / "our-dgx1.toml"
    own.write_text(f"{whole}{latency}\n[host.link]\n{uplink}\n")

    exec(compile(example, "hardware.md", "exec"), {})

    assert capsys.readouterr().out == "['accelerator0', 'accelerator7', 'socket7', 'nic7']\n25000000000.0 400000000000.0\n"
    assert main(["hardware", "validate", str(own)]) == 0


def test_every_verb_is_documented() -> None:
    group: Any = typer.main.get_command(app)

    sections = re.findall(r"^## `(\w+)", CLI, re.MULTILINE)

    assert sorted(sections) == sorted(group.commands)


@pytest.mark.parametrize(
    "words", [["info"], ["replay"], ["whatif", "--set", "host.speed=2x"], ["whatif", *IDEAL], ["attribute"]]
)
def test_every_key_that_is_printed_is_documented(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    keys = printed_keys(capsys, *words, whole_job(tmp_path))

    assert keys - documented_keys(words[0]) <= {"interval", "ranks[].interval", "equalised", "sharing"}


@pytest.mark.parametrize("words", [["info"], ["replay"], ["attribute"]])
def test_every_documented_key_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    keys = printed_keys(capsys, *words, whole_job(tmp_path))

    assert documented_keys(words[0]) - keys == set()


def test_the_documented_keys_of_convert_are_those_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = printed_keys(capsys, "convert", whole_job(tmp_path), "--output", str(tmp_path / "job"))

    assert keys == documented_keys("convert")


def test_the_documented_keys_of_why_are_those_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = printed_keys(capsys, "why", whole_job(tmp_path), "--rank", "1", "--event", "4")

    assert keys == documented_keys("why")


def test_the_documented_keys_of_sweep_are_those_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for trace in waits_longer():
        trace.write(tmp_path)

    keys = printed_keys(capsys, "sweep", str(tmp_path), "--set", "host.speed=1x,2x", "--from", "dgx1-v100")

    assert keys == documented_keys("sweep")


def test_the_documented_keys_of_graph_are_those_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = printed_keys(capsys, "graph", whole_job(tmp_path), "--output", str(tmp_path / "edges.parquet"))

    assert keys == documented_keys("graph")


def test_every_documented_key_of_whatif_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = TraceFile(0, 2)
    alone.events = late_peer()[0].events

    keys = printed_keys(capsys, "whatif", str(alone.write(tmp_path)), "--scale", "collective:*=0.5x", *IDEAL)
    keys |= printed_keys(capsys, "whatif", "sample_traces/dlrm_2rank", "--hardware", "zion")
    keys |= printed_keys(capsys, "whatif", whole_job(tmp_path), "--from", "dgx1-v100", "--hardware", "zion")
    tables = str(Lookups().lookup(0, host=100, cache=10).trace.write(tmp_path, "tables.json"))
    asked = ["--set", "accelerator.hbm.capacity=2x", "--set", "fabric.scale_out.latency=2x"]
    keys |= printed_keys(capsys, "whatif", tables, "--from", "dgx1-v100", *asked)
    keys |= printed_keys(capsys, "whatif", tables, *asked)

    assert documented_keys("whatif") - keys == set()


def test_the_documented_keys_of_synth_are_those_printed(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ("--preset", "kaggle", "--ranks", "2", "--batch", "64", "--hardware", "dgx-a100", "--placement", "host")

    keys = printed_keys(capsys, "synth", "dlrm", *wanted)

    assert keys == documented_keys("synth dlrm")


def test_the_documented_keys_of_the_hardware_verbs_are_those_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("")

    listed = printed_keys(capsys, "hardware", "list")
    shown = printed_keys(capsys, "hardware", "show", "zion-hcm")
    judged = printed_keys(capsys, "hardware", "validate", "zion", str(wrong))

    assert listed == documented_keys("hardware list")
    # A field's value and range are a number, a word or a list of them, or null.
    assert {key.removesuffix("[]") if key.startswith("fields[]") else key for key in shown} == documented_keys("hardware show")
    assert judged - {"files[].known", "files[].faults[]"} == documented_keys("hardware validate")


def test_the_documented_keys_of_calibrate_are_those_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    skipped = [{"what": "copies", "why": "out of time"}]
    file = write_measurements(tmp_path, measurements(host_rows(), skipped=skipped))
    words = ("--from-measurements", str(file), "--output", str(tmp_path / "ours.toml"))

    keys = printed_keys(capsys, "hardware", "calibrate", *words)

    assert keys == documented_keys("hardware calibrate")


def test_the_page_of_hardware_has_the_fields_units_and_technologies_of_today(render: ModuleType) -> None:
    page = (DOCS / "reference" / "hardware.md").read_text()

    assert "| `fabric.scale_up.link_bandwidth` | link rate |" in page
    assert "| `nvlink2` | 25 GB/s one way | 150 GB/s one way |" in page
    assert "| bytes a second |" in page
