from pathlib import Path

from tests.fakes.jobs import graph_of, job_of
from tests.fakes.kineto import TraceFile
from tests.fakes.workloads import late_peer
from tracereplay.analyzers.accuracy import assess
from tracereplay.analyzers.attribution import attribute
from tracereplay.analyzers.overview import survey
from tracereplay.analyzers.prediction import Prediction, predict
from tracereplay.hardware.knobs import parse_setting
from tracereplay.replay.whatif import parse_scale, setting_change
from tracereplay.report.text import accuracy_text, attribution_text, converted_text, overview_text, prediction_text
from tracereplay.trace.job import read_job


def first_line(text: str) -> str:
    return text.split("\n", 1)[0]


def scaled(folder: Path, change: str, *traces: TraceFile) -> Prediction:
    return predict(graph_of(folder, *traces), [parse_scale(change)])


def test_info_begins_with_ranks_and_steps(tmp_path: Path) -> None:
    overview = survey(job_of(tmp_path, *late_peer()))

    assert first_line(overview_text(overview)) == "2 ranks; whole steps on every rank: 1"


def test_info_of_one_rank_without_a_step_says_so(tmp_path: Path) -> None:
    overview = survey(job_of(tmp_path, TraceFile(0, 1).step(1, 0, None).op("a", 1, 1)))

    assert first_line(overview_text(overview)) == "1 rank; whole steps on every rank: none"


def test_info_says_not_recorded_where_there_is_no_device_work(tmp_path: Path) -> None:
    text = overview_text(survey(job_of(tmp_path, TraceFile().op("a", 1, 1))))

    assert text.count("not recorded") == 2


def test_info_gives_the_range_of_several_steps(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("a", 10, 5).step(2, 100, 150).op("b", 110, 5)

    assert "100.0 µs … 150.0 µs" in overview_text(survey(job_of(tmp_path, trace)))


def test_a_rank_of_unknown_number_is_a_question_mark(tmp_path: Path) -> None:
    path = TraceFile().op("a", 1, 1).write(tmp_path, "trace.json")

    text = overview_text(survey(read_job([str(path)])))

    assert text.split("\n")[-2].startswith("?")


def test_replay_begins_with_recorded_and_replayed_step(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, *late_peer())

    text = accuracy_text(assess(graph), graph.coverage)

    assert first_line(text) == "step 200.0 µs recorded, 200.0 µs replayed: error +0.00 % (worst step +0.00 %)"


def test_whatif_begins_with_the_predicted_step(tmp_path: Path) -> None:
    question = "collective:all_reduce=0.5x"

    text = prediction_text(scaled(tmp_path, question, *late_peer()), question)

    assert first_line(text) == "step 200.0 µs → 175.0 µs  -12.50 %  with collective:all_reduce=0.5x"


def test_whatif_begins_with_the_interval_where_only_that_is_known(tmp_path: Path) -> None:
    text = prediction_text(scaled(tmp_path, "collective:*=0.5x", late_peer()[0]), "half")

    assert first_line(text) == "step 200.0 µs → between 150.0 µs and 200.0 µs  with half"


def test_whatif_gives_the_steady_state_of_several_steps(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("a", 10, 5).step(2, 120, 100).op("b", 130, 5)

    text = prediction_text(scaled(tmp_path, "host=0.5x", trace), "q")

    assert "from the end of a step to the end of the next: 120.0 µs → 60.0 µs" in text


def test_whatif_says_that_nothing_moved(tmp_path: Path) -> None:
    assert "nothing moved" in prediction_text(scaled(tmp_path, "class:conv=2x", *late_peer()), "q")


def test_whatif_says_what_it_assumes_and_does_not_model(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("a", 10, 5).kernel("volta_sgemm", 20, 30, 7).kernel("mystery", 60, 10, 7)
    changes = [setting_change(setting) for setting in parse_setting("accelerator.flops=2x")]

    text = prediction_text(predict(graph_of(tmp_path, trace), changes), "q")

    assert "assumed: hardware knobs are plain ratios" in text
    assert "not modelled: 10.0 µs of device work (25.0 %)" in text


def test_attribute_begins_with_the_step_and_its_rank(tmp_path: Path) -> None:
    text = attribution_text(attribute(graph_of(tmp_path, *late_peer())))

    assert first_line(text) == "step 1: 200.0 µs on rank 0, the longest; its critical path over all ranks:"


def test_attribute_lists_the_largest_part_first(tmp_path: Path) -> None:
    text = attribution_text(attribute(graph_of(tmp_path, *late_peer())))

    assert text.index("host ") < text.index("collective_transfer") < text.index("launch ") < text.index("sync ")


def test_attribute_shows_who_waits_for_whom(tmp_path: Path) -> None:
    text = attribution_text(attribute(graph_of(tmp_path, *late_peer())))

    (row,) = [line.split() for line in text.split("\n") if "all_reduce#0" in line]
    assert row == ["0", "50.0", "µs", "1", "host", "all_reduce#0"]


def test_attribute_shows_no_table_of_waits_where_nobody_waits(tmp_path: Path) -> None:
    text = attribution_text(attribute(graph_of(tmp_path, TraceFile(0, 1).op("a", 0, 10))))

    assert "for rank" not in text


def test_a_long_table_says_how_many_rows_it_leaves_out(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, *(TraceFile(rank, 14).op("a", 0, 10) for rank in range(14)))

    assert "… and 2 more: see --json" in accuracy_text(assess(graph), graph.coverage)


def test_info_says_what_was_wrong_with_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json"
    path.write_bytes(b'[{"ph": "X", "cat": "kernel", "name": "a\x01b", "ts": 1, "dur": 1}, {"ph": "X", "na')

    text = overview_text(survey(read_job([str(path)])))

    assert (
        "rank 0: 1 repaired strings; truncated: the last whole event is 'a\\x01b' (event 0), the text ends at byte 80" in text
    )


def test_info_shows_the_clocks_of_ranks_that_share_collectives(tmp_path: Path) -> None:
    ranks = [TraceFile(r).gloo("gloo:all_reduce", 100 + 500 * r, 50, tid=5) for r in (0, 1)]

    text = overview_text(survey(job_of(tmp_path, *ranks)))

    (row,) = [line.split() for line in text.split("\n") if line.startswith("1 ") and "ppm" in line]
    assert row == ["1", "500.0", "µs", "0.0", "ppm", "0", "ns", "1", "yes"]


def test_convert_lists_what_it_wrote() -> None:
    text = converted_text("job", [(0, 1234, 56789), (None, 1, 2)])

    assert [line.split() for line in text.split("\n") if line.startswith(("0", "?"))] == [
        ["0", "1,234", "56,789"],
        ["?", "1", "2"],
    ]
    assert first_line(text) == "wrote job"
