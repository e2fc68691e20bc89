import json
import re
from pathlib import Path

import pytest

from tests.fakes.jobs import table_of
from tests.fakes.kineto import TraceFile
from tracereplay.errors import TraceError
from tracereplay.trace.kineto import read_kineto
from tracereplay.trace.schema import Role
from tracereplay.trace.table import Group, Header, Quality


def file_with(folder: Path, text: str) -> Path:
    path = folder / "rank0.json"
    path.write_text(text)
    return path


def test_times_are_exact_to_the_nanosecond_at_epoch_scale(tmp_path: Path) -> None:
    trace = TraceFile().op("aten::mm", "1783322452123456.100", "0.001").op("aten::mm", "1783322452123456.101", 2.5)

    table = table_of(tmp_path, trace)

    assert table.column("ts_ns").tolist() == [1_783_322_452_123_456_100, 1_783_322_452_123_456_101]
    assert table.column("dur_ns").tolist() == [1, 2_500]


def test_base_time_is_added_to_starts_and_not_to_durations(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile(base_ns=1_683_115_176_000_000_007).op("aten::mm", 10, 5))

    assert table.column("ts_ns").tolist() == [1_683_115_176_000_010_007]
    assert table.column("dur_ns").tolist() == [5_000]


def test_a_bare_array_of_events_is_a_trace(tmp_path: Path) -> None:
    path = file_with(tmp_path, ' [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]')

    table = read_kineto(path)

    assert (table.name_of(0), table.column("ts_ns")[0], table.column("dur_ns")[0]) == ("aten::mm", 1_000, 2_000)


def test_rows_keep_their_place_among_all_recorded_events(tmp_path: Path) -> None:
    trace = TraceFile().op("first", 5, 1).op("third", 1, 1)
    trace.events.insert(1, {"ph": "M", "name": "process_name"})
    trace.events.append({"ph": "s", "name": "ac2g", "ts": 1})

    table = table_of(tmp_path, trace)

    assert table.column("event").tolist() == [0, 2]
    assert table.recorded_events == 4


def test_categories_of_today_and_of_2021_give_the_same_roles(tmp_path: Path) -> None:
    today = TraceFile().event("cpu_op", "a", 1, 1).event("cuda_runtime", "b", 2, 1).event("gpu_memcpy", "c", 3, 1)
    old = TraceFile().event("Operator", "a", 1, 1).event("Runtime", "b", 2, 1).event("Memcpy", "c", 3, 1)

    roles = table_of(tmp_path, today).column("role").tolist()

    assert roles == [Role.CPU_OP, Role.RUNTIME, Role.MEMCPY]
    assert table_of(tmp_path, old).column("role").tolist() == roles


def test_an_unknown_category_is_kept_with_no_role(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().event("brand_new", "x", 1, 1))

    assert table.column("role").tolist() == [Role.OTHER]


def test_ids_may_be_written_as_text(tmp_path: Path) -> None:
    args = {"device": "1", "stream": "7", "correlation": "42", "External id": "9"}
    table = table_of(tmp_path, TraceFile().event("kernel", "k", 1, 1, args=args))

    assert [int(table.column(name)[0]) for name in ("device", "stream", "correlation", "external_id")] == [1, 7, 42, 9]


def test_the_lower_case_spelling_of_the_external_id_is_read(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().event("cpu_op", "a", 1, 1, args={"external id": 5}))

    assert table.column("external_id").tolist() == [5]


def test_an_id_that_is_no_64_bit_number_is_not_recorded(tmp_path: Path) -> None:
    trace = TraceFile().event("kernel", "k", 1, 1, pid="x", args={"stream": "seven", "device": 2**70, "correlation": 1.5})
    table = table_of(tmp_path, trace)

    assert [table.table.column(name)[0].as_py() for name in ("stream", "device", "correlation")] == [None, None, None]


@pytest.mark.parametrize("correlation", [0, -1, "0", None])
def test_correlation_ids_that_mean_none_are_null(tmp_path: Path, correlation: int | str | None) -> None:
    table = table_of(tmp_path, TraceFile().event("kernel", "k", 1, 1, args={"correlation": correlation}))

    assert table.table.column("correlation").to_pylist() == [None]


def test_args_that_are_no_object_are_kept_as_text_and_give_no_ids(tmp_path: Path) -> None:
    trace = TraceFile().op("a", 1, 1)
    trace.events[0]["args"] = [1, 2]

    table = table_of(tmp_path, trace)

    assert (json.loads(table.with_text().column("text")[0].as_py())["args"], table.args_of(0)) == ([1, 2], {})
    assert table.table.column("stream").to_pylist() == [None]


def test_a_device_row_without_a_device_takes_it_from_its_pid(tmp_path: Path) -> None:
    trace = TraceFile().event("kernel", "k", 1, 1, pid=3).event("cpu_op", "a", 1, 1, pid=4)

    assert table_of(tmp_path, trace).table.column("device").to_pylist() == [3, None]


