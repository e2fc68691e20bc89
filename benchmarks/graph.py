"""``make bench``, graph and replay: ours beside HTA's critical path on the same traces in one run.

What is timed: ``graph`` builds the dependency graph of traces that have been read; ``replay`` re-times it once; ``batch``
makes a thousand scenarios of it (random factors on host and device work, from the factors to the steps); ``hta`` is HTA's
``critical_path_analysis`` of the whole trace, its graph and the longest path, after its own loader has read it. Each is
a process of its own: one call that is not counted, then median and spread. HTA lives in an environment of its own (its
0.5.0 fails on pandas 3, its successor traceinsight does not): the first given one that can is used, and named.
"""

import argparse
import json
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.generate import generated
from benchmarks.measure import in_a_process, spread, timed

if TYPE_CHECKING:
    from tracereplay.graph.model import DependencyGraph
    from tracereplay.replay.engine import Timing

NODES_PER_SECOND = 300_000
MILLION_NODES_MS = 100
BATCH_SECONDS = 2
SCENARIOS = 1_000
# A generated trace of six events an operator gives seven tasks for it: these make 1,000,000, 20,000 and 120,000.
MILLION, BATCH, COMPARED = 857_200, 17_200, 103_000
REPEATS = {"graph": 5, "replay": 21, "batch": 5, "hta": 3}

Call = Callable[[], object]


def measure_graph(path: Path) -> tuple[Call, int]:
    """Building the graph, and its tasks."""
    from tracereplay.graph.build import build_graph  # noqa: PLC0415 - each process imports what it measures
    from tracereplay.trace.job import read_job  # noqa: PLC0415

    job = read_job([str(path)])
    return lambda: build_graph(job), len(build_graph(job))


def measure_replay(path: Path) -> tuple[Call, int]:
    """One pass over the graph, and its tasks."""
    from tracereplay.replay.engine import replay  # noqa: PLC0415

    graph = _graph(path)
    return lambda: replay(graph), len(graph)


def measure_batch(path: Path) -> tuple[Call, int]:
    """A thousand scenarios from their factors to their steps, and the graph's tasks."""
    from tracereplay.replay.batch import replay_steps  # noqa: PLC0415

    graph = _graph(path)
    return lambda: replay_steps(graph, _scenarios(graph)), len(graph)


def _graph(path: Path) -> "DependencyGraph":
    from tracereplay.graph.build import build_graph  # noqa: PLC0415
    from tracereplay.trace.job import read_job  # noqa: PLC0415

    return build_graph(read_job([str(path)]))


def _scenarios(graph: "DependencyGraph") -> "Iterator[Timing]":
    """Random factors between a half and twice for each kind of task of each class, the same in every run."""
    import numpy as np  # noqa: PLC0415

    from tracereplay.replay.engine import recorded_timing  # noqa: PLC0415

    recorded, rng = recorded_timing(graph), np.random.default_rng(1)
    classes = graph.nodes.kind.astype(np.int64) * 100 + graph.nodes.work_class
    _, group = np.unique(classes, return_inverse=True)
    for _ in range(SCENARIOS):
        factor = rng.uniform(0.5, 2, int(group.max()) + 1)
        yield replace(recorded, dur_ns=np.rint(recorded.dur_ns * factor[group]).astype(np.int64))


def measure_hta(path: Path) -> tuple[Call, int]:
    """HTA's critical path of the whole trace, and the nodes of its graph."""
    logging.disable(logging.WARNING)
    from hta.trace_analysis import TraceAnalysis  # noqa: PLC0415 - not installed where our own parts run

    analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(path.parent))

    def analyse() -> int:
        graph, found = analysis.critical_path_analysis(rank=0, annotation="", instance_id=None)
        if not found:
            raise RuntimeError("HTA found no critical path")
        return int(graph.number_of_nodes())

    return analyse, analyse()


MEASURES = {"graph": measure_graph, "replay": measure_replay, "batch": measure_batch, "hta": measure_hta}


def run_one(what: str, path: Path) -> dict[str, float]:
    """The figures of one process."""
    call, nodes = MEASURES[what](path)
    return timed(call, REPEATS[what], warm_up=what != "hta") | {"nodes": nodes}


def measured(what: str, path: Path, python: str = sys.executable) -> dict[str, float] | str:
    """``run_one`` in a process of its own; a line that says why where it fails."""
    return in_a_process("benchmarks.graph", ["--one", what, str(path)], python=python)


