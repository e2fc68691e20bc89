"""Jobs that know nothing of the recording, as real processes."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
import venv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tracereplay.manifest import Manifest, read_manifest

ROOT = Path(__file__).parents[2]

# Two optimizers a step; what happens at which step is told by the environment.
SCRIPT = """
import os, signal, sys, time
import torch
import torch.distributed as dist
from pathlib import Path
from torch import nn

rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
torch.set_num_threads(1)
if world > 1:
    dist.init_process_group("gloo", init_method=f"file://{os.environ['MEET']}", rank=rank, world_size=world)
dense, sparse = nn.Linear(8, 8), nn.EmbeddingBag(50, 8, mode="sum", sparse=True)
optimizers = [torch.optim.Adam(dense.parameters()), torch.optim.SGD(sparse.parameters(), lr=0.1)]
scheduler = torch.optim.lr_scheduler.StepLR(optimizers[0], 10)
until = os.environ.get("UNTIL")
number = 0
while (not Path(until).exists()) if until else number < int(os.environ.get("STEPS", 12)):
    if os.environ.get("AT") == f"{rank}:{number}":
        os.kill(os.getpid(), int(os.environ["HOW"]))
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss = dense(sparse(torch.randint(50, (16, 3)))).sum()
    loss.backward()
    for parameter in dense.parameters():
        if world > 1:
            dist.all_reduce(parameter.grad)
    for optimizer in optimizers:
        optimizer.step()
    scheduler.step()
    number += 1
    time.sleep(float(os.environ.get("PAUSE", 0)))
print("trained")
sys.exit(int(os.environ.get("EXIT", 0)))
"""


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """Our own last line."""
        return [line for line in self.err.splitlines() if line.startswith("tracereplay: ")][-1]


def command(folder: Path, *options: str, job: list[str]) -> list[str]:
    return [sys.executable, "-m", "tracereplay", "collect", "run", "--out", str(folder), *options, "--", *job]


def environment(**more: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if name not in {"RANK", "WORLD_SIZE", "UNTIL", "AT"}}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return clean | {"PYTHONPATH": path, "GLOO_SOCKET_IFNAME": "lo"} | more


def run(folder: Path, *options: str, job: list[str], **more: str) -> Ended:
    done = subprocess.run(
        command(folder, *options, job=job),
        env=environment(**more),
        cwd=folder.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def two_ranks(script: Path) -> list[str]:
    """A shell that starts both ranks; its exit code is that of rank 0."""
    python = f"{sys.executable} {script}"
    return ["sh", "-c", f"RANK=1 WORLD_SIZE=2 {python} & RANK=0 WORLD_SIZE=2 {python}; code=$?; wait; exit $code"]


def names_in(trace: Path) -> Counter[str]:
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    return Counter(event["name"] for event in events if event["ph"] == "X")


def marks_in(trace: Path) -> list[str]:
    return sorted(name for name in names_in(trace) if "step" in name.lower() and "ptimizer" not in name)


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("job") / "train.py"
    file.write_text(SCRIPT)
    return file


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, script: Path) -> tuple[Path, Ended]:
    """One process that exits with 7, has a sitecustomize of its own, and secrets on its command line."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "sitecustomize.py").write_text("import sys; sys.stderr.write('their sitecustomize')")
    job = [sys.executable, str(script), "--token", "hunter2"]
    path = os.pathsep.join([str(folder), environment()["PYTHONPATH"]])
    options = ["--skip", "5", "--steps", "2", "--json", "--workload", "batch=16", "--platform", "zion"]
    return folder / "run", run(folder / "run", *options, job=job, EXIT="7", PYTHONPATH=path, HF_TOKEN="topsecret")


def test_the_exit_code_is_passed_on_and_stdout_is_one_document(alone: tuple[Path, Ended]) -> None:
    folder, ended = alone

    assert ended.code == 7
    result = json.loads(ended.out)["result"]
    assert result["job_exit_code"] == 7
    assert [row["steps"] for row in result["recordings"][0]["ranks"]] == [[5, 6]]
    assert "trained" in ended.err
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "rank0.json.gz"]


def test_the_sitecustomize_that_ours_hides_runs(alone: tuple[Path, Ended]) -> None:
    assert "their sitecustomize" in alone[1].err


def test_a_step_holds_one_call_of_each_optimizer(alone: tuple[Path, Ended]) -> None:
    trace = json.loads(gzip.decompress((alone[0] / "rank0.json.gz").read_bytes()))
    rows = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    spans = {r["name"]: (r["ts"], r["ts"] + r["dur"]) for r in rows if r["name"].startswith("ProfilerStep#")}

    assert sorted(spans) == ["ProfilerStep#5", "ProfilerStep#6"]
    for start, end in spans.values():
        inside = [r for r in rows if start <= r["ts"] and r["ts"] + r["dur"] <= end]
        order = [re.sub(r".*#(\w+)\.step", r"\1", r["name"]) for r in inside if re.fullmatch(r"Optimizer\.step#.*", r["name"])]
        assert order == ["Adam", "SGD"]


