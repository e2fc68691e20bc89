"""``docs/accuracy-collectives.md`` as text: in, measured rows; out, the page. Of figures it knows the limits alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median

import numpy as np
import numpy.typing as npt

from tracereplay.hardware.collectives.calibration import CARRIED_WITHIN
from tracereplay.hardware.collectives.model import CALIBRATED_WITHIN, MODEL_WITHIN
from tracereplay.hardware.collectives.schedules import Kind
from tracereplay.hardware.collectives.times import Calibration, CollectiveTime

Floats = npt.NDArray[np.float64]

# What is asked: of the median error over sizes from 64 KiB on, and of 8 devices in a ring beside 8 that are fully connected.
SMALLEST = 1 << 16
TYPICAL = 0.15
ALL_TO_ALL, ALL_REDUCE = Fraction(16, 7), Fraction(1)

_INTRODUCTION = """\
# Accuracy of collectives

How close does a predicted collective come to a measured one? `python -m benchmarks.collectives` measures every figure of this
page, on public tables of NCCL's times, and writes it.

{answer}

The tables are those of [aiconfigurator](https://github.com/ai-dynamo/aiconfigurator) (`nccl_us.csv`: A100 and H100 at
NVSwitches, 2, 4 and 8 of them, three versions of NCCL) and of [vTrain](https://github.com/VIA-Research/vTrain) (all-reduce on
2 to 8 A100 and V100). What they call the size is what nccl-tests calls so. The model is that of the catalogue's `dgx-a100`,
`dgx-h100` and `dgx1-v100`.
"""

_METHOD = """
## What is fitted, and what is not

