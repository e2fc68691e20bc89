"""The parts of the hook that need no torch: steps, places, files, machines."""

import gzip
import json
import subprocess
from pathlib import Path

import pytest

from tracereplay.collectors.hook.asking import agreed_start, agreed_stop, ask, ask_to_stop, asked_steps
from tracereplay.collectors.hook.machine import git_commit
from tracereplay.collectors.hook.place import find_place
from tracereplay.collectors.hook.platforms import _PLATFORMS, platform_of
from tracereplay.collectors.hook.publish import publish_trace
from tracereplay.collectors.hook.steps import StepFinder
from tracereplay.errors import CollectError
from tracereplay.hardware.load import load_platform


@pytest.mark.parametrize(
    ("calls", "ends", "seen"),
    [
        ("AAAA", ".***", 4),
        ("ABABAB", "...*.*", 3),  # the round is known with the second A
        ("AAABAAB", ".**.**.", 5),  # B steps now and then
        ("ABABAAAA", "...*.***", 6),  # B is dropped: one step has A twice, from then on each A ends one
    ],
)
def test_a_step_ends_with_the_last_optimizer_of_the_round(calls: str, ends: str, seen: int) -> None:
    finder = StepFinder()

    assert "".join("*" if finder.stepped(ord(call)) else "." for call in calls) == ends
    assert finder.seen == seen


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({"RANK": "3", "WORLD_SIZE": "8", "SLURM_PROCID": "1"}, (3, 8)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, (1, 2)),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "16"}, (5, 16)),
        ({"LOCAL_RANK": "1"}, (1, 2)),
        ({"RANK": "none"}, (0, 1)),
    ],
)
def test_the_rank_is_what_the_launcher_says(environment: dict[str, str], place: tuple[int, int]) -> None:
    found = find_place(environment)

    assert (found.rank, found.world) == place


RAW = b'{"traceEvents": [\n{"name": "ProfilerStep#6"},\n{"name": "ProfilerStep#7"}\n],\n"traceName": "/home/me/raw"\n}'


def test_a_published_trace_names_no_path_and_only_whole_steps(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(RAW)

    publish_trace(tmp_path / "raw", tmp_path / "rank0.json.gz", "node0", last_step=6)

    trace = json.loads(gzip.decompress((tmp_path / "rank0.json.gz").read_bytes()))
    assert [event["name"] for event in trace["traceEvents"]] == ["ProfilerStep#6", "unfinished step 7"]
    assert trace["traceName"] == "rank0.json.gz"


def test_a_cut_trace_is_not_published(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(RAW[:40])

    with pytest.raises(CollectError, match="could not be written whole"):
        publish_trace(tmp_path / "raw", tmp_path / "rank0.json.gz", "node0")

    assert not (tmp_path / "rank0.json.gz").exists()


def test_a_trace_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(RAW)
    (tmp_path / "rank0.json.gz").write_text("precious")

    with pytest.raises(CollectError, match="is there already and stays"):
        publish_trace(tmp_path / "raw", tmp_path / "rank0.json.gz", "node0")

    assert (tmp_path / "rank0.json.gz").read_text() == "precious"


def test_ranks_agree_on_the_first_proposal(tmp_path: Path) -> None:
    window = ask(tmp_path, 5)

    assert (window.name, asked_steps(window), asked_steps(tmp_path / "2")) == ("1", 5, None)
    # 2 steps and the steps of a second, here ten; the second rank is a step behind and takes what the first has said.
    assert [agreed_start(window, number, 10**8) for number in (20, 19)] == [32, 32]
    assert agreed_stop(window, 33, 10**8) is None
    ask_to_stop(window)
    assert [agreed_stop(window, number, 10**9) for number in (33, 34)] == [36, 36]
    assert ask(tmp_path, 1).name == "2"


def test_the_commit_is_read_from_the_checkout(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "-q"], check=True)
    assert git_commit(tmp_path) is None
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    (tmp_path / "deep").mkdir()

    assert git_commit(tmp_path / "deep") == head
    subprocess.run([*git, "pack-refs", "--all"], check=True)
    assert git_commit(tmp_path) == head


def test_a_machine_is_named_where_all_hosts_are_one_of_the_catalogue() -> None:
    dgx = {"accelerators": [{"name": "NVIDIA H100 80GB HBM3"}] * 8}

    assert platform_of([dgx, dgx]) == "dgx-h100"
    assert platform_of([dgx, {"accelerators": []}]) is None
    assert platform_of([{"accelerators": dgx["accelerators"][:4]}]) is None


def test_the_catalogue_has_every_platform_that_is_named() -> None:
    for (_, count), name in _PLATFORMS.items():
        description = load_platform(name).description
        assert description.name == name
        assert description.accelerator is not None
        assert description.accelerator.count.value == count
