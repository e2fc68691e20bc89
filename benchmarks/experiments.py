"""``python -m benchmarks.experiments``: published changes of DLRM systems, predicted; writes docs/accuracy-experiments.md.

For each pair of systems one efficiency is fitted to the published time of the base and used for both, the same for all pairs of
a software stack; the other system's time is predicted by nothing but its description. What misses is published as it is.
"""

import argparse
import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.systems import SKEW, SKEWS, System, fitted, predict
from tracereplay.hardware.memory.placement import Tier
from tracereplay.synth.pricing import Efficiency

PAGE = Path(__file__).parent.parent / "docs" / "accuracy-experiments.md"
_V2 = "MLPerf training v2.0"
_V07 = "MLPerf training v0.7"
_PAGES = "NVIDIA DeepLearningExamples, PyTorch DLRM"

DGX_A100 = System(
    f"{_V2}, NVIDIA dgxa100_ngc22.04_merlin_hugectr", 1.369, "dgx-a100-80", 8, 55_296, "hugectr-3", "HugeCTR 22.04"
)
_NODES = replace(DGX_A100, batch=71_680)
_DGX2H = System(
    f"{_V07}, NVIDIA dgx2h_ngc20.06_merlin_hugectr", 2.992, "dgx2h", 16, 55_296, "hugectr-2", "HugeCTR 20.06", tier=None
)
_A100_V07 = replace(
    _DGX2H, entry=f"{_V07}, NVIDIA dgxa100_ngc20.06_merlin_hugectr", published_ms=2.566, hardware="dgx-a100", ranks=8
)
# The accelerator of both is the DGX-1's: the published fabric ratio has that of single accelerators divided out.
_DGX1 = System(
    f"{_PAGES}, DGX-1, 6.92 M/s", 65_536 / 6.92e3, "dgx1-v100", 8, 65_536, "nvidia-amp", "DeepLearningExamples", tier=None
)
_DGX1_FP32 = replace(_DGX1, entry=f"{_PAGES}, DGX-1, 2.88 M/s", published_ms=65_536 / 2.88e3, software="nvidia-fp32")
_CPU = System(
    f"{_V07}, Intel 1-node-8s-cpx", 42.28, "cpu-8s", 8, 32_768, "ipex-bf16", "PyTorch with IPEX",
    device="xeon-8380h-socket.toml", settings=("host.interconnect.bandwidth=20.8 GB/s",), tier=Tier.HBM,
)  # fmt: skip
_LARGE = "13-512-256-128/1024-1024-512-256-1/26x33950000"
_ALL_HBM = System(
    "DeepLearningExamples TF2, DGX A100, all tables in HBM", 65_536 / 11.5e3, "dgx-a100-80", 8, 65_536, "nvidia-amp",
    "DeepLearningExamples TF2", _LARGE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pair:
    """A base system, the other one, what was published of the change and how near a prediction must come.

    ``by_throughput``: the change is the ratio of samples a second, else that of step times (base over other, or the other way
    round where ``slower``). ``band``: the greatest relative error, or with ``factor`` the greatest factor. ``differs``: what
    else is not the same; ``miss``: why a prediction outside the band is outside; ``instead``: a base of another stack whose
    efficiency is tried too, to show what the stack makes of it.
    """

    name: str
    question: str
    base: System
    other: System
    published: float
    band: float
    differs: str
    miss: str = ""
    factor: bool = False
    by_throughput: bool = False
    slower: bool = False
    gated: bool = True
    instead: System | None = None

    def change(self, base_ns: int, other_ns: int) -> float:
        """The predicted change from two step times."""
        if self.by_throughput:
            return (self.other.batch / other_ns) / (self.base.batch / base_ns)
        return other_ns / base_ns if self.slower else base_ns / other_ns

    def is_near(self, predicted: float) -> bool:
        """Whether a prediction is within the band."""
        if self.factor:
            return 1 / self.band <= predicted / self.published <= self.band
        return abs(predicted / self.published - 1) <= self.band


_NETWORK = (
    "the longest part of the predicted step is one all-reduce by NCCL's tree over the nodes; HugeCTR's own one-shot all-reduce "
    "adds up in the network's switches (SHARP), which the model of collectives does not have"
)
PAIRS = (
    Pair(
        "E3", "8 A100 on PCIe against 8 on NVSwitch", DGX_A100,
        replace(DGX_A100, entry=f"{_V2}, H3C R5300G5x8A100-PCIE-80GB", published_ms=4.347, hardware="h3c-r5300g5-pcie.toml"),
        3.17, 0.20, "host, power limit, HBM 1.94 for 2.0 TB/s; how PCIe is switched in the chassis is assumed", slower=True,
        miss="how many rows are frequent (the skew) and how PCIe is switched decide it; neither was published",
    ),
    Pair(
        "E5", "1 DGX A100 to 8", DGX_A100,
        replace(_NODES, entry=f"{_V2}, NVIDIA dgxa100_n8_ngc22.04_merlin_hugectr", published_ms=0.628, ranks=64),
        2.18, 0.20, "batch 55,296 to 71,680", _NETWORK,
    ),
    Pair(
        "E5", "1 DGX A100 to 14", DGX_A100,
        replace(_NODES, entry=f"{_V2}, NVIDIA dgxa100_n14_ngc22.04_merlin_hugectr", published_ms=0.575, ranks=112),
        2.38, 0.20, "batch 55,296 to 71,680", _NETWORK,
    ),
    Pair(
        "E10", "8 V100 in a hybrid cube mesh to NVSwitch, fp16", _DGX1,
        replace(_DGX1, entry=f"{_PAGES}, DGX-2, 7.93 M/s", published_ms=65_536 / 7.93e3, hardware="dgx2h",
                accelerator="v100-sxm2-32"),
        1.064, 0.05, "clock and power of the accelerators, divided out by the ratio of one accelerator",
        "dividing the whole step by the ratio of one accelerator divides the transfers too; the next row leaves it in",
    ),
    Pair(
        "E10", "the same, the accelerators' own ratio left in, fp16", _DGX1,
        replace(_DGX1, entry=f"{_PAGES}, DGX-2, 7.93 M/s", published_ms=65_536 / 7.93e3, hardware="dgx2h",
                accelerator="v100-sxm2-32",
                settings=("accelerator.flops=1.0766x", "accelerator.hbm.bandwidth=1.0766x")),
        1.146, 0.05, "2.25 / 2.09 M/s of one accelerator is taken as its ratio in every figure", gated=False,
    ),
    Pair(
        "E10", "8 V100 in a hybrid cube mesh to NVSwitch, fp32", _DGX1_FP32,
        replace(_DGX1_FP32, entry=f"{_PAGES}, DGX-2, 3.33 M/s", published_ms=65_536 / 3.33e3, hardware="dgx2h",
                accelerator="v100-sxm2-32"),
        1.084, 0.05, "clock and power of the accelerators, divided out by the ratio of one accelerator",
        "as for fp16",
    ),
    Pair(
        "E10", "the same, the accelerators' own ratio left in, fp32", _DGX1_FP32,
        replace(_DGX1_FP32, entry=f"{_PAGES}, DGX-2, 3.33 M/s", published_ms=65_536 / 3.33e3, hardware="dgx2h",
                accelerator="v100-sxm2-32",
                settings=("accelerator.flops=1.067x", "accelerator.hbm.bandwidth=1.067x")),
        1.156, 0.05, "0.717 / 0.672 M/s of one accelerator is taken as its ratio in every figure", gated=False,
    ),
    Pair(
        "E11", "8 sockets of a CPU node to 8 A100", _CPU, _A100_V07, 27.8, 1.5,
        "software stack, batch 32,768 for 55,296; the sockets' links are assumed",
        "the efficiency of one stack says little of another: PyTorch on sockets reaches a smaller share of what the models say "
        "than HugeCTR on accelerators", factor=True, by_throughput=True, instead=_DGX2H,
    ),
    Pair(
        "E12", "16 V100 on NVSwitch to 8 A100", _DGX2H, _A100_V07, 1.166, 0.15, "clock of the V100 in SXM3, assumed",
        "both systems are bound by products, which the fit moves alike",
    ),
    Pair(
        "E8", "tables from HBM on 8 A100 to host memory on 1", _ALL_HBM,
        replace(_ALL_HBM, entry="DeepLearningExamples TF2, one A100, large tables in host memory", published_ms=65_536 / 768,
                ranks=1, tier=Tier.HOST),
        15.0, 1.5, "an illustration: shapes of the 113-billion-parameter model are not in the sources at hand; 26 equal tables "
        "of that size stand in", factor=True, slower=True, gated=False,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One pair with its prediction; ``low`` and ``high`` over the skews, each with its own fit."""

    pair: Pair
    efficiency: Efficiency
    base_ms: float
    other_ms: float
    predicted: float
    low: float
    high: float
    instead: float | None = None

    @property
    def error(self) -> float:
        """Relative error of the predicted change."""
        return self.predicted / self.pair.published - 1


def measure(pair: Pair) -> Row:
    """The prediction of one pair."""
    efficiency = fitted(pair.base)
    base, other = predict(pair.base, efficiency), predict(pair.other, efficiency)
    around = [predicted_change(pair, skew) for skew in SKEWS]
    change = pair.change(base.step_ns, other.step_ns)
    span = (min(*around, change), max(*around, change))
    return Row(pair, efficiency, base.step_ns / 1e6, other.step_ns / 1e6, change, *span, _instead(pair, base.step_ns))


def _instead(pair: Pair, base_ns: int) -> float | None:
    """The change with the efficiency of another stack at the other system; the base stays as it was published."""
    if pair.instead is None:
        return None
    return pair.change(base_ns, predict(pair.other, fitted(pair.instead)).step_ns)


def predicted_change(pair: Pair, skew: float = SKEW) -> float:
    """The predicted change of one pair alone, with the efficiency fitted under that skew."""
    efficiency = fitted(pair.base, skew)
    return pair.change(predict(pair.base, efficiency, skew).step_ns, predict(pair.other, efficiency, skew).step_ns)


def page(rows: Sequence[Row], corpus: Path | None) -> str:
    """docs/accuracy-experiments.md."""
    gated = [row for row in rows if row.pair.gated]
    near = sum(row.pair.is_near(row.predicted) for row in gated)
    blocks = [
        "# Accuracy: published changes of DLRM training systems",
        "Made by `python -m benchmarks.experiments`. **Calibrated analytic replay**: each step is built from an architecture "
        "string (`synth dlrm`), not from a recorded trace.",
        "For each pair one efficiency, a single share for all device work, is fitted to the published time of the base; the "
        "other system's time is then predicted from its description alone. Pairs of one software stack share it (fp16 and fp32 "
        "layers have one each). Transfers are never fitted. "
        f"Rows are asked for by Zipf's law with exponent {SKEW:g}, which no source at hand says of Criteo's: the span shows "
        f"{SKEWS[0]:g} to {SKEWS[1]:g}, each with a fit of its own.",
        f"**{near} of {len(gated)} predictions are inside their band.** A miss is published with its reason, not fitted away.",
        _table(("", "change", "published", "predicted", "span", "error", "band", ""), [_summary(row) for row in rows]),
        "## The systems",
        _table(("", "system", "ranks", "batch", "published ms", "predicted ms", "efficiency"), _systems(rows)),
        "## What differs, and why a prediction misses",
        "\n".join(_remarks(rows)),
        "MLPerf figures were parsed from logs by this project and are not verified by MLCommons; MLPerf is a trademark of "
        "MLCommons. Entries of one round on nominally the same system spread by 1 to 4 % (up to 9 % with evaluation).",
    ]
    if corpus is not None:
        blocks += ["## The same changes by the corpus", *_by_corpus(corpus)]
    return "\n\n".join(blocks) + "\n"


def _summary(row: Row) -> tuple[str, ...]:
    pair = row.pair
    band = f"factor {pair.band:g}" if pair.factor else f"{pair.band:.0%}"
    verdict = ("inside" if pair.is_near(row.predicted) else "**outside**") if pair.gated else "illustration"
    return (
        pair.name, pair.question, f"{pair.published:.3g}x" if pair.published >= 10 else f"{pair.published:.3f}x",
        f"{row.predicted:.3f}x", f"{row.low:.3f} to {row.high:.3f}", f"{row.error:+.1%}", band, verdict,
    )  # fmt: skip


def _systems(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    lines = []
    for row in rows:
        for system, ms in ((row.pair.base, row.base_ms), (row.pair.other, row.other_ms)):
            share = f"{row.efficiency.products:.3f}" + (" (fitted)" if system is row.pair.base else "")
            lines.append(
                (row.pair.name, f"{system.entry} ({system.stack})", str(system.ranks), f"{system.batch:,}",
                 f"{system.published_ms:.3f}", f"{ms:.3f}", share)
            )  # fmt: skip
    return list(dict.fromkeys(lines))


def _remarks(rows: Sequence[Row]) -> list[str]:
    lines = []
    for row in rows:
        pair = row.pair
        text = f"- {pair.name}, {pair.question}: {pair.differs}."
        settings = [*pair.base.settings, *pair.other.settings]
        if settings:
            text += f" Set: {', '.join(f'`{setting}`' for setting in settings)}."
        if pair.gated and not pair.is_near(row.predicted):
            text += f" Misses: {pair.miss}."
        if row.instead is not None and pair.instead is not None:
            text += f" With the efficiency of {pair.instead.stack}, fitted to its own base, it would be {row.instead:.1f}x."
        lines.append(text)
    return lines


def _by_corpus(corpus: Path) -> list[str]:
    """The published changes as the corpus' table of entries has them, where it has both systems."""
    with (corpus / "ground_truth" / "mlperf_dlrm" / "summary.csv").open(encoding="utf-8") as file:
        entries = {f"MLPerf training {row['round']}, {row['org']} {row['system']}": row for row in csv.DictReader(file)}
    rows = []
    for pair in PAIRS:
        base, other = entries.get(pair.base.entry), entries.get(pair.other.entry)
        if base is not None and other is not None:
            times = [int(1e6 * float(row["ms_per_iter"])) for row in (base, other)]
            rows.append((pair.name, pair.question, f"{pair.published:.3f}x", f"{pair.change(times[0], times[1]):.3f}x"))
    return [
        "`ground_truth/mlperf_dlrm/summary.csv` has medians over runs of its own parse; where they differ from the figures "
        "above, the published change is that uncertain.",
        _table(("", "change", "published", "by summary.csv"), rows),
    ]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def main() -> int:
    """Run all pairs and write the page; the exit code is 0 whatever they say, for the page says it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=PAGE)
    parser.add_argument("--corpus", type=Path, default=Path(__file__).parents[2] / "shared" / "corpus")
    options = parser.parse_args()
    rows = [measure(pair) for pair in PAIRS]
    text = page(rows, options.corpus if options.corpus.is_dir() else None)
    options.output.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
