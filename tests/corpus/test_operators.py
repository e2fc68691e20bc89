"""Operators carried over to accelerators that no fit has seen: the limits that are asked for hold."""

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from benchmarks.operator_data import CARDS, MODULES, Products, peers
from benchmarks.operator_fit import Measurements, accelerator
from benchmarks.operator_held_out import (
    A100,
    ASKED,
    H100,
    H200,
    MODELS_ASKED,
    HeldOutCard,
    held_out_cards,
    held_out_modules,
)
from benchmarks.operator_page import coefficients, peer_error
from benchmarks.operators import measurements
from tracereplay.hardware.operators.carry import carry_over_all
from tracereplay.hardware.operators.fitted import shipped
from tracereplay.hardware.operators.work import Works

PAGE = Path(__file__).parents[2] / "docs" / "accuracy-operators.md"
# Every eighth product: the whole takes half a minute.
SHARE = 8


@pytest.fixture(scope="module")
def given(corpus: Path) -> Measurements:
    whole = measurements(corpus)
    rows = np.arange(0, len(whole.products.works), SHARE)
    few = Products(whole.products.works.take(rows), {name: times[rows] for name, times in whole.products.times.items()})
    return Measurements(few, whole.operators, whole.models)


@pytest.fixture(scope="module")
def cards(given: Measurements) -> list[HeldOutCard]:
    return held_out_cards(given, tuple(CARDS.values()))


def test_the_limits_are_those_that_are_asked_for() -> None:
    assert MODELS_ASKED == 0.12
    assert ASKED == {("a100-80-sxm", "h100-sxm"): 0.14, ("h100-sxm", "h200"): 0.08}


def test_the_measurements_are_all_there(given: Measurements, corpus: Path) -> None:
    assert set(given.products.times) == set(MODULES.values())
    assert {model.card for model in given.models} == set(CARDS.values())
    assert len(given.models) == 61
    assert {name for card, name in peers(corpus) if "switchxl4" not in name} == {model.name for model in given.models}


def test_whole_models_are_carried_over_within_the_limit_to_each_card_held_out(cards: list[HeldOutCard]) -> None:
    errors = [card.of_model(name) for card in cards for name in card.models()]

    assert np.mean(errors) <= MODELS_ASKED
    assert all(card.card not in {*card.seen, *(pair.source for pair in card.pairs)} for card in cards)


def test_whole_models_are_missed_by_less_than_the_roofline_misses_them_on_every_card(
    cards: list[HeldOutCard], corpus: Path
) -> None:
    rooflines = {card.card: peer_error(card, peers(corpus), "roofline") for card in cards}

    assert [name for name, error in rooflines.items() if error is None] == ["mi100", "mi210"]
    assert all(card.error() < error for card in cards if (error := rooflines[card.card]) is not None)


def test_products_are_carried_over_within_the_limit_to_modules_held_out(given: Measurements) -> None:
    to_h100, to_h200 = held_out_modules(given, tuple(CARDS.values()))

    assert (to_h100.source, to_h100.target, to_h100.seen) == (A100, H100, (A100,))
    assert (to_h200.source, to_h200.target, to_h200.seen) == (H100, H200, (A100, H100))
    assert to_h100.error <= ASKED[A100, H100] < to_h100.roofline
    assert to_h200.error <= ASKED[H100, H200] < to_h200.floor


def test_the_same_module_gives_every_product_back_exactly(given: Measurements) -> None:
    times = given.products.times[H200]

    assert (carry_over_all(given.products.works, times, accelerator(H200), accelerator(H200)).time_ns == times).all()


def test_a_rows_columns_stand_together(given: Measurements) -> None:
    works = given.products.works

    assert {len(getattr(works, field.name)) for field in fields(Works)} == {len(given.products.times[A100])}
    assert (works.flops == 2 * works.m * works.n * works.k).all()


def test_the_page_has_the_shipped_coefficients_and_every_limit_met() -> None:
    text = PAGE.read_text()

    assert all(f"| {name} | {value} |" in text for name, value in coefficients(shipped()))
    assert re.findall(r"^\| .* \| (yes|\*\*no\*\*) \|$", text, re.MULTILINE) == ["yes"] * 4
    assert f"({shipped().count()})" in text
