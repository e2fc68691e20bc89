"""Operators carried over to accelerators that no fit has seen: in, measurements; out, errors, beside those of simpler rules.

Whole models, by card: the coefficients come from the other six cards (floor and matrix units from the H100 and the H200, which
are none of the seven). A prediction takes the times of a model's operators on one of the six, as shares of the model's own
measured time there, and carries each over; their sum is held against the model's measured time on the seventh.

Products, by module: A100 to H100 with coefficients from the A100 and the seven cards, H100 to H200 with those of A100 and H100.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.operator_fit import Measurements, Pair, accelerator, fit_cards, fit_matrix, pairs, sheet
from tracereplay.hardware.operators.carry import LEVEL, carry_over_all
from tracereplay.hardware.operators.fitted import Fitted, Residuals, Span
from tracereplay.hardware.operators.model import PRODUCTS, sustained
from tracereplay.hardware.operators.work import Floats, OperatorClass

A100, H100, H200 = "a100-80-sxm", "h100-sxm", "h200"
# What is asked: mean errors of whole models, and of products from one module to the next.
MODELS_ASKED = 0.12
ASKED = {(A100, H100): 0.14, (H100, H200): 0.08}
# The constant floor that the simplest rule with a floor has.
_FLOOR_NS = 2_000.0
# Operators that show what a card reaches: products of a millisecond, element-wise ones of 10 MB.
_LONG_NS, _LARGE_BYTES = 1e6, 1e7


@dataclass(frozen=True, slots=True)
class HeldOutCard:
    """One card that no coefficient has seen: the coefficients, every model carried over to it from each other card, and what it
    reached of peak and bandwidth beside what the coefficients expect.
    """

    card: str
    seen: tuple[str, ...]
    fitted: Fitted
    pairs: tuple[Pair, ...]
    peak: float
    peak_expected: float
    memory: float
    memory_expected: float

    def models(self) -> list[str]:
        """The models, in order."""
        return sorted({pair.model for pair in self.pairs})

    def error(self) -> float:
        """The mean over models of the mean over sources of the size of the error."""
        return float(np.mean([self.of_model(name) for name in self.models()]))

    def of_model(self, name: str) -> float:
        """One model's mean size of the error over sources."""
        return float(np.mean([abs(pair.error) for pair in self.pairs if pair.model == name]))


@dataclass(frozen=True, slots=True)
class HeldOutModule:
    """Products carried over to a module that no coefficient has seen: the mean sizes of the errors of the prediction, of the
    ratio of two rooflines, and of that ratio with a constant floor; logarithms of measured / predicted.
    """

    source: str
    target: str
    seen: tuple[str, ...]
    fitted: Fitted
    count: int
    error: float
    roofline: float
    floor: float
    apart: Floats


def held_out_cards(given: Measurements, cards: Sequence[str]) -> list[HeldOutCard]:
    """Each card held out once."""
    matrix = fit_matrix(given.products, (H100, H200))
    found = []
    for card in cards:
        seen = tuple(other for other in cards if other != card)
        fitted = fit_cards(given, seen, matrix)
        made = tuple(pairs(given.models, seen, (card,), fitted))
        peak, memory = reached(given, card)
        expected = sustained(sheet(card), fitted, "fp32") / sheet(card).rate("fp32")
        found.append(HeldOutCard(card, seen, fitted, made, peak, expected, memory, fitted.memory.elementwise))
    return found


def reached(given: Measurements, card: str) -> tuple[float, float]:
    """The shares of peak and bandwidth that the card's own models reached: medians over long products, each a share of its
    model's measured time, and over larger element-wise operators.
    """
    peak, memory = [], []
    for model in (model for model in given.models if model.card == card):
        time, works = model.in_place_ns(), model.works
        long = works.is_kind(OperatorClass.GEMM) & (time > _LONG_NS)
        large = works.is_kind(OperatorClass.ELEMENTWISE) & (works.bytes_moved > _LARGE_BYTES)
        peak += list(works.flops[long] / time[long] * 1e9 / sheet(card).rate("fp32"))
        memory += list(works.bytes_moved[large] / time[large] * 1e9 / sheet(card).bandwidth)
    return float(np.median(peak)), float(np.median(memory))


def held_out_modules(given: Measurements, cards: Sequence[str]) -> list[HeldOutModule]:
    """A100 to H100 and H100 to H200; the cards are none of them."""
    return [
        _held_out_module(given, cards, A100, H100, (A100,)),
        _held_out_module(given, cards, H100, H200, (A100, H100)),
    ]


def _held_out_module(
    given: Measurements, cards: Sequence[str], source: str, target: str, seen: tuple[str, ...]
) -> HeldOutModule:
    products = given.products
    fitted = fit_cards(given, cards, fit_matrix(products, seen))
    here, there = products.times[source], products.times[target]
    carried = carry_over_all(products.works, here, accelerator(source), accelerator(target), fitted).time_ns
    ratio = _roofline(given, target) / _roofline(given, source)
    fixed = np.minimum(here, _FLOOR_NS)
    with_floor = fixed + (here - fixed) * ratio
    error, roofline, floor = (float(np.mean(np.abs(made / there - 1))) for made in (carried, here * ratio, with_floor))
    return HeldOutModule(source, target, seen, fitted, len(here), error, roofline, floor, np.log(there / carried))


def _roofline(given: Measurements, module: str) -> Floats:
    """The plain roofline: the longer of flops at peak and bytes at the data sheet's bandwidth, in nanoseconds."""
    works, figures = given.products.works, sheet(module)
    return 1e9 * np.maximum(works.flops / figures.rate("bf16"), works.bytes_moved / figures.bandwidth)


def known_errors(cards: Sequence[HeldOutCard], modules: Sequence[HeldOutModule]) -> Residuals:
    """Between which logarithms nine of ten held-out operators lie, by what does the work."""
    made = [pair for card in cards for pair in card.pairs if len(pair.apart)]
    product = np.concatenate([pair.works.is_kind(*PRODUCTS) for pair in made])
    apart = np.concatenate([pair.apart for pair in made])
    matrix = np.concatenate([module.apart for module in modules])
    return Residuals(_span(matrix), _span(apart[product]), _span(apart[~product]))


def _span(apart: Floats) -> Span:
    low, high = np.quantile(apart, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Span(float(low), float(high))


def everything(given: Measurements, cards: Sequence[str]) -> tuple[Fitted, list[HeldOutCard], list[HeldOutModule]]:
    """The coefficients from all there is, with the known errors of those that were held out, and what was held out."""
    out_cards, out_modules = held_out_cards(given, cards), held_out_modules(given, cards)
    whole = fit_cards(given, cards, fit_matrix(given.products, (A100, H100, H200)))
    return replace(whole, residuals=known_errors(out_cards, out_modules)), out_cards, out_modules
