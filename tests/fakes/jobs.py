"""Traces to what the stages make of them: in, trace files not yet written; out, tables, jobs and graphs."""

from pathlib import Path

from tests.fakes.kineto import TraceFile
from tracereplay.graph.build import build_graph
from tracereplay.graph.model import DependencyGraph
from tracereplay.trace.job import Job, read_job
from tracereplay.trace.kineto import read_kineto
from tracereplay.trace.table import EventTable


def table_of(folder: Path, trace: TraceFile) -> EventTable:
    """The event table of one trace."""
    return read_kineto(trace.write(folder))


def job_of(folder: Path, *traces: TraceFile) -> Job:
    """The job of one trace a rank."""
    return read_job([str(trace.write(folder)) for trace in traces])


def graph_of(folder: Path, *traces: TraceFile) -> DependencyGraph:
    """The dependency graph of one trace a rank."""
    return build_graph(job_of(folder, *traces))
