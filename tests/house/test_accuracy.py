"""The parts of ``make accuracy``: which files are recordings, what the page makes of rows, and where HTA has no answer."""

from pathlib import Path

import pytest

from benchmarks import accuracy
from benchmarks.accuracy_page import claims, page
from benchmarks.comparisons import Replayed, StragglerStep
from benchmarks.hta_path import HtaAnswer, HtaRank, ask_hta
from benchmarks.recordings import LeftOut, Recording, find_recordings
from tests.fakes.kineto import TraceFile
from tests.truth.report import Row as TruthRow
from tests.truth.score import Score
from tracereplay.analyzers.accuracy import Accuracy, RankError, StepError, Unexplained
from tracereplay.analyzers.held_out import HeldOut, HeldOutStep
from tracereplay.errors import UsageError

NO_HTA = HtaAnswer((), ("AssertionError: no row 812",))


def working(rank: int | None, world_size: int | None = None) -> TraceFile:
    return TraceFile(rank, world_size).op("aten::mul", 0, 10).call("cudaLaunchKernel", 2, 3, 1).kernel("mul", 8, 5, 7, 1)


def names(folder: Path) -> list[str]:
    return [job.name for job in find_recordings([folder]).jobs]


def row(name: str, error: float = 0.0, p95: float = 0.0, unexplained: float = 0.0, calibrated: float = 0.0) -> Replayed:
    measured_ns = 20_000_000
    replayed_ns = round(measured_ns * (1 + error))
    answer = Accuracy(
        measured_ns,
        replayed_ns,
        error,
        abs(error),
        None,
        (StepError(1, measured_ns, replayed_ns, error, 0),),
        (RankError(0, measured_ns, replayed_ns, error, 0.0), RankError(1, measured_ns, replayed_ns, error, p95)),
        Unexplained(0, unexplained, 0, 0.0, calibrated),
    )
    return Replayed(Recording(name.rpartition("/")[0] or name, name, ()), 2, 1, 1_234, answer, None, None)


def with_hta(made: Replayed, hta: HtaAnswer) -> Replayed:
    return Replayed(made.recording, made.ranks, made.steps, made.tasks, made.accuracy, made.held_out, hta)


def test_files_that_name_different_ranks_of_one_size_are_one_job(tmp_path: Path) -> None:
    paths = [working(rank, 2).write(tmp_path) for rank in (1, 0)]

    assert find_recordings([tmp_path]).jobs == (Recording(tmp_path.name, tmp_path.name, tuple(sorted(map(str, paths)))),)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0, 2), (0, 2)),  # one rank twice
        ((0, 2), (1, 8)),  # jobs of different sizes
        ((None, None), (None, None)),  # nothing says what they are
        ((0, None), (1, None)),
    ],
)
def test_other_files_are_a_job_each(
    tmp_path: Path, first: tuple[int | None, int | None], second: tuple[int | None, int | None]
) -> None:
    working(*first).write(tmp_path, "a.pt.trace.json.gz")
    working(*second).write(tmp_path, "b.json")

    assert names(tmp_path) == [f"{tmp_path.name}/a", f"{tmp_path.name}/b"]


def test_an_overlaid_critical_path_is_left_out_by_its_marks(tmp_path: Path) -> None:
    working(None).op("aten::add", 20, 5, critical=1).write(tmp_path, "one.json")
    working(None).op('aten::"critical"', 20, 5, kind="critical").write(tmp_path, "two.json")

    found = find_recordings([tmp_path])

    assert [job.name for job in found.jobs] == [f"{tmp_path.name}/two"]
    assert found.left_out == (
        LeftOut(f"{tmp_path.name}/one", "is another tool's output: HTA's overlay of a critical path on a trace"),
    )


def test_files_without_host_rows_or_work_are_left_out(tmp_path: Path) -> None:
    TraceFile().kernel("mul", 8, 5, 7).write(tmp_path, "device.json")
    TraceFile().annotation("forward", 0, 5).call("cudaGetDevice", 1, 2).write(tmp_path, "idle.json")

    found = find_recordings([tmp_path])

    assert found.jobs == ()
    assert [(file.name.split("/")[1], file.reason.split(":")[0]) for file in found.left_out] == [
        ("device", "holds no host rows"),
        ("idle", "holds no work"),
    ]


def test_a_claim_names_what_misses_it() -> None:
    rows = [
        row("a", error=-0.034, unexplained=0.021, calibrated=-0.06),
        row("b", p95=0.011, unexplained=0.02, calibrated=0.05),
        row("c", error=0.011),
    ]
    steps = [StragglerStep(4, 900, 100, 300), StragglerStep(5, 900, 86, 100), StragglerStep(None, 900, 89, 100)]

    found = [(claim.asked, claim.found, claim.missed) for claim in claims(rows, steps)]

    assert found == [
        ("≤ 1 %", "1.10 %", ("the median",)),
        ("≤ 3.3 %", "3.40 % (`a`)", ("a",)),
        ("≤ 1 % of the step", "1.10 % (`b`)", ("b",)),
        ("≤ 2 % of all steps", "0.00 % to 2.10 %", ("a",)),
        ("≤ 5 %", "0.00 % to 6.00 %", ("a",)),
        ("≤ 15 %", "-14.0 %", ()),
        ("≤ 10 %", "-11.0 %", ("mean step",)),
    ]


