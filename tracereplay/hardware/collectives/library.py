"""What NCCL adds to the wires: in, nothing; out, latencies, rates and limits of its algorithms and protocols as constants.

All figures are those of NVIDIA/nccl@5067397c, ``src/graph/tuning.cc`` (``ncclTunerConstantsDefaults`` and
``ncclTopoTuneModel``) unless another file is named; NCCL takes its own choices by them. Not one of them was fitted here.

Protocols: ``LL`` sends a flag with every 4 bytes, so that half of a link carries data and nobody waits; ``LL128`` one flag in
128 bytes; ``Simple`` waits for whole chunks and uses all of the link.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Protocol = Literal["LL", "LL128", "Simple"]
Algorithm = Literal["ring", "tree", "direct", "hierarchical", "nvls"]
# What a step passes: links between accelerators, PCIe and the host, or the network.
Hardware = Literal["nvlink", "pci", "net"]
Generation = Literal["volta", "ampere", "hopper", "blackwell"]

PROTOCOLS: Final[tuple[Protocol, ...]] = ("LL", "LL128", "Simple")

# Nanoseconds of a collective before its first step. The tuner has no row for grouped sends and receives, which are kernels of
# the same kind with a single step: they take the ring's. NVLS has its latency in its one step.
BASE_NS: Final[Mapping[tuple[str, str], float]] = {
    ("tree", "LL"): 6_800, ("tree", "LL128"): 14_000, ("tree", "Simple"): 8_400,
    ("ring", "LL"): 6_600, ("ring", "LL128"): 14_000, ("ring", "Simple"): 8_400,
}  # fmt: skip
NVLS_NS: Final = 25_000.0
# Nanoseconds of one step.
STEP_NS: Final[Mapping[tuple[str, str], tuple[float, float, float]]] = {
    ("nvlink", "tree"): (600, 1_250, 4_000), ("nvlink", "ring"): (600, 1_900, 3_400),
    ("pci", "tree"): (1_000, 1_900, 4_000), ("pci", "ring"): (1_000, 2_500, 5_700),
    ("net", "tree"): (5_000, 8_500, 14_000), ("net", "ring"): (2_700, 4_000, 14_000),
}  # fmt: skip
# Nanoseconds that posting one message to the network takes (getNetOverhead), by who made the host's processor; a ring's steps
# in the Simple protocol post three.
POST_NS: Final[Mapping[str, float]] = {"intel": 1_000, "amd": 2_000}
POSTS_OF_SIMPLE: Final = 3

# NCCL's latencies date from version 2.5 and V100; its steps run on the accelerator, and take as many cycles on another.
CLOCK_HZ: Final = 1.53e9

# Shares of a link that a protocol's data fills.
RING_SHARE: Final[Mapping[str, float]] = {"LL": 0.5, "LL128": 0.92, "Simple": 1.0}
TREE_SHARE: Final = 0.92
TREE_LL_SHARE: Final = 1 / 3.8
TREE_LL128_SHARE: Final = {"one": 7 / 9, "many": 120 / 128}
# Of a switch that reduces (nvlsEfficiency); what is sent up and comes down is counted on the links.
NVLS_SHARE: Final[Mapping[str, float]] = {"hopper": 0.85, "blackwell": 0.74}
# A switch that reduces pays from this many accelerators on: facts of H200 (more than 4) and B200 (more than 5), see
# stas00/ml-engineering@744d01e1 network/README.md.
NVLS_ABOVE: Final[Mapping[str, int]] = {"hopper": 4, "blackwell": 5}
# Bytes a second at most in LL: one node by accelerator; two nodes and more by processor.
LL_MOST: Final[Mapping[str, float]] = {"volta": 39.0e9, "ampere": 87.7e9, "hopper": 141.0e9, "blackwell": 282.0e9}
LL_MOST_OF_NODES: Final[Mapping[str, tuple[float, float]]] = {"intel": (39.0e9, 20.4e9), "amd": (22.5e9, 19.0e9)}
# A ring over several nodes in the Simple protocol takes this much longer from 64 bytes a channel and rank on.
PLATEAU: Final[Mapping[str, float]] = {"volta": 1.9, "ampere": 1.4, "hopper": 1.4, "blackwell": 1.4}
# What a tree reaches of its rate at medium sizes (treeCorrectionFactor): 64 bytes, 128, ... a protocol.
TREE_AT_SIZE: Final[Mapping[str, tuple[float, ...]]] = {
    "LL": (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1),
    "LL128": (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1),
    "Simple": (
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9,
    ),
}  # fmt: skip
TREE_SMALLEST: Final = 64
# Grouped sends and receives use LL up to this size for each peer (src/enqueue.cc, NCCL_P2P_LL_THRESHOLD).
SEND_LL_MOST: Final = 16_384

# Between hosts without accelerators (gloo over TCP) processors move the bytes: likely, fast, slow. A stream through the network
# stacks of both ends, besides the wire: bytes a second of one rank. A step: a message is posted, the other side's thread wakes
# up. Measured with gloo between two cores of one server (docs/concepts/collectives.md): 1.3 to 2.7 GB/s from 1 MiB on, an
# exchange of 1 KiB in 62 to 240 µs. The ends are chosen about twice as far, for other servers.
STACK_BYTES_PER_S: Final = (2.0e9, 5.0e9, 0.8e9)
STACK_STEP_NS: Final = (60_000.0, 20_000.0, 180_000.0)
# Gloo sends data only to who has said that it listens, and says so over the connection that carries its own data
# (pytorch/gloo, transport/tcp/pair.cc): in an all-to-all the rank that comes last sends first, and what it says lies behind
# what it sends, so that one direction follows the other. Seen between two hosts (265 ms at 15 Mbit/s for 137 ms of one
# direction's bytes), and counted between two alone: among more the next peer's turn hides it. A ring listens for the next piece
# while it sends one, which hides it but for the errors of ``calibration``.
ONE_WAY_AFTER_THE_OTHER: Final[Mapping[str, float]] = {"all_to_all": 2.0}


@dataclass(frozen=True, slots=True)
class Library:
    """What runs the collectives. ``generation``: of the accelerators; ``processor``: who made the host's; ``reduces``: the
    scale-up switch reduces; ``relays``: sends pass an accelerator of the same node that is at the receiver's rail (PXN);
    ``whole_lines``: links keep 128 bytes together, as LL128 needs; ``clock_hz``: of the
    accelerators, which run NCCL's steps.
    ``on_hosts``: processes on hosts, whose network stacks move what leaves a host (gloo).
    ``ideal``: no latency but that of the links, no protocol, no limit; for what follows from a topology alone.
    """

    generation: Generation = "ampere"
    processor: Literal["intel", "amd"] = "intel"
    reduces: bool = False
    relays: bool = True
    whole_lines: bool = True
    clock_hz: float = CLOCK_HZ
    on_hosts: bool = False
    ideal: bool = False

    @property
    def is_nccl(self) -> bool:
        """Whether NCCL's constants count."""
        return not (self.ideal or self.on_hosts)

    def protocols(self, hardware: Hardware) -> tuple[Protocol, ...]:
        """The protocols on offer over the worst hardware on the way; LL128 not over PCIe and the host."""
        if not self.is_nccl:
            return ("Simple",)
        return PROTOCOLS if hardware != "pci" and self.whole_lines else ("LL", "Simple")

    def base_ns(self, algorithm: str, protocol: Protocol) -> float:
        """Nanoseconds before the first step."""
        if self.ideal or self.on_hosts:
            return 0.0
        if algorithm == "nvls":
            return NVLS_NS
        return BASE_NS["tree" if algorithm == "tree" else "ring", protocol] * CLOCK_HZ / self.clock_hz

    def step_ns(self, algorithm: str, protocol: Protocol, hardware: Hardware, wire_ns: float | None, case: int = 0) -> float:
        """Nanoseconds of one step over a route, ``case``: likely, fast or slow. NCCL's constant for LL is that of the wire
        alone, so it gives way to the latency of the route where that is known.
        """
        if self.ideal:
            return wire_ns or 0.0
        if self.on_hosts and hardware == "net":
            return STACK_STEP_NS[case] + (wire_ns or 0.0)
        of_protocol = STEP_NS[hardware, "tree" if algorithm == "tree" else "ring"]
        constant = of_protocol[PROTOCOLS.index(protocol)]
        wire = of_protocol[0] if wire_ns is None else wire_ns
        return (constant - of_protocol[0]) * CLOCK_HZ / self.clock_hz + wire

    def share(self, algorithm: str, protocol: Protocol, nodes: int) -> float:
        """The share of a link's rate that becomes data."""
        if self.ideal:
            return 1.0
        if algorithm == "nvls":
            return NVLS_SHARE[self.generation]
        if algorithm != "tree":
            return RING_SHARE[protocol]
        by_protocol = {"LL": TREE_LL_SHARE, "LL128": TREE_LL128_SHARE["one" if nodes == 1 else "many"], "Simple": 1.0}
        return TREE_SHARE * by_protocol[protocol]

    def most(self, protocol: Protocol, nodes: int) -> float | None:
        """Bytes a second that one rank sends at most; None where only links limit it."""
        if self.ideal or protocol != "LL":
            return None
        return LL_MOST[self.generation] if nodes == 1 else LL_MOST_OF_NODES[self.processor][nodes > 2]


def tree_at_size(protocol: Protocol, size: float) -> float:
    """What a tree reaches of its rate when a rank has ``size`` bytes."""
    place = int(size // TREE_SMALLEST).bit_length() - 1
    factors = TREE_AT_SIZE[protocol]
    return factors[place] if 0 <= place < len(factors) else 1.0
