from pathlib import Path
from typing import Any

import pytest

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.workloads import ALL_REDUCE, late_peer, uneven_ranks
from tracereplay.analyzers.prediction import (
    Prediction,
    RankPrediction,
    StepPrediction,
    Unmodelled,
    notes,
    predict,
)
from tracereplay.hardware.knobs import parse_setting
from tracereplay.replay.outcome import Interval
from tracereplay.replay.whatif import Moved, parse_scale, setting_change


def scaled(folder: Path, text: str, *traces: TraceFile) -> Prediction:
    return predict(graph_of(folder, *traces), [parse_scale(text)])


def set_to(folder: Path, text: str, *traces: TraceFile) -> Prediction:
    return predict(graph_of(folder, *traces), [setting_change(setting) for setting in parse_setting(text)])


def test_no_change_predicts_the_baseline(tmp_path: Path) -> None:
    prediction = predict(graph_of(tmp_path, *late_peer()), [])

    assert (prediction.baseline_ns, prediction.predicted_ns, prediction.speedup) == (200_000, 200_000, 1.0)
    assert (prediction.moved, prediction.interval) == ({}, None)


def test_a_transfer_of_half_the_time_shortens_the_step_by_that_half(tmp_path: Path) -> None:
    prediction = scaled(tmp_path, "collective:all_reduce=0.5x", *late_peer())

    assert (prediction.predicted_ns, prediction.speedup) == (175_000, 200 / 175)
    assert prediction.steps == (StepPrediction(1, 200_000, 175_000, 95_000),)
    assert prediction.ranks == (RankPrediction(0, 200_000, 175_000), RankPrediction(1, 200_000, 175_000))
    assert prediction.moved == {"all_reduce": Moved(1, 50_000, 25_000, "ratio")}


def test_a_faster_host_of_the_late_rank_shortens_the_step_of_both(tmp_path: Path) -> None:
    # Rank 1 launches at 30 instead of 60 and has half of its last 75 µs; rank 0 keeps its own 75.
    prediction = scaled(tmp_path, "host=0.5x@rank=1", *late_peer())

    assert prediction.ranks == (RankPrediction(0, 200_000, 170_000), RankPrediction(1, 200_000, 132_500))
    assert prediction.predicted_ns == 170_000


def test_a_faster_host_of_the_waiting_rank_shortens_only_what_follows_its_wait(tmp_path: Path) -> None:
    prediction = scaled(tmp_path, "host=0.5x@rank=0", *late_peer())

    assert prediction.ranks == (RankPrediction(0, 200_000, 162_500), RankPrediction(1, 200_000, 200_000))


def test_a_slower_host_of_the_waiting_rank_costs_nothing_until_it_is_the_later_one(tmp_path: Path) -> None:
    # Three times 10 µs: rank 0 launches at 30, still before rank 1 at 60; its last 75 µs become 225.
    prediction = scaled(tmp_path, "host=3x@rank=0", *late_peer())

    assert prediction.ranks == (RankPrediction(0, 200_000, 350_000), RankPrediction(1, 200_000, 200_000))


def test_a_longer_launch_latency_delays_what_waits_for_the_launch(tmp_path: Path) -> None:
    assert scaled(tmp_path, "launch=3x", *late_peer()).predicted_ns == 220_000


def test_a_missing_rank_gives_an_interval_instead_of_a_number(tmp_path: Path) -> None:
    # All 100 µs transfer: 50 saved. None of them: nothing.
    prediction = scaled(tmp_path, "collective:all_reduce=0.5x", late_peer()[0])

    assert prediction.interval == Interval(150_000, 200_000, None)
    assert (prediction.predicted_ns, prediction.speedup, prediction.steady_ns) == (None, None, None)
    assert prediction.steps == (StepPrediction(1, 200_000, None, None),)
    assert prediction.ranks == (RankPrediction(0, 200_000, None, Interval(150_000, 200_000, None)),)
    assert (prediction.unsplit, prediction.ranks_to_add, prediction.unsure) == (1, (1,), ())


def test_slowing_an_unsplit_collective_orders_the_interval(tmp_path: Path) -> None:
    assert scaled(tmp_path, "collective:all_reduce=2x", late_peer()[0]).interval == Interval(200_000, 300_000, None)


def test_a_missing_rank_does_not_matter_to_a_change_elsewhere(tmp_path: Path) -> None:
    prediction = scaled(tmp_path, "host=1x", late_peer()[0])

    assert (prediction.predicted_ns, prediction.interval, prediction.unsplit) == (200_000, None, 0)


def test_notes_name_what_moved_nothing(tmp_path: Path) -> None:
    prediction = scaled(tmp_path, "class:conv=2x", *late_peer())

    assert notes(prediction) == ["class:conv=2x moved nothing in this job"]


def test_notes_say_why_there_is_an_interval(tmp_path: Path) -> None:
    (line,) = notes(scaled(tmp_path, "collective:*=0.5x", late_peer()[0]))

    assert line == (
        "1 collective records miss participants: the answer is an interval from none to all of their time being transfer; "
        "predicted_ns, speedup and steady_ns are null; add ranks 1"
    )