def truth(variant: str = "plain", recall_of: int = 100) -> TruthRow:
    scores = {"launch": Score(100, 100, 100, 0), "event_wait": Score(100, recall_of, 60, 0)}
    return TruthRow(variant, 4, scores, {"kernel x0.5": -0.004, "host x0.7": 0.021})


def test_a_claim_of_simulated_jobs_names_variant_and_edge() -> None:
    found = [(c.asked, c.found, c.missed, c.of) for c in claims([row("a")], (), [truth(), truth("clock skew", 98)])[5:]]

    assert found == [
        ("≥ 99 %", "98.00 % to 100.00 %", ("clock skew: event_wait",), 4),
        ("≥ 99 %", "100.00 % to 100.00 %", (), 4),
        ("≤ 2 %", "+2.10 % (plain: host x0.7)", ("plain: host x0.7", "clock skew: host x0.7"), 4),
    ]


def test_the_page_shows_what_was_asked_of_each_variant() -> None:
    text = page([row("a")], (), (), [truth(), truth("clock skew", 98)], ("Python 3",))

    assert "4 jobs of each variant" in text
    assert "| clock skew | 100.00 / 100.00 (100) | 100.00 / 100.00 (0) | 98.00 / 100.00 (100) |" in text
    assert "| plain | -0.40 % |  |  | +2.10 % |  |" in text


def test_held_out_steps_are_asked_of_jobs_with_steps_alike_alone() -> None:
    held_out = HeldOut((HeldOutStep(1, 100, 106, 0.06, 0.0),), 0.06, 0.1)
    made = [row("recsys_a100_vs_v100/control"), row("recsys_a100_vs_v100/test"), row("dlrm_2rank")]
    rows = [Replayed(r.recording, r.ranks, r.steps, r.tasks, r.accuracy, held_out, None) for r in made]

    (claim,) = [claim for claim in claims(rows, ()) if claim.what.startswith("steps held out")]

    assert (claim.missed, claim.of) == (("recsys_a100_vs_v100/control", "dlrm_2rank"), 2)


def test_the_page_has_hta_s_range_over_ranks_or_says_why_there_is_none() -> None:
    two_ranks = HtaAnswer((HtaRank(8_000_000, 20_000_000, 2), HtaRank(3_000_000, 12_000_000, 1)), ())
    rows = [
        with_hta(row("job", error=0.0004), two_ranks),
        with_hta(row("set/one"), NO_HTA),
        with_hta(row("set/two"), HtaAnswer((), ("AssertionError: no row 7", "KeyError: 'stream'"))),
    ]

    text = page(rows, (), (), [], ("Python 3",))

    table = text.split("## Replay on the recorded hardware")[1].split("\n\n")[2].splitlines()
    assert table[2:6] == [
        "| *job* | 20.000 | 20.008 | +0.04 % | 0.04 % | 0.00 % | 3.000 to 4.000 of 10.000 to 12.000 | -75.0 % to -60.0 % |",
        "| *set* |  |  |  |  |  |  |  |",
        "| `one` | 20.000 | 20.000 | 0.00 % | 0.00 % | 0.00 % | n/a (1) | n/a |",
        "| `two` | 20.000 | 20.000 | 0.00 % | 0.00 % | 0.00 % | n/a (1) (2) | n/a |",
    ]
    assert "- (1) HTA stops with `AssertionError: no row 812`.\n- (2) HTA stops with `KeyError: 'stream'`.\n" in text
    assert "(median of 2 ranks; worst 75.0 %); for 2 of the 3 jobs HTA has no answer." in " ".join(text.split("\n"))
    assert "67.5 %" in text


def test_hta_that_cannot_be_started_is_an_answer(tmp_path: Path) -> None:
    answer = ask_hta(["a.json", "b.json"], (1,), str(tmp_path / "python"))

    assert answer.ranks == ()
    assert [text.split("]")[0] for text in answer.failures] == ["[Errno 2", "[Errno 2"]


def test_without_a_corpus_the_samples_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEREPLAY_CORPUS", str(tmp_path / "none"))
    monkeypatch.delenv("TRACEREPLAY_REQUIRE_CORPUS", raising=False)
    output = tmp_path / "page.md"

    assert accuracy.run(["--output", str(output), "--seeds", "0"]) == 0

    text = output.read_text()
    assert "| *dlrm_2rank* | 2 | 6 | 23,832 |" in text
    assert "| *dlrm_2rank_slow_peer* | 2 | 4 | 15,872 |" in text
    assert "A run predicted from another run" not in text
    assert text.endswith("HTA not run.\n")
    assert str(tmp_path) not in text


def test_a_corpus_that_is_required_and_missing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRACEREPLAY_CORPUS", str(tmp_path / "none"))
    monkeypatch.setenv("TRACEREPLAY_REQUIRE_CORPUS", "1")

    assert accuracy.run([]) == UsageError.exit_code
    assert capsys.readouterr().err == (
        f"{tmp_path / 'none'}: TRACEREPLAY_REQUIRE_CORPUS=1, but there is no corpus; set TRACEREPLAY_CORPUS\n"
    )
