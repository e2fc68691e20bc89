import math
import random

import pytest

from tracereplay.graph.chance import by_accident, coincidence


def test_one_end_in_a_stretch_lies_close_to_its_end_as_often_as_the_lag_is_short() -> None:
    assert coincidence(1, 10_000, 1_000_000) == pytest.approx(0.01, rel=0.001)
    assert coincidence(5, 10_000, 1_000_000) == pytest.approx(0.05, rel=0.001)
    assert coincidence(200, 10_000, 1_000_000) == 1.0


def test_one_coincidence_is_as_probable_as_it_is() -> None:
    assert by_accident([0.03]) == pytest.approx(0.03)


def test_two_coincidences_by_hand() -> None:
    # Fisher: the probability that a product of two uniform numbers is at most p is p (1 - ln p).
    p = 0.1 * 0.2
    assert by_accident([0.1, 0.2]) == pytest.approx(p * (1 - math.log(p)))


def test_visits_without_a_coincidence_count_against_it() -> None:
    assert by_accident([0.001]) < by_accident([0.001, 1.0]) < by_accident([0.001, 1.0, 1.0, 1.0])


def test_uniform_numbers_are_believed_as_seldom_as_promised() -> None:
    rng = random.Random(1)
    seldom = sum(by_accident([rng.random() for _ in range(6)]) < 0.05 for _ in range(4000))

    assert 0.04 <= seldom / 4000 <= 0.06


def test_what_cannot_be_an_accident_does_not_overflow() -> None:
    assert by_accident([0.0] * 2000) == 0.0
    assert by_accident([1.0] * 2000) == 1.0
