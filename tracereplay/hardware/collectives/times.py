"""How long a collective takes, as the model says it: frozen rows that others read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tracereplay.hardware.collectives.library import Algorithm, Protocol

Basis = Literal["model", "calibrated"]


@dataclass(frozen=True, slots=True)
class Calibration:
    """What measurements say beside the model: latencies times ``latency``, time of bytes times ``bytes_time``."""

    latency: float = 1.0
    bytes_time: float = 1.0


@dataclass(frozen=True, slots=True)
class LinkUse:
    """A one-way link, the bytes that pass it, and the share of the collective's time that it needs for them."""

    name: str
    bytes: float
    busy: float


@dataclass(frozen=True, slots=True)
class CollectiveTime:
    """A collective's time in ns with the ends of its interval; ``latency_ns``: the part that does not depend on bytes;
    ``bottleneck``: the link that its bytes wait for, None where none is sent; ``links``: those with bytes, busiest first;
    ``assumed``: keys of the platform's file that are assumed or unmeasured, of the levels of its links; ``stand_ins``: words on
    the constants of one library that stand in for another's; ``stack_ns``: what the network stacks of hosts take for the bytes,
    whatever the link, and ``stacks`` those, each like a link.
    """

    time_ns: int
    low_ns: int
    high_ns: int
    latency_ns: int
    algorithm: Algorithm
    protocol: Protocol
    bottleneck: str | None
    basis: Basis
    links: tuple[LinkUse, ...]
    assumed: tuple[str, ...]
    stand_ins: tuple[str, ...] = ()
    stack_ns: int = 0
    stacks: tuple[LinkUse, ...] = ()


@dataclass(frozen=True, slots=True)
class Offered:
    """What NCCL has to choose from for one size: uncalibrated ns of latency, and of the bytes."""

    algorithm: Algorithm
    protocol: Protocol
    latency_ns: float
    bytes_ns: float

    def ns(self, calibration: Calibration) -> float:
        """The time under a calibration."""
        return self.latency_ns * calibration.latency + self.bytes_ns * calibration.bytes_time


def link_loads(time: CollectiveTime, share: float = 0.5) -> Mapping[str, float]:
    """The links, and network stacks of hosts, that a transfer keeps busy for at least ``share`` of its time, with that share:
    those on which it and another transfer would slow each other down, for ``replay.contention.links_of``.
    """
    return {link.name: link.busy for link in (*time.links, *time.stacks) if link.busy >= share}
