"""Hardware for people and as JSON: in, the catalogue, an entry or what is wrong with files; out, text and JSON results."""

import dataclasses
import textwrap
from collections import Counter
from typing import Any

from tracereplay.errors import HardwareError
from tracereplay.hardware.facts import Fact, LinkRate, Measure, Name, Pairs
from tracereplay.hardware.measurements import Measurements
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.platform_file import Written
from tracereplay.hardware.quantity import UNITS
from tracereplay.hardware.schema import Accelerator
from tracereplay.hardware.summary import AcceleratorRow, Figure, Listing, PlatformRow, fields, known
from tracereplay.hardware.validation import Verdict
from tracereplay.report.table import WIDTH, page, table

_PLATFORM_HEAD = ("platform", "accelerators", "sockets", "host memory", "scale-up, each", "scale-out", "assumed", "unknown")
_ACCELERATOR_HEAD = ("accelerator", "bf16 or fp16", "HBM", "HBM bandwidth", "scale-up", "assumed", "unknown")


def listing_text(listing: Listing) -> str:
    """``hardware list`` as text."""
    platforms = table(_PLATFORM_HEAD, [_platform_row(row) for row in listing.platforms], left=(0, 1))
    accelerators = table(_ACCELERATOR_HEAD, [_accelerator_row(row) for row in listing.accelerators])
    answer = (
        f"{len(listing.platforms)} platforms and {len(listing.accelerators)} accelerators; bandwidths of links are one way, "
        "? is unknown"
    )
    return page([answer, platforms, accelerators])


def entry_text(entry: Accelerator | Platform) -> str:
    """``hardware show`` as text."""
    facts = fields(entry)
    sources = {source: number for number, source in enumerate(dict.fromkeys(fact.source for _, fact in facts), 1)}
    rows = [(key, fact.text(), fact.kind, f"[{sources[fact.source]}]") for key, fact in facts]
    blocks = [_answer(entry), *_wiring(entry), table(("field", "value", "kind", "from"), rows, left=(0, 1, 2))]
    named = [(key, fact.range or ()) for key, fact in facts if isinstance(fact, Name)]
    choices = [f"{key} may be {', '.join(others)}" for key, others in named if len(others) > 1]
    pairs = [_wrapped(f"{key}: ", fact.listed()) for key, fact in facts if isinstance(fact, Pairs) and fact.value]
    listed = [_wrapped(f"[{number}] ", source) for source, number in sources.items()]
    return page([*blocks, *(["\n".join(lines)] if (lines := [*choices, *pairs]) else []), "\n".join(listed)])


def verdicts_text(verdicts: list[Verdict]) -> str:
    """``hardware validate`` as text: the files that are in order. What is wrong goes to standard error."""
    counted = [(v, v.known) for v in verdicts if v.known is not None]
    return "".join(
        f"{v.file}: in order: {v.type} {v.name}, {k.fields} fields, {k.assumed} assumed, {k.unknown} unknown\n"
        for v, k in counted
    )


def calibration_text(written: Written, measurements: Measurements, file: str) -> str:
    """``hardware calibrate`` as text: what was measured, and the files that say so."""
    device, host = measurements.device, measurements.host
    gpus = "" if device.kind == "cpu" else f"; {device.count} x {device.name}"
    answer = f"{written.name}: {host.cpu_model or 'processor unknown'}, {host.cpu_count} cores{gpus}"
    rows = [(key, fact.text(), _from_what(fact)) for key, fact in written.measured if fact.kind == "measured"]
    files = [f"{written.platform}: the platform; tracereplay hardware show {written.platform}"]
    files += [f"{written.accelerator}: the accelerator in its slots"] if written.accelerator is not None else []
    files += [f"{file}: {len(measurements.measurements)} measurements"]
    return page([answer, table(("field", "value", "measured by"), rows, left=(0, 1, 2)), "\n".join(files)])


def _from_what(fact: Fact) -> str:
    """What was run: the part of a source behind file, date and command."""
    words = fact.source.partition(": ")[2].split(" (")[0]
    return words.partition(", median")[0]


def calibration_result(written: Written, measurements: Measurements, file: str) -> dict[str, Any]:
    """``hardware calibrate``'s result."""
    return {
        "name": written.name,
        "platform": str(written.platform),
        "accelerator": None if written.accelerator is None else str(written.accelerator),
        "measurements_file": file,
        "measurements": len(measurements.measurements),
        "device": measurements.device.model_dump(),
        "ranks": measurements.ranks,
        "fields": [_field(key, fact) for key, fact in written.measured],
        "skipped": [row.model_dump() for row in measurements.skipped],
    }