def test_the_manifest_says_what_ran_and_what_tracing_cost_and_no_secret(alone: tuple[Path, Ended]) -> None:
    text = (alone[0] / "manifest.json").read_text()
    manifest = read_manifest(alone[0] / "manifest.json")

    assert manifest.command is not None
    assert manifest.command[-2:] == ("--token", "***")
    assert "hunter2" not in text
    assert "topsecret" not in text
    assert (manifest.platform, manifest.workload["batch"], manifest.missing_ranks) == ("zion", 16, ())
    overhead = manifest.ranks[0].overhead
    assert overhead is not None
    assert overhead.plain_ns is not None
    # Step 2 is the first that can be timed, step 4 readies the tracer.
    assert (overhead.plain_steps, overhead.traced_steps) == (2, 2)
    assert overhead.share == pytest.approx(overhead.traced_ns / overhead.plain_ns - 1)
    assert manifest.versions.keys() >= {"python", "torch", "tracereplay"}


def test_a_rank_killed_in_the_window_leaves_the_other_its_whole_steps(tmp_path: Path, script: Path) -> None:
    ended = run(
        tmp_path / "run", "--skip", "5", "--steps", "50", job=two_ranks(script),
        STEPS="60", AT="1:9", HOW=str(int(signal.SIGKILL)), MEET=str(tmp_path / "meet"),
    )  # fmt: skip

    assert ended.code == 1  # of rank 0, which lost its peer
    manifest = read_manifest(tmp_path / "run" / "manifest.json")
    assert [row.rank for row in manifest.ranks] == [0]
    assert manifest.ranks[0].steps == (5, 6, 7, 8)
    assert [missing.rank for missing in manifest.missing_ranks] == [1]
    assert "warning: rank 1 has no trace: it ended before its window was full" in ended.err
    assert marks_in(tmp_path / "run" / "rank0.json.gz")[:4] == [f"ProfilerStep#{number}" for number in (5, 6, 7, 8)]


def test_sigterm_in_the_window_writes_what_is_whole(tmp_path: Path, script: Path) -> None:
    job = [sys.executable, str(script)]
    ended = run(tmp_path / "run", "--skip", "4", "--steps", "9", job=job, AT="0:7", HOW=str(int(signal.SIGTERM)))

    assert ended.code == 128 + signal.SIGTERM
    assert read_manifest(tmp_path / "run" / "manifest.json").ranks[0].steps == (4, 5, 6)
    assert "warning: rank 0: the job was ended by SIGTERM in step 7, before its window was full" in ended.err


def test_a_job_that_is_too_short_is_told_so(tmp_path: Path, script: Path) -> None:
    ended = run(tmp_path / "run", job=[sys.executable, str(script)], STEPS="6")

    assert ended.code == 3
    assert "rank 0 has no trace: the job ended after 6 steps, and its window begins at step 10" in ended.error
    assert ended.error.endswith("choose a smaller --skip")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no disk could be mounted: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_on_a_full_disk_the_job_goes_on_and_what_was_there_stays(small_disk: Path, script: Path) -> None:
    (small_disk / "earlier").mkdir()
    (small_disk / "earlier" / "rank0.json.gz").write_text("whole")

    ended = run(small_disk / "run", "--skip", "4", "--steps", "6", job=[sys.executable, str(script)])

    assert "trained" in ended.out
    assert ended.code == 3
    assert re.search(r"nothing was recorded: rank 0 has no trace: .*(No space left on device|is the disk full)", ended.error)
    assert (small_disk / "earlier" / "rank0.json.gz").read_text() == "whole"
    assert list((small_disk / "run").iterdir()) == []


def test_a_second_collector_is_refused_and_the_first_loses_nothing(tmp_path: Path, script: Path) -> None:
    job = [sys.executable, str(script)]
    first = command(tmp_path / "run", "--skip", "4", "--steps", "2", job=job)
    until = tmp_path / "until"
    with subprocess.Popen(first, env=environment(UNTIL=str(until), PAUSE="0.01"), stderr=subprocess.PIPE) as running:
        wait_for(tmp_path / "run" / "rank0.json.gz")
        trace = (tmp_path / "run" / "rank0.json.gz").read_bytes()

        second = run(tmp_path / "run", "--force", job=job)

        until.touch()
        running.communicate(timeout=60)
    assert second.code == 3
    assert second.error.endswith("another collector records into this folder; choose another --out")
    assert running.returncode == 0
    assert (tmp_path / "run" / "rank0.json.gz").read_bytes() == trace
    assert read_manifest(tmp_path / "run" / "manifest.json").ranks[0].steps == (4, 5)


