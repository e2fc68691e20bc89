"""The fitted coefficients: in, a TOML file of ``fitted/`` (or of one's own); out, a frozen ``Fitted``, and the same as text.

The file says which command made it from which measurements. ``python -m benchmarks.operators fit`` writes it.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from tracereplay.errors import HardwareError

SCHEMA: Final = "tracereplay/operators/1"
COMMAND: Final = "python -m benchmarks.operators fit"
_FILE: Final = "operators.toml"


@dataclass(frozen=True, slots=True)
class Matrix:
    """Products on matrix units: shares of peak and of memory bandwidth that large ones reach, the flops that one compute unit
    spends a step of k on its tile, the steps that filling and draining it cost, and the k beyond which it is split.
    """

    efficiency: float
    memory: float
    unit_flops: float
    fill_steps: float
    split_steps: float


@dataclass(frozen=True, slots=True)
class Single:
    """Products in fp32: shares of peak that large ones reach, on vector units, on matrix units where they take fp32, and of
    convolutions on vector units.
    """

    vector: float
    matrix: float
    conv: float


@dataclass(frozen=True, slots=True)
class Energy:
    """The vector flops that a joule pays for at 16 nm, and the exponent by which smaller processes need less."""

    flops_per_joule: float
    exponent: float


@dataclass(frozen=True, slots=True)
class Memory:
    """Shares of memory bandwidth that large operators reach, by class; classes that nobody measured borrow elementwise's."""

    elementwise: float
    reduction: float
    normalisation: float
    embedding: float


@dataclass(frozen=True, slots=True)
class Span:
    """The natural logarithms of measured / predicted between which nine of ten held-out predictions lie."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Residuals:
    """Known errors, by what does the work: products on matrix units, products on vector units, the memory."""

    matrix: Span
    vector: Span
    memory: Span


@dataclass(frozen=True, slots=True)
class Fitted:
    """All coefficients. ``floor_ns``: the time of a kernel that does nothing. ``persistence``: the share of a measurement's
    deviation from the model that recurs on another architecture.
    """

    floor_ns: float
    persistence: float
    matrix: Matrix
    single: Single
    energy: Energy
    memory: Memory
    residuals: Residuals

    def count(self) -> int:
        """How many coefficients there are; the known errors are none of them."""
        return sum(1 if isinstance(value, float) else len(value) for key, value in asdict(self).items() if key != "residuals")


_SECTIONS: Final = {"matrix": Matrix, "single": Single, "energy": Energy, "memory": Memory}


@cache
def shipped() -> Fitted:
    """The coefficients that come with the product."""
    file = resources.files("tracereplay.hardware.operators") / "fitted" / _FILE
    return parsed(file.read_text(encoding="utf-8"), _FILE)


def read(path: Path) -> Fitted:
    """The coefficients of a file.

    Raises:
        HardwareError: the file cannot be read, or lacks a coefficient.
    """
    try:
        return parsed(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise HardwareError("cannot be read", where=str(path), hint=f"make it with {COMMAND}") from error


def parsed(text: str, where: str) -> Fitted:
    """The coefficients that a TOML text holds.

    Raises:
        HardwareError: it is no such text, or lacks a coefficient; the message names it.
    """
    try:
        content = tomllib.loads(text)
        if content.get("schema") != SCHEMA:
            raise HardwareError(
                f"schema is {content.get('schema')!r}, not {SCHEMA!r}", where=where, hint=f"make it with {COMMAND}"
            )
        sections = {name: kind(**_numbers(content[name], kind)) for name, kind in _SECTIONS.items()}
        spans = {field.name: Span(**_numbers(content["residuals"][field.name], Span)) for field in fields(Residuals)}
        return Fitted(float(content["floor_ns"]), float(content["persistence"]), residuals=Residuals(**spans), **sections)
    except tomllib.TOMLDecodeError as error:
        raise HardwareError(f"is no TOML: {error}", where=where, hint=f"make it with {COMMAND}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise HardwareError(f"lacks {error}", where=where, hint=f"make it with {COMMAND}") from error


def as_text(fitted: Fitted, sources: Mapping[str, str]) -> str:
    """The file's text, numbers to five significant digits; ``sources`` says for each section what it was fitted to."""
    head = [
        f'schema = "{SCHEMA}"',
        f'command = "{COMMAND}"',
        f"# {fitted.count()} coefficients; the residuals are none of them.",
    ]
    lines = [*head, f"# {sources['floor_ns']}", f"floor_ns = {_digits(fitted.floor_ns)}"]
    lines += [f"# {sources['persistence']}", f"persistence = {_digits(fitted.persistence)}"]
    for name in _SECTIONS:
        values = asdict(getattr(fitted, name))
        lines += ["", f"# {sources[name]}", f"[{name}]", *(f"{key} = {_digits(value)}" for key, value in values.items())]
    for name, span in asdict(fitted.residuals).items():
        lines += ["", f"# {sources[f'residuals.{name}']}", f"[residuals.{name}]"]
        lines += [f"{key} = {_digits(value)}" for key, value in span.items()]
    return "\n".join(lines) + "\n"


def _numbers(table: Mapping[str, object], kind: type) -> dict[str, float]:
    return {field.name: _number(table[field.name]) for field in fields(kind)}


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"a number: {value!r}")
    return float(value)


def _digits(value: float) -> str:
    return repr(float(f"{value:.5g}"))
