"""A platform with other figures: in, such as ``accelerator.hbm.capacity=2x``; out, the platform with that field changed."""

import fnmatch
import re
from typing import Any

from pydantic import BaseModel

from tracereplay.errors import UsageError
from tracereplay.hardware.facts import Count, LinkRate, Measure
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.quantity import parse_quantity

_RATIO = re.compile(r"(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)x")
_TOLERANCE = 1e-9


def with_setting(platform: Platform, text: str) -> Platform:
    """The platform with ``KEY=RATIOx`` or ``KEY=VALUE UNIT`` applied; ``*`` stands for one level of the key. A changed field is
    derived, with the setting as its source. A link's value is one way. ``accelerator.flops`` means all formats; where a memory
    or a link has an achievable figure beside its bandwidth, a ratio on the bandwidth moves both.

    Raises:
        UsageError: no such field, one that is no number, or a value that fits none; a ratio of an unknown one.
    """
    pattern, separator, value = text.partition("=")
    if not separator or not value:
        raise UsageError(f"--set {text!r} is not KEY=VALUE", hint="write such as accelerator.hbm.capacity=2x or ='64 GB'")
    numbers = {key: fact for key, fact in platform.fields() if isinstance(fact, Measure)}
    chosen = [key for key in numbers if _is_meant(key, pattern)]
    if not chosen:
        raise UsageError(f"--set: {platform.description.name} has no number {pattern!r}", hint="`hardware show` lists them")
    for key in chosen:
        changed = _changed(numbers[key], value, text)
        platform = _put(platform, key.split("."), changed)
        beside = key.removesuffix("bandwidth") + "achievable"
        if key.endswith(".bandwidth") and beside in numbers and beside not in chosen:
            other = numbers[beside]
            if other.value is not None:
                platform = _put(platform, beside.split("."), _beside(other, numbers[key], changed, text))
    return platform


def _is_meant(key: str, pattern: str) -> bool:
    """Whether a pattern names a field, level by level; a section of numbers alone stands for all of them."""
    levels, wanted = key.split("."), pattern.split(".")
    if wanted == ["accelerator", "flops"]:
        return levels[:2] in (["accelerator", "flops"], ["accelerator", "achievable_flops"])
    return len(levels) == len(wanted) and all(fnmatch.fnmatchcase(a, b) for a, b in zip(levels, wanted, strict=True))


def _changed(fact: Measure, value: str, text: str) -> Measure:
    ratio = _RATIO.fullmatch(value)
    if ratio is None:
        try:
            quantity = parse_quantity(value, fact.dimension)
        except ValueError as error:
            raise UsageError(f"--set {text!r}: {error}") from error
        fields: dict[str, Any] = {"value": quantity.number, "unit": quantity.unit.sign}
        if isinstance(fact, LinkRate):
            fields["direction"] = "one-way"
        return _derived(fact, fields, text)
    if fact.value is None:
        raise UsageError(f"--set {text!r}: the field is unknown, so a ratio says nothing", hint="give a value with its unit")
    return _derived(fact, {"value": _times(fact, float(ratio[1]), text)}, text)


def _beside(achievable: Measure, before: Measure, after: Measure, text: str) -> Measure:
    """The achievable figure that keeps its share of the bandwidth."""
    if before.base is None or after.base is None or achievable.value is None:
        return achievable
    return _derived(achievable, {"value": achievable.value * (after.base / before.base)}, text)


def _times(fact: Measure, ratio: float, text: str) -> int | float:
    number = (fact.value or 0) * ratio
    if ratio <= 0:
        raise UsageError(f"--set {text!r}: {ratio:g} is no positive ratio")
    if isinstance(fact, Count) and abs(number - round(number)) > _TOLERANCE:
        raise UsageError(f"--set {text!r} gives {number:g}, which is no whole number")
    return round(number) if isinstance(fact, Count) or float(number).is_integer() else number


def _derived(fact: Measure, fields: dict[str, Any], text: str) -> Measure:
    """The fact with other fields, checked as if it stood in a file."""
    whole = fact.model_dump() | fields | {"kind": "derived", "range": None, "source": f"--set {text}"}
    return type(fact).model_validate(whole)


def _put(platform: Platform, key: list[str], fact: Measure) -> Platform:
    if key[0] == "accelerator" and platform.accelerator is not None and key[1] not in {"model", "count"}:
        accelerator = _replaced(platform.accelerator, key[1:], fact)
        return Platform(platform.description, accelerator)
    return Platform(_replaced(platform.description, key, fact), platform.accelerator)


def _replaced(section: Any, key: list[str], fact: Measure) -> Any:  # a section, or a table of facts by format
    inner = section[key[0]] if isinstance(section, dict) else getattr(section, key[0])
    value = fact if len(key) == 1 else _replaced(inner, key[1:], fact)
    if isinstance(section, dict):
        return section | {key[0]: value}
    assert isinstance(section, BaseModel)
    return section.model_copy(update={key[0]: value})