def listing_result(listing: Listing) -> dict[str, Any]:
    """``hardware list``'s result."""
    return dataclasses.asdict(listing)


def entry_result(entry: Accelerator | Platform) -> dict[str, Any]:
    """``hardware show``'s result."""
    facts = fields(entry)
    description = entry.description if isinstance(entry, Platform) else entry
    return {
        "name": description.name,
        "type": description.type,
        "title": description.title,
        "aliases": list(description.aliases),
        "fields": [_field(key, fact) for key, fact in facts],
        "assumed": [key for key, fact in facts if fact.kind == "assumed"],
        "unknown": [key for key, fact in facts if fact.kind == "unknown"],
        "topology": _topology(entry) if isinstance(entry, Platform) and unwired(entry) is None else None,
    }


def unwired(entry: Accelerator | Platform) -> str | None:
    """Why a platform's wiring is not known; None where it is, and for an accelerator."""
    try:
        if isinstance(entry, Platform):
            entry.parts()
    except HardwareError as error:
        return error.what
    return None


def _topology(platform: Platform) -> dict[str, Any]:
    nodes, links = platform.parts()
    return {
        "nodes": [dataclasses.asdict(node) for node in nodes],
        "links": [dataclasses.asdict(link) for link in links],
        "bisection_bytes_per_s": platform.bisection(),
    }


def verdicts_result(verdicts: list[Verdict]) -> dict[str, Any]:
    """``hardware validate``'s result."""
    return {"files": [dataclasses.asdict(verdict) for verdict in verdicts]}


def _field(key: str, fact: Fact) -> dict[str, Any]:
    return {
        "key": key,
        "value": getattr(fact, "value", None),
        "unit": fact.unit,
        "direction": fact.direction if isinstance(fact, LinkRate) else None,
        "kind": fact.kind,
        "range": fact.range if isinstance(fact, Measure | Name) else None,
        "source": fact.source,
    }


def _answer(entry: Accelerator | Platform) -> str:
    description = entry.description if isinstance(entry, Platform) else entry
    far = known(entry)
    return f"{description.name}: {description.title}\n{far.fields} fields, {far.assumed} assumed, {far.unknown} unknown"


def _wiring(entry: Accelerator | Platform) -> list[str]:
    """What a platform's topology holds; nothing for an accelerator."""
    if isinstance(entry, Accelerator):
        return []
    if (why := unwired(entry)) is not None:
        return [f"wiring not known: {why}"]
    nodes, links = entry.parts()
    kinds = Counter(node.kind for node in nodes)
    counted = ", ".join(f"{count} {kind}{'es' if kind == 'switch' else 's'}" for kind, count in kinds.items())
    counted = counted.replace("memorys", "memories")
    lines = [f"wired: {counted}; {len(links)} links between them"]
    bisection = entry.bisection()
    if bisection is not None:
        lines.append(f"between the worst halves of the accelerators: {_in(bisection, 'GB/s')} one way over scale-up")
    return ["\n".join(lines)]


def _platform_row(row: PlatformRow) -> tuple[str, ...]:
    accelerators = "none" if row.accelerators is None else f"{row.accelerators} x {row.accelerator or '?'}"
    scale_up = "none" if row.layout is None else _in(row.scale_up_bytes_per_s, "GB/s")
    scale_out = _in(row.scale_out_bytes_per_s, "Gb/s")
    return (
        row.name, accelerators, _plain(row.sockets), _in(row.host_memory_bytes, "GB"), scale_up,
        "?" if row.nics is None else f"{row.nics} x {scale_out}", str(row.known.assumed), str(row.known.unknown),
    )  # fmt: skip


def _accelerator_row(row: AcceleratorRow) -> tuple[str, ...]:
    return (
        row.name, _in(row.half_flops_per_s, "TFLOP/s"), _in(row.hbm_capacity_bytes, "GB"), _in(row.hbm_bytes_per_s, "TB/s"),
        _in(row.scale_up_bytes_per_s, "GB/s"), str(row.known.assumed), str(row.known.unknown),
    )  # fmt: skip


def _in(figure: Figure, unit: str) -> str:
    """A number of base units in another unit."""
    if figure is None:
        return "?"
    number = f"{figure / float(UNITS[unit].factor):,.3f}".rstrip("0").rstrip(".")
    return f"{number} {unit}"


def _plain(figure: Figure) -> str:
    return "?" if figure is None else str(figure)


def _wrapped(mark: str, words: str) -> str:
    return textwrap.fill(
        words, WIDTH, initial_indent=mark, subsequent_indent=" " * 4, break_long_words=False, break_on_hyphens=False
    )
