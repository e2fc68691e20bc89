"""A step of a DLRM that nobody recorded: in, a job and what it is to run on; out, its step time, volumes and memory.

Everywhere labelled ``calibrated analytic replay``: the graph comes from an architecture string and models, not from a trace.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.collectives.model import CollectiveTime
from tracereplay.hardware.memory.placement import Placement
from tracereplay.hardware.memory.rates import MemoryRate
from tracereplay.replay.contention import links_of
from tracereplay.replay.settle import settled
from tracereplay.synth.pricing import PlatformPricer
from tracereplay.synth.step import Job, build_step
from tracereplay.synth.volumes import Volumes, volumes
from tracereplay.units import NS_PER_S

LABEL = "calibrated analytic replay"
# What a step built from an architecture leaves out; said with every answer.
UNMODELLED = (
    "host threads and kernel launches (as if the step ran as one CUDA graph)",
    "the input pipeline and copies from the host",
    "slower computing beside communication",
    "evaluation and checkpoints",
)
NO_INTERVAL = "the step is the models' likely time; their known errors and the ranges of what is assumed are not run through it"

# What the models of operators read of an accelerator (``operators.model.Sheet``).
_OF_ACCELERATOR = ("accelerator.flops.", "accelerator.vector_flops.", "accelerator.compute_units", "accelerator.hbm.bandwidth")


@dataclass(frozen=True, slots=True)
class ExchangeRow:
    """One collective of the step: its bytes a rank, its time alone and in the step, how it runs and what it waits for."""

    name: str
    op: str
    bytes: int
    alone_ns: int
    transfer_ns: int
    algorithm: str
    bottleneck: str | None


@dataclass(frozen=True, slots=True)
class Synthesis:
    """The step of a job on a platform. ``graph`` has the step's times, as if it had been recorded; ``ways``: how fast tables
    outside a rank's own memory were read, by tier, and what binds there.
    """

    step_ns: int
    samples_per_s: float
    graph: DependencyGraph
    volumes: tuple[Volumes, ...]
    placement: Placement
    exchanges: tuple[ExchangeRow, ...]
    ways: Mapping[str, MemoryRate]
    assumed: tuple[str, ...]


def synthesise(job: Job, pricer: PlatformPricer) -> Synthesis:
    """Build the step, replay it with links shared where transfers overlap, and sum it up.

    Raises:
        HardwareError: a figure that a model needs is unknown.
    """
    step = build_step(job, pricer)
    sharing = pricer.shared(step)
    graph = settled(step.graph, links_of(step.graph, sharing.routes, sharing.capacity))
    step_ns = max((span.end_ns for span in graph.steps), default=0)
    rows = [
        _row(exchange.name, exchange.bytes, collective.name, collective.transfer_ns or 0, pricer.exchanged[exchange])
        for exchange, collective in zip(step.exchanges, graph.collectives, strict=True)
    ]
    return Synthesis(
        step_ns=step_ns,
        samples_per_s=job.batch * NS_PER_S / step_ns,
        graph=graph,
        volumes=volumes(job.architecture, job.plan, job.batch_per_rank),
        placement=job.placement,
        exchanges=tuple(rows),
        ways=dict(pricer.ways),
        assumed=tuple(sorted(_assumed(pricer))),
    )


def _assumed(pricer: PlatformPricer) -> set[str]:
    """What the step rests on that is assumed or unknown: of the links its collectives use, of the accelerators that it runs on,
    of the ways to tables outside their memory; and whose library another one's constants stand in for.
    """
    facts = {key for key, fact in pricer.platform.fields() if fact.kind == "assumed"}
    used = {rate.binds for rate in pricer.ways.values()} | ({"accelerator.model"} if pricer.device is None else set())
    sheet = set() if pricer.device is not None else {key for key in facts if key.startswith(_OF_ACCELERATOR)}
    exchanged = {text for time in pricer.exchanged.values() for text in (*time.assumed, *time.stand_ins)}
    return exchanged | (used & facts) | sheet | {key for rate in pricer.ways.values() for key in rate.unknown}


def _row(name: str, size: int, op: str, transfer_ns: int, time: CollectiveTime) -> ExchangeRow:
    return ExchangeRow(name, op, size, time.time_ns, transfer_ns, time.algorithm, time.bottleneck)
