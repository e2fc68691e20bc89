"""The page of operators on other hardware: in, what was held out and what others predicted; out, Markdown."""

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.operator_data import PEERS
from benchmarks.operator_held_out import ASKED, H100, H200, MODELS_ASKED, HeldOutCard, HeldOutModule
from tracereplay.hardware.operators.fitted import COMMAND, Fitted

Peers = Mapping[tuple[str, str], Mapping[str, float]]
Row = Sequence[str]

_HEAD = """# Operators on other hardware: accuracy

How close does a time come that was measured on one accelerator and carried over to another, of which only the data sheet is
known? `python -m benchmarks.operators evaluate` measures every figure of this page and writes it; `make accuracy` runs it.

"""
_RULES = """A prediction sees the time measured on the source and the two data sheets (`tracereplay hardware show NAME`),
nothing else: no coefficient belongs to an accelerator or to a pair. What is held out takes no part in any fit.

It did take part in choices of form. Whether vector units count whole waves, how wide the prior of the energy exponent is, and
how finely the persistence is searched were compared by these very errors: without waves and with a coarser search the V100
came out at 13.9 %, just above its roofline. So the figures below are those of a model that was chosen among several on this
data, and the V100's margin is no evidence; other cards are.

"""
_MODELS = """## Whole models, each card held out

Seven cards ran the same models in fp32 (`ground_truth/neusight`; on the A100 each product's kernel is an `sgemm`). The
operators of a model were measured one by one; measured alone they add up to 58 % to 151 % of the model's own time, so each is
taken as its share of that time, which is what a recording has. Each is carried over from one card to the card held out, and
the sum is held against the time measured there. A card's error is the mean over its models of the mean over the cards that
they can come from. Floor and matrix units come from the H100 and the H200, which are none of the seven.

The figures of others are those of `e2e_measured_and_peers.csv`, on the same models. NeuSight has been trained on these cards,
and Habitat carries a measurement over, as here; the roofline is the plain one, without a measurement. For the AMD cards only
NeuSight published any. Mixture-of-experts models (`switchxl4`) are left out: nobody measured their operators one by one.

"""
_OUTSIDE = """Where a card is missed, it reached another share of its data sheet than the fit on the others expects: the V100
more than any other, the P100 less. The table has both: the median over its models' products of at least a millisecond (share
of peak FLOP/s) and over larger element-wise operators (share of bandwidth), beside what the fit on the other cards expects.

"""
_PRODUCTS = """## Products in bf16, A100 to H100 to H200

`ground_truth/aiconfigurator` has the same products on three modules, timed inside a graph of launches. Beside the prediction
stand the ratio of two rooflines, and that ratio with a constant floor of 2 µs.

"""
_COEFFICIENTS = """## Coefficients

The product carries these ({count}), fitted to all of it by `{command}`:

"""


def page(text: str) -> str:
    """The whole page."""
    return f"{_HEAD}{text}"


def section(fitted: Fitted, cards: Sequence[HeldOutCard], modules: Sequence[HeldOutModule], others: Peers) -> str:
    """The page without its head."""
    parts = [
        claims(cards, modules, others),
        _RULES,
        _MODELS,
        _table(("card held out", "models", "from", "coefficients", "error", *PEERS), _card_rows(cards, others)),
        _by_source(cards),
        _OUTSIDE,
        _table(("card", "of peak", "expected", "of bandwidth", "expected", "error"), _reached_rows(cards)),
        _PRODUCTS,
        _table(("from", "to", "seen by the fit", "products", "coefficients", "error", "roofline", "with 2 µs"), _rows(modules)),
        _COEFFICIENTS.format(count=fitted.count(), command=COMMAND),
        _table(("coefficient", "value"), coefficients(fitted)),
        _errors_text(fitted),
    ]
    return "".join(parts).rstrip("\n") + "\n"


def claims(cards: Sequence[HeldOutCard], modules: Sequence[HeldOutModule], others: Peers) -> str:
    """What was asked, what was found and whether it is met."""
    mean = float(np.mean([card.of_model(name) for card in cards for name in card.models()]))
    worse = [card.card for card in cards if (peer := peer_error(card, others, "roofline")) is not None and card.error() >= peer]
    rows = [
        (
            "whole models, mean error, each card held out",
            f"≤ {_percent(MODELS_ASKED)}",
            _share(mean),
            _met(mean <= MODELS_ASKED),
        ),
        ("below the roofline's on every card", "every card", f"worse on {', '.join(worse) or 'none'}", _met(not worse)),
    ]
    for module in modules:
        asked = ASKED[module.source, module.target]
        unseen = "no H100 or H200 in any fit" if module.target == H100 else f"no {H200.upper()} in any fit"
        what = f"products `{module.source}` to `{module.target}`, mean error, {unseen}"
        rows.append((what, f"≤ {_percent(asked)}", _share(module.error), _met(module.error <= asked)))
    return _table(("what", "asked", "found", "met"), rows, right=False)


