import gzip
import json
import re
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tracereplay.cli.collect import app
from tracereplay.errors import UsageError

# A small model, so that the two steps take no time.
SMALL = ["dlrm", "--tables", "3", "--rows", "20-30-40", "--dim", "4", "--bottom", "5-4", "--top", "3-1", "--batch", "8"]


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("cli") / "run"
    folder.mkdir()
    (folder / "rank7.json.gz").write_text("left over from a larger run")
    options = ["--ranks", "2", "--steps", "2", "--warmup", "1", "--host-name", "node0", "--force", "--json"]
    return folder, invoke(*SMALL, *options, "--out", str(folder))


def read_events(folder: Path, rank: int) -> list[dict[str, Any]]:
    trace = json.loads(gzip.decompress((folder / f"rank{rank}.json.gz").read_bytes()))
    events: list[dict[str, Any]] = trace["traceEvents"]
    return events


def test_json_names_every_trace_in_the_envelope(recording: tuple[Path, Result]) -> None:
    folder, result = recording

    assert result.exception is None
    document = json.loads(result.stdout)
    assert (document["schema"], document["inputs"], document["warnings"]) == ("tracereplay/collect/1", [], [])
    assert document["result"]["world_size"] == 2
    assert [(row["trace"], row["steps"]) for row in document["result"]["ranks"]] == [
        ("rank0.json.gz", [1, 2]),
        ("rank1.json.gz", [1, 2]),
    ]
    assert document["result"]["ranks"][0]["size_bytes"] == (folder / "rank0.json.gz").stat().st_size


def test_force_leaves_no_rank_of_the_earlier_recording(recording: tuple[Path, Result]) -> None:
    folder, _ = recording

    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "rank0.json.gz", "rank1.json.gz"]


@pytest.mark.parametrize("rank", [0, 1])
def test_each_step_has_both_exchanges_and_both_gradient_sums(recording: tuple[Path, Result], rank: int) -> None:
    folder, _ = recording

    names = Counter(event["name"] for event in read_events(folder, rank) if event["ph"] == "X")

    # Two steps; lookups go there and gradients come back, and the two MLPs are summed one by one.
    assert (names["ProfilerStep#1"], names["ProfilerStep#2"]) == (1, 1)
    assert names["gloo:all_to_all"] == 4
    assert names["gloo:all_reduce"] == 4
    assert names["aten::embedding_bag"] == 2 * (2 - rank)


def test_the_exchange_starts_before_the_bottom_mlp_and_is_waited_for_behind_it(
    recording: tuple[Path, Result],
) -> None:
    folder, _ = recording

    events = sorted((event for event in read_events(folder, 0) if event["ph"] == "X"), key=lambda event: event["ts"])
    marks = ("_Start", "_Wait", "_StartBackward", "_WaitBackward", "aten::addmm", "aten::bmm")
    order = [event["name"] for event in events if event["name"] in marks]

    step = ["_Start", "aten::addmm", "_Wait", "aten::bmm", "aten::addmm", "aten::addmm"]
    assert order[: len(step)] == step
    assert [name for name in order if name.endswith("Backward")] == ["_WaitBackward", "_StartBackward"] * 2


def test_traces_and_manifest_name_the_given_host_and_no_path(recording: tuple[Path, Result]) -> None:
    folder, _ = recording
    texts = [gzip.decompress((folder / f"rank{rank}.json.gz").read_bytes()).decode() for rank in range(2)]
    texts.append((folder / "manifest.json").read_text())

    assert [re.findall(r'"(?:/|[A-Z]:\\)[^"]*"', text) for text in texts] == [[], [], []]
    assert [f'"{socket.gethostname()}"' in text for text in texts] == [False, False, False]
    assert all('"node0"' in text for text in texts)


def test_the_summary_names_the_trace_and_the_next_step(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    options = ["--ranks", "1", "--steps", "1", "--warmup", "1", "--slow-rank", "0", "--slow-ms", "40"]

    result = invoke(*SMALL, *options, "--out", str(tmp_path / "run"))

    lines = result.stdout.splitlines()
    assert (lines[0], lines[-1]) == (
        f"Recorded 1 rank in {tmp_path / 'run'}",
        f"Next: tracereplay replay {tmp_path / 'run'}",
    )
    row = re.fullmatch(r" 0 +rank0\.json\.gz +\d+ KiB +1 to 1 +(\d+\.\d+) ms *", lines[2])
    assert row is not None
    assert float(row[1]) >= 40  # the sleep is part of the step


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ranks", "0"], "ranks is 0"),
        (["--bottom", "13-x-64"], "--bottom is '13-x-64'; write whole numbers joined by dashes"),
        (["--bottom", "13-32"], "bottom ends with 32, but the embedding dimension is 64"),
        (["--rows", "10-20"], "--rows has 2 numbers for 8 tables"),
        (["--tables", "0"], "--tables is 0"),
        (["--slow-rank", "1"], "--slow-rank and --slow-ms belong together"),
        (["--slow-rank", "2", "--slow-ms", "5"], "the slow rank is 2, but the ranks are 0 to 1"),
    ],
)
def test_a_wrong_value_is_a_usage_error_before_anything_is_written(tmp_path: Path, options: list[str], words: str) -> None:
    result = invoke("dlrm", "--out", str(tmp_path / "run"), *options)

    assert isinstance(result.exception, UsageError)
    assert words in str(result.exception)
    assert not (tmp_path / "run").exists()


def test_help_imports_no_heavy_library() -> None:
    code = "import sys, tracereplay.cli.collect; print({'torch', 'pandas', 'numba', 'pyarrow'} & set(sys.modules))"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert loaded.stdout.strip() == "set()"
