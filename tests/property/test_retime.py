"""A schedule written as a trace: as recorded it is the recording; under any change events nest and wait as the graph says."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.simulated import jobs, wild_jobs
from tracereplay.graph.build import build_graph
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import replay
from tracereplay.replay.retime import retime
from tracereplay.replay.steps import step_times
from tracereplay.replay.whatif import apply, parse_scale
from tracereplay.report.trace_file import trace_files
from tracereplay.trace.job import Job, read_job
from tracereplay.trace.schema import DEVICE_ROLES, HOST_ROLES

FEW = settings(max_examples=40, deadline=None)
CHANGES = st.sampled_from(["host=0.5x", "host=3x", "kernel:*=2x", "kernel:*=0.1x", "collective:*=0.5x", "launch=4x"])


def built(traces: list[TraceFile]) -> DependencyGraph:
    with tempfile.TemporaryDirectory() as folder:
        return graph_of(Path(folder), *traces)


def written(graph: DependencyGraph, *changes: str) -> Job:
    """The job that the files of a re-timed graph hold."""
    timing = apply(graph, [parse_scale(change) for change in changes]).timing
    with tempfile.TemporaryDirectory() as folder:
        for rank, text in enumerate(trace_files(graph, retime(graph, replay(graph, timing)), compress=False)):
            (Path(folder) / f"rank{rank}.json").write_bytes(text)
        return read_job([folder])


@FEW
@given(jobs())
def test_the_recorded_hardware_gives_the_recording_back(traces: list[TraceFile]) -> None:
    graph = built(traces)

    job = written(graph)

    for old, trace in zip(graph.tables, job.ranks, strict=True):
        for column in ("ts_ns", "dur_ns", "role", "device", "stream", "correlation", "parent_row", "launch_row"):
            assert trace.table.column(column).tolist() == old.column(column).tolist()
        assert [trace.table.name_of(r) for r in range(len(old))] == [old.name_of(r) for r in range(len(old))]


@FEW
@given(jobs(), CHANGES)
def test_events_nest_and_a_re_read_trace_has_the_same_steps(traces: list[TraceFile], change: str) -> None:
    graph = built(traces)
    timing = apply(graph, [parse_scale(change)]).timing

    job = written(graph, change)

    for old, trace in zip(graph.tables, job.ranks, strict=True):
        table = trace.table
        begin, end = table.column("ts_ns"), table.column("ts_ns") + table.column("dur_ns")
        host = old.rows_of(*HOST_ROLES)
        inner = host[old.column("parent_row")[host] >= 0]
        outer = old.column("parent_row")[inner]
        assert (begin[outer] <= begin[inner]).all()
        assert (end[inner] <= end[outer]).all()
        work = old.rows_of(*DEVICE_ROLES)
        linked = work[old.column("launch_row")[work] >= 0]
        assert (begin[old.column("launch_row")[linked]] <= begin[linked]).all()
    marks = {(t.rank, t.number): t.end_ns - t.start_ns for t in step_times(build_graph(job), replay(build_graph(job)))}
    assert marks == {(t.rank, t.number): t.end_ns - t.start_ns for t in step_times(graph, replay(graph, timing))}


@FEW
@given(wild_jobs(), CHANGES)
def test_any_trace_gives_files_that_can_be_read_and_every_event_is_kept_or_counted(
    traces: list[TraceFile], change: str
) -> None:
    graph = built(traces)
    timing = apply(graph, [parse_scale(change)]).timing

    events = retime(graph, replay(graph, timing))

    for table, retimed in zip(graph.tables, events, strict=True):
        assert retimed.row.size + sum(retimed.left_out.values()) == len(table)
        assert (retimed.dur_ns >= 0).all()
        assert np.unique(retimed.row).size == retimed.row.size
    with tempfile.TemporaryDirectory() as folder:
        for rank, text in enumerate(trace_files(graph, events, compress=True)):
            (Path(folder) / f"rank{rank}.json.gz").write_bytes(text)
        found = read_job([folder])
    for trace, retimed in zip(found.ranks, events, strict=True):
        assert len(trace.table) == retimed.row.size
        assert trace.table.quality.quarantined_events == trace.table.quality.repaired_strings == 0
