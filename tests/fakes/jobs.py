"""Traces to what the stages make of them: in, trace files not yet written; out, tables, jobs and graphs."""

import json
import re
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


def stored_files(folder: Path) -> dict[str, Path]:
    """The rank files of a job directory, which holds nothing else, by their names without the fresh part: ``rank3``."""
    names = [row["file"] for row in json.loads((folder / "job.json").read_text())["ranks"]]
    assert sorted(path.name for path in folder.iterdir()) == sorted([".lock", "job.json", *names])
    matches = [re.fullmatch(r"((?:rank|unranked)\d+)-[0-9a-f]{8}\.parquet", name) for name in names]
    return {match[1]: folder / match[0] for match in matches if match is not None}


def graph_of(folder: Path, *traces: TraceFile) -> DependencyGraph:
    """The dependency graph of one trace a rank."""
    return build_graph(job_of(folder, *traces))
