"""Where a job ran and where it is to run: in, a graph, names or files of hardware, settings; out, the two sites.

The trace names the accelerators, nothing names their fabric and their host: that is what ``--from`` is for. What the trace says
of the accelerators wins over what a platform's file has in its slots.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from tracereplay.errors import HardwareError, UsageError
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.devices import accelerator_of
from tracereplay.hardware.knobs import HOST_SPEED, SOURCE, Setting
from tracereplay.hardware.load import catalogue, load, load_accelerator, load_platform
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.schema import Accelerator
from tracereplay.hardware.settings import adjusted

# What hints of missing figures have: ``give it with --set host.link.bandwidth=...``.
_SUPPLIED = re.compile(r"(?<=--set )[a-z0-9_.]+(?==)")


@dataclass(frozen=True, slots=True)
class Site:
    """A platform, and how fast its host is beside the one that was recorded (None: nobody says); ``alternatives``: what else
    may stand in its slots, where its file only assumes what does.
    """

    platform: Platform
    host_speed: float | None = None
    alternatives: tuple[Accelerator, ...] = ()

    @property
    def name(self) -> str:
        """The platform's name, with its accelerator's."""
        accelerator = self.platform.accelerator
        return self.platform.description.name + (f" with {accelerator.name}" if accelerator is not None else "")


@dataclass(frozen=True, slots=True)
class Journey:
    """From where to where; ``source`` is None for a job of CPUs whose hardware nobody described."""

    source: Site | None
    target: Site


def source_of(
    graph: DependencyGraph, name: str | None, settings: Iterable[Setting] = (), *, is_target: bool = False
) -> Site | None:
    """The site that a job ran on, with what ``settings`` say of it (``from.KEY=VALUE``). ``is_target``: it is where the job is
    to run, too; values for fields that its file does not know are then facts about it: there is nothing else that they could
    change.

    Raises:
        UsageError: a job with device work and no name; the message says which platforms have its accelerators. Facts and no
            name.
        HardwareError: no such platform, or a file that is none.
    """
    recorded = recorded_accelerator(graph)
    facts = [setting for setting in settings if setting.of_source]
    if name is None and facts:
        raise UsageError(f"--set {facts[0].text}: what the job ran on is not named", hint="name it with --from")
    if name is None:
        if not graph.host_carries_classes and (graph.nodes.kind == NodeKind.DEVICE).any():
            raise UsageError("what the job ran on is not recorded", hint=f"name it with --from{_choices(recorded)}")
        return None
    platform = _as_recorded(load_platform(name), recorded)
    platform = adjusted(platform, facts)
    for setting in settings if is_target else ():
        if setting.value is not None and setting.knob is None and not _knows(platform, setting.name):
            platform = adjusted(platform, [setting])
    return Site(platform, 1.0)


def _knows(platform: Platform, key: str) -> bool:
    fact = dict(platform.fields()).get(key)
    return fact is not None and fact.kind != "unknown"


def supplied(error: HardwareError, source: Site | None, target: Site) -> HardwareError:
    """The error of a missing figure, its hint naming the setting that supplies it: ``from.KEY`` where it is one of the source.

    It is the source's where the source lacks it, and the target does not or is not the one that the message is about.
    """
    key = _SUPPLIED.search(error.hint)
    if source is None or key is None or _knows(source.platform, key[0]):
        return error
    owner = error.where.partition(":")[0]
    of_target = owner in _names(target) - _names(source)
    if of_target and not _knows(target.platform, key[0]):
        return error
    return HardwareError(error.what, where=error.where, hint=_SUPPLIED.sub(SOURCE + key[0], error.hint))


def _names(site: Site) -> set[str]:
    accelerator = site.platform.accelerator
    return {site.platform.description.name, *([] if accelerator is None else [accelerator.name])}


def _as_recorded(platform: Platform, recorded: str | None) -> Platform:
    """The platform with the accelerator that the trace names; one from a file of the user's own stays, it may be that card
    as measured.

    Raises:
        UsageError: the platform's file says for certain that it has another one.
    """
    slots, own = platform.description.accelerator, platform.accelerator
    if recorded is None or slots is None or own is None or own.name not in catalogue():
        return platform
    if slots.model.kind != "assumed" and _family(own.name) != _family(recorded):
        raise UsageError(
            f"--from {platform.description.name} has {own.name}, and the trace names {recorded}",
            hint=f"name another platform{_choices(recorded)}",
        )
    return platform.with_accelerator(load_accelerator(recorded), "the trace names it")


def _family(accelerator: str) -> str:
    return accelerator.partition("-")[0]


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a job is to run, before settings; ``same_host``: its host is the one that was recorded."""

    platform: Platform
    same_host: bool

    def under(self, settings: Iterable[Setting]) -> Site:
        """The site under the settings.

        Raises:
            UsageError: settings that do not fit it.
        """
        chosen = tuple(settings)
        facts = [setting for setting in chosen if setting.of_source]
        if facts:
            raise UsageError(
                f"--set {facts[0].text} is of what a job ran on, and changes nothing where it is to run",
                hint=f"write {facts[0].text.removeprefix(SOURCE)}, or leave it out",
            )
        speeds = [setting for setting in chosen if setting.name == HOST_SPEED]
        if any(setting.ratio is None for setting in speeds):
            raise UsageError(
                f"--set {speeds[0].text}: the speed of hosts is known as a ratio only", hint="write host.speed=1.5x"
            )
        speed = prod(setting.ratio or 1.0 for setting in speeds) if speeds else None
        target = adjusted(self.platform, chosen)
        others = (adjusted(self.platform.with_accelerator(other, "range"), chosen).accelerator for other in _range_of(target))
        alternatives = tuple(other for other in others if other is not None)
        return Site(target, 1.0 if speed is None and self.same_host else speed, alternatives)


