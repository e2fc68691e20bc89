"""Faults that were found and mended: each test begins with what was wrong."""

from pathlib import Path

import pytest

from tests.fakes.jobs import graph_of, table_of
from tests.fakes.kineto import TraceFile
from tracereplay.analyzers.accuracy import assess
from tracereplay.errors import TraceError
from tracereplay.trace.decimal_time import parse_us_to_ns
from tracereplay.trace.kineto import read_kineto


def test_an_execution_trace_is_named_as_one(tmp_path: Path) -> None:
    # Bug: `msgspec.Raw | None` only takes null, so "schema" and "nodes" give "Expected `null`, got `str`".
    path = tmp_path / "et.json"
    path.write_text('{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": []}')

    with pytest.raises(TraceError, match="an execution trace, not a Kineto trace"):
        read_kineto(path)


@pytest.mark.parametrize(
    "text", [b"1e30", b"9223372036854775807", b"9999999999999999", b"-9999999999999999", b"1e400", b"1e999999999"]
)
def test_a_time_beyond_64_bits_of_nanoseconds_is_invalid(text: bytes) -> None:
    # Bug: OverflowError (exit 70) from the slow path, a wrapped-around time from the compiled one (16 digits times 1000).
    _, valid = parse_us_to_ns([b"1", text])

    assert valid.tolist() == [True, False]


def test_an_event_with_an_impossible_time_is_dropped_and_counted(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().op("a", "1e30", 1).op("b", 1, 1))

    assert (table.names, table.quality.invalid_times) == (["b"], 1)


@pytest.mark.parametrize("offset_ns", [400_000, -400_000, 5_000_000])
def test_ranks_whose_clocks_differ_are_given_back_without_error(tmp_path: Path, offset_ns: int) -> None:
    # Bug: clocks are not aligned. The split of the all-reduce needs no common clock, but the replay's rendezvous does:
    # an offset of 0.4 ms makes a step of 0.2 ms 175 % longer, one of 5 ms 2,475 %.
    ranks = [
        TraceFile(rank, 2, base_ns=offset_ns * rank + 10_000_000)
        .step(1, 0, 200)
        .call("cudaLaunchKernel", launch, 5, 1)
        .kernel("ncclDevKernel_AllReduce", launch + 10, dur, 7, 1)
        .call("cudaStreamSynchronize", launch + 20, 105 - launch)
        .call("cudaStreamSynchronize", 150, 2)
        for rank, launch, dur in ((0, 10, 100), (1, 60, 50))
    ]

    assert assess(graph_of(tmp_path, *ranks)).error == 0.0


@pytest.mark.parametrize("row", [{"id": "first", "name": "V100"}, {"id": None, "name": "V100"}])
def test_a_device_without_a_numeric_id_is_left_out(tmp_path: Path, row: dict[str, object]) -> None:
    # Bug: int() of whatever stands there: ValueError or TypeError, exit 70 for a file that can be read.
    trace = TraceFile().op("a", 1, 1)
    trace.header["deviceProperties"] = [row]

    assert table_of(tmp_path, trace).header.devices == ()