def test_a_wait_ends_no_earlier_because_its_rank_arrives_earlier(tmp_path: Path) -> None:
    # The launch at 10 comes at 5, so the all-reduce starts at 15. All of it transfer: 50 of its 100 µs, ends at 65. All of it
    # waiting for rank 1: it ends at 120 as before or, where rank 1 did nothing but host work, at 60. The 75 µs of host time
    # after the wake-up 5 later take half in all.
    prediction = predict(
        graph_of(tmp_path, late_peer()[0]), [parse_scale("collective:all_reduce=0.5x"), parse_scale("host=0.5x")]
    )

    assert prediction.interval == Interval(102_500, 162_500, None)
    (reason,) = prediction.unsure
    assert reason == (
        "host may change on the ranks that are not here too, all that they do or nothing: they are taken to have entered their "
        "first step no earlier than the ranks that are here"
    )
    assert notes(prediction)[-1] == reason


def test_a_change_that_moves_a_rank_s_arrival_gives_an_interval(tmp_path: Path) -> None:
    # The launch at 10 comes at 5. The all-reduce follows with its whole 100 µs and ends at 115; or it ends when rank 1 comes,
    # as recorded at 120; or at 60, where rank 1 did nothing but host work. The wake-up takes 5, the 75 µs after it 37.5.
    prediction = scaled(tmp_path, "host=0.5x", late_peer()[0])

    assert prediction.interval == Interval(102_500, 162_500, None)
    assert prediction.predicted_ns is None
    assert (prediction.unsplit, prediction.unsplit_moved, prediction.unsplit_kept, prediction.ranks_to_add) == (0, 1, 0, (1,))
    assert notes(prediction)[0] == (
        "1 collective records miss participants, and these ranks come to them at another time: the answer is an interval over "
        "when the missing ranks may come; predicted_ns, speedup and steady_ns are null; add ranks 1"
    )


def test_slower_it_may_end_as_much_later_as_all_that_others_did(tmp_path: Path) -> None:
    # Launched at 20 and begun at 30, the all-reduce ends at 130 all transfer, at 120 as recorded, at 240 where rank 1 did
    # nothing but host work; then 5 and twice 75.
    assert scaled(tmp_path, "host=2x", late_peer()[0]).interval == Interval(275_000, 395_000, None)


def test_a_number_stays_where_no_reading_changes_the_step(tmp_path: Path) -> None:
    # Nobody waits for the all-reduce, and the step ends with its mark.
    trace = TraceFile(0, 2).step(1, 0, 300).call("cudaLaunchKernel", 10, 5, 1).kernel(ALL_REDUCE, 20, 60, 7, 1)

    prediction = scaled(tmp_path, "launch=0.5x", trace.op("a", 200, 5))

    assert (prediction.predicted_ns, prediction.interval, prediction.unsplit_moved) == (300_000, None, 1)


def test_a_change_elsewhere_says_that_waiting_for_missing_ranks_is_kept(tmp_path: Path) -> None:
    # The kernel begins after the all-reduce has ended: no rank comes to a collective at another time.
    trace = late_peer()[0].call("cudaLaunchKernel", 160, 5, 3).kernel("gemm", 166, 10, 7, 3)

    prediction = scaled(tmp_path, "class:gemm=0.5x", trace)

    assert (prediction.interval, prediction.unsplit, prediction.unsplit_moved, prediction.unsplit_kept) == (None, 0, 0, 1)
    assert notes(prediction) == [
        "1 collective records miss participants and keep their time: how much of it is waiting, and what the change does to "
        "that, only the missing ranks tell"
    ]


def test_ranks_that_are_not_here_gain_by_every_transfer_before(tmp_path: Path) -> None:
    # Two streams. The first all-reduce takes 60 µs and this rank does not wait for it; the second starts on its own at 100
    # and ends at 200. The missing rank may come 30 + 50 µs earlier to the second: it ends at 120, not 150.
    trace = TraceFile(0, 2).step(1, 0, 300).call("cudaLaunchKernel", 10, 5, 1).kernel(ALL_REDUCE, 20, 60, 7, 1)
    trace.call("cudaLaunchKernel", 90, 5, 2).kernel(ALL_REDUCE, 100, 100, 8, 2)
    trace.call("cudaDeviceSynchronize", 100, 105).call("cudaDeviceSynchronize", 250, 5)

    assert scaled(tmp_path, "collective:*=0.5x", trace).interval == Interval(220_000, 300_000, None)


