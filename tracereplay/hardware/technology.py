"""Nominal rates of link technologies: in, a technology's name and a bandwidth; out, whether the two fit, and if not, why not.

A link of known technology has a known rate, so a number eight or two times off shows bits taken for bytes or two directions
added up. A technology that is not listed here cannot be checked, and ``is_known`` says so.
"""

import re
from dataclasses import dataclass

GB = 10**9
# What joins ranks on one host that has no accelerators: its own memory, through the kernel. It has no nominal rate.
LOOPBACK = "loopback"

# One link, GB/s one way: lowest and highest. Sources: stas00/ml-engineering@744d01e1 network/README.md for NVLink 2 to 4 and
# the xGMI of MI300X, Big Basin's OCP slides for NVLink 1. The ports of an OAM slot carry the links of whatever is plugged in.
_LINKS = {
    "nvlink1": (20, 20),
    "nvlink2": (25, 25),
    "nvlink3": (25, 25),
    "nvlink4": (25, 25),
    "xgmi-mi300x": (64, 64),
    "oam": (20, 64),
}
# All links of one accelerator, GB/s one way; same sources.
_PORTS = {"nvlink1": 80, "nvlink2": 150, "nvlink3": 300, "nvlink4": 450, "nvlink5": 900, "xgmi-mi300x": 448}
NAMED = tuple(sorted(_LINKS | _PORTS))
# PCI Express Base Specification 3.0, 4.0, 5.0: 8, 16, 32 GT/s a lane, 128b/130b encoded.
_TRANSFERS = {3: 8, 4: 16, 5: 32}
_PCIE = re.compile(r"pcie([345])-x(1|2|4|8|16)")
_NETWORK = re.compile(r"(?:ethernet|infiniband|network)-(\d+)g")

_ROUNDING = 0.1
_MISTAKES = (
    (2, "twice what {} has: were both directions added up? Then say direction = 'both-ways'"),
    (1 / 2, "half of what {} has: was a one-way number called both-ways?"),
    (8, "8 times what {} has: Gb/s written as GB/s?"),
    (1 / 8, "an eighth of what {} has: GB/s written as Gb/s?"),
    (16, "16 times what {} has: Gb/s of both directions written as GB/s one way?"),
    (1 / 16, "a sixteenth of what {} has: GB/s one way written as Gb/s of both directions?"),
)


@dataclass(frozen=True, slots=True)
class Rate:
    """Lowest and highest nominal rate of something, in bytes a second one way."""

    low: float
    high: float

    def holds(self, rate: float) -> bool:
        """Whether a rate lies within, give or take the rounding of data sheets (a tenth)."""
        return self.low * (1 - _ROUNDING) <= rate <= self.high * (1 + _ROUNDING)

    def text(self) -> str:
        """In GB/s one way."""
        low, high = self.low / GB, self.high / GB
        return f"{low:.4g} GB/s one way" if low == high else f"{low:.4g} to {high:.4g} GB/s one way"


def rate_of_link(technology: str) -> Rate | None:
    """What one link of a technology carries, or None where this page does not know it."""
    if technology in _LINKS:
        low, high = _LINKS[technology]
        return Rate(low * GB, high * GB)
    if lanes := _PCIE.fullmatch(technology):
        exact = _TRANSFERS[int(lanes[1])] * int(lanes[2]) / 8 * 128 / 130 * GB
        return Rate(exact, exact)
    if network := _NETWORK.fullmatch(technology):
        exact = int(network[1]) / 8 * GB
        return Rate(exact, exact)
    return None


def rate_of_port(technology: str) -> Rate | None:
    """What all links of one accelerator carry together, or None where this page does not know it."""
    total = _PORTS.get(technology)
    return None if total is None else Rate(total * GB, total * GB)


def is_known(technology: str) -> bool:
    """Whether a bandwidth of that technology can be checked."""
    return rate_of_link(technology) is not None or rate_of_port(technology) is not None


def misreading(rate: float, nominal: Rate, technology: str) -> str | None:
    """What is wrong with a rate (bytes a second one way) beside the nominal one; None where they fit."""
    if nominal.holds(rate):
        return None
    has = f"{technology} ({nominal.text()})"
    said = f"{rate / GB:.4g} GB/s one way is"
    for factor, meaning in _MISTAKES:
        if nominal.holds(rate / factor):
            return f"{said} {meaning.format(has)}"
    return f"{said} not what {has} has; check number, unit, direction and technology"
