import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.collect.processes import still_running_after
from tracereplay.collectors.job import DlrmConfig, DlrmJob
from tracereplay.collectors.launch import CollectRequest, collect_dlrm
from tracereplay.collectors.protocol import Kind, Message
from tracereplay.errors import CollectError
from tracereplay.manifest import read_manifest

TINY = DlrmJob(
    config=DlrmConfig(bottom=(4, 4), top=(4, 1), dim=4, table_rows=(9, 9, 9), poolings=(2, 2, 2)),
    ranks=2,
    batch_per_rank=4,
    warmup_steps=1,
    steps=2,
    seed=1,
)
ENDLESS = replace(TINY, warmup_steps=1_000_000)
LAUNCHER = """
import json, signal, sys
from pathlib import Path
from tracereplay.collectors.job import DlrmJob
from tracereplay.collectors.launch import CollectRequest, collect_dlrm
from tracereplay.collectors.protocol import Kind

# A shell that starts a job in the background has it ignore SIGINT; this launcher is to hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)

def tell(message):
    if message.kind is Kind.READY:
        sys.stdout.write(f"{message.pid}\\n")
        sys.stdout.flush()

collect_dlrm(CollectRequest(DlrmJob.from_json(json.loads(sys.argv[1])), Path(sys.argv[2])), tell)
"""


def test_a_run_leaves_one_trace_for_each_rank_and_a_manifest(tmp_path: Path) -> None:
    heard: list[Message] = []

    recording = collect_dlrm(CollectRequest(TINY, tmp_path / "run", host_name="node0"), heard.append)

    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "manifest.json",
        "rank0.json.gz",
        "rank1.json.gz",
    ]
    assert read_manifest(tmp_path / "run" / "manifest.json") == recording.manifest
    assert recording.manifest.workload["table_ranks"] == (0, 0, 1)
    assert [row.steps for row in recording.manifest.ranks] == [(1, 2), (1, 2)]
    assert recording.warnings == ()
    assert still_running_after([row.pid for row in heard], 0.0) == []


def test_a_killed_rank_is_named_and_no_process_is_left(tmp_path: Path) -> None:
    heard: list[Message] = []

    def kill_rank_1(message: Message) -> None:
        heard.append(message)
        if message.rank == 1 and message.kind is Kind.STEP:
            os.kill(message.pid, signal.SIGKILL)

    with pytest.raises(CollectError, match=r"rank 1 \(pid \d+\) was killed by SIGKILL") as caught:
        collect_dlrm(CollectRequest(ENDLESS, tmp_path), kill_rank_1)

    assert "\n" not in str(caught.value)
    assert still_running_after([row.pid for row in heard], 0.0) == []
    assert list(tmp_path.iterdir()) == []


def test_a_rank_that_raises_is_named_with_its_last_words(tmp_path: Path) -> None:
    # A table of 2**60 rows fits in no memory: rank 1, which owns it, fails; rank 0 only waits for it.
    config = replace(TINY.config, table_rows=(9, 9, 2**60))

    with pytest.raises(CollectError, match=r"rank 1 \(pid \d+\) ended with exit code 1: .*Error"):
        collect_dlrm(CollectRequest(replace(TINY, config=config), tmp_path), lambda _message: None)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_their_launcher(tmp_path: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-c", LAUNCHER, json.dumps(replace(ENDLESS, ranks=1).to_json()), str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as launcher:
        assert launcher.stdout is not None
        pid = int(launcher.stdout.readline())

        launcher.send_signal(how)
        launcher.wait(20)

    assert still_running_after([pid], 10.0) == []


@pytest.mark.parametrize("name", ["manifest.json", "rank0.json.gz", "job.pt.trace.json"])
def test_a_folder_with_a_recording_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("precious")

    with pytest.raises(CollectError, match=f"already holds {name}; choose another --out or pass --force"):
        collect_dlrm(CollectRequest(TINY, tmp_path), lambda _message: None)

    assert (tmp_path / name).read_text() == "precious"


def test_a_folder_that_cannot_be_made_is_a_collect_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(CollectError, match="cannot write there"):
        collect_dlrm(CollectRequest(TINY, tmp_path / "file" / "run"), lambda _message: None)


def test_missing_torch_is_one_line_that_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])  # nothing installed can be found

    with pytest.raises(CollectError, match=r"needs torch; pip install 'tracereplay\[collect\]'"):
        collect_dlrm(CollectRequest(TINY, tmp_path / "run"), lambda _message: None)

    assert not (tmp_path / "run").exists()
