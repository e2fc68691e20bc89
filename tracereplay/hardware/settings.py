"""Platforms with other figures: in, a platform and settings of the command line; out, the platform that they describe.

A knob moves all fields that say the same thing: twice the bandwidth of a memory is twice its peak and twice what is achieved
of it. A field by its own name moves alone. What a setting supplies is no longer unknown or assumed.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from tracereplay.errors import UsageError
from tracereplay.hardware.facts import Count, Fact, Flops, LinkRate, Measure, Name, Pairs
from tracereplay.hardware.knobs import HOST_SPEED, Setting, same_levels, unknown_knob
from tracereplay.hardware.load import load_accelerator
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.quantity import parse_quantity
from tracereplay.hardware.schema import Format, model_in

# The fields that a knob moves. A new value is that of the first, and what it is of the old one holds for the others.
_TOGETHER: dict[str, tuple[str, ...]] = {
    "accelerator.hbm.bandwidth": ("accelerator.hbm.bandwidth", "accelerator.hbm.achievable"),
    "accelerator.flops": ("accelerator.flops.*", "accelerator.achievable_flops.*", "accelerator.vector_flops.*"),
    "fabric.scale_up.bandwidth": (
        *(f"fabric.scale_up.{name}" for name in ("bandwidth", "link_bandwidth", "achievable", "switched")),
        *(f"accelerator.scale_up.{name}" for name in ("bandwidth", "link_bandwidth", "achievable", "switched")),
    ),
    "fabric.scale_out.bandwidth": ("fabric.scale_out.bandwidth", "fabric.scale_out.achievable"),
    "host.memory.bandwidth": ("host.memory.bandwidth", "host.memory.achievable"),
    "host.link.bandwidth": (
        *(f"host.link.{name}" for name in ("bandwidth", "achievable", "uplink")),
        *(f"accelerator.host_link.{name}" for name in ("bandwidth", "achievable")),
    ),
}
_MODEL = "accelerator.model"
_WHOLE = 1e-9
_Change = Callable[[Any], Fact]
_Model = TypeVar("_Model", bound=BaseModel)


def adjusted(platform: Platform, settings: Iterable[Setting]) -> Platform:
    """The platform under all settings, in order; ``host.speed`` is no field of it and is passed over.

    Raises:
        UsageError: no such field, a ratio of a field that is unknown, a value that does not fit the field.
        HardwareError: ``accelerator.model`` names no accelerator.
    """
    for setting in settings:
        platform = _with(platform, setting)
    return platform


def _with(platform: Platform, setting: Setting) -> Platform:
    if setting.name == HOST_SPEED:
        return platform
    if setting.name == _MODEL and setting.value is not None:
        return platform.with_accelerator(load_accelerator(setting.value), f"--set {setting.text}")
    known = dict(platform.fields())
    patterns = _TOGETHER.get(setting.name, (setting.name,))
    keys = [key for pattern in patterns for key in known if same_levels(key, pattern)]
    if not keys and setting.knob is not None:
        return platform  # a knob of what this platform does not have moves nothing
    if not keys and setting.value is not None:
        return _supplied(platform, setting)
    if not keys:
        raise unknown_knob(setting.name)
    ratio = setting.ratio
    if ratio is None:
        old, platform = known[keys[0]], _valued(platform, setting, keys)
        ratio, keys = _ratio(old, dict(platform.fields())[keys[0]]), keys[1:]
    elif all(_is_unknown(known[key]) for key in keys):
        raise UsageError(f"--set {setting.text}: the field is unknown, and so is a ratio of it", hint="give it a value")
    if ratio is None:
        return platform
    change = _times(ratio, setting)
    for key in keys:
        platform = _changed(platform, key, change)
    return platform


def _supplied(platform: Platform, setting: Setting) -> Platform:
    """The platform with a value in a field that files may leave out."""
    head, _, rest = setting.name.partition(".")
    inside = head == "accelerator" and platform.accelerator is not None
    section: Any = platform.accelerator if inside else platform.description
    path = (rest if inside else setting.name).split(".")
    for name in path[:-1]:
        section = getattr(section, name, None)
    *_, last = path
    if isinstance(section, dict):
        kind: Any = Flops if path[-2:-1] and last in get_args(Format) else None
    else:
        field = None if section is None else type(section).model_fields.get(last)
        kind = None if field is None else model_in(field.annotation)
    if kind is None or not issubclass(kind, Fact):
        raise unknown_knob(setting.name)
    return _changed(platform, setting.name, _to_value(setting, kind))


def _is_unknown(fact: Fact) -> bool:
    return fact.kind == "unknown"


def _valued(platform: Platform, setting: Setting, keys: list[str]) -> Platform:
    """The platform with a new value in the field that a knob is named for."""
    if keys[0] != setting.name:
        raise UsageError(f"--set {setting.text}: one value for {len(keys)} fields", hint=f"name one, such as {keys[0]}")
    return _changed(platform, keys[0], _to_value(setting, type(dict(platform.fields())[keys[0]])))


def _ratio(old: Fact, new: Fact) -> float | None:
    """The new value over the old one; None where the old one is unknown or is no number: it says nothing of other fields."""
    if not isinstance(old, Measure) or not isinstance(new, Measure) or old.base is None or new.base is None:
        return None
    return new.base / old.base


def _times(ratio: float, setting: Setting) -> _Change:
    def change(fact: Fact) -> Fact:
        if not isinstance(fact, Measure):
            raise UsageError(f"--set {setting.text}: the field is no number", hint=f"give it a value, such as {fact.text()}")
        if fact.value is None:
            return fact
        span = None if fact.range is None else tuple(_scaled(fact, bound, ratio, setting) for bound in fact.range)
        source = f"{fact.source}; times {ratio:g} by --set {setting.text}"
        return fact.model_copy(update={"value": _scaled(fact, fact.value, ratio, setting), "range": span, "source": source})

    return change


def _scaled(fact: Measure, number: int | float, ratio: float, setting: Setting) -> int | float:
    scaled = number * ratio
    if isinstance(fact, Count) and abs(scaled - round(scaled)) > _WHOLE:
        raise UsageError(f"--set {setting.text} gives {scaled:g}, which is no whole number", hint="give the number itself")
    return round(scaled) if isinstance(fact, Count) or float(scaled).is_integer() else scaled


def _to_value(setting: Setting, kind: type[Fact]) -> _Change:
    def change(_old: Fact | None) -> Fact:
        text, source = setting.value or "", f"--set {setting.text}"
        if issubclass(kind, Pairs):
            raise UsageError(f"--set {setting.text}: wiring is no single value", hint="write a file that inherits the platform")
        try:
            if issubclass(kind, Name):
                return kind(unit="name", kind="spec", value=text, source=source)
            quantity = parse_quantity(text, kind.dimension)  # type: ignore[attr-defined] # what is no name is a measure
            more = {"direction": "one-way"} if issubclass(kind, LinkRate) else {}
            return kind(unit=quantity.unit.sign, kind="spec", source=source, value=quantity.number, **more)  # type: ignore[call-arg]
        except ValidationError as error:
            detail = error.errors()[0]
            what = str(detail["ctx"]["error"]) if "error" in detail.get("ctx", {}) else detail["msg"]
            raise UsageError(f"--set {setting.text}: {what}", hint="see `tracereplay hardware show`") from error
        except ValueError as error:
            raise UsageError(f"--set {setting.text}: {error}", hint="see `tracereplay hardware show`") from error

    return change


def _changed(platform: Platform, key: str, change: _Change) -> Platform:
    """The platform with one field changed; keys under ``accelerator.`` are the accelerator's but for its slots'."""
    head, _, rest = key.partition(".")
    if head == "accelerator" and platform.accelerator is not None and rest not in {"model", "count"}:
        return replace(platform, accelerator=_replaced(platform.accelerator, rest.split("."), change))
    return replace(platform, description=_replaced(platform.description, key.split("."), change))


def _replaced(section: _Model, path: list[str], change: _Change) -> _Model:
    name, *rest = path
    value = getattr(section, name)
    if not rest:
        return section.model_copy(update={name: change(value)})
    if isinstance(value, dict):
        return section.model_copy(update={name: value | {rest[0]: change(value.get(rest[0]))}})
    return section.model_copy(update={name: _replaced(value, rest, change)})
