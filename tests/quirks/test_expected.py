"""The right answers of the small broken inputs: what ``info`` names through the command line, the rest through Python."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tracereplay.cli.main import main
from tracereplay.graph.build import build_graph
from tracereplay.graph.kinds import EdgeKind, NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import replay
from tracereplay.replay.whatif import apply, parse_scale
from tracereplay.trace.collectives import keys_of, recorded_collectives
from tracereplay.trace.job import read_job
from tracereplay.trace.kineto import read_kineto
from tracereplay.trace.schema import DEVICE_ROLES, Role
from tracereplay.trace.steps import find_steps
from tracereplay.trace.table import EventTable

US = 1000
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="session")
def quirks() -> Path:
    """The folder of small broken inputs; skipped where it is absent unless ``TRACEREPLAY_REQUIRE_CORPUS=1``."""
    corpus = Path(os.environ.get("TRACEREPLAY_CORPUS", ROOT.parent / "shared" / "corpus"))
    folder = corpus.parent / "quirks"
    if folder.is_dir():
        return folder
    if os.environ.get("TRACEREPLAY_REQUIRE_CORPUS") == "1":
        pytest.fail(f"TRACEREPLAY_REQUIRE_CORPUS=1, but there are no quirks at {folder}")
    pytest.skip(f"no quirks at {folder}")


@pytest.fixture
def expected(quirks: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((quirks / "expected.json").read_text())
    return loaded


def busy_per_stream(rank: dict[str, Any]) -> dict[str, float]:
    busy: dict[str, float] = {}
    for s in rank["gpu"]["streams"]:
        busy[str(s["stream"])] = busy.get(str(s["stream"]), 0) + s["busy_ns"] / US
    return busy


# How info's JSON answers a key of expected.json: (rank entry) -> value in the units of the file.
ANSWERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "events": lambda r: r["events"],
    "salvage_events": lambda r: r["events"],
    "kernels": lambda r: r["counts"]["kernel"],
    "salvage_kernels": lambda r: r["counts"]["kernel"],
    "kernels_recorded": lambda r: r["counts"]["kernel"],
    "memcpy": lambda r: r["counts"]["memcpy"],
    "cpu_ops": lambda r: r["counts"]["cpu_op"],
    "gpu_events": lambda r: sum(r["counts"][n] for n in ("kernel", "memcpy", "memset")),
    "busy": lambda r: r["gpu"]["busy_ns"] / US,
    "window": lambda r: r["gpu"]["window_ns"] / US,
    "idle": lambda r: r["gpu"]["idle_ns"] / US,
    "busy_ns": lambda r: r["gpu"]["busy_ns"],
    "window_ns": lambda r: r["gpu"]["window_ns"],
    "idle_ns": lambda r: r["gpu"]["idle_ns"],
    "overlap_ns": lambda r: r["gpu"]["same_stream_overlap_ns"],
    "same_stream_overlap": lambda r: r["gpu"]["same_stream_overlap_ns"] / US,
    "compute": lambda r: r["gpu"]["compute_ns"] / US,
    "comm": lambda r: r["gpu"]["comm_ns"] / US,
    "mem": lambda r: r["gpu"]["memory_ns"] / US,
    "overlap": lambda r: r["gpu"]["overlap_ns"] / US,
    "overlap_pct": lambda r: 100 * r["gpu"]["overlap_ns"] / r["gpu"]["compute_ns"],
    "exposed_comm": lambda r: r["gpu"]["exposed_comm_ns"] / US,
    "kernel_time_sum": lambda r: r["gpu"]["work_ns"] / US,
    "repaired_kernel_time_sum": lambda r: r["gpu"]["work_ns"] / US,
    "raw_kernel_time_sum": lambda r: r["gpu"]["raw_work_ns"] / US,
    "raw_window": lambda r: r["gpu"]["raw_window_ns"] / US,
    "linked": lambda r: r["links"]["linked"],
    "orphans": lambda r: r["links"]["orphans"],
    "launches_without_kernel": lambda r: r["links"]["launches_without_work"],
    "impossible": lambda r: r["quality"]["impossible_durations"],
    "clock_violations": lambda r: r["quality"]["clock_violations"],
    "complete": lambda r: r["quality"]["complete"],
    "repaired_strings": lambda r: r["quality"]["repaired_strings"],
    "nonfinite_values": lambda r: r["quality"]["nonfinite_values"],
    "rank": lambda r: r["rank"],
    "world_size": lambda r: r["world_size"],
    "devices": lambda r: [d["device"] for d in r["gpu"]["devices"]],
    "busy_per_device": lambda r: {str(d["device"]): d["busy_ns"] / US for d in r["gpu"]["devices"]},
    "idle_per_device": lambda r: {str(d["device"]): d["idle_ns"] / US for d in r["gpu"]["devices"]},
    "common_window": lambda r: r["gpu"]["window_ns"] / US,
    "busy_per_stream": busy_per_stream,
    "whole_steps": lambda r: {str(s["number"]): s["dur_ns"] / US for s in r["steps"] if s["whole"]},
    "cut_steps": lambda r: [s["number"] for s in r["steps"] if not s["whole"]],
}


FILES = (
    "q01a_cut_in_event.json",
    "q01b_no_closing.json",
    "q02a_control_chars.json",
    "q02b_invalid_utf8.json",
    "q03a_backslashes.json",
    "q03b_bare_quotes.json",
    "q04_nonfinite.json",
    "q05_containers/a_gzip_but_named.json",
    "q05_containers/b_plain_but_named.json.gz",
    "q05_containers/c_two_members.json.gz",
    "q05_containers/g_bom.json",
    "q05_containers/h_one_member.zip",
    "q05_containers/i_bare_array_open.json",
    "q05_containers/j_metadata_last.json",
    "q06_ts_spellings.json",
    "q07_ns_on_epoch.json",
    "q08_bad_durations.json",
    "q09_cuda_graph.json",
    "q10_orphans.json",
    "q12_before_launch.json",
    "q13_pdl_overlap.json",
    "q14_impossible_dur.json",
    "q15_sync_and_annotations.json",
    "q16_names.json",
    "q17_amd.json",
    "q18_id_types.json",
    "q19_two_devices.json",
    "q21a_steps_cut.json",
    "q21b_steps_overlap.json",
    "q27_order_and_bleed.json",
)
# Keys that info's JSON does not name; each has a test of its own below.
BY_PYTHON = {
    "strict",
    "bad_bytes",
    "names",
    "bytes",
    "starts_ns",
    "durs_ns",
    "kernels_timed",
    "kernels_invalid",
    "cpu_ops_unfinished",
    "launches",
    "kernels_per_launch",
    "launch_delay",
    "graph_kernel_time",
    "pairs",
    "op_kernel_time",
    "idle_in_step",
    "allreduce",
    "all_to_all",
    "streams",
    "comms_id",
    "pooled_idle_wrong",
    "mean_step",
    "gpu_by_launch",
    "gpu_by_time",
    "overlapping_step_pairs",
    "ops",
    "kernel_owner",
    "parent",
    "launch_nesting_by_time_only",
    "dropped",
    "gpu_events_in_step_1",
}


def info(capsys: Capture, *arguments: str) -> dict[str, Any]:
    status = main(["info", *arguments, "--json"])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    result: dict[str, Any] = json.loads(captured.out)["result"]
    return result


@pytest.mark.parametrize("name", FILES)
def test_info_gives_the_right_answers(name: str, quirks: Path, expected: dict[str, Any], capsys: Capture) -> None:
    rank = info(capsys, str(quirks / name))["ranks"][0]

    wanted = {key: value for key, value in expected[name].items() if key not in BY_PYTHON}
    if name.startswith("q21b"):
        wanted.pop("overlap")  # of steps, not of compute and communication
    assert wanted
    assert {key: ANSWERS[key](rank) for key in wanted} == wanted


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("q01a_cut_in_event.json", "truncated"),
        ("q01b_no_closing.json", "truncated"),
        ("q05_containers/f_cut.json.gz", "truncated gzip stream"),
        ("q02a_control_chars.json", "repaired_strings"),
        ("q04_nonfinite.json", "nonfinite_values"),
    ],
)
def test_strict_refuses(name: str, says: str, quirks: Path, capsys: Capture) -> None:
    status = main(["info", str(quirks / name), "--strict"])

    assert status == 3
    assert says in capsys.readouterr().err


def test_a_cut_names_the_last_whole_event_and_the_length(quirks: Path) -> None:
    quality = read_kineto(quirks / "q01a_cut_in_event.json").quality

    assert quality.damage == "truncated: the last whole event is 'cudaLaunchKernel' (event 3), the text ends at byte 951"


def test_where_the_end_is_lost_there_is_no_idle_figure(quirks: Path, capsys: Capture) -> None:
    rank = info(capsys, str(quirks / "q01a_cut_in_event.json"))["ranks"][0]

    assert (rank["gpu"]["window_ns"], rank["gpu"]["idle_ns"]) == (None, None)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("q05_containers/d_two_documents.json.gz", "two JSON documents"),
        ("q05_containers/e_empty.json.gz", "empty"),
        ("q28_empties/a_metadata_only.json", "no analysable events"),
        ("q28_empties/d_no_events.json", "no analysable events"),
        ("q28_empties/f_execution_trace.json", "execution trace, not a Kineto trace"),
    ],
)
def test_what_is_no_trace_is_named(name: str, says: str, quirks: Path, capsys: Capture) -> None:
    status = main(["info", str(quirks / name)])

    assert status == 3
    assert says in capsys.readouterr().err


def test_a_cut_gzip_is_salvaged_as_far_as_it_inflates(quirks: Path) -> None:
    table = read_kineto(quirks / "q05_containers/f_cut.json.gz")

    assert len(table) == 1
    assert not table.quality.complete


@pytest.mark.parametrize("name", ["q03a_backslashes.json", "q03b_bare_quotes.json"])
def test_names_come_out_as_written(name: str, quirks: Path, expected: dict[str, Any]) -> None:
    assert set(expected[name]["names"]) <= set(read_kineto(quirks / name).names)


def test_numbers_of_any_spelling_are_exact(quirks: Path, expected: dict[str, Any]) -> None:
    table = read_kineto(quirks / "q06_ts_spellings.json")

    assert table.column("ts_ns").tolist() == expected["q06_ts_spellings.json"]["starts_ns"]
    assert table.column("dur_ns").tolist() == expected["q06_ts_spellings.json"]["durs_ns"]


def test_bytes_of_copies_are_kept(quirks: Path, expected: dict[str, Any]) -> None:
    table = read_kineto(quirks / "q04_nonfinite.json")

    assert sum(table.args_of(int(r))["bytes"] for r in table.rows_of(Role.MEMCPY)) == expected["q04_nonfinite.json"]["bytes"]


def test_bad_durations_are_told_apart(quirks: Path, expected: dict[str, Any]) -> None:
    table = read_kineto(quirks / "q08_bad_durations.json")
    kernels, ops = table.rows_of(Role.KERNEL), table.rows_of(Role.CPU_OP)
    timed = int((table.column("dur_ns")[kernels] >= 0).sum())

    right = expected["q08_bad_durations.json"]
    assert (timed, kernels.size - timed) == (right["kernels_timed"], right["kernels_invalid"])
    assert int((table.column("dur_ns")[ops] < 0).sum()) == right["cpu_ops_unfinished"]


def delays_us(table: EventTable) -> list[float]:
    """Work start minus launch start, in order of the work."""
    work = table.rows_of(*DEVICE_ROLES)
    launch = table.column("launch_row")[work]
    ts = table.column("ts_ns")
    return [(int(ts[w]) - int(ts[c])) / US for w, c in zip(work, launch, strict=True) if c >= 0]


def test_one_graph_launch_has_many_kernels(quirks: Path, expected: dict[str, Any]) -> None:
    table = read_kineto(quirks / "q09_cuda_graph.json")
    right = expected["q09_cuda_graph.json"]
    work = table.rows_of(Role.KERNEL)
    launch, correlation = table.column("launch_row")[work], table.column("correlation")
    per_launch: dict[str, list[int]] = {}
    for w, c in zip(work.tolist(), launch.tolist(), strict=True):
        per_launch.setdefault(str(correlation[c]), []).append(w)

    assert {k: len(v) for k, v in per_launch.items()} == right["kernels_per_launch"]
    ts, dur = table.column("ts_ns"), table.column("dur_ns")
    first = {k: (int(ts[v].min()) - int(ts[table.column("launch_row")[v[0]]])) / US for k, v in per_launch.items()}
    assert first == right["launch_delay"]
    assert int(dur[per_launch["50"]].sum()) / US == right["graph_kernel_time"]


def test_a_reused_id_is_paired_in_time_order_and_names_no_operator(quirks: Path, expected: dict[str, Any]) -> None:
    table = read_kineto(quirks / "q11_id_reuse.json")
    right = expected["q11_id_reuse.json"]
    work = table.rows_of(Role.KERNEL)
    ts, dur = table.column("ts_ns"), table.column("dur_ns")
    launch, owner = table.column("launch_row")[work], table.column("owner_row")[work]

    assert [[int(ts[c]) / US, int(ts[w]) / US] for w, c in zip(work, launch, strict=True)] == right["pairs"]
    assert delays_us(table) == right["launch_delay"]
    by_op = dict.fromkeys(right["op_kernel_time"], 0.0)
    for w, o in zip(work.tolist(), owner.tolist(), strict=True):
        by_op[table.name_of(o)] += int(dur[w]) / US
    assert by_op == right["op_kernel_time"]


def test_a_kernel_before_its_launch_is_linked_and_counted(quirks: Path, expected: dict[str, Any]) -> None:
    table = read_kineto(quirks / "q12_before_launch.json")

    assert delays_us(table) == expected["q12_before_launch.json"]["launch_delay"]
    assert table.quality.clock_violations == expected["q12_before_launch.json"]["clock_violations"]


def test_idle_time_within_a_step(quirks: Path, expected: dict[str, Any]) -> None:
    table = read_kineto(quirks / "q15_sync_and_annotations.json")
    step = find_steps(table).whole[0]
    work = table.rows_of(*DEVICE_ROLES)
    ticks = {
        t
        for w in work.tolist()
        for t in range(int(table.column("ts_ns")[w]), int(table.column("ts_ns")[w] + table.column("dur_ns")[w]), US)
    }
    inside = sum(step.start_ns <= t < step.end_ns for t in ticks)

    assert step.dur_ns / US - inside == expected["q15_sync_and_annotations.json"]["idle_in_step"]


def test_collectives_are_named_by_their_args_first(quirks: Path, expected: dict[str, Any]) -> None:
    totals: dict[str, float] = {}
    for c in recorded_collectives(read_kineto(quirks / "q16_names.json")):
        totals[c.name] = totals.get(c.name, 0) + (c.end_ns - c.start_ns) / US

    right = expected["q16_names.json"]
    assert totals == {"all_reduce": right["allreduce"], "all_to_all": right["all_to_all"]}


def test_ids_of_any_size_are_exact(quirks: Path, expected: dict[str, Any]) -> None:
    table = read_kineto(quirks / "q18_id_types.json")
    right = expected["q18_id_types.json"]
    ids = {str(table.args_of(int(r)).get("Comms Id")) for r in table.rows_of(Role.KERNEL)}

    assert sorted({str(s) for s in table.column("stream")[table.rows_of(Role.KERNEL)]}) == right["streams"]
    assert right["comms_id"] in ids


def test_device_time_by_launch_and_by_time(quirks: Path, expected: dict[str, Any]) -> None:
    table = read_kineto(quirks / "q21a_steps_cut.json")
    right = expected["q21a_steps_cut.json"]
    ts, dur = table.column("ts_ns"), table.column("dur_ns")
    marks = find_steps(table)
    by_time, by_launch = {}, {"none": 0.0}
    for step in marks.whole:
        inside = [min(int(ts[w] + dur[w]), step.end_ns) - max(int(ts[w]), step.start_ns) for w in table.rows_of(Role.KERNEL)]
        by_time[str(step.number)] = sum(max(i, 0) for i in inside) / US
    open_end = (str(marks.cut[0]), marks.whole[-1].end_ns, 1 << 62)
    borders = [*((str(s.number), s.start_ns, s.end_ns) for s in marks.whole), open_end]
    for w in table.rows_of(Role.KERNEL).tolist():
        called = int(ts[table.column("launch_row")[w]])
        name = next((n for n, a, b in borders if a <= called < b), "none")
        by_launch[name] = by_launch.get(name, 0.0) + int(dur[w]) / US

    assert by_time == right["gpu_by_time"]
    assert by_launch == right["gpu_by_launch"]


def test_overlapping_steps_are_told_apart_by_thread(quirks: Path, expected: dict[str, Any]) -> None:
    table = read_kineto(quirks / "q21b_steps_overlap.json")
    right = expected["q21b_steps_overlap.json"]
    marks = find_steps(table).whole
    pairs = [(a, b) for a in marks for b in marks if a.number < b.number and a.end_ns > b.start_ns]

    assert (len(pairs), (pairs[0][0].end_ns - pairs[0][1].start_ns) / US) == (right["overlapping_step_pairs"], right["overlap"])
    number_of = {}
    for row in table.rows_of(Role.CPU_OP).tolist():
        step = next(s for s in marks if s.row == int(table.column("parent_row")[row]))
        number_of[table.name_of(row)] = step.number
    assert number_of == right["ops"]


def test_ranks_and_their_conflict(quirks: Path, expected: dict[str, Any], capsys: Capture) -> None:
    status = main(["info", str(quirks / "q22_ranks"), "--json"])

    captured = capsys.readouterr()
    result, right = json.loads(captured.out)["result"], expected["q22_ranks"]
    assert status == 3
    assert "c.json" in captured.err
    assert "d.json" in captured.err
    by_source: dict[str, set[int | None]] = {}
    for r in result["ranks"]:
        by_source.setdefault(r["rank_source"], set()).add(r["rank"])
    assert by_source["metadata"] == set(right["from_metadata"])
    assert by_source["filename"] == set(right["from_file_name"])
    assert [Path(r["file"]).name for r in result["ranks"] if r["rank_source"] == "none"] == right["no_rank"]
    conflict = result["job"]["conflicts"][0]
    assert {str(conflict["rank"]): [Path(f).name for f in conflict["files"]]} == right["conflict"]
    busy = {str(r["rank"]): r["gpu"]["busy_ns"] / US for r in result["ranks"] if r["rank"] in (0, 1, 2)}
    assert busy == right["busy"]


@pytest.mark.parametrize("name", ["q23a_clock_offset", "q23b_clock_drift"])
def test_clocks_are_aligned_by_the_ends_of_collectives(name: str, quirks: Path, expected: dict[str, Any]) -> None:
    job = read_job([str(quirks / name)])
    right = expected[name]
    clock = job.ranks[1].clock
    raw = read_kineto(quirks / name / "rank1.json")
    ends = raw.column("ts_ns") + raw.column("dur_ns")
    offsets = [round((int(end) - int(clock.corrected(ends)[i])) / US) for i, end in enumerate(ends)]

    graph = build_graph(job)
    waits = {str(r): [round((c.wait_ns or ())[r] / US) for c in graph.collectives] for r in (0, 1)}
    late = [max(range(2), key=lambda r: c.start_ns[r]) for c in graph.collectives]

    assert offsets == right["offset_rank1"]
    assert late == right["late_rank"]
    assert waits == right["wait"]
    assert [round((c.transfer_ns or 0) / US) for c in graph.collectives] == right["transfer"]


def test_groups_are_matched_by_sequence_number(quirks: Path, expected: dict[str, Any], capsys: Capture) -> None:
    right = expected["q24_groups"]
    tables = [read_kineto(quirks / "q24_groups" / f"rank{r}.json") for r in (0, 1)]
    seqs = []
    for table in tables:
        rows = recorded_collectives(table)
        keys = keys_of(rows, find_steps(table).whole)
        seqs.append({k.seq: c for k, c in zip(keys, rows, strict=True) if k.group == "5"})

    matched = sorted(set(seqs[0]) & set(seqs[1]), key=str)
    assert matched == right["pg5_matched_seq"]
    assert {str(r): sorted(set(s) - set(matched), key=str) for r, s in enumerate(seqs)} == right["pg5_unmatched"]
    skew = {str(s): abs(seqs[0][s].start_ns - seqs[1][s].start_ns) / US for s in matched}
    assert skew == right["pg5_start_skew"]
    zero = [c for c in recorded_collectives(tables[0]) if c.group == "0"]
    assert {c.group_size for c in zero} == {right["pg0_size"]}
    bare = [c for c in recorded_collectives(tables[0]) if c.group is None]
    assert len(bare) == right["collectives_without_metadata"]
    result = info(capsys, str(quirks / "q24_groups"))
    assert result["job"]["common_steps"] == right["common_steps"]
    means = {str(r["rank"]): sum(s["dur_ns"] for s in r["steps"] if s["whole"]) / US / 3 for r in result["ranks"]}
    assert means == right["mean_step"]


def test_owners_are_named_by_external_id(quirks: Path, expected: dict[str, Any]) -> None:
    table = read_kineto(quirks / "q27_order_and_bleed.json")
    right = expected["q27_order_and_bleed.json"]
    kernels = table.rows_of(Role.KERNEL).tolist()
    owner, parent = table.column("owner_row"), table.column("parent_row")
    ops = {table.name_of(r): r for r in table.rows_of(Role.CPU_OP).tolist()}

    assert {table.name_of(k): table.name_of(int(owner[k])) for k in kernels} == right["kernel_owner"]
    assert {name: table.name_of(int(parent[ops[name]])) for name in right["parent"]} == right["parent"]
    sticking = next(int(table.column("launch_row")[k]) for k in kernels if table.name_of(k) == "kern")
    assert table.name_of(int(parent[sticking])) == right["launch_nesting_by_time_only"]


def test_a_kernel_before_its_launch_is_clamped_counted_and_named(
    quirks: Path, expected: dict[str, Any], capsys: Capture
) -> None:
    path = quirks / "q12_before_launch.json"
    right = expected[path.name]
    graph = build_graph(read_job([str(path)]))
    nodes = {graph.name_of(n): n for n in range(len(graph)) if graph.nodes.kind[n] == NodeKind.DEVICE}
    launches = {graph.name_of(d): s for s, d, k in edges_of(graph) if k == EdgeKind.LAUNCH}

    schedule = replay(graph)
    delays = [int(schedule.start_ns[nodes[name]] - schedule.start_ns[launches[name]]) / US for name in ("too_early", "fine")]
    document = run(capsys, "replay", path)

    assert delays_us(graph.tables[0]) == right["launch_delay"] == [-2, 3]
    assert delays == [0, 3]
    assert graph.replay_order.size == len(graph)
    assert int(schedule.end_ns.max()) == 123 * US
    assert document["result"]["coverage"]["clock_violations"] == right["clock_violations"]
    assert document["warnings"] == [
        "q12_before_launch.json: 1 clock violations, tasks recorded up to 2.0 µs before what they wait for (launch 1): they "
        "are replayed later than recorded"
    ]
    assert (document["result"]["measured_ns"], document["result"]["replayed_ns"]) == (25 * US, 25 * US)


WHAT_IFS = {
    "what_if_A_half": ["kernel:A=0.5x"],
    "what_if_B_half": ["kernel:B=0.5x"],
    "what_if_A_and_B_half": ["kernel:A=0.5x", "kernel:B=0.5x"],
}


def test_a_wait_is_for_its_event_and_for_nothing_that_was_launched_after_it(quirks: Path, expected: dict[str, Any]) -> None:
    right = expected["q20_event_wait.json"]
    graph = build_graph(read_job([str(quirks / "q20_event_wait.json")]))
    waits = {
        (graph.name_of(s), graph.name_of(d)) for s, d, k in edges_of(graph) if k not in (EdgeKind.LAUNCH, EdgeKind.THREAD_ORDER)
    }

    assert waits == {tuple(edge) for edge in right["edges"]}
    assert not waits & {tuple(edge) for edge in right["not_edges"]}
    assert int(replay(graph).end_ns.max()) == right["makespan_end"] * US


@pytest.mark.parametrize("question", WHAT_IFS)
def test_a_faster_producer_moves_what_waits_for_it_and_a_faster_other_one_does_not(
    question: str, quirks: Path, expected: dict[str, Any], capsys: Capture
) -> None:
    path = quirks / "q20_event_wait.json"
    right = expected[path.name][question]
    graph = build_graph(read_job([str(path)]))
    c = next(n for n in range(len(graph)) if graph.name_of(n) == "C")

    schedule = replay(graph, apply(graph, [parse_scale(text) for text in WHAT_IFS[question]]).timing)
    result = run(capsys, "whatif", path, *(word for text in WHAT_IFS[question] for word in ("--scale", text)))["result"]

    assert [int(schedule.start_ns[c]) / US, int(schedule.end_ns[c]) / US] == right["C"]
    assert int(schedule.end_ns.max()) / US == right["end"]
    # The trace has no marks: one step from its first event at 100 to its last end.
    assert result["baseline_ns"] == (212 - 100) * US
    assert result["predicted_ns"] == (right["end"] - 100) * US
    assert [step["number"] for step in result["steps"]] == [0]
    assert result["unmoved_knobs"] == []


def run(capsys: Capture, verb: str, path: Path, *words: str) -> dict[str, Any]:
    assert main([verb, str(path), *words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def edges_of(graph: DependencyGraph) -> list[tuple[int, int, int]]:
    """Source, destination and kind of each edge."""
    edges = graph.edges
    return list(zip(edges.src.tolist(), edges.dst.tolist(), edges.kind.tolist(), strict=True))


def test_cpu_only_and_gpu_only_say_what_is_not_recorded(quirks: Path, capsys: Capture) -> None:
    cpu = info(capsys, str(quirks / "q28_empties/b_cpu_only.json"))["ranks"][0]
    gpu = info(capsys, str(quirks / "q28_empties/c_gpu_only.json"))["ranks"][0]

    assert (cpu["counts"]["cpu_op"], cpu["gpu"]) == (2, None)
    assert (gpu["counts"]["kernel"], gpu["gpu"]["busy_ns"] / US) == (2, 30)
    assert gpu["links"]["launches_without_work"] is None


def test_names_of_2021(quirks: Path, expected: dict[str, Any], capsys: Capture) -> None:
    rank = info(capsys, str(quirks / "q28_empties/e_legacy_names.json"))["ranks"][0]
    right = expected["q28_empties"]["e"]
    table = read_kineto(quirks / "q28_empties/e_legacy_names.json")
    kernel = int(table.rows_of(Role.KERNEL)[0])

    assert (rank["counts"]["kernel"], rank["counts"]["memcpy"], rank["links"]["linked"]) == (1, 1, 1)
    assert [rank["gpu"][f"{n}_ns"] / US for n in ("busy", "window", "idle")] == [right[n] for n in ("busy", "window", "idle")]
    assert table.name_of(int(table.column("owner_row")[kernel])) == right["owner"]


def test_vendor_copies_count_as_memory_and_in_their_step(quirks: Path, expected: dict[str, Any]) -> None:
    table = read_kineto(quirks / "q17_amd.json")
    step = find_steps(table).whole[0]
    work = table.rows_of(*DEVICE_ROLES)
    ts = table.column("ts_ns")[work]

    assert int(((ts >= step.start_ns) & (ts < step.end_ns)).sum()) == expected["q17_amd.json"]["gpu_events_in_step_1"]


def test_every_key_of_expected_is_asked_for(expected: dict[str, Any]) -> None:
    asked = set(ANSWERS) | BY_PYTHON
    assert {key for name in FILES for key in expected[name]} <= asked
