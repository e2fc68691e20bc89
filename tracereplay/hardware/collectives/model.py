"""How long a collective takes: in, a fabric, a kind, a size, its ranks; out, the time, the algorithm, the bytes on every link.

NCCL takes the algorithm and protocol with the lowest time by its own table, and so does this model, with the time of the
schedule on the links in place of the table's bandwidths::

    time = latency before the first step + sum of the steps' latencies + sum over phases of the fullest link's bytes / rate

An all-to-all and a send are always grouped sends and receives. A calibration scales latency and bytes' time by two numbers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, get_args

import numpy as np
import numpy.typing as npt

from tracereplay.errors import UsageError
from tracereplay.hardware.collectives import schedules
from tracereplay.hardware.collectives.fabric import FAST, LIKELY, SLOW, Fabric, Floats, levels_of
from tracereplay.hardware.collectives.library import (
    NVLS_ABOVE,
    ONE_WAY_AFTER_THE_OTHER,
    PLATEAU,
    POST_NS,
    POSTS_OF_SIMPLE,
    SEND_LL_MOST,
    STACK_BYTES_PER_S,
    STACK_STEP_NS,
    Algorithm,
    Protocol,
    tree_at_size,
)
from tracereplay.hardware.collectives.schedules import KINDS, Group, Kind, Schedule
from tracereplay.hardware.collectives.times import Calibration, CollectiveTime, LinkUse, Offered

NS_PER_S: Final = 1e9
# Measured over predicted time, 5th and 95th percentile over the sizes from 64 KiB on of NCCL on A100 and H100, with and without
# calibration: `python -m benchmarks.collectives` measures both.
CALIBRATED_WITHIN: Final = (0.80, 1.35)
MODEL_WITHIN: Final = (0.80, 1.75)

_STACK_WORDS: Final = (
    f"network stack of hosts: {STACK_BYTES_PER_S[LIKELY] / 1e9:g} GB/s ({STACK_BYTES_PER_S[SLOW] / 1e9:g} to "
    f"{STACK_BYTES_PER_S[FAST] / 1e9:g}) and {STACK_STEP_NS[LIKELY] / 1e3:g} µs a step, measured with gloo elsewhere"
)

Ranks = int | Sequence[int]

_SCHEDULES: Mapping[str, Callable[..., Schedule]] = {
    "ring": schedules.ring,
    "tree": schedules.tree,
    "direct": schedules.direct,
    "hierarchical": schedules.hierarchical,
    "nvls": schedules.nvls,
}
# What NCCL offers, and what else there is a schedule for.
_OFFERED: Mapping[Kind, tuple[Algorithm, ...]] = {
    "all_reduce": ("ring", "tree", "nvls"),
    "all_gather": ("ring",),
    "reduce_scatter": ("ring",),
    "broadcast": ("ring",),
    "all_to_all": ("direct",),
    "send_recv": ("direct",),
}
_ALSO: Mapping[Kind, tuple[Algorithm, ...]] = {
    "all_reduce": ("direct", "hierarchical"),
    "all_gather": ("direct", "hierarchical"),
    "reduce_scatter": ("direct", "hierarchical"),
    "broadcast": ("direct",),
    "all_to_all": ("hierarchical",),
    "send_recv": (),
}


@dataclass(frozen=True, slots=True)
class _Offer:
    """A schedule under a protocol: ns before bytes, ns a byte of size (likely, fast, slow), of them those of the hosts' network
    stacks, loads per byte; ``stacks``: bytes per byte of size that the network stack of each host sends; ``is_corrected``: NCCL
    corrects its rate by size.
    """

    algorithm: Algorithm
    protocol: Protocol
    latency_ns: Floats
    byte_ns: Floats
    stack_ns: Floats
    loads: Floats
    stacks: Mapping[str, float]
    bottleneck: int
    is_corrected: bool

    def at(self, size: float, case: int = LIKELY) -> Offered:
        """Itself for a size."""
        reached = tree_at_size(self.protocol, size) if self.is_corrected else 1.0
        bytes_ns = float(self.byte_ns[case]) * size / reached
        return Offered(self.algorithm, self.protocol, float(self.latency_ns[case]), bytes_ns)


def collective_time(  # noqa: PLR0913 - each says something of its own
    fabric: Fabric,
    kind: Kind,
    size: float,
    ranks: Ranks,
    *,
    calibration: Calibration | None = None,
    algorithm: Algorithm | None = None,
    root: int = 0,
) -> CollectiveTime:
    """The time of a collective of ``size`` bytes (``schedules``) among ``ranks``: how many of the fabric's endpoints, from
    the first on, or which. ``algorithm``: this one, instead of NCCL's choice; ``root``: the place in ``ranks`` of who
    broadcasts or sends.

    Raises:
        UsageError: no such kind or algorithm, ranks that the fabric does not have, a size below 0.
        HardwareError: nothing joins two of the ranks, or the bandwidth of a link on their way is unknown.
    """
    group, offers = _for_size(fabric, kind, size, ranks, algorithm, root)
    return _chosen(fabric, offers, size, calibration) if len(group.ranks) > 1 else _nothing()


def offered(fabric: Fabric, kind: Kind, size: float, ranks: Ranks) -> tuple[Offered, ...]:
    """What NCCL has to choose from; empty for a single rank.

    Raises:
        UsageError: as ``collective_time``.
        HardwareError: as there.
    """
    _, offers = _for_size(fabric, kind, size, ranks, None, 0)
    return tuple(offer.at(size) for offer in offers)


def _for_size(  # noqa: PLR0913, PLR0917 - as collective_time
    fabric: Fabric, kind: Kind, size: float, ranks: Ranks, algorithm: Algorithm | None, root: int
) -> tuple[Group, tuple[_Offer, ...]]:
    if kind not in KINDS:
        raise UsageError(f"no collective {kind!r}", hint=f"there are {', '.join(KINDS)}")
    if not 0 <= size < np.inf:
        raise UsageError(f"a collective of {size} bytes", hint="give a number of bytes of at least 0")
    group = _group(fabric, _members(fabric, ranks))
    if not 0 <= root < len(group.ranks):
        raise UsageError(f"root {root} of {len(group.ranks)} ranks", hint="give the place of a rank, from 0 on")
    if kind == "send_recv" and len(group.ranks) != 2:
        raise UsageError(f"a send among {len(group.ranks)} ranks", hint="give the two ranks of it")
    if len(group.ranks) == 1:
        return group, ()
    offers = _offers(group, kind, algorithm, root)
    if kind in {"all_to_all", "send_recv"}:
        offers = _by_size(offers, size / len(group.ranks) if kind == "all_to_all" else size)
    return group, offers


def uneven_all_to_all_time(
    fabric: Fabric,
    splits: npt.ArrayLike,
    ranks: Ranks,
    *,
    calibration: Calibration | None = None,
    algorithm: Algorithm | None = None,
) -> CollectiveTime:
    """The time of an all-to-all in which rank *i* sends ``splits[i][j]`` bytes to rank *j*; else as ``collective_time``.

    Raises:
        UsageError: splits that are no square of numbers of at least 0, a row for each rank, and as there.
        HardwareError: as there.
    """
    offers = _for_splits(fabric, splits, ranks, algorithm)
    return _chosen(fabric, offers, 1.0, calibration) if offers else _nothing()


def _for_splits(fabric: Fabric, splits: npt.ArrayLike, ranks: Ranks, algorithm: Algorithm | None) -> tuple[_Offer, ...]:
    """What there is to choose from for splits, for a size of 1; empty for a single rank."""
    group = _group(fabric, _members(fabric, ranks))
    matrix = schedules.matrix_of(group, splits)
    if len(group.ranks) == 1:
        return ()
    wanted = algorithm or "direct"
    if wanted not in {"direct", "hierarchical"}:
        raise UsageError(f"no {wanted} all_to_all", hint="there is direct and hierarchical")
    schedule = _SCHEDULES[wanted](group, "all_to_all", 0, matrix)
    largest = float((matrix - np.diag(np.diag(matrix))).max())
    offers = tuple(_offer(group, "all_to_all", wanted, protocol, schedule) for protocol in _sending(fabric))
    return _by_size(offers, largest)


def times_by_case(fabric: Fabric, kind: Kind, size: float, ranks: Ranks, splits: npt.ArrayLike | None = None) -> Floats:
    """The times in ns under what a file assumes: likely, fast and slow (``Fabric.rates``); ``splits``: of an all-to-all, as
    ``uneven_all_to_all_time``. Zeros for a single rank.

    Raises:
        UsageError: as ``collective_time`` and ``uneven_all_to_all_time``.
        HardwareError: as there.
    """
    if splits is None:
        _, offers = _for_size(fabric, kind, size, ranks, None, 0)
    else:
        offers, size = _for_splits(fabric, splits, ranks, None), 1.0
    cases = (LIKELY, FAST, SLOW)
    return np.array([min((offer.at(size, case).ns(Calibration()) for offer in offers), default=0.0) for case in cases])


def _members(fabric: Fabric, ranks: Ranks) -> tuple[int, ...]:
    members = tuple(range(ranks)) if isinstance(ranks, int) else tuple(ranks)
    if not members or len(set(members)) < len(members) or not all(0 <= m < len(fabric.endpoints) for m in members):
        raise UsageError(
            f"ranks {ranks} of {fabric.name}", hint=f"it has {len(fabric.endpoints)} endpoints, each takes part at most once"
        )
    return members


@lru_cache(maxsize=4096)
def _group(fabric: Fabric, members: tuple[int, ...]) -> Group:
    return Group(fabric, members)


@lru_cache(maxsize=4096)
def _offers(group: Group, kind: Kind, algorithm: Algorithm | None, root: int) -> tuple[_Offer, ...]:
    """What there is to choose from."""
    chosen = [a for a in _OFFERED[kind] if _is_on_offer(group, a)] if algorithm is None else [algorithm]
    possible = (*_OFFERED[kind], *_ALSO[kind])
    if algorithm is not None and (algorithm not in possible or (algorithm == "nvls" and not _reduces(group))):
        raise UsageError(f"no {algorithm} {kind} on {group.fabric.name}", hint=f"there is {', '.join(possible)}")
    made = []
    for name in chosen:
        schedule = _SCHEDULES[name](group, kind, root)
        protocols = _protocols(group.fabric, name, schedule)
        made += [_offer(group, kind, name, protocol, schedule) for protocol in protocols]
    return tuple(made)


def _is_on_offer(group: Group, algorithm: Algorithm) -> bool:
    """Whether the library would take it: gloo has rings and sends, NVLS needs a switch that adds up."""
    if group.fabric.library.on_hosts:
        return algorithm in {"ring", "direct"}
    return algorithm != "nvls" or _reduces(group)


def _reduces(group: Group) -> bool:
    """Whether the switch adds up for this group."""
    library = group.fabric.library
    enough = len(group.ranks) > NVLS_ABOVE.get(library.generation, 0)
    return library.reduces and enough and len(group.islands) == 1 and group.fabric.is_switched(group.ranks)


def _sending(fabric: Fabric) -> tuple[Protocol, ...]:
    return ("LL", "Simple") if fabric.library.is_nccl else ("Simple",)


def _protocols(fabric: Fabric, algorithm: Algorithm, schedule: Schedule) -> tuple[Protocol, ...]:
    if algorithm == "nvls":
        return ("Simple",)
    if algorithm in {"direct", "hierarchical"}:
        return _sending(fabric)
    hardware = {steps.hardware for phase in schedule.phases for steps in phase.steps}
    return fabric.library.protocols("pci" if "pci" in hardware else "nvlink")


def _offer(group: Group, kind: Kind, algorithm: Algorithm, protocol: Protocol, schedule: Schedule) -> _Offer:
    fabric, library = group.fabric, group.fabric.library
    share, most = library.share(algorithm, protocol, schedule.nodes), library.most(protocol, schedule.nodes)
    latency, byte_ns, stack_ns, fullest = np.zeros(3), np.zeros(3), np.zeros(3), (-1.0, 0)
    latency += library.base_ns(algorithm, protocol)
    for phase in schedule.phases:
        per_link = phase.loads / (fabric.rates * share)
        latency += _steps_ns(group, algorithm, protocol, schedule, phase)
        slowest = np.nanmax(per_link, axis=1)
        two_hosts = library.on_hosts and schedule.nodes == 2 and len(group.ranks) == 2
        behind = ONE_WAY_AFTER_THE_OTHER.get(kind, 1.0) if two_hosts else 1.0
        byte_ns += NS_PER_S * behind * np.maximum(slowest, 0.0 if most is None else phase.sent / most)
        if library.on_hosts and any(steps.hardware == "net" for steps in phase.steps):
            stack_ns += NS_PER_S * phase.sent / np.array(STACK_BYTES_PER_S)
        fullest = max(fullest, (float(slowest[LIKELY]), int(np.nanargmax(per_link[LIKELY]))))
    if schedule.nodes > 1 and algorithm == "ring" and protocol == "Simple" and kind == "all_reduce" and library.is_nccl:
        latency *= PLATEAU[library.generation]
    if library.is_nccl:
        latency += schedule.posts * POST_NS[library.processor]
    loads = np.sum([phase.loads for phase in schedule.phases], axis=0)
    is_corrected = algorithm == "tree" and library.is_nccl
    sent = sum(phase.sent for phase in schedule.phases)
    stacks = {f"{fabric.endpoints[rank]} network stack": sent for rank in group.ranks} if stack_ns.any() else {}
    return _Offer(algorithm, protocol, latency, byte_ns + stack_ns, stack_ns, loads, stacks, fullest[1], is_corrected)


def _steps_ns(group: Group, algorithm: str, protocol: Protocol, schedule: Schedule, phase: schedules.Phase) -> Floats:
    """Latency of a phase's steps. Steps within nodes of a ring over several last at least as long as the posting of a
    message.
    """
    library, total = group.fabric.library, np.zeros(3)
    alone = len(group.islands) == len(group.ranks)
    for steps in phase.steps:
        # Where each node has one rank latencies are fully exposed: NCCL takes the tree's for the network then.
        row = "tree" if alone and steps.hardware == "net" else algorithm
        wires = (None, None, None) if steps.wire_ns is None else steps.wire_ns
        each = np.array([library.step_ns(row, protocol, steps.hardware, wire, case) for case, wire in enumerate(wires)])
        if schedule.nodes > 1 and algorithm == "ring" and steps.hardware != "net" and library.is_nccl:
            each = np.maximum(each, POST_NS[library.processor] * (POSTS_OF_SIMPLE if protocol == "Simple" else 1))
        total += steps.count * each
    return total


def _by_size(offers: tuple[_Offer, ...], largest: float) -> tuple[_Offer, ...]:
    """Sends take the protocol that their size says, whatever it costs."""
    if len({offer.protocol for offer in offers}) == 1:
        return offers
    wanted = "LL" if largest <= SEND_LL_MOST else "Simple"
    return tuple(offer for offer in offers if offer.protocol == wanted)


def _chosen(fabric: Fabric, offers: tuple[_Offer, ...], size: float, calibration: Calibration | None) -> CollectiveTime:
    scale = calibration or Calibration()
    here = [offer.at(size) for offer in offers]
    best = int(np.argmin([one.ns(scale) for one in here]))
    offer, time = offers[best], here[best].ns(scale)
    low, high = (time * end for end in (MODEL_WITHIN if calibration is None else CALIBRATED_WITHIN))
    if calibration is None:
        low = min(low, *(offer.at(size, FAST).ns(scale) for offer in offers))
        high = max(high, min(offer.at(size, SLOW).ns(scale) for offer in offers))
    stack_ns = float(offer.stack_ns[LIKELY]) * size * scale.bytes_time
    uses = _uses(fabric, offer, size, time)
    return CollectiveTime(
        round(time), round(low), round(high), round(here[best].latency_ns * scale.latency), offer.algorithm, offer.protocol,
        fabric.links[offer.bottleneck] if size > 0 and offer.loads.any() else None,
        "model" if calibration is None else "calibrated", uses, _assumed(fabric, uses),
        _words(fabric, offer),
        round(stack_ns), tuple(_stacks(offer.stacks, size, stack_ns / max(time, 1.0))),
    )  # fmt: skip


def _assumed(fabric: Fabric, uses: tuple[LinkUse, ...]) -> tuple[str, ...]:
    """Of what is assumed of the fabric the keys of the levels of these links; all of it where no bytes show them."""
    levels = levels_of(fabric, (link.name for link in uses))
    return tuple(key for key in fabric.assumed if not levels or key.rpartition(".")[0] in levels)


def _uses(fabric: Fabric, offer: _Offer, size: float, time_ns: float) -> tuple[LinkUse, ...]:
    loaded = np.flatnonzero(offer.loads)
    if not size or not loaded.size:
        return ()
    moved = offer.loads[loaded] * size
    busy = np.minimum(moved / fabric.rates[LIKELY, loaded] * NS_PER_S / max(time_ns, 1.0), 1.0)
    order = np.argsort(-busy, kind="stable")
    return tuple(LinkUse(fabric.links[loaded[k]], float(moved[k]), float(busy[k])) for k in order)


def _words(fabric: Fabric, offer: _Offer) -> tuple[str, ...]:
    """What constants stand in: those of hosts' stacks between hosts, NCCL's wherever another library runs within them."""
    between = (_STACK_WORDS,) if offer.stack_ns.any() else ()
    inside = (
        fabric.stand_ins if not between or len(offer.stacks) > len({name.partition("/")[0] for name in offer.stacks}) else ()
    )
    return (*between, *inside)


def _stacks(stacks: Mapping[str, float], size: float, busy: float) -> Iterator[LinkUse]:
    """The network stacks of hosts, which transfers share as they do links."""
    return (LinkUse(name, sent * size, busy) for name, sent in stacks.items() if size > 0)


def _nothing() -> CollectiveTime:
    """A collective of one rank: nothing to send, and nothing assumed."""
    return CollectiveTime(0, 0, 0, 0, "direct", "Simple", None, "model", (), ())


ALGORITHMS: Final[tuple[Algorithm, ...]] = get_args(Algorithm)
