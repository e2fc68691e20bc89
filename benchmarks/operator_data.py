"""Measured operators of the corpus: in, its folder; out, columns of work with their times, and whole models as operators.

``ground_truth/aiconfigurator``: products in bf16 on three modules, timed inside a graph of launches.
``ground_truth/neusight``: single operators in fp32 on seven cards, timed one at a time from the host; the operators of whole
models (one layer, and how often it repeats) on each card, and the models' times beside the predictions of others.
"""

import ast
import csv
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tracereplay.hardware.operators import formulas
from tracereplay.hardware.operators.formulas import Shape, elements
from tracereplay.hardware.operators.work import CLASSES, Floats, OperatorClass, Work, Works

# Names in the corpus of what the catalogue describes.
MODULES = {"a100_sxm": "a100-80-sxm", "h100_sxm": "h100-sxm", "h200_sxm": "h200"}
CARDS = {
    "Tesla_P4": "p4",
    "Tesla_P100-PCIE-16GB": "p100-pcie",
    "Tesla_T4": "t4",
    "Tesla_V100-PCIE-32GB": "v100-pcie-32",
    "NVIDIA_A100-PCIE-40GB": "a100-40-pcie",
    "AMD_Instinct_MI100": "mi100",
    "AMD_Instinct_MI210": "mi210",
}
PEERS = ("neusight", "roofline", "habitat")

_BF16_BYTES = 2
_LAYER = re.compile(r"'[\w.]*\.(?:layer|h|layers)\.0'")
_LINEAR = re.compile(r"query|key$|\.value|dense|_proj|fc\d|c_attn|c_fc|lm_head|decoder$|seq_rel")
_NORM = re.compile(r"norm|ln_", re.IGNORECASE)
# What only looks at a tensor, or asks the host: no kernel runs.
_NO_KERNEL = re.compile(
    r"size|getattr|^view$|permute|transpose|^dim$|built-in function (eq|getitem|floordiv)|^expand$|^detach|^split|finfo|"
    r"torch\.float|dtype"
)


@dataclass(frozen=True, slots=True)
class Products:
    """The bf16 products: columns of work, and the time in nanoseconds on each module, by catalogue name."""

    works: Works
    times: dict[str, Floats]


@dataclass(frozen=True, slots=True)
class Operators:
    """Single operators measured on every card of ``times``, row by row the same: columns of work, what each row is called, and
    times in nanoseconds by catalogue name; NaN where a card lacks a row.
    """

    works: Works
    names: list[str]
    times: dict[str, Floats]


@dataclass(frozen=True, slots=True)
class Model:
    """A whole model on one card: which one, the time of the whole as measured, its operators with how often each runs, and the
    time of each when measured alone, in nanoseconds.
    """

    name: str
    card: str
    measured_ns: float
    works: Works
    repeats: Floats
    alone_ns: Floats

    def in_place_ns(self) -> Floats:
        """Each operator's share of the model's own measured time: its time alone times measured / sum of all. In a recording
        operators' times add up to the step; measured alone they add up to 58 % to 151 % of it.
        """
        return self.alone_ns * (self.measured_ns / float(self.alone_ns @ self.repeats))


def products(corpus: Path) -> Products:
    """The products of ``ground_truth/aiconfigurator``."""
    table = pd.read_csv(next((corpus / "ground_truth" / "aiconfigurator").glob("gemm_bf16_*.csv.gz")))
    m, n, k = (table[name].to_numpy(np.float64) for name in "mnk")
    works = _gemms(m, n, k)
    return Products(works, {name: table[column].to_numpy(np.float64) * 1e6 for column, name in MODULES.items()})


def operators(corpus: Path) -> Operators:
    """The single operators of ``ground_truth/neusight``; of several kernels tried for one shape the mean."""
    table = pd.read_csv(corpus / "ground_truth" / "neusight" / "op_latency_seen_gpus.csv.gz", low_memory=False)
    table["card"] = table["Device"].str.replace(" ", "_").map(CARDS)
    keys = [
        "OPName",
        "B",
        "H",
        "M",
        "N",
        "K",
        "Input_Channel",
        "Output_Channel",
        "Kernel_Szie",
        "Input_Size",
        "Stride",
        "Padding",
    ]
    table[keys[1:]] = table[keys[1:]].fillna(0)
    wide = table.pivot_table(index=keys, columns="card", values="Latency", aggfunc="mean").reset_index()
    times = {name: wide[name].to_numpy(np.float64) * 1e6 for name in CARDS.values()}
    works = Works.of([_operator(row) for row in wide[keys].itertuples(index=False)])
    return Operators(works, wide["OPName"].tolist(), times)


def models(corpus: Path) -> list[Model]:
    """The whole models of ``ground_truth/neusight`` for which the operators were measured, by card and name."""
    folder = corpus / "ground_truth" / "neusight" / "label"
    files = sorted(path for path in folder.glob("*/*.csv.gz") if path.parent.name in CARDS)
    return [_model(path) for path in files]


