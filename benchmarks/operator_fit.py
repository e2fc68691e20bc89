"""The coefficients of operators on other hardware: in, measurements of the corpus and which accelerators may be seen; out, a
``Fitted``.

What is held out is left out of every list that goes in here: nothing else of it is used, not even for a start value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from benchmarks.least_squares import least_squares
from benchmarks.operator_data import Model, Operators, Products
from tracereplay.hardware.load import load_accelerator
from tracereplay.hardware.operators.carry import carry_over_all
from tracereplay.hardware.operators.fitted import Energy, Fitted, Matrix, Memory, Residuals, Single, Span
from tracereplay.hardware.operators.model import Sheet, modelled_ns, sheet_of, tiled_flops
from tracereplay.hardware.operators.work import Floats, OperatorClass, Works
from tracereplay.hardware.schema import Accelerator

_NO_SPAN = Span(0.0, 0.0)
# Where the fits begin, and what they lean on, weakly, where measurements do not say: round numbers of the right magnitude.
START = Fitted(
    2_000.0,
    1.0,
    Matrix(0.75, 0.75, 13_000.0, 200.0, 1_000.0),
    Single(0.85, 0.75, 0.75),
    Energy(36e9, 1.5),
    Memory(0.75, 0.75, 0.75, 0.75),
    Residuals(_NO_SPAN, _NO_SPAN, _NO_SPAN),
)
# The energy of an operation falls with the feature size (capacitance alone: exponent 1) to its square (voltage too: 2).
_EXPONENT, _EXPONENT_SPREAD = 1.5, 0.5
# Shares of peak: start values and how far, as a logarithm, one expects to be off.
_SHARE_SPREAD = 0.2
# What the expectations weigh beside the models of one card.
_EXPECTED_WEIGHT = 0.1
# Operators that take this long are timed from the host without its overhead showing (20 to 60 us).
_LONG_NS = 1e6
# An operator of a model beyond this is mostly its kernel.
_SHOWN_NS = 1e5
# Long enough beside that overhead for a median of operators from here on.
_LARGE_BYTES = 1e7
# A deviation from the model beyond this counts linearly.
_BEND_ROWS, _BEND_MODELS = 0.1, 0.3
_CLASSES = {
    "elementwise": OperatorClass.ELEMENTWISE,
    "reduction": OperatorClass.REDUCTION,
    "normalisation": OperatorClass.NORMALISATION,
    "embedding": OperatorClass.EMBEDDING,
}


@cache
def accelerator(name: str) -> Accelerator:
    """An accelerator of the catalogue."""
    return load_accelerator(name)


@cache
def sheet(name: str) -> Sheet:
    """Its data sheet."""
    return sheet_of(accelerator(name))


@dataclass(frozen=True, slots=True)
class Measurements:
    """All that the fits may use."""

    products: Products
    operators: Operators
    models: tuple[Model, ...]


def fit_cards(given: Measurements, cards: Sequence[str], start: Fitted) -> Fitted:
    """What the fp32 operators and models of ``cards`` say; ``start`` has the floor and the products on matrix units."""
    found = replace(start, memory=fit_memory(given.models, cards))
    found = fit_single(given.models, cards, found)
    found = fit_convolutions(given.operators, cards, found)
    return fit_persistence(given.models, cards, found)


def fit_matrix(products: Products, modules: Sequence[str]) -> Fitted:
    """Floor and products on matrix units, from the bf16 products of ``modules``."""

    def made(x: Floats) -> Fitted:
        values = [float(value) for value in np.exp(x)]
        return replace(START, floor_ns=values[0], matrix=Matrix(*values[1:]))

    def off(x: Floats) -> Floats:
        fitted = made(x)
        return np.concatenate([np.log(modelled_ns(products.works, sheet(m), fitted) / products.times[m]) for m in modules])

    first = START.matrix
    begin = np.log([START.floor_ns, first.efficiency, first.memory, first.unit_flops, first.fill_steps, first.split_steps])
    return made(least_squares(off, begin, _BEND_ROWS))


def fit_memory(models: Sequence[Model], cards: Sequence[str]) -> Memory:
    """Shares of bandwidth by class, from the operators of models: of each card the median, then the median over cards."""
    shares = {}
    for name, kind in _CLASSES.items():
        of_cards = []
        for card in cards:
            reached = [_reached(model, kind) for model in models if model.card == card]
            of_cards.append(float(np.median(np.concatenate(reached))) / sheet(card).bandwidth)
        shares[name] = float(np.median(of_cards))
    return Memory(**shares)


def _reached(model: Model, kind: OperatorClass) -> Floats:
    """Bytes a second of a model's larger operators of a class."""
    chosen = model.works.is_kind(kind) & (model.works.bytes_moved > _LARGE_BYTES)
    return model.works.bytes_moved[chosen] / (model.alone_ns[chosen] * 1e-9)


