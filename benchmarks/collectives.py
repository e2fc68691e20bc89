"""``python -m benchmarks.collectives``: how close predicted collectives come to measured ones, as
``docs/accuracy-collectives.md``.

In: the corpus (``$TRACEREPLAY_CORPUS``, else ``../shared/corpus``) with NCCL's times on A100, H100 and V100. Out: the tables
on the screen, and the page, every figure of it measured in this run.
"""

import argparse
import csv
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import mean

import numpy as np
import numpy.typing as npt

from benchmarks import collectives_page
from benchmarks.accuracy import ROOT, corpus_folder
from benchmarks.collectives_page import SMALLEST, Carry, Recorded, Row, Table
from tests.fakes.fabrics import fabric, full, ring
from tracereplay.analyzers.attribution import attribute
from tracereplay.errors import TracereplayError, UsageError
from tracereplay.graph.build import build_graph
from tracereplay.hardware.collectives.calibration import Measured, calibrate, carry_over_collective
from tracereplay.hardware.collectives.fabric import Fabric
from tracereplay.hardware.collectives.model import collective_time
from tracereplay.hardware.collectives.of_platform import fabric_of
from tracereplay.hardware.collectives.schedules import KINDS, Kind
from tracereplay.hardware.load import load_platform
from tracereplay.trace.job import Extras, read_job

PAGE = ROOT / "docs" / "accuracy-collectives.md"
# The platform of the catalogue that stands for a system of the corpus.
PLATFORMS = {
    "a100_sxm": "dgx-a100",
    "h100_sxm": "dgx-h100",
    "vtrain a100": "dgx-a100",
    "vtrain v100": "dgx1-v100",
}
# A step of DLRM on 8 V100, all ranks of it.
RECORDED = "dlrm_v100x8"
_KINDS: dict[str, Kind] = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
}
_VTRAIN = re.compile(r"nccl_allreduce_(?P<gpu>[av]100)_AR_GPU(?P<ranks>\d)_.*\.csv")


@dataclass(frozen=True, slots=True)
class _Key:
    system: str
    version: str
    kind: Kind
    dtype: str
    ranks: int