def must(what: str, path: Path) -> dict[str, float]:
    """A measurement of ours, which has no reason to fail."""
    row = measured(what, path)
    if isinstance(row, str):
        raise SystemExit(f"{what} of {path}: {row}")
    return row


def hta_version() -> str:
    """HTA as installed in this environment, under either of its names."""
    for name in ("traceinsight", "holistictraceanalysis"):
        try:
            return f"{name} {metadata.version(name)}, pandas {metadata.version('pandas')}"
        except metadata.PackageNotFoundError:
            continue
    raise SystemExit("HTA is not installed")


def hta(path: Path, pythons: list[str]) -> tuple[dict[str, float], str] | None:
    """HTA's figures of a trace and which HTA gave them: the first environment in which it runs through."""
    for python in pythons:
        named = in_a_process("benchmarks.graph", ["--which-hta"], python=python)
        name = named["hta"] if isinstance(named, dict) else python
        row = measured("hta", path, python)
        if isinstance(row, dict):
            return row, str(name)
        _write(f"  {name}: not measured ({row})")
    return None


def report(name: str, path: Path, pythons: list[str]) -> dict[str, float]:
    """Graph and replay of one trace, HTA's critical path beside them; the replay's figures."""
    graph, replay = must("graph", path), must("replay", path)
    nodes = graph["nodes"]
    _write(f"\n{name}: {nodes:,.0f} tasks")
    _write(
        f"  graph   {spread(graph)}  {nodes / graph['seconds']:12,.0f} nodes/s, "
        f"{nodes / graph['seconds'] / NODES_PER_SECOND:.1f} x the wanted {NODES_PER_SECOND:,}"
    )
    _write(f"  replay  {spread(replay, 'ms')}  {nodes / replay['seconds']:12,.0f} nodes/s")
    found = hta(path, pythons) if pythons else None
    if found is None:
        return replay
    row, version = found
    ours = graph["seconds"] + replay["seconds"]
    _write(f"  hta     {spread(row)}  {row['nodes'] / row['seconds']:12,.0f} nodes/s  ({version}; {row['nodes']:,.0f} nodes)")
    _write(
        f"  graph and replay over HTA's critical path: {row['seconds'] / ours:,.0f} x the speed, "
        f"{nodes / ours / (row['nodes'] / row['seconds']):,.0f} x the nodes/s"
    )
    return replay


def report_limits(million: Path, batch: Path) -> None:
    """The replay of a million tasks and a thousand scenarios of twenty thousand, beside what is wanted."""
    row = report(f"{million.name}, generated", million, [])
    million_ms = row["seconds"] * 1e3 * 1e6 / row["nodes"]
    _write(
        f"  replay of 1,000,000 tasks: {million_ms:.1f} ms, {million_ms / MILLION_NODES_MS:.2f} of the {MILLION_NODES_MS} ms"
    )
    row = must("batch", batch)
    _write(
        f"\n{SCENARIOS:,} scenarios of {row['nodes']:,.0f} tasks ({batch.name}): {spread(row)}, "
        f"{row['seconds'] / BATCH_SECONDS:.2f} of the {BATCH_SECONDS} s; peak {row['peak_mb']:.0f} MB"
    )


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Measure the given traces that are there, or a generated one where none is, then what is asked of large graphs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", choices=sorted(MEASURES))
    parser.add_argument("--which-hta", action="store_true")
    parser.add_argument("--hta", action="append", default=[], metavar="PYTHON")
    parser.add_argument("paths", nargs="*", type=Path)
    given = parser.parse_args()
    if given.which_hta:
        _write(json.dumps({"hta": hta_version()}))
        return
    if given.one:
        _write(json.dumps(run_one(given.one, given.paths[0])))
        return
    present = [path for path in given.paths if path.exists()]
    for path in given.paths:
        if path not in present:
            _write(f"{path} is not there: not measured")
    for path in present:
        # HTA analyses one rank.
        report(f"{path.parent.name}/{path.name}", path, [] if path.is_dir() else given.hta)
    if all(path.is_dir() for path in present):
        _write("\nno trace of the corpus is there: HTA is compared on a generated one")
        path = generated(COMPARED)
        report(path.name, path, given.hta)
    report_limits(generated(MILLION), generated(BATCH))


if __name__ == "__main__":
    main()