def peers(corpus: Path) -> dict[tuple[str, str], dict[str, float]]:
    """What others predicted: by card (catalogue name) and model, by name of the predictor, predicted / measured - 1."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    with (corpus / "ground_truth" / "neusight" / "e2e_measured_and_peers.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["option"] or row["device"] not in CARDS:
                continue  # fused variants: other kernels
            name = f"{row['model']}-{row['mode']}-{row['seqlen']}-{row['batch']}"
            measured = float(row["measured_ms"])
            given = {peer: float(row[f"{peer}_ms"]) / measured - 1 for peer in PEERS if row[f"{peer}_ms"]}
            found[CARDS[row["device"]], name] = given
    return found


def _gemms(m: Floats, n: Floats, k: Floats) -> Works:
    """Columns of products in bf16, as ``formulas.gemm`` counts them."""
    kind = np.full(len(m), CLASSES.index(OperatorClass.GEMM), np.int8)
    moved = _BF16_BYTES * (m * k + k * n + m * n)
    return Works(kind, 2 * m * n * k, moved, np.full(len(m), "bf16"), m, n, k, np.ones(len(m)))


def _operator(row: Any) -> Work:  # pandas makes the type of its rows
    """One row of the single operators: products and convolutions by their sizes, the rest by rows and columns (B, H)."""
    name = row.OPName
    if name in {"linear", "bmm"}:
        return formulas.gemm(int(row.M), int(row.N), int(row.K), "fp32", batch=int(row.B))
    if name == "conv":
        side, window, inner = int(row.Input_Size), int(row.Kernel_Szie), int(row.Input_Channel)
        x, weight = (int(row.B), inner, side, side), (int(row.Output_Channel), inner, window, window)
        output = formulas.convolved(x, weight, (int(row.Stride),), (int(row.Padding),))
        return formulas.convolution(x, weight, output, "fp32")
    shape = (int(row.B), int(row.H))
    if name == "softmax":
        return formulas.softmax(shape, "fp32")
    if name == "ln":
        return formulas.normalisation(shape, (shape[1],), "fp32")
    inputs = [shape] * (2 if name in {"add", "sub", "mul", "div", "pow"} else 1)
    return formulas.elementwise(inputs, shape, "fp32")


def _model(path: Path) -> Model:
    table = pd.read_csv(path)
    with gzip.open(path.with_name(path.name.replace(".csv.gz", ".json.gz"))) as file:
        whole = json.load(file)
    layer = table["meta"].fillna("").str.contains(_LAYER)
    found = [
        (work, int(whole["num_layer"]) if repeated else 1, milliseconds * 1e6)
        for row, repeated in zip(table.itertuples(), layer, strict=True)
        for work, milliseconds in _kernels(row, training="train" in path.name)
    ]
    works, repeats, alone = zip(*found, strict=True)
    name = path.name.removesuffix(".csv.gz")
    return Model(
        name,
        CARDS[path.parent.name],
        float(whole["e2e_latency"]) * 1e6,
        Works.of(list(works)),
        np.array(repeats, np.float64),
        np.array(alone, np.float64),
    )


def _kernels(row: Any, *, training: bool) -> Iterator[tuple[Work, float]]:
    """The kernels of one node of a model's graph, each with its time in milliseconds: forward, backward, and adding a weight's
    gradient up. Backward of a product is two of its size; of anything else twice its bytes.
    """
    forward = _forward(row, training=training)
    if forward is None:
        return
    for factor, milliseconds in ((1, row.fw_latency), (2, row.bw_latency)):
        if milliseconds > 0:
            yield _times(forward, factor), milliseconds
    if row.acc_latency > 0 and forward.batch == 1:
        shape = (forward.n, forward.k)
        yield formulas.elementwise([shape, shape], shape, "fp32"), row.acc_latency


def _forward(row: Any, *, training: bool) -> Work | None:
    node, target = str(row.op), str(row.target)
    if node in {"placeholder", "get_attr", "output"} or ("dropout" in target and not training):
        return None
    inputs: list[Shape] = [tuple(shape) for shape in ast.literal_eval(row.input_shapes)]
    given = ast.literal_eval(row.output_shape)
    output: Shape = given if isinstance(given, tuple) else (given,)
    if node == "call_module" and _LINEAR.search(target) and not re.search("[Nn]orm", target):
        return formulas.linear(inputs[0], (output[-1], inputs[0][-1]), "fp32")
    if "addmm" in target:
        return formulas.mm(inputs[1], inputs[2], "fp32")
    if "matmul" in target or "bmm" in target:
        return formulas.matmul(inputs[0], inputs[1], "fp32")
    if _NO_KERNEL.search(target) or elements(output) <= 1:
        return None
    return _memory_bound(target, inputs, output)


def _memory_bound(target: str, inputs: list[Shape], output: Shape) -> Work:
    if "softmax" in target:
        return formulas.softmax(output, "fp32")
    if _NORM.search(target):
        return formulas.normalisation(output, output[-1:], "fp32")
    if "embed" in target or "wte" in target or "wpe" in target:
        return formulas.embedding((0, output[-1]), output[:-1], "fp32")
    tensors = [shape for shape in inputs if 1 < elements(shape) <= elements(output)]
    return formulas.elementwise(tensors, output, "fp32")


def _times(work: Work, factor: int) -> Work:
    """That much of the same work."""
    amounts = {name: factor * getattr(work, name) for name in ("flops", "bytes_read", "bytes_written", "batch")}
    return replace(work, **amounts)
