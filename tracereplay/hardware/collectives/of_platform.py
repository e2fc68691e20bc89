"""Fabrics of platforms: in, a platform; out, its topology with its library, what is achieved of each level, what is assumed."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from tracereplay.hardware.collectives.fabric import SCALE_OUT, SCALE_UP, Fabric
from tracereplay.hardware.collectives.library import CLOCK_HZ, Generation, Library
from tracereplay.hardware.collectives.paths import Figures
from tracereplay.hardware.facts import Measure
from tracereplay.hardware.platform import Platform

# What is achieved of a peak that nobody measured: networks and rings of accelerators reach about 80 %, Calculon takes 65 %
# (stas00/ml-engineering@744d01e1 network/README.md; calculon); more than the peak is impossible.
UNMEASURED: Final = (0.8, 1.0, 0.65)
# Hosts whose processor's name says AMD; the others count as Intel, as in NCCL.
_AMD = ("amd", "epyc")
# What accelerators of a generation have between them.
_GENERATIONS: Mapping[str, Generation] = {
    "nvlink1": "volta", "nvlink2": "volta", "nvlink3": "ampere", "nvlink4": "hopper", "nvlink5": "blackwell",
}  # fmt: skip
# Whose constants stand in where it is another library, or accelerators without such links.
_STAND_IN: Final[Generation] = "ampere"
_REDUCING = ("nvlink4", "nvlink5")
# Links of accelerators that run RCCL.
_RCCL = "xgmi"


def fabric_of(  # noqa: PLR0913 - each says something of its own
    platform: Platform,
    nodes: int = 1,
    *,
    nodes_per_rack: int | None = None,
    oversubscription: float = 1.0,
    relay: bool = True,
    alike: Iterable[Fabric] = (),
) -> Fabric:
    """The fabric of a platform, or of several nodes of it (``Platform.topology``). Keep it: what is found out about routes and
    schedules is kept with it. One that is wired like one of ``alike`` shares the paths that were found there.

    Raises:
        HardwareError: how many parts there are, or how they are wired, is unknown.
        UsageError: the numbers of nodes do not fit together.
    """
    graph = platform.topology(nodes, nodes_per_rack=nodes_per_rack, oversubscription=oversubscription)
    figures, assumed = _figures(platform)
    unknown = frozenset(key for key, fact in platform.fields() if fact.kind == "unknown")
    library, stand_ins = _library(platform), _stand_ins(platform)
    made = Fabric(platform.description.name, graph, library, figures, assumed, stand_ins, relay, unknown)
    like = next((other for other in alike if made.is_wired_like(other)), None)
    return made if like is None else replace(made, paths=like.paths, routes=like.routes)


def _technology(platform: Platform) -> str:
    """What joins the accelerators: by their own ports, else by the platform; empty where nothing is known to."""
    up, accelerator = platform.description.fabric.scale_up, platform.accelerator
    port = None if accelerator is None else accelerator.scale_up
    return (None if port is None else port.technology.value) or (None if up is None else up.technology.value) or ""


def _stand_ins(platform: Platform) -> tuple[str, ...]:
    """Whose library NCCL's constants stand in for, in words; nothing where they are its own."""
    technology = _technology(platform)
    if technology in _GENERATIONS:
        return ()
    if platform.accelerator is None:
        what = "gloo between processors"
    elif technology.startswith(_RCCL):
        what = f"RCCL over {technology}"
    else:
        what = f"accelerators joined by {technology}" if technology else "accelerators without links of a known kind"
    return (f"collective library: NCCL's constants ({_STAND_IN}) stand in for {what}",)


def _library(platform: Platform) -> Library:
    up, processor = platform.description.fabric.scale_up, platform.description.host.processor.value or ""
    technology = _technology(platform)
    switched = up is not None and up.layout.value == "switch"
    is_amd = any(word in processor.lower() for word in _AMD)
    return Library(
        generation=_GENERATIONS.get(technology, _STAND_IN),
        processor="amd" if is_amd else "intel",
        reduces=switched and technology in _REDUCING,
        whole_lines=technology != "nvlink1",
        clock_hz=_clock(platform),
        on_hosts=platform.accelerator is None,
    )


def _clock(platform: Platform) -> float:
    """The clock of the accelerators; that of NCCL's own constants where it is not known."""
    clock = None if platform.accelerator is None else platform.accelerator.clock
    return CLOCK_HZ if clock is None or clock.base is None else float(clock.base)


def _figures(platform: Platform) -> tuple[dict[str, Figures], tuple[str, ...]]:
    """What is achieved of each level's peak, and its latency; and the keys of what is assumed or was not measured."""
    description = platform.description
    levels = {
        SCALE_UP: description.fabric.scale_up,
        SCALE_OUT: description.fabric.scale_out,
        "host.link": description.host.link,
        "host.interconnect": description.host.interconnect,
    }
    figures, assumed = {}, []
    for level, section in levels.items():
        if section is None:
            continue
        achievable: Measure | None = getattr(section, "achievable", None)
        figures[level] = Figures(_shares(achievable, section.bandwidth), _latencies(section.latency))
        unsure = {"achievable": achievable, "bandwidth": section.bandwidth, "latency": section.latency}
        assumed += [
            f"{level}.{key}" for key, fact in unsure.items() if fact is not None and fact.kind in {"assumed", "unknown"}
        ]
    return figures, tuple(assumed)


def _shares(achievable: Measure | None, peak: Measure) -> tuple[float, float, float]:
    """What is achieved of a peak: by what is known to be achieved; else as ``UNMEASURED``, of the range of an assumed peak."""
    if achievable is None or achievable.base is None or peak.base is None:
        likely, fast, slow = UNMEASURED
        if peak.base is None or peak.base_range is None:
            return UNMEASURED
        low, high = peak.base_range
        return likely, fast * high / peak.base, slow * low / peak.base
    likely = achievable.base / peak.base
    if achievable.base_range is None:
        return likely, likely, likely
    # Both may be assumed: the likely share of either end of the peak is possible too.
    (low, high), ends = achievable.base_range, peak.base_range or (peak.base, peak.base)
    return likely, max(high, likely * ends[1]) / peak.base, min(low, likely * ends[0]) / peak.base


def _latencies(latency: Measure) -> tuple[float, float, float]:
    if latency.base is None or latency.base_range is None:
        return (1.0, 1.0, 1.0)
    low, high = latency.base_range
    return (1.0, low / latency.base, high / latency.base)
