from pathlib import Path

from tests.fakes.jobs import table_of
from tests.fakes.kineto import TraceFile
from tracereplay.graph.wake_up import wake_up_ns


def test_a_wake_up_is_the_median_from_the_end_of_work_to_the_return_of_the_call(tmp_path: Path) -> None:
    trace = TraceFile().kernel("a", 10, 30, 7).call("cudaStreamSynchronize", 20, 24)
    trace.kernel("b", 100, 30, 7).call("hipDeviceSynchronize", 120, 16).kernel("c", 200, 30, 7).call(
        "cuCtxSynchronize", 210, 29
    )

    assert wake_up_ns(table_of(tmp_path, trace)) == 6_000  # of 4, 6 and 9 µs


def test_calls_inside_which_nothing_ended_say_nothing(tmp_path: Path) -> None:
    trace = TraceFile().kernel("a", 10, 30, 7).call("cudaStreamSynchronize", 50, 3).call("cudaMemcpyAsync", 20, 40)

    assert wake_up_ns(table_of(tmp_path, trace)) == 0


def test_without_calls_or_work_there_is_none(tmp_path: Path) -> None:
    assert wake_up_ns(table_of(tmp_path, TraceFile().op("aten::mm", 0, 5))) == 0
