"""Real jobs of which ranks are missing: collectives are answered with an interval that holds what all ranks together give."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracereplay.analyzers.attribution import attribute
from tracereplay.analyzers.prediction import OtherHardware, Prediction, notes, predict
from tracereplay.cli.main import main
from tracereplay.graph.build import build_graph
from tracereplay.graph.kinds import NodeKind
from tracereplay.hardware.knobs import parse_setting
from tracereplay.replay.move import Mover
from tracereplay.replay.site import goal_of, source_of
from tracereplay.replay.whatif import Change, hardware_change, parse_scale, setting_change
from tracereplay.trace.job import read_job

SCALES = (
    "collective:*=0.5x",
    "collective:*=2x",
    "collective:*=0x",
    "collective:*=10x",
    "collective:all_to_all=0.5x",
    "collective:all_reduce=0.5x",
    "class:collective=0.5x",
    "kernel:nccl*=0.5x",
    "fabric.*.bandwidth=2x",
)
# Changes of other work, and of both.
WORK = ("host=0.5x", "host=2x", "host=0.9x", "launch=0.5x", "class:elementwise=20x", "host=0.5x collective:*=0.5x")
HERE = [(rank,) for rank in range(8)] + [(1, 2), (2, 4), (0, 7), (3, 5, 6, 7), (0, 1, 2, 4, 5, 6, 7), (0, 1, 2, 3, 4, 5, 6)]
# Files of which ranks are missing, with those that are.
PARTS = {
    "recsys_a100_vs_v100/control.json.gz": (0, 1, 2, 4, 5, 6, 7),
    "recsys_a100_vs_v100/test.json.gz": (0,),
    "nccl_args_a100/nccl_data.json.gz": (1,),
}


def changes(text: str) -> list[Change]:
    if text.startswith("fabric"):
        return [setting_change(setting) for setting in parse_setting(text)]
    return [parse_scale(one) for one in text.split()]


@pytest.fixture(scope="module")
def answer(corpus: Path) -> Callable[[tuple[int, ...], str], Prediction]:
    folder = str(corpus / "traces" / "dlrm_v100x8")
    graphs = {here: build_graph(read_job([folder], ranks=frozenset(here))) for here in [*HERE, tuple(range(8))]}
    return lambda here, text: predict(graphs[here], changes(text))


@pytest.mark.parametrize("here", HERE, ids=str)
def test_the_interval_of_some_of_eight_ranks_holds_the_joint_answer(
    here: tuple[int, ...], answer: Callable[[tuple[int, ...], str], Prediction]
) -> None:
    for text in SCALES:
        part, joint = answer(here, text), answer(tuple(range(8)), text)

        true_ns = {rank.rank: rank.predicted_ns or 0 for rank in joint.ranks}
        assert (part.predicted_ns, part.speedup) == (None, None)
        assert part.interval is not None
        # One step: the job's time is that of the longest of these ranks.
        assert part.interval.low_ns <= max(true_ns[rank] for rank in here) <= part.interval.high_ns, text
        for rank in part.ranks:
            assert rank.interval is not None
            assert rank.interval.low_ns <= true_ns[rank.rank or 0] <= rank.interval.high_ns, (text, rank.rank)
        assert part.ranks_to_add == tuple(rank for rank in range(8) if rank not in here)


@pytest.mark.parametrize("here", HERE, ids=str)
def test_so_does_that_of_changes_which_move_when_ranks_come_to_a_collective(
    here: tuple[int, ...], answer: Callable[[tuple[int, ...], str], Prediction]
) -> None:
    for text in WORK:
        part, joint = answer(here, text), answer(tuple(range(8)), text)

        true_ns = {rank.rank: rank.predicted_ns or 0 for rank in joint.ranks}
        if part.interval is None:  # all readings agree
            assert {rank.rank: rank.predicted_ns for rank in part.ranks} == {rank: true_ns[rank] for rank in here}, text
            continue
        assert (part.predicted_ns, part.speedup) == (None, None)
        assert part.interval.low_ns <= max(true_ns[rank] for rank in here) <= part.interval.high_ns, text
        for rank in part.ranks:
            assert rank.interval is not None
            assert rank.interval.low_ns <= true_ns[rank.rank or 0] <= rank.interval.high_ns, (text, rank.rank)
        assert part.ranks_to_add == tuple(rank for rank in range(8) if rank not in here)


@pytest.mark.parametrize("here", [(3,), (3, 5, 6, 7)], ids=str)
def test_without_stragglers_the_ranks_to_add_are_named(here: tuple[int, ...], corpus: Path) -> None:
    job = read_job([str(corpus / "traces" / "dlrm_v100x8")], ranks=frozenset(here))

    found = predict(build_graph(job), [], stragglers=False)

    missing = ", ".join(str(rank) for rank in range(8) if rank not in here)
    (reason,) = [reason for reason in notes(found) if reason.startswith("the medians are those of the ranks that are here")]
    assert reason.endswith(f"add ranks {missing}")
    assert (found.interval is None) == (len(here) == 1)  # one rank has nothing to be compared with and moves nothing


@pytest.mark.parametrize("name", PARTS)
def test_a_file_of_a_larger_job_gives_an_interval_and_names_the_ranks_to_add(
    name: str, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["whatif", str(corpus / "traces" / name), "--scale", "collective:*=0.5x", "--json"])

    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    result = document["result"]
    assert code == 0
    assert (result["predicted_ns"], result["speedup"], result["steady_ns"]) == (None, None, None)
    assert {step["predicted_ns"] for step in result["steps"]} == {None}
    low_ns, high_ns = result["interval"]["low_ns"], result["interval"]["high_ns"]
    # Those of nccl_data run beside longer compute: even without them its step takes what it takes.
    hidden = name.startswith("nccl_args")
    assert 0 < low_ns <= high_ns <= result["baseline_ns"] * 1.001
    assert (low_ns == high_ns) == hidden
    advice = f"add ranks {', '.join(str(rank) for rank in PARTS[name])}"
    assert [w for w in document["warnings"] if w.endswith(advice) and "the answer is an interval" in w]


@pytest.mark.parametrize("name", [*PARTS, *(f"dlrm_v100x8/worker{rank}.pt.trace.json.gz" for rank in range(8))])
def test_their_collectives_are_unsplit_and_nobody_is_blamed(name: str, corpus: Path, tmp_path: Path) -> None:
    alone = tmp_path / Path(name).name
    alone.symlink_to(corpus / "traces" / name)
    found = attribute(build_graph(read_job([str(alone)])))

    parts = {part.name for part in found.parts}
    assert found.waits == ()
    assert not {"collective_transfer", "collective_wait"} & parts
    assert {(row.transfer_ns, row.last_rank, row.waits) for row in found.collectives.rows} == {(None, None, None)}
    assert (found.collectives.transfer_ns, found.collectives.wait_ns, found.collectives.wait_share) == (None, None, None)
    assert found.sum_ns == found.step_ns


@pytest.mark.parametrize("name", ["control", "test"])
def test_on_the_path_they_are_the_part_collective_unsplit(name: str, corpus: Path) -> None:
    found = attribute(build_graph(read_job([str(corpus / "traces" / "recsys_a100_vs_v100" / f"{name}.json.gz")])))

    assert {part.name: part.share for part in found.parts}["collective_unsplit"] > 0.1


# Jobs, what they ran on (None: CPUs that nobody described), where they go, and of which ranks there are files.
MOVES = [
    *(("sample_traces/dlrm_2rank", None, there, (rank,)) for there in ("zion", "dgx-h100", "big-basin-v1") for rank in (0, 1)),
    *(("sample_traces/dlrm_2rank_slow_peer", None, there, (rank,)) for there in ("zion", "zionex") for rank in (0, 1)),
    *(
        ("dlrm_v100x8", "dgx1-v100", there, here)
        for there in ("zionex", "dgx-h100")
        for here in ((0,), (1,), (5,), (3, 5, 6, 7))
    ),
]


def moved(folder: str, ranks: tuple[int, ...] | None, source: str | None, hardware: str) -> Prediction:
    graph = build_graph(read_job([folder], ranks=None if ranks is None else frozenset(ranks)))
    here = source_of(graph, source)
    move = Mover.of(graph, here).to(goal_of(here, hardware).under([]))
    change = hardware_change(hardware, move.factor, afresh=move.afresh)
    return predict(graph, [change], hardware=OtherHardware(move, samples=16))


@pytest.mark.parametrize(("job", "source", "hardware", "here"), MOVES, ids=str)
def test_moved_to_other_hardware_it_holds_the_joint_answer_and_is_no_wider_than_the_recording(
    job: str, source: str | None, hardware: str, here: tuple[int, ...], corpus: Path
) -> None:
    folder = job if job.startswith("sample") else str(corpus / "traces" / job)

    part, joint = moved(folder, here, source, hardware), moved(folder, None, source, hardware)

    true_ns = {rank.rank: rank.predicted_ns or 0 for rank in joint.ranks}
    assert part.interval is not None
    assert part.predicted_ns is None
    for rank in part.ranks:
        if rank.interval is None:  # nothing of it depends on when the others come
            assert rank.predicted_ns == true_ns[rank.rank or 0]
            continue
        # A nanosecond a collective of rounding.
        assert rank.interval.low_ns - 100 <= true_ns[rank.rank or 0] <= rank.interval.high_ns + 100
    assert part.interval.low_ns <= max(true_ns[rank] for rank in here) <= part.interval.high_ns
    # Faster hardware: the others come no later than they did, but for the models' errors.
    assert part.interval.high_ns < 1.3 * part.baseline_ns


def test_from_cpus_to_accelerators_no_more_is_left_open_than_was_waited_for() -> None:
    """Rank 0 of the slow peer's job waits 35 ms a step in collectives, 30 of them for a host that sleeps."""
    graph = build_graph(read_job(["sample_traces/dlrm_2rank_slow_peer"], ranks=frozenset({0})))
    waited_ns = int(graph.nodes.dur_ns[graph.nodes.kind == NodeKind.UNSPLIT].sum()) / len(graph.steps)

    (rank,) = moved("sample_traces/dlrm_2rank_slow_peer", (0,), None, "zion").ranks

    assert rank.interval is not None
    assert 30e6 < rank.interval.high_ns - rank.interval.low_ns < 1.1 * waited_ns