def test_a_group_that_is_whole_is_split_and_one_that_is_not_is_an_interval(tmp_path: Path) -> None:
    # Four ranks in two groups; of the second only rank 2 is here.
    ranks = [TraceFile(r, 4).step(1, 0, 300).op("a", 1, 1) for r in (0, 1, 2)]
    places = [("1", "[0, 1]", 100), ("1", "[0, 1]", 160), ("2", "[2, 3]", 100)]
    for trace, (group, members, start) in zip(ranks, places, strict=True):
        recorded: dict[str, Any] = {"Process Group Name": group, "Process Group Ranks": members, "Group size": 2, "Seq": 1}
        trace.kernel(ALL_REDUCE, start, 200 - start, 7, **recorded)

    graph = graph_of(tmp_path, *ranks)
    prediction = predict(graph, [parse_scale("collective:*=0.5x")])

    assert [(c.transfer_ns, c.absent) for c in graph.collectives] == [(40_000, ()), (None, (3,))]
    assert prediction.moved == {
        "all_reduce": Moved(1, 40_000, 20_000, "ratio"),
        "collective_unsplit": Moved(1, 100_000, 50_000, "ratio"),
    }
    assert (prediction.unsplit, prediction.ranks_to_add) == (1, (3,))
    assert [reason[:35] for reason in prediction.unsure] == ["the job has several process groups:"]


def test_notes_are_silent_where_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert notes(scaled(tmp_path, "collective:*=0.5x", *late_peer())) == []


def test_a_hardware_knob_says_what_it_assumes(tmp_path: Path) -> None:
    prediction = set_to(tmp_path, "fabric.scale_up.bandwidth=2x", *late_peer())

    assert prediction.assumed == (
        "hardware knobs are plain ratios: no efficiency curve, no uncertainty",
        "no host is recorded: the fabric between the ranks is taken to be scale_up",
    )


def test_device_work_of_no_known_class_is_unmodelled_by_a_device_knob(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("a", 10, 5).kernel("volta_sgemm", 20, 30, 7).kernel("mystery", 60, 10, 7)

    assert set_to(tmp_path, "accelerator.flops=2x", trace).unmodelled == Unmodelled(10_000, 0.25, ("mystery",))


def test_a_change_that_is_no_device_knob_leaves_nothing_unmodelled(tmp_path: Path) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("a", 10, 5).kernel("mystery", 60, 10, 7)

    assert scaled(tmp_path, "host=2x", trace).unmodelled == Unmodelled(0, 0.0, ())


@pytest.mark.parametrize(("text", "steady_ns"), [("host=1x", 120_000), ("host=2x", 240_000)])
def test_the_steady_state_is_predicted_beside_the_step(tmp_path: Path, text: str, steady_ns: int) -> None:
    trace = TraceFile(0, 1).step(1, 0, 100).op("a", 10, 5).step(2, 120, 100).op("b", 130, 5)

    prediction = scaled(tmp_path, text, trace)

    assert (prediction.baseline_steady_ns, prediction.steady_ns) == (120_000, steady_ns)


def test_without_stragglers_the_step_is_that_of_the_median_work(tmp_path: Path) -> None:
    # See uneven_ranks: 132, 132, 117 µs become 102, 102, 117.
    prediction = predict(graph_of(tmp_path, *uneven_ranks()), [], stragglers=False)

    assert (prediction.baseline_ns, prediction.predicted_ns) == (132_000, 117_000)
    assert [(r.baseline_ns, r.predicted_ns) for r in prediction.ranks] == [
        (132_000, 102_000),
        (132_000, 102_000),
        (117_000, 117_000),
    ]
    assert prediction.moved == {
        "host": Moved(1, 50_000, 20_000, "median"),
        "gemm": Moved(1, 60_000, 30_000, "median"),
        "late_entry": Moved(1, 30_000, 0, "median"),
    }


def test_changes_come_after_the_median(tmp_path: Path) -> None:
    # Kernels of 30 µs become 15: 102 - 15, and 117 - 15 on rank 2.
    changes = [parse_scale("class:gemm=0.5x")]

    prediction = predict(graph_of(tmp_path, *uneven_ranks()), changes, stragglers=False)

    assert [r.predicted_ns for r in prediction.ranks] == [87_000, 87_000, 102_000]
    assert prediction.moved["gemm"] == Moved(3, 120_000, 45_000, "median, ratio")
    assert prediction.moved["host"] == Moved(1, 50_000, 20_000, "median")


def test_notes_count_what_took_the_median_and_what_was_kept(tmp_path: Path) -> None:
    (line,) = notes(predict(graph_of(tmp_path, *uneven_ranks()), [], stragglers=False))

    assert line == (
        "20 tasks took the median over the ranks that do the same work; 3 that fewer than half of the ranks have were kept "
        "(6.7 % of the time of all); ranks that enter their first step at another time: 1"
    )


def test_one_rank_alone_is_told_that_there_is_nothing_to_compare(tmp_path: Path) -> None:
    prediction = predict(graph_of(tmp_path, uneven_ranks()[0]), [], stragglers=False)

    assert (prediction.predicted_ns, prediction.moved) == (132_000, {})
    assert prediction.unmoved_knobs == ("ideal stragglers",)
    assert notes(prediction) == [
        "ideal stragglers moved nothing in this job",
        "one rank has nothing to be compared with: --ideal stragglers needs the traces of several",
    ]