def test_a_missing_duration_is_null_and_counted(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().event("cpu_op", "a", 1, None).op("b", 2, 3))

    assert table.table.column("dur_ns").to_pylist() == [None, 3_000]
    assert table.quality.invalid_times == 1


def test_a_negative_duration_is_null_and_counted(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().op("a", 1, -4))

    assert table.table.column("dur_ns").to_pylist() == [None]
    assert table.quality.invalid_times == 1


def test_an_event_without_a_start_is_dropped_and_counted(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().event("cpu_op", "a", None, 1).op("b", 2, 3))

    assert (table.names, table.quality.invalid_times) == (["b"], 1)


def test_an_event_without_ids_and_name_has_empty_text(tmp_path: Path) -> None:
    path = file_with(tmp_path, '{"traceEvents": [{"ph": "X", "ts": 1, "dur": 1}]}')

    table = read_kineto(path)

    assert (table.dictionary("name"), table.dictionary("pid"), table.dictionary("tid")) == ([""], [""], [""])


def test_the_header_says_rank_size_backend_host_and_groups(tmp_path: Path) -> None:
    trace = TraceFile(rank=1, world_size=4, backend="nccl", groups={"0": [0, 1, 2, 3]}, host_name="node0").op("a", 1, 1)

    header = table_of(tmp_path, trace).header

    assert (header.rank, header.world_size, header.backend, header.host) == (1, 4, "nccl", "node0")
    assert header.groups == (Group("0", "", "", 4, (0, 1, 2, 3)),)


def test_a_process_group_with_a_cut_list_of_ranks_keeps_its_size_only(tmp_path: Path) -> None:
    trace = TraceFile().op("a", 1, 1)
    row = {"pg_name": "1", "pg_desc": "tp", "backend_config": "cuda:nccl", "pg_size": 64, "ranks": [0, 1, "..."]}
    trace.header["distributedInfo"] = {"pg_config": [row, {"no": "name"}, "text"]}

    assert table_of(tmp_path, trace).header.groups == (Group("1", "tp", "cuda:nccl", 64, None),)


def test_a_process_group_without_a_size_has_as_many_ranks_as_it_lists(tmp_path: Path) -> None:
    trace = TraceFile().op("a", 1, 1)
    trace.header["distributedInfo"] = {"pg_config": [{"pg_name": "1", "ranks": [2, 3]}, {"pg_name": "2"}]}

    assert table_of(tmp_path, trace).header.groups == (Group("1", "", "", 2, (2, 3)), Group("2", "", "", None, None))


def test_groups_written_as_text_are_not_read(tmp_path: Path) -> None:
    trace = TraceFile().op("a", 1, 1)
    trace.header["distributedInfo"] = {"pg_config": "[]", "rank": "2"}

    header = table_of(tmp_path, trace).header

    assert (header.rank, header.groups) == (2, ())


def test_devices_come_from_the_headers_properties(tmp_path: Path) -> None:
    trace = TraceFile().op("a", 1, 1)
    trace.header["deviceProperties"] = [{"id": 0, "name": "Tesla V100"}, {"name": "no id"}]

    header = table_of(tmp_path, trace).header

    assert [(device.id, device.name) for device in header.devices] == [(0, "Tesla V100")]


def test_a_trace_without_a_header_says_nothing_of_itself(tmp_path: Path) -> None:
    header = table_of(tmp_path, TraceFile().op("a", 1, 1)).header

    assert (header.rank, header.world_size, header.backend, header.host, header.devices) == (None, None, None, None, ())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"b": 1, "a": 2}', "no traceEvents among its keys (a, b)"),
        ("{}", "no traceEvents among its keys (none)"),
        ('{"traceEvents": []}', "no analysable events"),
        ('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "na', "truncated: no event is whole, the text ends at byte 49"),
        ('{"traceEv', "no Kineto trace: no traceEvents, and not JSON either"),
        ("hello", "no Kineto trace: no traceEvents, and not JSON either"),
        ('"text"', "JSON of another kind: neither an object nor an array of events"),
    ],
)
def test_what_is_no_kineto_trace_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = file_with(tmp_path, text)

    with pytest.raises(TraceError, match=re.escape(words)) as caught:
        read_kineto(path)

    assert caught.value.where == str(path)


def test_bytes_that_are_no_text_are_replaced_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json"
    path.write_bytes(b'{"traceEvents": [{"ph": "X", "name": "a\xffb", "ts": 1, "dur": 1}]}')

    table = read_kineto(path)

    assert (table.names, table.quality) == (["a\ufffdb"], Quality(repaired_strings=1))


def test_a_cut_document_gives_its_whole_events_and_says_where_it_ends(tmp_path: Path) -> None:
    text = TraceFile().op("a", 1, 1).op("b", 2, 1).encode()[:-20]
    path = file_with(tmp_path, text.decode())

    table = read_kineto(path)

    assert (table.names, table.recorded_events) == (["a"], 1)
    assert table.quality == Quality(
        complete=False,
        damage=f"truncated: the last whole event is 'a' (event 0), the text ends at byte {len(text)}",
        end_lost=True,
    )


