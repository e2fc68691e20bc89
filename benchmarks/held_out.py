"""``python -m benchmarks.held_out PATHS...``: steps predicted from the other steps, a table row a step; each path is one job.

The spread of a job's recorded steps, (max - min) / median, stands beside the errors: steps that differ by themselves cannot
be predicted from each other more closely than that.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracereplay.analyzers.held_out import HeldOut, hold_out
from tracereplay.errors import TracereplayError
from tracereplay.graph.build import build_graph
from tracereplay.trace.job import read_job

FEWEST_STEPS = 3
_HEAD = ("job", "step", "measured ms", "predicted ms", "error", "only here", "median error", "spread")


@dataclass(frozen=True, slots=True)
class Row:
    """One job: its name, and what came out; ``found`` is None with fewer than ``FEWEST_STEPS`` whole steps."""

    name: str
    found: HeldOut | None


def held_out_rows(paths: Sequence[str]) -> list[Row]:
    """A row for each job; each path is one job's files.

    Raises:
        TracereplayError: a path that cannot be read.
    """
    rows = []
    for path in paths:
        graph = build_graph(read_job([path]))
        enough = len(graph.step_numbers) >= FEWEST_STEPS
        rows.append(Row("/".join(Path(path).parts[-2:]), hold_out(graph) if enough else None))
    return rows


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| " + " | ".join(_HEAD) + " |", "|---" * len(_HEAD) + "|"]
    for row in rows:
        if row.found is None:
            lines.append(f"| {row.name} | fewer than {FEWEST_STEPS} whole steps | | | | | | |")
            continue
        for position, step in enumerate(row.found.steps):
            whole = ("", "", "")
            if position == 0:
                whole = (row.name, f"{100 * row.found.median_error:.1f} %", f"{100 * row.found.spread:.1f} %")
            cells = (
                whole[0],
                str(step.number),
                f"{step.measured_ns / 1e6:.3f}",
                f"{step.predicted_ns / 1e6:.3f}",
                f"{100 * step.error:+.1f} %",
                f"{100 * step.only_here_share:.1f} %",
                *whole[1:],
            )
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def run(arguments: Sequence[str]) -> int:
    """Print the table of the paths given; the exit code is that of the error, if any."""
    parser = argparse.ArgumentParser(prog="benchmarks.held_out", description="predict each step from the other steps")
    parser.add_argument("paths", nargs="+", help="trace files, folders or quoted globs, each one job")
    try:
        sys.stdout.write(table(held_out_rows(parser.parse_args(arguments).paths)))
    except TracereplayError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