def fit_single(models: Sequence[Model], cards: Sequence[str], start: Fitted) -> Fitted:
    """Products in fp32 and what power allows, from whole models: each card weighs the same."""
    seen = [model for model in models if model.card in cards]
    weights = np.array([1 / np.sqrt(sum(other.card == model.card for other in seen)) for model in seen])
    measured = np.array([model.measured_ns for model in seen])

    def made(x: Floats) -> Fitted:
        vector, matrix, joule = (float(value) for value in np.exp(x[:3]))
        return replace(start, single=replace(start.single, vector=vector, matrix=matrix), energy=Energy(joule, float(x[3])))

    def off(x: Floats) -> Floats:
        fitted = made(x)
        whole = np.array([float(modelled_ns(m.works, sheet(m.card), fitted) @ m.repeats) for m in seen])
        expected = np.append((x[:2] - begin[:2]) / _SHARE_SPREAD, (x[3] - _EXPONENT) / _EXPONENT_SPREAD)
        return np.concatenate([np.log(whole / measured) * weights, _EXPECTED_WEIGHT * expected])

    first = START.single
    begin = np.append(np.log([first.vector, first.matrix, START.energy.flops_per_joule]), _EXPONENT)
    return made(least_squares(off, begin, _BEND_MODELS))


def fit_convolutions(operators: Operators, cards: Sequence[str], start: Fitted) -> Fitted:
    """The share of peak of convolutions: of each card the median over long ones, then the median over cards."""
    rows = operators.works.is_kind(OperatorClass.CONV)
    shares = []
    for card in cards:
        chosen = rows & (np.nan_to_num(operators.times[card]) > _LONG_NS)
        if chosen.any():
            rate = tiled_flops(operators.works.take(chosen), sheet(card)) / (operators.times[card][chosen] * 1e-9)
            shares.append(float(np.median(rate)) / sheet(card).rate("fp32"))
    return replace(start, single=replace(start.single, conv=float(np.median(shares))))


def fit_persistence(models: Sequence[Model], cards: Sequence[str], start: Fitted) -> Fitted:
    """The share of a deviation that recurs: the one of six for which whole models are carried over best among the cards."""
    candidates = [replace(start, persistence=share / 5) for share in range(6)]
    seen = [model for model in models if model.card in cards]
    errors = [float(np.mean([abs(pair.error) for pair in pairs(seen, cards, cards, one)])) for one in candidates]
    return candidates[int(np.argmin(errors))]


@dataclass(frozen=True, slots=True)
class Pair:
    """A whole model carried over from one card to another: predicted / measured - 1, and for its operators that both cards took
    0.1 ms for the logarithms of measured / predicted, with their work (none where the two cards ran other operators). Shorter
    ones show the host's overhead, which a recording does not have in a kernel's time.
    """

    model: str
    source: str
    target: str
    error: float
    apart: Floats
    works: Works


def pairs(models: Sequence[Model], sources: Sequence[str], targets: Sequence[str], fitted: Fitted) -> list[Pair]:
    """Every model that was measured on a source and on a target, carried over from the one to the other."""
    by_card = {(model.card, model.name): model for model in models}
    return [
        _pair(model, by_card[target, model.name], fitted)
        for model in models
        if model.card in sources
        for target in targets
        if target != model.card and (target, model.name) in by_card
    ]


def _pair(here: Model, there: Model, fitted: Fitted) -> Pair:
    # Every product of these models ran in an `sgemm` kernel (the set's column `Kernel Name`): in fp32, however fast its share
    # of a model's time makes it look.
    cards = accelerator(here.card), accelerator(there.card)
    carried = carry_over_all(here.works, here.in_place_ns(), *cards, fitted, in_fp32=True)
    error = float(carried.time_ns @ here.repeats) / there.measured_ns - 1
    rows = np.zeros(len(here.works), np.bool_)
    apart = np.empty(0)
    if len(here.works) == len(there.works) and bool((here.works.flops == there.works.flops).all()):
        rows = (here.alone_ns > _SHOWN_NS) & (there.alone_ns > _SHOWN_NS)
        apart = np.log(there.in_place_ns() / carried.time_ns)[rows]
    return Pair(here.name, here.card, there.card, error, apart, here.works.take(rows))
