"""Hardware knobs: in, ``KNOB=VALUE`` of the command line; out, settings, and what a knob as a plain ratio divides.

Where it is known what a job ran on, a setting changes the description of that hardware and the models re-time the work
(``hardware/settings.py``). Where it is not, a knob is a plain ratio, the first-order bound of a roofline (Williams, Waterman,
Patterson: Roofline, CACM 52(4), 2009): work that is bound by a resource takes 1/k of its time on k times that resource.
"""

import fnmatch
import re
from dataclasses import dataclass, replace

from tracereplay.errors import UsageError

_RATIO = re.compile(r"^(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)x$")
# Beyond any hardware, and where sums of times still fit into 64 bits.
_LEAST, _MOST = 1e-9, 1e12
_FIELD = re.compile(r"[a-z0-9_*]+(\.[a-z0-9_*]+)+")


@dataclass(frozen=True, slots=True)
class Knob:
    """One knob: the work classes that it divides, on which side they run (``device`` or ``host``), and the fabric level
    whose transfers it divides (``scale_up``, ``scale_out`` or None). ``whole_host``: all host time.
    """

    name: str
    side: str
    classes: tuple[str, ...] = ()
    fabric: str | None = None
    whole_host: bool = False
    modelled: bool = True


_MEMORY_BOUND = ("embedding", "elementwise", "reduction", "copy", "memset")
_COMPUTE_BOUND = ("gemm", "attention", "conv")
HOST_SPEED = "host.speed"
# Before the name of a field: a fact about the platform that the job ran on.
SOURCE = "from."

KNOBS = (
    Knob("accelerator.hbm.bandwidth", "device", _MEMORY_BOUND),
    Knob("accelerator.flops", "device", _COMPUTE_BOUND),
    Knob("accelerator.hbm.capacity", "device", modelled=False),
    Knob("fabric.scale_up.bandwidth", "fabric", fabric="scale_up"),
    Knob("fabric.scale_up.latency", "fabric", modelled=False),
    Knob("fabric.scale_out.bandwidth", "fabric", fabric="scale_out"),
    Knob("fabric.scale_out.latency", "fabric", modelled=False),
    Knob("host.memory.bandwidth", "host", _MEMORY_BOUND),
    Knob("host.link.bandwidth", "fabric", modelled=False),
    Knob(HOST_SPEED, "host", whole_host=True),
)


@dataclass(frozen=True, slots=True)
class Setting:
    """A knob, or a field of a hardware file, by name, with the ratio of its new value to its old one, or with a new value (a
    number and its unit, or a word). ``knob`` is None for a field that is no knob; ``of_source``: a fact about the platform that
    the job ran on.
    """

    name: str
    ratio: float | None
    value: str | None = None
    knob: Knob | None = None
    of_source: bool = False

    @property
    def text(self) -> str:
        """As it is written on the command line."""
        name = f"{SOURCE}{self.name}" if self.of_source else self.name
        return f"{name}={self.value if self.ratio is None else f'{self.ratio:g}x'}"


def parse_setting(text: str) -> list[Setting]:
    """The settings of ``KNOB=VALUE``: a ratio such as ``2x``, or a value with its unit; ``*`` stands for one level of the
    knob's name. Any field of a hardware file may stand for a knob. ``from.KEY=VALUE`` says what the job ran on.

    Raises:
        UsageError: an unknown knob, no value, a ratio that is not positive, or any ratio of what the job ran on.
    """
    if text.startswith(SOURCE * 2):
        raise UsageError(f"--set {text!r} says {SOURCE} twice", hint=f"write {text.removeprefix(SOURCE)}")
    if text.startswith(SOURCE):
        facts = parse_setting(text.removeprefix(SOURCE))
        if any(fact.ratio is not None or fact.name == HOST_SPEED for fact in facts):
            hint = "give the value of a field, such as from.host.link.bandwidth=16GB/s"
            raise UsageError(f"--set {text}: no ratio changes what the job ran on", hint=hint)
        return [replace(fact, of_source=True) for fact in facts]
    name, separator, value = text.partition("=")
    match = _RATIO.match(value)
    ratio = None if match is None else float(match.group(1))
    if ratio is not None and separator and not _LEAST <= ratio <= _MOST and ratio > 0:
        raise UsageError(f"--set {text!r}: no such hardware", hint=f"give a ratio between {_LEAST:g}x and {_MOST:g}x")
    if not separator or not value.strip() or (ratio is not None and not ratio > 0):
        raise UsageError(
            f"--set {text!r} is not KNOB=VALUE", hint="write a positive ratio such as host.speed=2x, or a value with its unit"
        )
    knobs = [knob for knob in KNOBS if same_levels(knob.name, name)]
    if not knobs and not _FIELD.fullmatch(name):
        raise UsageError(f"--set: no knob {name!r}", hint=f"knobs are {', '.join(k.name for k in KNOBS)}")
    given = None if ratio is not None else value.strip()
    return [Setting(knob.name, ratio, given, knob) for knob in knobs] or [Setting(name, ratio, given)]


def unknown_knob(name: str) -> UsageError:
    """What to say of a name that is neither a knob nor a field."""
    return UsageError(
        f"--set: no knob {name!r}",
        hint=f"knobs are {', '.join(k.name for k in KNOBS)}; `tracereplay hardware show NAME` lists a platform's fields",
    )


def same_levels(name: str, pattern: str) -> bool:
    """True where a pattern fits a name level by level."""
    levels, wanted = name.split("."), pattern.split(".")
    return len(levels) == len(wanted) and all(fnmatch.fnmatchcase(a, b) for a, b in zip(levels, wanted, strict=True))
