"""``python -m benchmarks.operators``: the coefficients of operators on other hardware, and how well they carry over.

``fit`` writes ``tracereplay/hardware/operators/fitted/operators.toml`` from the corpus. ``evaluate`` holds each accelerator
out of every fit once and prints the page ``docs/accuracy-operators.md``. Both need ``ground_truth/`` of the corpus.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.accuracy import ROOT, corpus_folder
from benchmarks.operator_data import CARDS, models, operators, peers, products
from benchmarks.operator_fit import Measurements
from benchmarks.operator_held_out import everything
from benchmarks.operator_page import page, section
from tracereplay.errors import TracereplayError, UsageError
from tracereplay.hardware.operators.fitted import as_text, parsed

FITTED = ROOT / "tracereplay" / "hardware" / "operators" / "fitted" / "operators.toml"
_BF16 = "bf16 products of ground_truth/aiconfigurator on A100, H100 and H200"
_CARDS = "ground_truth/neusight on P4, P100, T4, V100, A100, MI100 and MI210"
SOURCES = {
    "floor_ns": f"Fitted to: {_BF16}.",
    "persistence": f"Best of 0, 0.2 ... 1 for whole models of {_CARDS}.",
    "matrix": f"Fitted to: {_BF16}.",
    "single": f"Whole models of {_CARDS}; conv: single convolutions there.",
    "energy": f"Whole models of {_CARDS}.",
    "memory": f"Medians over the operators of whole models of {_CARDS}.",
    "residuals.matrix": "Held out: products A100 to H100 and H100 to H200.",
    "residuals.vector": "Held out: products in fp32 of whole models, each card from the others.",
    "residuals.memory": "Held out: other operators of whole models, each card from the others.",
}


def measurements(corpus: Path) -> Measurements:
    """Everything measured that the corpus has of operators."""
    return Measurements(products(corpus), operators(corpus), tuple(models(corpus)))


def fitted_text(corpus: Path) -> str:
    """The file of coefficients, fitted now."""
    found, _, _ = everything(measurements(corpus), tuple(CARDS.values()))
    return as_text(found, SOURCES)


def markdown(corpus: Path) -> str:
    """The section on operators, measured now, with the coefficients as the file has them."""
    found, cards, modules = everything(measurements(corpus), tuple(CARDS.values()))
    return section(parsed(as_text(found, SOURCES), str(FITTED)), cards, modules, peers(corpus))


def run(arguments: Sequence[str]) -> int:
    """Fit or evaluate; the exit code is that of the error, if any."""
    parser = argparse.ArgumentParser(prog="benchmarks.operators", description="operators carried over to other hardware")
    parser.add_argument("what", choices=("fit", "evaluate"), help="write the coefficients, or the page of errors")
    parser.add_argument("--output", type=Path, help="the file; without it fit writes into the package, evaluate prints")
    given = parser.parse_args(arguments)
    try:
        corpus = corpus_folder()
        if corpus is None:
            raise UsageError("the corpus is needed", hint="set TRACEREPLAY_CORPUS")
        text = fitted_text(corpus) if given.what == "fit" else page(markdown(corpus))
    except TracereplayError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    target = given.output or (FITTED if given.what == "fit" else None)
    if target is None:
        sys.stdout.write(text)
    else:
        target.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
