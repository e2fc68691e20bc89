"""Hardware by name or file: in, a name of the catalogue or the path of a TOML file; out, an Accelerator or a Platform.

A file may begin with another one, ``inherits = "zion"`` (a name of the catalogue) or ``inherits = "./ours.toml"`` (a path
relative to the file): tables are merged key by key, a field is replaced whole. Names may be written with underscores.
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from tracereplay.errors import UsageError
from tracereplay.hardware.checks import Fault, FaultError, faults_between_fields
from tracereplay.hardware.facts import Fact
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.schema import SCHEMA, Accelerator, PlatformFile, model_in

Table = Mapping[str, Any]  # what TOML holds: anything
Description = Accelerator | PlatformFile

# A table with one of these keys is a field: it is replaced whole, so that no number keeps the source of another.
_KEYS_OF_A_FIELD = {"value", "unit", "kind", "source", "range", "direction"}
# What a file says of itself and does not hand on.
_OWN = {"schema", "name", "title", "aliases", "inherits"}
_TYPES: dict[str, type[Description]] = {"accelerator": Accelerator, "platform": PlatformFile}


@dataclass(frozen=True, slots=True)
class _Document:
    """A file as read: how messages name it, where its relative paths begin (None: in the catalogue), what it holds."""

    label: str
    folder: Path | None
    content: dict[str, Any]


def catalogue() -> tuple[str, ...]:
    """The names of the catalogue, sorted."""
    return tuple(sorted(path.name.removesuffix(".toml") for path in _shelf().iterdir() if path.name.endswith(".toml")))


def load(name_or_file: str) -> Accelerator | Platform:
    """The accelerator or platform of that name or in that file.

    Raises:
        UsageError: no such name in the catalogue.
        HardwareError: the file cannot be read or is wrong; the message gives the first fault.
    """
    return _load(name_or_file, Path())


def load_accelerator(name_or_file: str) -> Accelerator:
    """The accelerator of that name or in that file.

    Raises:
        UsageError: no such name, or it is a platform's.
        HardwareError: the file cannot be read or is wrong.
    """
    return _accelerator(name_or_file, Path())


def load_platform(name_or_file: str) -> Platform:
    """The platform of that name or in that file, with the accelerator that it names in its slots.

    Raises:
        UsageError: no such name, or it is an accelerator's.
        HardwareError: the file cannot be read or is wrong.
    """
    found = load(name_or_file)
    if isinstance(found, Accelerator):
        raise UsageError(f"{name_or_file!r} is an accelerator, not a platform", hint="`tracereplay hardware list` lists both")
    return found


def faults_of(name_or_file: str) -> list[Fault]:
    """All that is wrong with a file, in the order of its keys; empty where it is in order."""
    try:
        chain = _chain(_open(name_or_file, Path()))
        description, faults = _described(chain)
        if description is None or faults:
            return faults
        _assembled(description, chain)
    except FaultError as error:
        return [error.fault]
    return []


def _load(reference: str, folder: Path | None) -> Accelerator | Platform:
    chain = _chain(_open(reference, folder))
    description, faults = _described(chain)
    if description is None or faults:
        raise FaultError(faults[0], len(faults) - 1)
    return _assembled(description, chain)


def _accelerator(reference: str, folder: Path | None) -> Accelerator:
    found = _load(reference, folder)
    if isinstance(found, Platform):
        raise UsageError(f"{reference!r} is a platform, not an accelerator", hint="`tracereplay hardware list` lists both")
    return found


def _assembled(description: Description, chain: list[_Document]) -> Accelerator | Platform:
    """The description with what it refers to."""
    if isinstance(description, Accelerator):
        return description
    slots = description.accelerator
    if slots is None or slots.model.value is None:
        return Platform(description, None)
    said_by = _sayer(chain, ("accelerator", "model"))
    try:
        return Platform(description, _accelerator(slots.model.value, said_by.folder))
    except UsageError as error:
        raise FaultError(Fault(said_by.label, "accelerator.model", f"{error.what}; {error.hint}")) from error


def _shelf() -> Traversable:
    return resources.files("tracereplay.hardware") / "catalog"


def _is_file(reference: str) -> bool:
    return reference.endswith(".toml") or "/" in reference or "\\" in reference


def _open(reference: str, folder: Path | None) -> _Document:
    """The document that a reference names: a path where it looks like one, else a name of the catalogue."""
    if not _is_file(reference):
        name = _name(reference)
        return _Document(name, None, _parsed((_shelf() / f"{name}.toml").read_bytes(), name))
    path = (folder or Path()) / reference
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # a path with a null character is a ValueError
        raise FaultError(
            Fault(str(path), "", f"cannot read the hardware file ({getattr(error, 'strerror', error)})")
        ) from error
    return _Document(str(path), path.parent, _parsed(content, str(path)))


def _name(reference: str) -> str:
    """The catalogue's own name for a name or an alias of it."""
    wanted, names = reference.lower().replace("_", "-"), catalogue()
    if wanted in names:
        return wanted
    for name in names:
        if wanted in tomllib.loads((_shelf() / f"{name}.toml").read_text(encoding="utf-8")).get("aliases", ()):
            return name
    near = difflib.get_close_matches(wanted, names, n=3)
    hint = f"did you mean {', '.join(near)}?" if near else "`tracereplay hardware list` lists the names."
    raise UsageError(f"no hardware {reference!r} in the catalogue", hint=f"{hint} A file's name ends in .toml or has a /")


