"""Host time on other hardware: in, a graph and hosts; out, what becomes of it, and what was assumed, in words.

Nobody publishes how fast a host runs a framework's code, so all host time goes by ``host.speed`` but for the operators of a
job of CPUs that memory bounds, and for copies over the link between host and device.
"""

from dataclasses import dataclass
from math import log

import numpy as np

from tracereplay.errors import HardwareError
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.facts import LinkRate, MemoryRate
from tracereplay.hardware.knobs import SOURCE
from tracereplay.hardware.operators.fitted import shipped
from tracereplay.hardware.operators.work import CLASSES, OperatorClass
from tracereplay.hardware.platform import Platform
from tracereplay.replay.columns import HOST, Columns, Times
from tracereplay.replay.site import Site
from tracereplay.trace.times import Int64s
from tracereplay.units import format_share

# Nobody publishes how fast one host runs a framework's code beside another. Between neighbouring generations of server
# processors single threads differ by some 20 % (the hosts of corpus pair_h100_mi300x: 4 to 10 % on the same work).
HOST_RANGE = (0.8, 1.25)
# Calls of cudaLaunchKernel, 10th to 90th percentile with the median, in recordings of V100 (corpus dlrm_v100x8, rank 0: 4 to 7,
# median 5 µs) and H100 (corpus pair_h100_mi300x: 3 to 6.6, medians 3.3 to 4.7 µs).
_LAUNCH_NS = (3_000, 5_000, 7_000)
# An unknown figure matters where what depends on it takes more than this share of the steps.
_MATTERS = 0.01
_LIKELY, _LOW, _HIGH = 0, 1, 2
# Classes of operators that wait for memory, as in the plain knobs.
_BY_MEMORY = [
    CLASSES.index(kind)
    for kind in (
        OperatorClass.EMBEDDING,
        OperatorClass.ELEMENTWISE,
        OperatorClass.REDUCTION,
        OperatorClass.NORMALISATION,
        OperatorClass.OPTIMIZER,
        OperatorClass.COPY,
        OperatorClass.MEMSET,
    )
]


@dataclass(frozen=True, slots=True)
class Launch:
    """What a host takes to launch one operator: ns with the ends of its range, and where that is from, in words."""

    low_ns: float
    ns: float
    high_ns: float
    source: str


def launch_on(platform: Platform) -> Launch:
    """The launch of a platform's host: ``host.overhead`` where that is known, else what launches take in recordings."""
    fact = platform.description.host.overhead
    if fact is not None and fact.base is not None:
        low, high = fact.base_range or (fact.base, fact.base)
        return Launch(float(low), float(fact.base), float(high), "host.overhead")
    low, likely, high = _LAUNCH_NS
    return Launch(low, likely, high, "assumed of launch calls in recordings of V100 and H100 (--set host.overhead=...)")


def move_host(graph: DependencyGraph, target: Site, made: Columns) -> list[str]:
    """All host time that nothing else moves, by the speed of the target's host."""
    host = np.flatnonzero((graph.nodes.kind == NodeKind.HOST) & (made.group < 0) & (graph.nodes.dur_ns > 0))
    speed = 1.0 if target.host_speed is None else target.host_speed
    made.factor[host] = 1 / speed
    if target.host_speed is not None or not host.size:
        return []
    made.low[host], made.high[host], made.group[host] = -log(HOST_RANGE[1]), -log(HOST_RANGE[0]), HOST
    low, high = HOST_RANGE
    return [f"host.speed 1x ({low:g}x … {high:g}x): no data sheet says how fast the host runs this code; --set host.speed=..."]