def tables_of(corpus: Path) -> list[Table]:
    """Every table of NCCL's times in the corpus, sizes from 64 KiB on; several times of one size are averaged."""
    found: dict[_Key, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for key, size, ns in [*_nccl(corpus / "ground_truth"), *_vtrain(corpus / "ground_truth")]:
        if size >= SMALLEST:
            found[key][size].append(ns)
    return [
        Table(k.system, k.version, k.kind, k.dtype, k.ranks, tuple((size, mean(ns)) for size, ns in sorted(times.items())))
        for k, times in found.items()
    ]


def _nccl(folder: Path) -> Iterator[tuple[_Key, int, float]]:
    with (folder / "aiconfigurator" / "nccl_us.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            key = _Key(row["system"], row["ver"], _KINDS[row["op_name"]], row["nccl_dtype"], int(row["num_gpus"]))
            yield key, int(row["bytes"]), float(row["latency_us"]) * 1000


def _vtrain(folder: Path) -> Iterator[tuple[_Key, int, float]]:
    for path in sorted((folder / "vtrain").iterdir()):
        name = _VTRAIN.fullmatch(path.name)
        if name is None:
            continue
        with path.open(newline="") as file:
            for row in list(csv.reader(file))[1:]:
                yield _Key(f"vtrain {name['gpu']}", "", "all_reduce", "float", int(name["ranks"])), int(row[0]), float(row[3])


@cache
def fabric_for(system: str) -> Fabric:
    """The fabric of a system of the corpus."""
    return fabric_of(load_platform(PLATFORMS[system]))


def measured_row(table: Table) -> Row:
    """A table's errors: calibrated on its smallest and its largest size, as the catalogue has it, and of the line through the
    two; for all sizes between the two.
    """
    on = fabric_for(table.system)
    (small, small_ns), (large, large_ns) = table.points[0], table.points[-1]
    found = calibrate(on, table.kind, table.ranks, Measured(small, small_ns), Measured(large, large_ns))
    sizes, measured = (np.array(column, np.float64) for column in zip(*table.points[1:-1], strict=True))

    def predicted(**given: object) -> npt.NDArray[np.float64]:
        times = [collective_time(on, table.kind, size, table.ranks, **given) for size in sizes.tolist()]  # type: ignore[arg-type] # a calibration
        return np.array([time.time_ns for time in times], np.float64)

    line = small_ns + (large_ns - small_ns) * (sizes - small) / (large - small)
    return Row(table, found, *(times / measured - 1 for times in (predicted(calibration=found), predicted(), line)))


def carried_rows(tables: Sequence[Table]) -> list[Carry]:
    """Every A100 time of NCCL carried over to H100, beside the one measured there with the same version."""
    there = {(t.version, t.kind, t.dtype, t.ranks): dict(t.points) for t in tables if t.system == "h100_sxm"}
    rows = []
    for table in tables:
        other = there.get((table.version, table.kind, table.dtype, table.ranks))
        if table.system != "a100_sxm" or other is None:
            continue
        both = [(size, ns, other[size]) for size, ns in table.points if size in other]
        source, target = fabric_for("a100_sxm"), fabric_for("h100_sxm")
        carried = [carry_over_collective(table.kind, size, table.ranks, ns, source, target) for size, ns, _ in both]
        errors = np.array([c.time_ns / ns for c, (_, _, ns) in zip(carried, both, strict=True)]) - 1
        ratio = np.array([ns / fabric_ratio(source, target) / true for _, ns, true in both]) - 1
        rows.append(Carry(table, errors, ratio))
    return rows


def fabric_ratio(source: Fabric, target: Fabric) -> float:
    """How many times faster the target's scale-up links are."""
    return float(np.nanmax(_up(target)) / np.nanmax(_up(source)))


def _up(on: Fabric) -> npt.NDArray[np.float64]:
    return np.array([rate for name, rate in zip(on.links, on.rates[0], strict=True) if "switch0" in name])


def ring_beside_full() -> tuple[Fraction, Fraction]:
    """All-to-all and all-reduce of 8 devices in a bidirectional ring over those of a fully connected node, exactly: 14 bytes
    a ns into each device, 56,000 bytes.
    """
    in_a_ring, joined = fabric(ring(8, 7)), fabric(full(8, 2))
    ratios = []
    for kind, algorithm in (("all_to_all", "direct"), ("all_reduce", "ring")):
        slow = collective_time(in_a_ring, kind, 56_000, 8, algorithm=algorithm)  # type: ignore[arg-type] # literals
        fast = collective_time(joined, kind, 56_000, 8, algorithm="direct")  # type: ignore[arg-type] # a literal
        ratios.append(Fraction(slow.time_ns, fast.time_ns))
    return ratios[0], ratios[1]


def recorded_rows(corpus: Path) -> list[Recorded]:
    """The collectives of a DLRM step on 8 V100, as recorded and as the catalogue's DGX-1 has them. The recorded transfer is the
    shortest participant's, in whole µs; sizes are those of the execution traces.
    """
    folder = corpus / "traces" / RECORDED
    beside = Extras(execution_traces=(str(corpus / "execution_traces" / RECORDED),))
    found = attribute(build_graph(read_job([str(folder)], extras=beside))).collectives.rows
    on = fabric_of(load_platform("dgx1-v100"))
    return [
        Recorded(kind, row.bytes, row.transfer_ns, collective_time(on, kind, row.bytes, len(row.ranks)))
        for row in found
        for kind in KINDS
        if kind == row.op and row.bytes is not None and row.transfer_ns is not None
    ]


def measured_page(corpus: Path) -> str:
    """The whole page, measured now."""
    tables = tables_of(corpus)
    rows = [measured_row(table) for table in tables]
    return collectives_page.page(rows, carried_rows(tables), recorded_rows(corpus), ring_beside_full())


def run(arguments: Sequence[str]) -> int:
    """Print the tables and write the page; the exit code is that of the error, if any."""
    parser = argparse.ArgumentParser(prog="benchmarks.collectives", description="measure how close predicted collectives come")
    parser.add_argument("--output", type=Path, default=PAGE, help="the page's file (default docs/accuracy-collectives.md)")
    given = parser.parse_args(arguments)
    try:
        corpus = corpus_folder()
        if corpus is None:
            raise UsageError("there is no corpus to measure on", hint="set TRACEREPLAY_CORPUS")
        text = measured_page(corpus)
    except TracereplayError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(text)
    given.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
