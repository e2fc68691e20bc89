from pathlib import Path

import pytest

from tests.fakes.jobs import table_of
from tests.fakes.kineto import TraceFile
from tracereplay.trace.schema import Role
from tracereplay.trace.table import EventTable, Header, Quality


def test_names_are_distinct_and_rows_point_at_them(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().op("mm", 1, 1).op("add", 2, 1).op("mm", 3, 1))

    assert (table.names, table.codes("name").tolist()) == (["mm", "add"], [0, 1, 0])
    assert table.name_of(2) == "mm"


def test_a_numeric_column_has_minus_one_where_nothing_is_recorded(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().op("mm", 1, 1).kernel("k", 2, 1, stream=7))

    assert table.column("stream").tolist() == [-1, 7]


def test_args_of_a_row_are_decoded_on_demand(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().event("cpu_op", "mm", 1, 1, args={"Input Dims": [[2, 3]]}).op("add", 2, 1))

    assert (table.args_of(0), table.args_of(1)) == ({"Input Dims": [[2, 3]]}, {})


def test_args_that_are_no_object_are_empty(tmp_path: Path) -> None:
    trace = TraceFile().op("mm", 1, 1)
    trace.events[0]["args"] = "text"

    assert table_of(tmp_path, trace).args_of(0) == {}


def test_rows_of_roles_stay_in_file_order(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().kernel("k", 9, 1, stream=7).op("mm", 1, 1).memset("m", 2, 1, stream=7))

    assert table.rows_of(Role.MEMSET, Role.KERNEL).tolist() == [0, 2]


def test_a_table_with_other_columns_is_our_fault(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().op("mm", 1, 1))

    with pytest.raises(ValueError, match="schema"):
        EventTable("x", table.table.drop_columns(["stream"]), Header(), Quality(), 1, table.text)


def test_a_table_with_a_row_without_a_start_is_our_fault(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().event("cpu_op", "mm", 1, None))
    broken = table.table.set_column(1, table.table.schema.field("ts_ns"), table.table.column("dur_ns"))

    with pytest.raises(ValueError, match="without a start"):
        EventTable("x", broken, Header(), Quality(), 1, table.text)


def test_work_without_a_recorded_stream_is_never_impossible(tmp_path: Path) -> None:
    # On one stream the first would hold the whole second.
    apart, together = TraceFile(), TraceFile()
    for ts, dur in ((10, 50), (20, 5)):
        apart.event("kernel", "k", ts, dur, pid=0, tid="no stream", args={"device": 0})
        together.kernel("k", ts, dur, stream=7)

    found = [table_of(tmp_path, trace) for trace in (apart, together)]

    assert [table.column("dur_ns").tolist() for table in found] == [[50_000, 5_000], [10_000, 5_000]]
    assert [table.quality.impossible_durations for table in found] == [0, 1]