def journey(source: Site | None, hardware: str | None, settings: Iterable[Setting]) -> Journey:
    """From ``source`` to ``hardware`` (``goal_of``) under the settings.

    Raises:
        UsageError: no hardware at all, settings that do not fit it.
        HardwareError: no such hardware.
    """
    return Journey(source, goal_of(source, hardware).under(settings))


def goal_of(source: Site | None, hardware: str | None) -> Goal:
    """The goal that a name means: a platform, or an accelerator for the slots of where the job ran; None: where it ran.

    Raises:
        UsageError: no hardware at all.
        HardwareError: no such hardware.
    """
    if hardware is None:
        if source is None:
            raise UsageError("no hardware to change", hint="name it with --hardware or --from")
        return Goal(source.platform, same_host=True)
    found = load(hardware)
    if isinstance(found, Accelerator):
        if source is None:
            raise UsageError(f"{found.name} is an accelerator without a platform", hint="name a platform with --hardware")
        return Goal(source.platform.with_accelerator(found, "--hardware"), same_host=True)
    if source is not None and source.platform.description.name == found.description.name:
        return Goal(source.platform, same_host=True)
    return Goal(found, same_host=False)


def _range_of(platform: Platform) -> list[Accelerator]:
    """What else may stand in the slots of a platform whose file assumes what does."""
    slots = platform.description.accelerator
    if slots is None or platform.accelerator is None or slots.model.kind != "assumed":
        return []
    return [load_accelerator(name) for name in slots.model.range or () if name != slots.model.value]


def recorded_accelerator(graph: DependencyGraph) -> str | None:
    """The catalogue's name of the accelerators in the traces, None where there are none or several, or it has no such."""
    named = {device.name for table in graph.tables for device in table.header.devices if device.name}
    found = {accelerator_of(name) for name in named}
    return found.pop() if len(found) == 1 else None


def _choices(recorded: str | None) -> str:
    """The platforms of the catalogue that have the recorded accelerator, as advice."""
    if recorded is None:
        return "; `tracereplay hardware list` lists platforms"
    family = _family(recorded)
    platforms = [p for p in (load(name) for name in catalogue()) if isinstance(p, Platform)]
    having = [p.description.name for p in platforms if p.accelerator and _family(p.accelerator.name) == family]
    return f"; the trace names {recorded}, which is in {', '.join(having)}"