def test_a_recording_is_not_replaced_without_force(tmp_path: Path) -> None:
    (tmp_path / "rank3.json.gz").write_text("precious")

    ended = run(tmp_path, job=[sys.executable, "-c", "print('ran')"])

    assert (ended.code, ended.out) == (3, "")
    assert ended.error.endswith("the folder already holds rank3.json.gz; choose another --out or pass --force")


def test_a_python_without_torch_is_told_what_to_install(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    launcher = tmp_path / "launch"
    launcher.write_text(f"#!{tmp_path}/bare/bin/python\n")
    launcher.chmod(0o755)

    for job in (str(tmp_path / "bare" / "bin" / "python"), str(launcher)):
        ended = run(tmp_path / "run", job=[job, "train.py"], PYTHONPATH=str(ROOT))

        assert ended.code == 3
        assert ended.err.count("\n") == 1
        assert ended.error.endswith("recording a job needs torch; pip install 'tracereplay[collect]'")


def test_a_job_that_trains_nothing_is_told_so(tmp_path: Path) -> None:
    ended = run(tmp_path / "run", job=[sys.executable, "-c", "print('ran')"])

    assert (ended.code, ended.out) == (3, "ran\n")
    assert "no process of the job stepped an optimizer of torch" in ended.error


def test_recordings_on_demand_begin_and_end_together_on_all_ranks(tmp_path: Path, script: Path) -> None:
    folder, until = tmp_path / "run", tmp_path / "until"
    more = {"UNTIL": str(until), "PAUSE": "0.02", "MEET": str(tmp_path / "meet")}
    with subprocess.Popen(
        command(folder, "--on-demand", "--steps", "2", job=two_ranks(script)),
        env=environment(**more),
        stdout=subprocess.DEVNULL,
    ) as running:
        parts = [folder / ".parts" / f"rank{rank}.json" for rank in (0, 1)]
        for part in parts:
            wait_for(part)
        ask = [sys.executable, "-m", "tracereplay", "collect", "trigger", str(folder), "--steps", "3"]
        subprocess.run(ask, env=environment(), check=True, capture_output=True)
        first = wait_for_ranks(folder / "1")
        for part in parts:
            os.kill(json.loads(part.read_text())["pid"], signal.SIGUSR2)  # both at once are one recording
        second = wait_for_ranks(folder / "2")
        assert not (folder / "3").exists()
        until.touch()
        running.wait(60)

    for manifest, steps in ((first, 3), (second, 2)):
        assert manifest.ranks[0].steps == manifest.ranks[1].steps
        assert len(manifest.ranks[0].steps) == steps
    assert sorted(path.name for path in (folder / "1").iterdir()) == ["manifest.json", "rank0.json.gz", "rank1.json.gz"]


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < deadline, f"{file} did not come"
        time.sleep(0.05)


def wait_for_ranks(folder: Path) -> Manifest:
    wait_for(folder / "manifest.json")
    deadline = time.monotonic() + 60
    while (manifest := read_manifest(folder / "manifest.json")).missing_ranks and time.monotonic() < deadline:
        time.sleep(0.05)
    return manifest


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_reference_dlrm_replays(tmp_path: Path, ranks: int) -> None:
    where = os.environ.get("TRACEREPLAY_DLRM")
    if where is None:
        pytest.skip("TRACEREPLAY_DLRM names no checkout of facebookresearch/dlrm")
    python = os.environ.get("TRACEREPLAY_DLRM_PYTHON", sys.executable)
    model = [
        "--arch-sparse-feature-size=16",
        "--arch-mlp-bot=13-64-16",
        "--arch-mlp-top=64-1",
        "--arch-embedding-size=1000-2000",
    ]
    job = [python, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", str(Path(where) / "dlrm_s_pytorch.py"), *model]
    job += ["--data-generation=random", "--mini-batch-size=256", "--num-batches=20", "--num-indices-per-lookup=10"]
    job += ["--dist-backend=gloo"] if ranks > 1 else []

    ended = run(tmp_path / "run", "--skip", "10", "--steps", "5", "--json", job=job)

    assert ended.code == 0, ended.err
    again = [sys.executable, "-m", "tracereplay", "replay", str(tmp_path / "run"), "--json"]
    replayed: dict[str, Any] = json.loads(subprocess.run(again, env=environment(), check=True, capture_output=True).stdout)
    assert len(replayed["result"]["ranks"]) == ranks
    assert replayed["result"]["error_max"] <= 0.01
