"""Hardware files from measurements: in, facts and what a file is to inherit; out, TOML, checked and then put in its place.

A field that must be there and was neither measured nor inherited is ``unknown``.
"""

import json
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_origin

from pydantic import BaseModel

from tracereplay.errors import HardwareError, UsageError
from tracereplay.hardware.calibration import Facts, Origin, accelerator_facts, has_gpu, ordered, platform_facts
from tracereplay.hardware.facts import Clock, Count, Fact, Flops, Latency, LinkRate, MemoryRate, Name, Pairs, Power, Size
from tracereplay.hardware.load import catalogue, faults_of, load_platform
from tracereplay.hardware.measurements import Measurements
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.schema import SCHEMA, Accelerator, PlatformFile, fields_of, model_in

# The unit in which a field would be given if it were known.
_UNITS: dict[type[Fact], str] = {
    Size: "GB", Flops: "GFLOP/s", Power: "W", Clock: "MHz", Latency: "ns", Count: "1", MemoryRate: "GB/s", LinkRate: "GB/s",
    Name: "name", Pairs: "links",
}  # fmt: skip
_NOT_MEASURED = "not measured by tracereplay hardware calibrate"


@dataclass(frozen=True, slots=True)
class Written:
    """The files of a calibrated machine: its platform, and the accelerator in its slots (None where it has none); the measured
    fields of both, those of the accelerator under ``accelerator``; what a reader must know beside them.
    """

    name: str
    platform: Path
    accelerator: Path | None
    measured: tuple[tuple[str, Fact], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a schema; ``sections``: the optional ones that it stands in; ``by_format``: one for each format of numbers."""

    key: str
    fact: type[Fact]
    required: bool
    by_format: bool
    sections: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Draft:
    """A file to be: what it is called, what it says of itself, what it inherits (the words of a command line, None: nothing),
    and its fields.
    """

    file: str
    name: str
    title: str
    type: str
    inherits: str | None
    facts: Facts

    def text(self, folder: Path) -> str:
        """The TOML as it has to be for a file in ``folder``."""
        begins = {"type": self.type} if self.inherits is None else {"inherits": _seen_from(self.inherits, folder)}
        header = {"schema": SCHEMA} | begins | {"name": self.name, "title": self.title}
        lines = [f"{key} = {_word(value)}" for key, value in header.items()]
        for section in dict.fromkeys(key.rpartition(".")[0] for key in self.facts):
            lines += ["", f"[{section}]"] if section else [""]
            inside = [(key, fact) for key, fact in self.facts.items() if key.rpartition(".")[0] == section]
            lines += [f"{key.rpartition('.')[2]} = {_table(fact)}" for key, fact in inside]
        return "\n".join(lines) + "\n"


def platform_name(output: Path) -> str:
    """The name that a platform gets from its file.

    Raises:
        UsageError: the file's name does not end in .toml, or nothing of it may stand in a name.
    """
    name = re.sub(r"[^a-z0-9]+", "-", output.stem.lower()).strip("-")
    if output.suffix != ".toml" or not name:
        raise UsageError("is no name for a platform's file", where=str(output), hint="end it in .toml, such as our-host.toml")
    return name


def parent_of(output: Path, inherits: str | None) -> Platform | None:
    """The platform that the one in ``output`` is to inherit from, None where that is none.

    Raises:
        UsageError: no such name in the catalogue, an accelerator's, or ``output`` itself.
        HardwareError: the file cannot be read or is wrong.
    """
    if inherits is None:
        return None
    if Path(inherits).resolve() == output.resolve():
        raise UsageError("inherits from itself", where=str(output), hint="choose another --output")
    return load_platform(inherits)


def write_platform(measurements: Measurements, measured_in: str, output: Path, inherits: str | None = None) -> Written:
    """Write the platform of a measured machine to ``output``, and its accelerator beside it.

    Args:
        measurements: what was measured.
        measured_in: the name of the file that holds it, for the sources of fields.
        output: the platform's file; its name, without suffix, is the platform's.
        inherits: a platform of the catalogue or a file that knows the rest.

    Raises:
        UsageError: ``output`` is no name for a platform's file, or ``inherits`` is none of a platform.
        HardwareError: ``inherits`` is wrong, what was measured does not fit it, or nothing can be written there; files that
            were there stay as they were.
    """
    parent = parent_of(output, inherits)
    origin = Origin(measured_in, measurements)
    host, accelerator = _measured(origin, parent, output)
    drafts = [*_accelerator_draft(origin, parent, output, accelerator), _platform_draft(origin, parent, output, inherits, host)]
    _put(drafts, output)
    return Written(
        name=platform_name(output),
        platform=output,
        accelerator=_beside(output) if accelerator else None,
        measured=(*host.items(), *((f"accelerator.{key}", fact) for key, fact in accelerator.items())),
        notes=tuple(_notes(measurements, parent)),
    )


def _beside(output: Path) -> Path:
    """Where the accelerator of a platform's file goes."""
    return output.with_name(f"{output.stem}-accelerator.toml")


def _measured(origin: Origin, parent: Platform | None, output: Path) -> tuple[Facts, Facts]:
    """The measured facts of the platform and of its accelerator (none on a machine without), in the order of their schemas."""
    host = platform_facts(origin, fabric=not _has_another_fabric(origin.measurements, parent))
    accelerator = accelerator_facts(origin)
    if accelerator:
        source = origin.source(f"the driver of {origin.measurements.device.name}")
        host |= {"accelerator.model": Name(unit="name", kind="measured", value=f"./{_beside(output).name}", source=source)}
    return ordered(host, _keys(PlatformFile)), ordered(accelerator, _keys(Accelerator))


def _platform_draft(origin: Origin, parent: Platform | None, output: Path, inherits: str | None, facts: Facts) -> _Draft:
    inherited = set() if parent is None else {key for key, _ in fields_of(parent.description)}
    whole = _completed(facts, PlatformFile, inherited)
    return _Draft(output.name, platform_name(output), _title(origin.measurements), "platform", inherits, whole)


def _accelerator_draft(origin: Origin, parent: Platform | None, output: Path, facts: Facts) -> Iterator[_Draft]:
    """The accelerator's file, where there is one. It inherits what the catalogue has on what is in the parent's slots."""
    if not facts:
        return
    below = None if parent is None else parent.accelerator
    if below is not None and below.name not in catalogue():
        below = None  # a file of one's own, which this one may not find
    inherited = set() if below is None else {key for key, _ in fields_of(below)}
    whole, name = _completed(facts, Accelerator, inherited), f"{platform_name(output)}-accelerator"
    inherits = None if below is None else below.name
    yield _Draft(_beside(output).name, name, _title(origin.measurements), "accelerator", inherits, whole)


def _title(m: Measurements) -> str:
    return f"{m.device.name or m.host.cpu_model or 'A host'}, calibrated {m.created[:10]}"


def _has_another_fabric(m: Measurements, parent: Platform | None) -> bool:
    """Whether the parent's fabric joins accelerators and what was measured joins processes."""
    return not has_gpu(m) and parent is not None and parent.accelerator is not None


def _notes(m: Measurements, parent: Platform | None) -> list[str]:
    notes = m.doubts()
    for why in dict.fromkeys(row.why for row in m.skipped):
        left_out = [row.what for row in m.skipped if row.why == why]
        more = f" and {len(left_out) - 1} more" if len(left_out) > 1 else ""
        notes.append(f"not measured: {left_out[0]}{more}: {why}")
    if _has_another_fabric(m, parent) and m.of("collective", "fabric"):
        notes.append("fabric.scale_up is inherited: it joins accelerators, and only processes of a host were measured")
    return notes


def _put(drafts: list[_Draft], output: Path) -> None:
    """Write the files into a folder beside their place, check the platform there, then move them, the platform last."""
    try:
        place = output.resolve().parent
        with tempfile.TemporaryDirectory(prefix=".partial-", dir=place) as partial:
            folder = Path(partial)
            _fill(drafts, folder, folder)
            faults = faults_of(str(folder / output.name))
            if faults:
                raise HardwareError(
                    f"what was measured does not fit: {faults[0].key}: {faults[0].what}",
                    where=str(output),
                    hint="inherit another platform, or none",
                )
            _fill(drafts, folder, place)
            for draft in drafts:
                (folder / draft.file).replace(place / draft.file)
    except OSError as error:
        raise HardwareError(
            f"cannot write the platform ({error.strerror})", where=str(output), hint="choose another --output"
        ) from error


def _fill(drafts: list[_Draft], folder: Path, seen_from: Path) -> None:
    """Write drafts into ``folder`` as they have to be in the folder ``seen_from``."""
    for draft in drafts:
        (folder / draft.file).write_text(draft.text(seen_from), encoding="utf-8")


def _seen_from(inherits: str, folder: Path) -> str:
    """What a file in ``folder`` has to say to inherit from what a command line names."""
    if not inherits.endswith(".toml") and "/" not in inherits:
        return inherits
    return f"./{Path(os.path.relpath(Path(inherits).resolve(), folder)).as_posix()}"


def _completed(facts: Facts, model: type[BaseModel], inherited: set[str]) -> Facts:
    """Facts with an unknown one for each field that must be there and is neither among them nor inherited."""
    fields, there = list(_fields(model)), set(facts) | inherited
    unknown: Facts = {}
    for field in fields:
        if not field.required or not all(any(key.startswith(f"{above}.") for key in there) for above in field.sections):
            continue
        # A data sheet would have a peak for each format that was measured.
        formats = [key.rpartition(".")[2] for key in facts if key.startswith("achievable_flops.")]
        keys = [f"{field.key}.{name}" for name in formats] if field.by_format else [field.key]
        unknown |= {key: _unknown(field.fact) for key in keys if key not in there}
    return ordered(facts | unknown, [field.key for field in fields])


def _unknown(fact: type[Fact]) -> Fact:
    unit = next(unit for kind, unit in _UNITS.items() if issubclass(fact, kind))
    return fact.model_validate({"unit": unit, "kind": "unknown", "source": _NOT_MEASURED})


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.key for field in _fields(model)]


def _fields(model: type[BaseModel], above: str = "", sections: tuple[str, ...] = ()) -> Iterator[_Field]:
    """The fields of a schema in its order."""
    for name, field in model.model_fields.items():
        inner, key = model_in(field.annotation), f"{above}{name}"
        if inner is None:
            continue  # what a file says of itself
        if issubclass(inner, Fact):
            yield _Field(key, inner, field.is_required(), get_origin(field.annotation) is dict, sections)
        else:
            yield from _fields(inner, f"{key}.", sections if field.is_required() else (*sections, key))


def _table(fact: Fact) -> str:
    """A field as an inline table."""
    content: dict[str, Any] = fact.model_dump(exclude_none=True)
    order = [key for key in ("value", "unit", "direction", "kind", "range", "source") if key in content]
    return "{ " + ", ".join(f"{key} = {_word(content[key])}" for key in order) + " }"


def _word(value: object) -> str:
    """A text or a number as TOML; its basic strings are JSON's, but for the delete character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
