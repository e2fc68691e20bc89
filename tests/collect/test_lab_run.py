"""A tiny DLRM over a link that is shaped, from the recording to the prediction."""

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tracereplay.cli.main import main  # after the checks: torch is an extra
from tracereplay.collectors.job import DlrmConfig, DlrmJob
from tracereplay.collectors.launch import CollectRequest, collect_dlrm
from tracereplay.collectors.link import parse_link
from tracereplay.graph.build import build_graph
from tracereplay.hardware.load import load_platform
from tracereplay.trace.job import read_job

pytestmark = pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="network namespaces need root on Linux")

# 256 samples of two tables a rank, of which half leaves it: 64 KiB; at 100 Mbit/s that alone are 5 ms.
JOB = DlrmJob(
    DlrmConfig((8, 64), (16, 1), 64, (1000, 1000), (2, 2), "cat"), ranks=2, batch_per_rank=256, warmup_steps=2, steps=3, seed=1
)


def test_ranks_of_a_laboratory_are_on_hosts_of_their_own_and_wait_for_their_link(tmp_path: Path) -> None:
    made = collect_dlrm(CollectRequest(JOB, tmp_path / "run", "here", link=parse_link("100mbit")), lambda _message: None)

    assert [row.host for row in made.manifest.ranks] == ["here-lab0", "here-lab1"]
    assert made.manifest.tracer["link"] == "100mbit"
    platform = load_platform(str(tmp_path / "run" / "platform.toml"))
    assert platform.description.fabric.scale_out.bandwidth.base == 12_500_000
    graph = build_graph(read_job([str(tmp_path / "run")]))
    exchanges = [c for c in graph.collectives if c.name == "all_to_all"]
    assert all(c.scale_out for c in exchanges)
    # 65,536 bytes to the other rank at 12.5 MB/s take 5.2 ms, less what a bucket lets pass at once.
    assert min(max(c.end_ns) - max(c.start_ns) for c in exchanges) > 3_000_000


def test_a_laboratory_is_asked_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "run")

    assert main(["collect", "lab", "--link", "1gbit", "--preset", "terabyte", "--out", out]) == 2
    assert "--preset 'terabyte' is none that a machine trains" in capsys.readouterr().err
    assert main(["collect", "lab", "--link", "soon", "--out", out]) == 2
    assert "--link 'soon' is no rate" in capsys.readouterr().err
    assert not Path(out).exists()