def _parsed(content: bytes, label: str) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:  # wrong TOML, wrong UTF-8, tables within tables without end
        raise FaultError(Fault(label, "", f"not TOML: {error}")) from error


def _chain(document: _Document) -> list[_Document]:
    """A document and those that it inherits from, itself first."""
    chain = [document]
    while (reference := chain[-1].content.get("inherits")) is not None:
        child = chain[-1]
        if not isinstance(reference, str):
            raise FaultError(Fault(child.label, "inherits", "is no text; write a catalogue name or a path in quotes"))
        try:
            parent = _open(reference, child.folder)
        except UsageError as error:
            raise FaultError(Fault(child.label, "inherits", f"{error.what}; {error.hint}")) from error
        except FaultError as error:
            raise FaultError(Fault(child.label, "inherits", error.fault.line())) from error
        if _identity(parent) in map(_identity, chain):
            circle = " → ".join([d.label for d in chain] + [parent.label])
            raise FaultError(Fault(document.label, "inherits", f"goes in a circle: {circle}; break it in one of them"))
        chain.append(parent)
    return chain


def _identity(document: _Document) -> str:
    return document.label if document.folder is None else str(Path(document.label).resolve())


def _merged(chain: list[_Document]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for document in reversed(chain):
        inherited = {key: value for key, value in content.items() if key not in _OWN}
        content = _over(inherited, document.content)
    content.pop("inherits", None)
    return content


def _over(below: Table, above: Table) -> dict[str, Any]:
    """``above`` laid over ``below``."""
    merged = dict(below)
    for key, value in above.items():
        merged[key] = _over(merged[key], value) if _is_section(merged.get(key)) and _is_section(value) else value
    return merged


def _is_section(value: object) -> bool:
    return isinstance(value, dict) and not _KEYS_OF_A_FIELD & value.keys()


def _described(chain: list[_Document]) -> tuple[Description | None, list[Fault]]:
    content = _merged(chain)
    kind = _TYPES.get(str(content.get("type")))
    if content.get("schema") != SCHEMA:
        said = content.get("schema", "nothing")
        return None, [Fault(chain[0].label, "schema", f"says {said!r}; this version reads schema = {SCHEMA!r}")]
    if kind is None:
        said = content.get("type", "nothing")
        return None, [Fault(chain[0].label, "type", f"says {said!r}; write type = 'accelerator' or 'platform'")]
    try:
        description = kind.model_validate(content)
    except ValidationError as error:
        return None, [_fault(detail, kind, chain) for detail in error.errors()]
    return description, [Fault(_culprit(chain, key).label, key, what) for key, what in faults_between_fields(description)]


def _sayer(chain: list[_Document], place: tuple[str | int, ...]) -> _Document:
    """The document whose word counts for a key: the nearest one that has the field it belongs to, or else the nearest one that
    has as much of the way to it as any has.
    """
    found = chain[0]
    for length in range(1, len(place) + 1):
        having = [(document, value) for document in chain if (value := _value(document.content, place[:length])) is not None]
        if not having:
            break
        found, value = having[0]
        if not _is_section(value):
            break
    return found


def _value(content: object, place: tuple[str | int, ...]) -> object:
    """What stands at a place; None where nothing does, TOML having no null."""
    for key in place:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def _culprit(chain: list[_Document], key: str) -> _Document:
    """The document that brought in a fault between fields: without it, those that it inherits from have none at that key."""
    for above, _ in enumerate(chain[1:]):
        if key not in {fault.key for fault in _described(chain[above + 1 :])[1]}:
            return chain[above]
    return chain[-1]


def _fault(detail: Table, kind: type[Description], chain: list[_Document]) -> Fault:
    place = tuple(detail["loc"])
    key = ".".join(str(part) for part in place if part != "[key]")
    return Fault(_sayer(chain, place).label, key, _what(detail, kind))


def _what(detail: Table, kind: type[Description]) -> str:
    """What a fault of one field is and how to mend it."""
    model = _model_at(kind, detail["loc"][:-1])
    if detail["type"] == "missing":
        is_field = _is_field(_model_at(kind, detail["loc"]))
        return (
            "is missing; write { value, unit, kind, source }, or kind = 'unknown' without value" if is_field else "is missing"
        )
    if detail["type"] == "extra_forbidden" and model is not None:
        keys = [field.alias or name for name, field in model.model_fields.items()]
        return f"is not known here; keys are {', '.join(keys)}"
    if detail["type"] in {"model_type", "dict_type"}:
        is_field = _is_field(_model_at(kind, detail["loc"]))
        return f"is no table; write {'{ value, unit, kind, source }' if is_field else 'its keys'}"
    if detail["type"] == "string_pattern_mismatch":
        return f"{detail['input']!r} is no name; write lower-case letters, digits and single hyphens"
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    return f"{detail['msg'][0].lower()}{detail['msg'][1:]}, not {detail['input']!r}"


def _is_field(model: type[BaseModel] | None) -> bool:
    return model is not None and issubclass(model, Fact)


def _model_at(model: type[BaseModel], place: tuple[str | int, ...]) -> type[BaseModel] | None:
    """The model of the table at a place, or None where there stands something else."""
    found: type[BaseModel] | None = model
    for key in place:
        if found is None:
            return None
        field = found.model_fields.get(str(key))
        if field is not None:
            found = model_in(field.annotation)
    return found