Each table gives two sizes, its smallest of at least 64 KiB and its largest; two numbers follow, by which all latencies and
the time of all bytes are multiplied ([how](concepts/collectives.md#calibration)). The rule is one for all tables: the two
ends tell latency and bandwidth apart best, and every other size lies between them. Errors are of the sizes between. All that
happens there (LL, LL128 and Simple, rings, trees and adding switches taking over from each other) follows from constants of
NCCL's source and from the links; none was fitted to these tables. The **line** through the same two sizes, latency and
bandwidth without a model, shows what that is worth; **from the catalogue** is the model with no measurement at all.

Two rules were found with these tables in view, though they hold no number of theirs: latencies that the accelerator causes go
with its clock, and a node has half as many trees as rings. The ends of the intervals below are measured on these tables.
"""

_BY_SYSTEM = """
## By system and collective

Medians over tables of the median error, and the worst single size of all.

{table}"""

_MISSES = """
## What misses

{misses}
"""

_RINGS = """
## Rings in a cube mesh, from the catalogue alone

A DGX-1 with V100 has single and double links. How many rings its first 2 to 8 accelerators can form follows from the link
matrix, and with it the bus bandwidth; five form none, and a tree takes over. Measured is the largest size, 1 GiB; nothing is
calibrated.

{table}"""

_RECORDED = """
## Recorded in a training step, from the catalogue alone

The collectives of a DLRM step on 8 V100 (`dlrm_v100x8`: shortest participant, whole µs) beside what `dgx1-v100` says of their
sizes, with nothing calibrated.

{table}"""

_CARRIED = """
## Recorded on one GPU, carried to another

Every A100 time is carried over to H100 (`carry_over_collective`) and compared with the one measured there by the same version
of NCCL. Beside it stands dividing by the ratio of link bandwidths, as a scaled trace does.

{table}
The carried times are too long, above all the small ones: H100 starts a collective faster than its clock says. On this pair
latencies happen to fall by as much as bandwidth rises, so that one ratio for everything does well; no data sheet says so of
another pair, and on links of more bandwidth and the same latency it would be wrong for every small size.
"""

_INTERVALS = """
## Intervals

Measured over predicted time, 5th to 95th percentile over all sizes of aiconfigurator's tables, beside the interval that every
answer carries. The second widens further by what the platform's file assumes.

{table}"""

_ALL = """
## Every table

Errors are medians over the sizes between the two of the calibration; **worst** is the largest of a single size. Several times
of one size are averaged.

{table}"""


_WHY_MISSED = """
The line through the same two sizes misses {straight} of {tables} tables. Where the smallest size was itself measured too
long, all latencies come out too long with it: two sizes have no third to show that."""


@dataclass(frozen=True, slots=True)
class Table:
    """Measured times of one collective: points (size in bytes, ns) in order of size."""

    system: str
    version: str
    kind: Kind
    dtype: str
    ranks: int
    points: tuple[tuple[int, float], ...]

    def name(self) -> str:
        """How the page calls it."""
        return " ".join(part for part in (self.system, self.version, self.kind, self.dtype, f"x{self.ranks}") if part)


@dataclass(frozen=True, slots=True)
class Row:
    """A table with the errors, as fractions, of its sizes between those of the calibration: calibrated, from the catalogue
    alone, and of the line through the two.
    """

    table: Table
    calibration: Calibration
    calibrated: Floats
    catalogue: Floats
    line: Floats


@dataclass(frozen=True, slots=True)
class Carry:
    """A table of A100 carried to H100: errors of the carried times, and of times divided by the ratio of bandwidths."""

    table: Table
    carried: Floats
    ratio: Floats


@dataclass(frozen=True, slots=True)
class Recorded:
    """A collective of a recorded step: its size in bytes, its transfer in ns, and what the catalogue says of it."""

    kind: Kind
    size: int
    ns: int
    predicted: CollectiveTime


def page(rows: Sequence[Row], carried: Sequence[Carry], recorded: Sequence[Recorded], ring: tuple[Fraction, Fraction]) -> str:
    """The whole page as Markdown."""
    return "".join(
        [
            _INTRODUCTION.format(answer=_answer(rows, ring)),
            _METHOD,
            _BY_SYSTEM.format(table=_by_system(rows)),
            _MISSES.format(misses=_misses(rows)),
            _RINGS.format(table=_rings(rows)),
            _RECORDED.format(table=_recorded(recorded)) if recorded else "",
            _CARRIED.format(table=_carried(carried)) if carried else "",
            _INTERVALS.format(table=_intervals(rows, carried)),
            _ALL.format(table=_every(rows)),
        ]
    )


def typical(errors: Floats) -> float:
    """The median of the sizes of errors."""
    return float(np.median(np.abs(errors)))


def missed(rows: Sequence[Row]) -> list[Row]:
    """Tables whose median error is above what is asked, worst first."""
    return sorted((row for row in rows if typical(row.calibrated) > TYPICAL), key=lambda row: -typical(row.calibrated))


def _answer(rows: Sequence[Row], ring: tuple[Fraction, Fraction]) -> str:
    claims = []
    for name, chosen in (("aiconfigurator", _nccl(rows)), ("vTrain", _vtrain(rows))):
        over = missed(chosen)
        all_sizes = typical(np.concatenate([row.calibrated for row in chosen]))
        claims += [
            (f"{name}: median error over all sizes", f"≤ {_share(TYPICAL)}", _share(all_sizes), all_sizes <= TYPICAL),
            (
                f"{name}: median error of each table",
                f"≤ {_share(TYPICAL)}",
                f"{_share(median(typical(row.calibrated) for row in chosen))} (median of {len(chosen)} tables)",
                f"**no**, {len(over)} of {len(chosen)}" if over else True,
            ),
        ]
    for kind, found, wanted in zip(("all-to-all", "all-reduce"), ring, (ALL_TO_ALL, ALL_REDUCE), strict=True):
        claims.append((f"8 devices, ring beside fully connected: {kind}", f"{wanted}, exactly", str(found), found == wanted))
    lines = [f"| {what} | {asked} | {found} | {_met(met)} |" for what, asked, found, met in claims]
    return "\n".join(["| what | asked | found | met |", "|---|---|---|---|", *lines])


def _met(met: bool | str) -> str:
    return met if isinstance(met, str) else "yes" if met else "**no**"


def _nccl(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if not row.table.system.startswith("vtrain")]


def _vtrain(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.table.system.startswith("vtrain")]


def _by_system(rows: Sequence[Row]) -> str:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.table.system, row.table.kind), []).append(row)
    lines = [_summary(f"{system} | {kind}", chosen) for (system, kind), chosen in sorted(groups.items())]
    lines.append(_summary("**all** |", list(rows)))
    head = "| system | collective | tables | median error | from the catalogue | line | worst size |"
    return "\n".join([head, "|---" * 7 + "|", *lines]) + "\n"


def _summary(name: str, rows: Sequence[Row]) -> str:
    worst = max((float(error) for row in rows for error in row.calibrated), key=abs)
    middle = [_share(median(typical(pick(row)) for row in rows)) for pick in _PICKS]
    return f"| {name} | {len(rows)} | {' | '.join(middle)} | {_signed(worst)} |"


_PICKS: tuple[Callable[[Row], Floats], ...] = (lambda r: r.calibrated, lambda r: r.catalogue, lambda r: r.line)


def _misses(rows: Sequence[Row]) -> str:
    over = missed(rows)
    if not over:
        return "Nothing."
    straight = sum(typical(row.line) > TYPICAL for row in rows)
    lines = [f"- `{row.table.name()}`: {_share(typical(row.calibrated))}, worst size {_signed(_worst(row))}" for row in over]
    return "\n".join([*lines, _WHY_MISSED.format(straight=straight, tables=len(rows))])


def _worst(row: Row) -> float:
    return float(max(row.calibrated.tolist(), key=abs))


def _rings(rows: Sequence[Row]) -> str:
    lines = []
    for row in sorted(_vtrain(rows), key=lambda row: row.table.ranks):
        if "v100" not in row.table.system:
            continue
        size, ns = row.table.points[-2]
        bus = size * 2 * (row.table.ranks - 1) / row.table.ranks / ns
        error = float(row.catalogue[-1])
        lines.append(f"| {row.table.ranks} | {bus:.1f} | {bus / (1 + error):.1f} | {_signed(error)} |")
    head = "| V100 | measured GB/s | predicted GB/s | error of the time |"
    return "\n".join([head, "|---" * 4 + "|", *lines]) + "\n"


def _recorded(recorded: Sequence[Recorded]) -> str:
    lines = []
    for one in recorded:
        time = one.predicted
        how = f"{time.algorithm} {time.protocol}"
        ends = f"{time.low_ns / 1e3:.0f} to {time.high_ns / 1e3:.0f}"
        error = _signed(time.time_ns / one.ns - 1)
        lines.append(
            f"| {one.kind} | {one.size:,} | {one.ns / 1e3:.0f} | {time.time_ns / 1e3:.1f} | {ends} | {error} | {how} |"
        )
    head = "| collective | bytes | recorded µs | predicted µs | interval | error | how |"
    return "\n".join([head, "|---" * 7 + "|", *lines]) + "\n"


def _carried(carried: Sequence[Carry]) -> str:
    groups: dict[tuple[str, int], list[Carry]] = {}
    for one in carried:
        groups.setdefault((one.table.kind, one.table.ranks), []).append(one)
    lines = []
    for (kind, ranks), chosen in sorted(groups.items()):
        ours, ratio = (np.concatenate([pick(one) for one in chosen]) for pick in (_of_carried, _of_ratio))
        lines.append(
            f"| {kind} | {ranks} | {_share(typical(ours))} | {_signed(float(np.median(ours)))} | {_share(typical(ratio))} |"
        )
    ours, ratio = (np.concatenate([pick(one) for one in carried]) for pick in (_of_carried, _of_ratio))
    lines.append(f"| **all** | | {_share(typical(ours))} | {_signed(float(np.median(ours)))} | {_share(typical(ratio))} |")
    head = "| collective | GPUs | median error | its sign | ratio of bandwidths |"
    return "\n".join([head, "|---" * 5 + "|", *lines]) + "\n"


def _of_carried(one: Carry) -> Floats:
    return one.carried


def _of_ratio(one: Carry) -> Floats:
    return one.ratio


def _intervals(rows: Sequence[Row], carried: Sequence[Carry]) -> str:
    kinds = [
        ("calibrated on two sizes", [row.calibrated for row in _nccl(rows)], CALIBRATED_WITHIN),
        ("from the catalogue", [row.catalogue for row in _nccl(rows)], MODEL_WITHIN),
        ("carried from A100 to H100", [one.carried for one in carried], CARRIED_WITHIN),
    ]
    lines = []
    for name, errors, (low, high) in kinds:
        if not errors:
            continue
        ratio = 1 / (1 + np.concatenate(errors))
        ends = np.quantile(ratio, [0.05, 0.95])
        within = float(np.mean((ratio >= low) & (ratio <= high)))
        lines.append(f"| {name} | {ends[0]:.2f} to {ends[1]:.2f} | {low:.2f} to {high:.2f} | {_share(within)} |")
    head = "| prediction | measured / predicted | interval | sizes within |"
    return "\n".join([head, "|---" * 4 + "|", *lines]) + "\n"


def _every(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        t, c = row.table, row.calibration
        errors = [_share(typical(pick(row))) for pick in _PICKS]
        mark = "**" if typical(row.calibrated) > TYPICAL else ""
        lines.append(
            f"| {t.system} | {t.version} | {t.kind} | {t.dtype} | {t.ranks} | {len(row.calibrated)} | {c.latency:.2f} |"
            f" {c.bytes_time:.2f} | {mark}{errors[0]}{mark} | {_signed(_worst(row))} | {errors[1]} | {errors[2]} |"
        )
    head = "| system | NCCL | collective | type | GPUs | sizes | latency x | bytes x | error | worst | catalogue | line |"
    return "\n".join([head, "|---" * 12 + "|", *lines]) + "\n"


def _share(value: float) -> str:
    return f"{100 * value:.1f} %" if value != TYPICAL else f"{100 * value:g} %"


def _signed(value: float) -> str:
    return f"{100 * value:+.0f} %"
