"""What a list of hardware shows: in, accelerators and platforms; out, one row of main figures each."""

from collections.abc import Iterable
from dataclasses import dataclass

from tracereplay.hardware.facts import Fact
from tracereplay.hardware.load import catalogue, load
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.schema import Accelerator, fields_of

Figure = int | float | None


@dataclass(frozen=True, slots=True)
class Known:
    """How many fields an entry has, and how many of them are assumed and unknown."""

    fields: int
    assumed: int
    unknown: int


@dataclass(frozen=True, slots=True)
class AcceleratorRow:
    """An accelerator's main figures, None where unknown: FLOP/s of bf16, else of fp16; bytes; bytes a second, one way."""

    name: str
    title: str
    aliases: tuple[str, ...]
    half_flops_per_s: Figure
    hbm_capacity_bytes: Figure
    hbm_bytes_per_s: Figure
    scale_up_bytes_per_s: Figure
    known: Known


@dataclass(frozen=True, slots=True)
class PlatformRow:
    """A platform's main figures, None where unknown or absent; scale-up of one accelerator and scale-out of one interface,
    one way. What it assumes and does not know includes its accelerator's fields.
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    accelerator: str | None
    accelerators: Figure
    sockets: Figure
    host_memory_bytes: Figure
    layout: str | None
    scale_up_bytes_per_s: Figure
    nics: Figure
    scale_out_bytes_per_s: Figure
    known: Known


@dataclass(frozen=True, slots=True)
class Listing:
    """The catalogue."""

    platforms: tuple[PlatformRow, ...]
    accelerators: tuple[AcceleratorRow, ...]


def listing() -> Listing:
    """Every entry of the catalogue, by name."""
    entries = [load(name) for name in catalogue()]
    return Listing(
        tuple(platform_row(entry) for entry in entries if isinstance(entry, Platform)),
        tuple(accelerator_row(entry) for entry in entries if isinstance(entry, Accelerator)),
    )


def fields(entry: Accelerator | Platform) -> list[tuple[str, Fact]]:
    """Each field of an entry with its key."""
    return entry.fields() if isinstance(entry, Platform) else list(fields_of(entry))


def known(entry: Accelerator | Platform) -> Known:
    """How far an entry is known."""
    return _known(fact for _, fact in fields(entry))


def _known(facts: Iterable[Fact]) -> Known:
    kinds = [fact.kind for fact in facts]
    return Known(len(kinds), kinds.count("assumed"), kinds.count("unknown"))


def accelerator_row(a: Accelerator) -> AcceleratorRow:
    """An accelerator's row."""
    half = a.flops.get("bf16") or a.flops.get("fp16")
    return AcceleratorRow(
        a.name,
        a.title,
        a.aliases,
        None if half is None else half.base,
        a.hbm.capacity.base,
        a.hbm.bandwidth.base,
        None if a.scale_up is None else a.scale_up.bandwidth.base,
        known(a),
    )


def platform_row(platform: Platform) -> PlatformRow:
    """A platform's row."""
    d = platform.description
    up, out = d.fabric.scale_up, d.fabric.scale_out
    return PlatformRow(
        d.name,
        d.title,
        d.aliases,
        None if d.accelerator is None else d.accelerator.model.value,
        None if d.accelerator is None else d.accelerator.count.value,
        d.host.sockets.value,
        d.host.memory.capacity.base,
        None if up is None else up.layout.value,
        None if up is None else up.bandwidth.base,
        out.nics.value,
        out.bandwidth.base,
        known(platform),
    )
