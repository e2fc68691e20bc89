"""Hardware knobs as plain ratios: in, knob names and ratios; out, which classes of work a knob divides.

These are the first-order bounds of a roofline (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009): work that is
bound by a resource takes 1/k of its time on k times that resource. Nothing else scales, and no uncertainty is known.
"""

import fnmatch
import re
from dataclasses import dataclass

from tracereplay.errors import UsageError

_RATIO = re.compile(r"^(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)x$")


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
    Knob("host.speed", "host", whole_host=True),
)


@dataclass(frozen=True, slots=True)
class Setting:
    """A knob with the ratio of its new value to its old one."""

    knob: Knob
    ratio: float


def parse_setting(text: str) -> list[Setting]:
    """The settings of ``KNOB=RATIOx``; ``*`` stands for one level of the knob's name.

    Raises:
        UsageError: an unknown knob, or a value that is no positive ratio.
    """
    name, separator, value = text.partition("=")
    match = _RATIO.match(value)
    if not separator or match is None or not float(match.group(1)) > 0:
        raise UsageError(f"--set {text!r} is not KNOB=RATIOx", hint="write a positive ratio such as host.speed=2x")
    knobs = [knob for knob in KNOBS if _same_levels(knob.name, name)]
    if not knobs:
        raise UsageError(f"--set: no knob {name!r}", hint=f"knobs are {', '.join(k.name for k in KNOBS)}")
    return [Setting(knob, float(match.group(1))) for knob in knobs]


def _same_levels(name: str, pattern: str) -> bool:
    levels, wanted = name.split("."), pattern.split(".")
    return len(levels) == len(wanted) and all(fnmatch.fnmatchcase(a, b) for a, b in zip(levels, wanted, strict=True))