def peer_error(card: HeldOutCard, others: Peers, name: str) -> float | None:
    """The mean size of another predictor's error on the models of a card; None where it published none."""
    found = [abs(others[card.card, model][name]) for model in card.models() if name in others.get((card.card, model), {})]
    return float(np.mean(found)) if found else None


def coefficients(fitted: Fitted) -> list[Row]:
    """Each coefficient with its value."""
    named = [("floor, µs", fitted.floor_ns / 1e3), ("persistence", fitted.persistence)]
    for section_name in ("matrix", "single", "energy", "memory"):
        values = getattr(fitted, section_name)
        named += [(f"{section_name}: {name.replace('_', ' ')}", getattr(values, name)) for name in values.__slots__]
    return [(name, f"{value:,.4g}" if value < 1e6 else f"{value:.3g}") for name, value in named]


def _card_rows(cards: Sequence[HeldOutCard], others: Peers) -> list[Row]:
    rows = []
    for card in cards:
        peers = [peer_error(card, others, name) for name in PEERS]
        shown = ["n/a" if peer is None else _share(peer) for peer in peers]
        counts = (str(len(card.models())), str(len({pair.source for pair in card.pairs})), str(_used(card.fitted)))
        rows.append((f"`{card.card}`", *counts, _share(card.error()), *shown))
    names = [(card, name) for card in cards for name in card.models()]
    means = [_mean_of(names, others, peer) for peer in PEERS]
    mean = float(np.mean([card.of_model(name) for card, name in names]))
    return [*rows, ("*all models*", str(len(names)), "", "", _share(mean), *means)]


def _mean_of(names: Sequence[tuple[HeldOutCard, str]], others: Peers, peer: str) -> str:
    found = [abs(others[card.card, name][peer]) for card, name in names if peer in others.get((card.card, name), {})]
    return f"{_share(float(np.mean(found)))} of {len(found)}"


def _used(fitted: Fitted) -> int:
    """How many coefficients a model in fp32 uses: all but the five of matrix units and that of convolutions."""
    return fitted.count() - len(fitted.matrix.__slots__) - 1


def _by_source(cards: Sequence[HeldOutCard]) -> str:
    names = [card.card for card in cards]
    rows = []
    for source in names:
        cells = []
        for card in cards:
            errors = [pair.error for pair in card.pairs if pair.source == source]
            cells.append(f"{np.mean(errors):+.1%}".replace("%", " %") if errors else "")
        rows.append((f"`{source}`", *cells))
    head = ("from", *(f"`{name}`" for name in names))
    return "Mean error with its sign, from the card of the row to the card of the column:\n\n" + _table(head, rows)


def _reached_rows(cards: Sequence[HeldOutCard]) -> list[Row]:
    figures = [(card.card, (card.peak, card.peak_expected, card.memory, card.memory_expected, card.error())) for card in cards]
    return [(f"`{name}`", *(_share(figure) for figure in shown)) for name, shown in figures]


def _rows(modules: Sequence[HeldOutModule]) -> list[Row]:
    return [
        (
            f"`{m.source}`",
            f"`{m.target}`",
            ", ".join(f"`{name}`" for name in m.seen) + " and the seven cards",
            f"{m.count:,}",
            str(2 + len(m.fitted.matrix.__slots__)),
            _share(m.error),
            _share(m.roofline),
            _share(m.floor),
        )
        for m in modules
    ]


def _errors_text(fitted: Fitted) -> str:
    known = fitted.residuals
    spans = [
        f"{name}: {np.exp(s.low) - 1:+.0%} to {np.exp(s.high) - 1:+.0%}".replace("%", " %")
        for name, s in (
            ("products on matrix units", known.matrix),
            ("products on vector units", known.vector),
            ("the rest", known.memory),
        )
    ]
    return f"Nine of ten held-out operators were measured within these of their prediction:\n{'; '.join(spans)}.\n"


def _table(head: Row, rows: Sequence[Row], *, right: bool = True) -> str:
    lines = [f"| {' | '.join(head)} |", "|---|" + ("---:|" if right else "---|") * (len(head) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n\n"


def _share(value: float) -> str:
    return f"{value:.1%}".replace("%", " %")


def _percent(value: float) -> str:
    return f"{value:.0%}".replace("%", " %")


def _met(met: bool) -> str:
    return "yes" if met else "**no**"