def move_operators(  # noqa: PLR0913, PLR0917 - a job's operators, from where, to where
    graph: DependencyGraph,
    kinds: Int64s,
    operators: Int64s,
    source: Site | None,
    target: Platform,
    made: Columns,
) -> list[str]:
    """Operators of a job of CPUs on other CPUs: those that memory bounds go by the bandwidth of the hosts' memories, as far as
    it is known and with bounds from no change to that; the others, as all host time, by the speed of the hosts.
    """
    if source is None:
        made.kept[operators] = True
        return [
            "what the job ran on is not described: its operators go by host.speed, its transfers keep their time; --from NAME"
        ]
    if source.platform.description.host.memory == target.description.host.memory:
        return []
    bound = operators[np.isin(kinds, _BY_MEMORY) & (graph.nodes.dur_ns[operators] > 0)]
    rates = _memory_rates(source.platform, target)
    if rates is None:
        made.kept[bound] = True
        key = "host.memory.bandwidth"
        setting = f"--set {key}=..." if _memory_known(source.platform) else f"--set {SOURCE}{key}=..."
        return [f"{key} is unknown on one side: operators keep their time; {setting}"]
    before_ns = graph.nodes.dur_ns[bound].astype(np.float64)
    ratio = rates[0] / rates[1]
    times = [before_ns * by for by in (ratio, min(ratio, 1.0), max(ratio, 1.0))]
    made.put(bound, CLASSES.index(OperatorClass.ELEMENTWISE), Times(before_ns, *times))
    return ["operators that memory bounds go by host.memory.bandwidth alone, the bounds hold that they do not"]


def _memory_rates(source: Platform, target: Platform) -> tuple[float, float] | None:
    for name in ("achievable", "bandwidth"):
        here, there = (getattr(platform.description.host.memory, name).base for platform in (source, target))
        if here is not None and there is not None:
            return float(here), float(there)
    return None


def _memory_known(platform: Platform) -> bool:
    memory = platform.description.host.memory
    return memory.achievable.base is not None or memory.bandwidth.base is not None


def move_copies(graph: DependencyGraph, copies: Int64s, source: Platform, target: Platform, made: Columns) -> list[str]:
    """Copies between host and device, by the links between the two; what a kernel takes at least, a copy does too. A link of
    which nobody knows the bandwidth matters where the copies take more of the steps than ``_MATTERS``; elsewhere they keep
    their time.

    Raises:
        HardwareError: the bandwidth is unknown and matters.
    """
    if not copies.size or _is_same_link(source, target):
        return []
    before_ns = graph.nodes.dur_ns[copies].astype(np.float64)
    rates = _link_rates(source, target)
    if rates is not None:
        here, there = rates
        fixed = np.minimum(before_ns, shipped().floor_ns)
        ratios = (here[_LIKELY] / there[_LIKELY], here[_LOW] / there[_HIGH], here[_HIGH] / there[_LOW])
        times = [fixed + (before_ns - fixed) * ratio for ratio in ratios]
        made.put(copies, CLASSES.index(OperatorClass.COPY), Times(before_ns, *times))
        return [] if here[_LOW] == here[_HIGH] and there[_LOW] == there[_HIGH] else [target.described("host.link.bandwidth")]
    unknown = (target if _known(target) == () else source).description.name
    share = before_ns.sum() / max(sum(s.end_ns - s.start_ns for s in graph.steps), 1)
    if share > _MATTERS:
        raise HardwareError(
            f"its bandwidth is unknown, and copies over it take {format_share(share)} of the steps",
            where=f"{unknown}: host.link.bandwidth",
            hint="give it with --set host.link.bandwidth=16GB/s, or in a file that inherits",
        )
    made.kept[copies] = True
    side = "" if _known(target) == () else SOURCE
    return [
        f"host.link.bandwidth of {unknown} is unknown: copies over it, {format_share(share)} of the steps, keep their time; "
        f"--set {side}host.link.bandwidth=..."
    ]


def _is_same_link(source: Platform, target: Platform) -> bool:
    one, other = source.description, target.description
    return one.name == other.name and one.host.link == other.host.link


_Rate = tuple[float, float, float]  # likely, low, high


def _link_rates(source: Platform, target: Platform) -> tuple[_Rate, _Rate] | None:
    """Bytes a second of both links, what is achieved of them where that is known of both, else their peaks; None where
    neither is.
    """
    for name in ("achievable", "bandwidth"):
        facts = [getattr(link, name) for p in (source, target) if (link := p.description.host.link) is not None]
        if len(facts) == 2 and all(fact.base is not None for fact in facts):
            here, there = (_rate(fact) for fact in facts)
            return here, there
    return None


def _rate(fact: LinkRate | MemoryRate) -> _Rate:
    base = float(fact.base or 0)
    low, high = fact.base_range or (base, base)
    return base, float(low), float(high)


def _known(platform: Platform) -> tuple[float, ...]:
    link = platform.description.host.link
    return () if link is None else tuple(float(f.base) for f in (link.achievable, link.bandwidth) if f.base is not None)
