"""A step of a DLRM that nobody recorded: in, a job and what it is to run on; out, its step time, volumes and memory.

Everywhere labelled ``calibrated analytic replay``: the graph comes from an architecture string and models, not from a trace.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.collectives.times import CollectiveTime
from tracereplay.hardware.memory.placement import Placement
from tracereplay.hardware.memory.rates import MemoryRate
from tracereplay.hardware.operators.work import CLASSES
from tracereplay.hardware.schema import Accelerator
from tracereplay.replay.columns import SCALE_OUT, SCALE_UP, Columns, Floats, Times
from tracereplay.replay.contention import Links, links_of, replay_on_links
from tracereplay.replay.engine import recorded_timing
from tracereplay.replay.move import Move
from tracereplay.replay.outcome import Interval, interval_of
from tracereplay.replay.settle import settled
from tracereplay.replay.uncertainty import sampled
from tracereplay.synth.operation import Operation
from tracereplay.synth.pricing import PlatformPricer
from tracereplay.synth.step import Job, Step, build_step
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
# What the interval holds; said with every answer.
INTERVAL = "the models' known errors and the ranges of what is assumed, drawn and replayed; not what is not in the model"

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
    outside a rank's own memory were read, by tier, and what binds there; ``interval``: None where no errors were drawn.
    """

    step_ns: int
    samples_per_s: float
    graph: DependencyGraph
    volumes: tuple[Volumes, ...]
    placement: Placement
    exchanges: tuple[ExchangeRow, ...]
    ways: Mapping[str, MemoryRate]
    assumed: tuple[str, ...]
    interval: Interval | None


def synthesise(job: Job, pricer: PlatformPricer, samples: int = 0, alternatives: Sequence[Accelerator] = ()) -> Synthesis:
    """Build the step, replay it with links shared where transfers overlap, and sum it up. The known errors of the models are
    drawn ``samples`` times and replayed: an interval around the step, None for 0. ``alternatives``: what else may stand in
    the platform's slots, drawn too; tables stay where the job has them.

    Raises:
        HardwareError: a figure that a model needs is unknown.
    """
    step = build_step(job, pricer)
    sharing = pricer.shared(step)
    links = links_of(step.graph, sharing.routes, sharing.capacity)
    graph = settled(step.graph, links)
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
        interval=_sampled(step, links, errors_of(step, pricer, alternatives), samples, step_ns) if samples else None,
    )


def errors_of(step: Step, pricer: PlatformPricer, alternatives: Sequence[Accelerator] = ()) -> Move:
    """The step's times as a move that changes nothing: bounds of each task, and what other accelerators would make of it."""
    nodes = step.graph.nodes
    made = Columns.of(len(step.graph))
    dur_ns = nodes.dur_ns.astype(np.float64)
    by_operation: dict[Operation, list[int]] = {}
    for node, operation in step.operations.items():
        by_operation.setdefault(operation, []).append(node)
    for operation, same in by_operation.items():
        _bound(made, same, CLASSES.index(operation.work.kind), dur_ns, pricer.bounds_ns(operation))
    for exchange, collective in zip(step.exchanges, step.graph.collectives, strict=True):
        time, share = pricer.exchanged[exchange], pricer.efficiency.transfers
        group = SCALE_OUT if collective.scale_out else SCALE_UP
        _bound(made, collective.transfers, group, dur_ns, (time.low_ns / share, time.high_ns / share))
    others = tuple(_with_accelerator(step, pricer, other) for other in alternatives)
    return Move(made.factor, made.low, made.high, made.group, made.kept, others, (), ())


def _bound(made: Columns, nodes: Sequence[int], group: int, dur_ns: Floats, bounds_ns: tuple[float, float]) -> None:
    """Tasks that are alike keep their times, within bounds."""
    chosen = np.array(nodes, np.int64)
    now_ns = dur_ns[chosen]
    made.put(chosen, group, Times(now_ns, now_ns, *(np.full(chosen.size, bound) for bound in bounds_ns)))


def _with_accelerator(step: Step, pricer: PlatformPricer, accelerator: Accelerator) -> Floats:
    """By what each task's time is multiplied with another accelerator in the slots."""
    other = replace(pricer, platform=replace(pricer.platform, accelerator=accelerator), exchanged={})
    factor = np.ones(len(step.graph))
    dur_ns = np.maximum(step.graph.nodes.dur_ns, 1)
    priced: dict[Operation, int] = {}
    for node, operation in step.operations.items():
        if operation not in priced:
            priced[operation] = other.operation_ns(operation)
        factor[node] = max(priced[operation], 1) / dur_ns[node]
    for exchange, collective in zip(step.exchanges, step.graph.collectives, strict=True):
        nodes = np.array(collective.transfers, np.int64)
        factor[nodes] = np.array(other.exchange_ns(exchange)) / dur_ns[nodes]
    return factor


def _sampled(step: Step, links: Links, errors: Move, samples: int, step_ns: int) -> Interval:
    timings = sampled(recorded_timing(step.graph), errors, samples)
    return interval_of([int(replay_on_links(step.graph, links, timing).end_ns.max()) for timing in timings], step_ns)


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
