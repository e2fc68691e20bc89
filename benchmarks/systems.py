"""Published DLRM training systems: in, nothing; out, frozen systems with what was published of them, and how to predict one.

Times are those of an iteration without evaluation, parsed by this project from MLPerf training logs (not verified by MLCommons)
or from the pages that are named; round and entry stand with each.
"""

from dataclasses import dataclass
from pathlib import Path

from tracereplay.analyzers.synthesis import Synthesis, synthesise
from tracereplay.hardware.knobs import parse_setting
from tracereplay.hardware.load import load_accelerator, load_platform
from tracereplay.hardware.memory.placement import Tier
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.schema import Accelerator
from tracereplay.hardware.settings import adjusted
from tracereplay.synth.architecture import Architecture, parse_architecture
from tracereplay.synth.assemble import Wish, assemble, spread_over
from tracereplay.synth.presets import architecture_of, preset_named
from tracereplay.synth.pricing import Efficiency, PlatformPricer
from tracereplay.synth.sharding import balanced, hybrid
from tracereplay.synth.software import BYTES_OF, software_named

FILES = Path(__file__).parent / "hardware"
# Zipf's own law. No source at hand says by which exponent Criteo's rows are asked for; predictions are shown over the span too.
SKEW = 1.0
SKEWS = (0.9, 1.2)
_HALVINGS = 36
_LEAST, _MOST = 0.02, 20.0


@dataclass(frozen=True, slots=True)
class System:
    """One system with its job. ``published_ms`` is an iteration without evaluation, ``entry`` where that is from, ``stack`` the
    software as the experiments count it; ``accelerator`` stands in the slots in place of the platform's own; ``device`` is what
    a rank computes on where a platform has no accelerators; ``settings`` are those of ``--set``, each an assumption.
    """

    entry: str
    published_ms: float
    hardware: str
    ranks: int
    batch: int
    software: str
    stack: str
    model: str = "mlperf-v1"
    accelerator: str | None = None
    device: str | None = None
    settings: tuple[str, ...] = ()
    tier: Tier | None = Tier.HBM

    @property
    def samples_per_s(self) -> float:
        """Published samples a second."""
        return self.batch / self.published_ms * 1e3


def predict(system: System, efficiency: Efficiency, skew: float = SKEW) -> Synthesis:
    """The step of a system by its architecture, the models and an efficiency."""
    platform = _platform(system)
    software = software_named(system.software)
    model = _architecture(system.model).with_tables(BYTES_OF[software.tables], skew)
    spread = spread_over(system.ranks, None, platform)
    plan = hybrid(model, system.ranks) if software.hybrid else balanced(model, system.ranks)
    job = assemble(Wish(model, system.batch, software, system.tier), plan, spread, platform)
    return synthesise(job, PlatformPricer(platform, spread, efficiency, _device(system)))


def fitted(base: System, skew: float = SKEW) -> Efficiency:
    """The efficiency under which the base takes what was published: one share for all device work, transfers as modelled.

    One published number decides one share, so products, lookups and everything else have the same.

    Raises:
        ValueError: no share between 0.02 and 20 gives it.
    """
    low, high = _LEAST, _MOST
    if not _ms(base, high, skew) <= base.published_ms <= _ms(base, low, skew):
        raise ValueError(f"{base.entry}: no efficiency gives {base.published_ms} ms")
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if _ms(base, middle, skew) > base.published_ms else (low, middle)
    return _shared((low * high) ** 0.5)


def _ms(system: System, share: float, skew: float) -> float:
    return predict(system, _shared(share), skew).step_ns / 1e6


def _shared(share: float) -> Efficiency:
    return Efficiency(share, share, share)


def _architecture(model: str) -> Architecture:
    return parse_architecture(model) if "/" in model else architecture_of(preset_named(model))


def _platform(system: System) -> Platform:
    platform = load_platform(str(FILES / system.hardware) if system.hardware.endswith(".toml") else system.hardware)
    if system.accelerator is not None:
        platform = platform.with_accelerator(load_accelerator(system.accelerator), "the same accelerator on both fabrics")
    for setting in system.settings:
        platform = adjusted(platform, parse_setting(setting))
    return platform


def _device(system: System) -> Accelerator | None:
    return None if system.device is None else load_accelerator(str(FILES / system.device))
