"""``make bench``, sweeps: a hundred points beside reading the same trace and building its graph.

What is timed: ``read`` reads the trace's files; ``build`` builds their graph; ``hbm``, ``links``, ``grid`` make a sweep of a
hundred points of it, from the settings to intervals and what binds: over one figure of the accelerators, over one of the fabric
(whose collectives are modelled anew at each point), over both. Each is a process of its own, with one call that is not counted.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import in_a_process, spread, timed

SECONDS = 5
POINTS = 100
SWEEPS = {
    "hbm": ("accelerator.hbm.bandwidth=1x:8x:100",),
    "links": ("fabric.scale_up.bandwidth=1x:64x:100:log",),
    "grid": ("accelerator.flops=1x:8x:10", "fabric.scale_up.bandwidth=1x:8x:10"),
}
REPEATS = 3


def measure(what: str, path: Path, source: str | None) -> Callable[[], object]:
    """The call to time."""
    from tracereplay.analyzers.sweep import Setup, sweep  # noqa: PLC0415 - each process imports what it measures
    from tracereplay.graph.build import build_graph  # noqa: PLC0415
    from tracereplay.hardware.ranges import parse_axis  # noqa: PLC0415
    from tracereplay.replay.move import Mover  # noqa: PLC0415
    from tracereplay.replay.site import goal_of, source_of  # noqa: PLC0415
    from tracereplay.trace.job import read_job  # noqa: PLC0415

    if what == "read":
        return lambda: read_job([str(path)])
    job = read_job([str(path)])
    if what == "build":
        return lambda: build_graph(job)
    graph = build_graph(job)
    axes = [parse_axis(text) for text in SWEEPS[what]]

    def run() -> object:
        site = source_of(graph, source)
        return sweep(graph, axes, Setup(mover=Mover.of(graph, site), goal=goal_of(site, None)))

    return run


def run_one(what: str, path: Path, source: str | None) -> dict[str, float]:
    """The figures of one process."""
    return timed(measure(what, path, source), REPEATS)


def report(path: Path, source: str) -> None:
    """One trace: reading and building, then each sweep beside the seconds that it may take."""
    sys.stdout.write(f"\n{path.name}, sweeps of {POINTS} points\n")
    for what in ("read", "build", *SWEEPS):
        row = in_a_process("benchmarks.sweep", ["--one", what, "--from", source, str(path)])
        if isinstance(row, str):
            raise SystemExit(f"{what} of {path}: {row}")
        share = f", {row['seconds'] / SECONDS:.2f} of the {SECONDS} s" if what in SWEEPS else ""
        sys.stdout.write(f"  {what:<6} {spread(row)}{share}\n")
        sys.stdout.flush()


def main() -> None:
    """Measure the given traces that are there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", choices=("read", "build", *SWEEPS))
    parser.add_argument("--from", dest="source", default="dgx1-v100")
    parser.add_argument("paths", nargs="*", type=Path)
    given = parser.parse_args()
    if given.one:
        sys.stdout.write(json.dumps(run_one(given.one, given.paths[0], given.source)) + "\n")
        return
    for path in given.paths:
        if path.exists():
            report(path, given.source)
        else:
            sys.stdout.write(f"{path} is not there: not measured\n")


if __name__ == "__main__":
    main()