@pytest.mark.parametrize("cut", [1, 2])
def test_a_document_without_its_closing_brackets_has_lost_no_event(tmp_path: Path, cut: int) -> None:
    path = file_with(tmp_path, TraceFile().op("a", 1, 1).op("b", 2, 1).encode()[:-cut].decode())

    table = read_kineto(path)

    assert (table.names, table.quality.complete, table.quality.end_lost) == (["a", "b"], False, False)


@pytest.mark.parametrize("text", ['[{"ph":"X","name":"a","ts":1,"dur":1}', '[{"ph":"X","name":"a","ts":1,"dur":1},\n'])
def test_a_bare_array_may_stay_open(tmp_path: Path, text: str) -> None:
    table = read_kineto(file_with(tmp_path, text))

    assert (table.names, table.quality) == (["a"], Quality())


def test_the_header_may_stand_after_the_events(tmp_path: Path) -> None:
    text = '{"traceEvents": [{"ph":"X","name":"a","ts":1,"dur":1}], "distributedInfo": {"rank": 5, "world_size": 8}}'

    header = read_kineto(file_with(tmp_path, text)).header

    assert (header.rank, header.world_size) == (5, 8)


def test_a_header_that_cannot_be_read_is_not_recorded_and_counted(tmp_path: Path) -> None:
    table = read_kineto(file_with(tmp_path, '{"a" "b" {, "traceEvents": [{"ph":"X","name":"a","ts":1,"dur":1}]}'))

    assert (table.names, table.header, table.quality.quarantined_events) == (["a"], Header(), 1)


@pytest.mark.parametrize("space", ["", "\n", " ,\n"])
def test_a_second_document_is_refused_with_its_place(tmp_path: Path, space: str) -> None:
    first = TraceFile().op("a", 1, 1).encode().decode()

    with pytest.raises(
        TraceError, match=rf"two JSON documents in one file \(the second one begins at byte {len(first + space)}\)"
    ):
        read_kineto(file_with(tmp_path, first + space + first))


def test_an_event_that_cannot_be_read_is_left_out_and_counted_and_keeps_its_place(tmp_path: Path) -> None:
    text = '[{"ph":"X","name":"a","ts":1,"dur":1},{"ph":"X" "ts" 5},{"ph":"X","name":"c","ts":3,"dur":1}]'

    table = read_kineto(file_with(tmp_path, text))

    assert (table.names, table.column("event").tolist(), table.recorded_events) == (["a", "c"], [0, 2], 3)
    assert table.quality == Quality(quarantined_events=1)


def test_numbers_that_are_not_finite_are_null_and_counted(tmp_path: Path) -> None:
    text = '[{"ph":"X","name":"a","ts":1,"dur":1,"args":{"x":inf,"y":-Infinity,"z":NaN,"bytes":7}}]'

    table = read_kineto(file_with(tmp_path, text))

    assert table.args_of(0) == {"x": None, "y": None, "z": None, "bytes": 7}
    assert table.quality == Quality(nonfinite_values=3)


def test_work_knows_its_launch_its_owner_and_calls_their_parents(tmp_path: Path) -> None:
    trace = TraceFile().op("mm", 0, 50).call("cudaLaunchKernel", 10, 5, 1).kernel("k", 20, 30, 7, 1)

    table = table_of(tmp_path, trace).table

    links = [table.column(name).to_pylist() for name in ("parent_row", "launch_row", "owner_row")]
    assert links == [[None, 0, None], [None, None, 1], [None, None, 0]]


def test_work_that_starts_before_its_launch_is_linked_and_counted(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().call("cudaLaunchKernel", 10, 5, 1).kernel("k", 8, 30, 7, 1))

    assert (table.column("launch_row").tolist(), table.quality) == ([-1, 0], Quality(clock_violations=1))


def test_a_record_that_was_lost_has_no_duration(tmp_path: Path) -> None:
    far = 1_783_322_452_000_000
    table = table_of(tmp_path, TraceFile().kernel("lost", 0, 0, 7).kernel("b", far, 5, 7).kernel("c", far + 10, 5, 7))

    assert (table.table.column("dur_ns").to_pylist(), table.table.column("raw_dur_ns").to_pylist()) == (
        [None, 5000, 5000],
        [0, 5000, 5000],
    )
    assert (table.column("time_class").tolist(), table.quality.invalid_times) == ([3, 0, 0], 1)


def test_a_duration_that_cannot_be_true_is_cut_and_counted(tmp_path: Path) -> None:
    table = table_of(tmp_path, TraceFile().kernel("a", 0, 100, 7).kernel("b", 10, 20, 7))

    assert (table.column("dur_ns").tolist(), table.column("raw_dur_ns").tolist()) == ([10_000, 20_000], [100_000, 20_000])
    assert table.quality == Quality(impossible_durations=1)
