"""HTA's critical path beside our replay: in, a rank's file and its steps; out, the longest path and the window that it covers.

HTA lives in an environment of its own and runs there as ``python -m benchmarks.hta_path FILE [STEP...]``. It is given the
steps that we measure, the last one included, or the whole trace where the trace has no marks. Its graph covers the time from
its first node to its last: that is the window, and device work that the step enqueued and that ends after its mark is in it.
What HTA raises is its answer, word by word.
"""

import argparse
import json
import logging
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.graph import hta_version
from benchmarks.measure import in_a_process

_MARK = "ProfilerStep#"


@dataclass(frozen=True, slots=True)
class HtaRank:
    """One rank: the sums over its steps of HTA's longest path and of the window that it covers, in ns."""

    path_ns: int
    window_ns: int
    steps: int

    @property
    def error(self) -> float:
        """The path against the window, as a fraction."""
        return self.path_ns / self.window_ns - 1


@dataclass(frozen=True, slots=True)
class HtaAnswer:
    """What HTA said of a job: a figure for each rank that it could do, and why it failed on others or on steps of them."""

    ranks: tuple[HtaRank, ...]
    failures: tuple[str, ...]


def ask_hta(paths: Sequence[str], numbers: Sequence[int], python: str) -> HtaAnswer:
    """HTA's critical path of each file, rank by rank, by the interpreter of an environment that has HTA."""
    ranks, failures = [], []
    for path in paths:
        answer = in_a_process("benchmarks.hta_path", [path, *map(str, numbers)], python=python)
        if isinstance(answer, str):
            failures.append(answer)
            continue
        failures += [step["failure"] for step in answer["steps"] if "failure" in step]
        done = [step for step in answer["steps"] if "failure" not in step]
        if done:
            ranks.append(HtaRank(sum(s["path_ns"] for s in done), sum(s["window_ns"] for s in done), len(done)))
    return HtaAnswer(tuple(ranks), tuple(failures))


def critical_paths(path: Path, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """For each step number, or once for a whole trace, HTA's figures or its failure. Runs where HTA is installed."""
    logging.disable(logging.WARNING)
    from hta.trace_analysis import TraceAnalysis  # noqa: PLC0415 - not installed where our own parts run

    analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(path.parent), include_last_profiler_step=True)
    if not numbers:
        return [_figures(analysis, "", None)]
    instances = _instances(analysis)
    return [_figures(analysis, _MARK, instances[n]) if n in instances else {"failure": f"HTA has no step {n}"} for n in numbers]


def _instances(analysis: Any) -> dict[int, int]:
    """How HTA counts the marks of steps: it takes those on the device for further instances of the same annotation."""
    ids = analysis.t.symbol_table.get_sym_id_map()
    names = {number: name for name, number in ids.items()}
    frame = analysis.t.get_trace(0)
    marks = frame[frame.name.isin([number for name, number in ids.items() if _MARK in name])]
    pairs = enumerate(zip(marks.name, marks.cat, strict=True))
    on_host = [(i, names[int(name)]) for i, (name, cat) in pairs if names[int(cat)] != "gpu_user_annotation"]
    return {int(name.removeprefix(_MARK)): i for i, name in on_host if name.removeprefix(_MARK).isdigit()}


def _figures(analysis: Any, annotation: str, instance: int | None) -> dict[str, Any]:
    try:
        graph, found = analysis.critical_path_analysis(rank=0, annotation=annotation, instance_id=instance)
    except Exception as error:  # noqa: BLE001 - whatever HTA raises is its answer
        where = traceback.extract_tb(error.__traceback__)[-1].name
        return {"failure": f"{type(error).__name__}: {str(error) or f'in {where}'}"}
    if not found:
        return {"failure": "HTA says that its graph is not valid"}
    times = [node.ts for node in graph.node_list]
    path_us = sum(edge.weight for edge in graph.critical_path_edges_set)
    return {"path_ns": round(1000 * path_us), "window_ns": round(1000 * (max(times) - min(times)))}


def version_of(python: str) -> str:
    """Name and version of the HTA of an environment, or why it cannot be asked."""
    answer = in_a_process("benchmarks.hta_path", ["--version"], python=python)
    return answer if isinstance(answer, str) else str(answer["hta"])


def main() -> None:
    """Print one JSON line: the version, or the figures of one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", action="store_true")
    parser.add_argument("path", nargs="?", type=Path)
    parser.add_argument("steps", nargs="*", type=int)
    given = parser.parse_args()
    answer = {"hta": hta_version()} if given.version else {"steps": critical_paths(given.path, given.steps)}
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
