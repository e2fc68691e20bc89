"""A training step of a DLRM as a graph of tasks: in, a job and what its operations take; out, a DependencyGraph.

    compute        bottom forward ───────┐ interaction, top, loss │ top backward, interaction ┐ bottom backward ┐ optimizer
    lookup         lookup ┐              │                        │                           │ lookup backward │
    communication         └ pooled a2a ──┘ [indices of the next]  └ gradients of the top ─────┴ pooled a2a ─────┴ gradients ──┘

Each rank has these three streams. Collectives share one stream, in the order in which one NCCL communicator runs them:
gradients of the top layers are summed while backward goes on, those of the pooled vectors go back behind them; or all-reduces
have a stream of their own. The input pipeline, host threads and launches are not in the graph.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tracereplay.graph.model import Collective, DependencyGraph
from tracereplay.graph.written import GraphWriter
from tracereplay.hardware.collectives.schedules import Kind
from tracereplay.hardware.memory.placement import Placement
from tracereplay.hardware.memory.tables import Sharding
from tracereplay.hardware.memory.traffic import Traffic, backward_traffic, forward_traffic
from tracereplay.hardware.operators.work import OperatorClass, Work
from tracereplay.synth.architecture import Architecture, Layer
from tracereplay.synth.operation import Exchange, LayerWork, Operation, moved, product
from tracereplay.synth.sharding import Plan
from tracereplay.synth.software import BYTES_OF, Software
from tracereplay.synth.volumes import volumes
from tracereplay.trace.classify import WorkClass

COMPUTE, LOOKUP, COMMUNICATION, REDUCTION = "compute", "lookup", "communication", "reduction"
_INDEX_BYTES, _LENGTH_BYTES, _SPLIT_BYTES = 4, 4, 8


@dataclass(frozen=True, slots=True)
class Job:
    """What a step is built from. ``ranks_per_node`` decides which collectives leave the node."""

    architecture: Architecture
    plan: Plan
    batch_per_rank: int
    software: Software
    placement: Placement
    ranks_per_node: int

    @property
    def batch(self) -> int:
        """Samples of all ranks together."""
        return self.batch_per_rank * self.plan.ranks


class Pricer(Protocol):
    """What things take on a platform, in ns."""

    def operation_ns(self, operation: Operation) -> int:
        """One operation on one rank."""
        ...

    def exchange_ns(self, exchange: Exchange) -> Sequence[int]:
        """One collective over all ranks: the transfer of each rank."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """The graph of one step of every rank, whose times are zero until ``replay.settle.settled``; what each of its collectives
    is, by its number, and what each other task is.
    """

    graph: DependencyGraph
    exchanges: tuple[Exchange, ...]
    operations: Mapping[int, Operation]


def build_step(job: Job, pricer: Pricer) -> Step:
    """One step of every rank."""
    return _Writing(job, pricer).build()


def dense_buckets(architecture: Architecture, software: Software) -> list[tuple[int, int]]:
    """The all-reduces of dense gradients, as (numbers, place of the layer whose gradient completes it), last layer first.

    Gradients become ready from the last layer to the first; a bucket is sent when it holds so many bytes, as
    DistributedDataParallel does.
    """
    size, held = BYTES_OF[software.gradients], 0
    found: list[tuple[int, int]] = []
    layers = architecture.dense_layers
    for place in range(len(layers) - 1, -1, -1):
        held += layers[place].parameters
        if held * size >= software.buckets[bool(found)]:
            found.append((held, place))
            held = 0
    return [*found, (held, 0)] if held else found


class _Writing:
    """The writing of one step: the last task of each part, rank by rank."""

    def __init__(self, job: Job, pricer: Pricer) -> None:
        self.job, self.pricer = job, pricer
        self.ranks = range(job.plan.ranks)
        self.writer = GraphWriter(job.plan.ranks, f"synth dlrm {job.architecture.name}")
        self.volumes = volumes(job.architecture, job.plan, job.batch_per_rank)
        self.number = job.software.matrix
        self.price: dict[Operation, int] = {}
        self.exchanges: list[Exchange] = []
        self.operations: dict[int, Operation] = {}
        self.replicated = self.volumes[0].all_reduce_elements - job.architecture.dense_parameters
        self.buckets = dense_buckets(job.architecture, job.software)
        if job.software.grouped and job.plan.ranks > job.ranks_per_node:
            # Everything at once, when the last gradient is ready.
            self.buckets, self.replicated = [(self.volumes[0].all_reduce_elements, 0)], 0

    def build(self) -> Step:
        job, arch = self.job, self.job.architecture
        indices = self._indices() if job.software.inputs == "first" else {}
        pooled = self._lookup(indices)
        if job.software.inputs == "prefetched":
            self._indices()
        self._forward_layers("bottom", arch.bottom_layers)
        self._on_compute(self._interaction_forward(), pooled)
        self._forward_layers("cross", arch.cross_layers)
        self._forward_layers("top", arch.top_layers)
        self._on_compute(self._loss(), {})
        sent = self._backward(len(arch.dense_layers) - len(arch.top_layers), len(arch.dense_layers), "top")
        if arch.cross_layers:
            sent += self._backward(len(arch.bottom_layers), len(arch.dense_layers) - len(arch.top_layers), "cross")
        gradients = self._on_compute(self._interaction_backward(), {})
        self._lookup_backward(gradients)
        replicated = self._reduce_replicated(gradients)
        sent += self._backward(0, len(arch.bottom_layers), "bottom")
        self._optimize([*replicated, *sent])
        return Step(self.writer.graph(), tuple(self.exchanges), self.operations)

    def _ns(self, operation: Operation) -> int:
        """Ranks do the same work many times over: each is priced once."""
        if operation not in self.price:
            self.price[operation] = self.pricer.operation_ns(operation)
        return self.price[operation]

    def _on(self, stream: str, rank: int, operations: Sequence[Operation], after: Sequence[int] = ()) -> int | None:
        last = None
        for operation in operations:
            work = (WorkClass[operation.work.kind.contract.upper()], self._ns(operation))
            last = self.writer.work(rank, stream, operation.name, work, after if last is None else ())
            self.operations[last] = operation
        return last

    def _on_compute(self, operations: Sequence[Operation], after: dict[int, int]) -> dict[int, int]:
        ends = {r: self._on(COMPUTE, r, operations, [after[r]] if r in after else []) for r in self.ranks}
        return {r: end for r, end in ends.items() if end is not None}

    def _exchange(self, exchange: Exchange, after: dict[int, int]) -> dict[int, int]:
        """A collective of all ranks, none with a single one."""
        if len(self.ranks) == 1 or not exchange.bytes:
            return after
        exchange = replace(exchange, hierarchical=self.job.software.hierarchical and exchange.kind == "all_to_all")
        far = len(self.ranks) > self.job.ranks_per_node
        what = Collective(exchange.kind, 0, 0, "all", exchange.bytes, far, tuple(self.ranks), (), (), None, (), (), None)
        waits = {rank: [node] for rank, node in after.items()}
        stream = REDUCTION if self.job.software.apart and exchange.kind == "all_reduce" else COMMUNICATION
        self.exchanges.append(exchange)
        return self.writer.collective(what, stream, exchange.name, self.pricer.exchange_ns(exchange), waits)

    def _indices(self) -> dict[int, int]:
        """Three all-to-alls: how many indices come, how many a sample has, the indices themselves."""
        first = self.volumes[0]
        split = tuple(tuple(n * _INDEX_BYTES for n in v.index_split) for v in self.volumes)
        ends = self._exchange(Exchange("index splits", "all_to_all", first.splits_elements * _SPLIT_BYTES), {})
        ends = self._exchange(Exchange("index lengths", "all_to_all", first.lengths_elements * _LENGTH_BYTES), ends)
        return self._exchange(Exchange("indices", "all_to_all", first.index_elements * _INDEX_BYTES, split), ends)

    def _lookup(self, indices: dict[int, int]) -> dict[int, int]:
        ends = {}
        for rank in self.ranks:
            operation = self._lookup_operation("lookup", rank, backward=False)
            end = self._on(LOOKUP, rank, [operation], [indices[rank]] if rank in indices else [])
            if end is not None:
                ends[rank] = end
        pooled = self._exchange(self._pooled("pooled vectors", backward=False), ends)
        return self._exchange(self._row_wise("partial sums", "reduce_scatter"), pooled)

    def _lookup_operation(self, name: str, rank: int, *, backward: bool) -> Operation:
        """All lookups of a rank as one kernel, as FBGEMM runs them: the rows, and the pooled vectors written or read."""
        traffic, plans = Traffic(), {p.table.name: p for p in self.job.plan.tables}
        for placed in self.job.placement.of_rank(rank):
            # Rows that a rank has to itself are looked up for its own samples, others for those of every rank.
            at_home = plans[placed.shard.table.name].sharding is Sharding.DATA_PARALLEL
            samples = self.job.batch_per_rank if at_home else self.job.batch
            if backward:
                traffic += backward_traffic(placed, samples, self.job.placement.optimizer)
            else:
                traffic += forward_traffic(placed, samples)
        volume = self.volumes[rank]
        pooled = (volume.pooled_elements + volume.row_wise_elements) * BYTES_OF[self.number]
        # Forward reads rows and writes pooled vectors; backward reads their gradients, and half of its rows' bytes are written.
        half = traffic.local_bytes // 2
        read, written = (pooled + half, half) if backward else (traffic.local_bytes, pooled)
        work = Work(OperatorClass.EMBEDDING, 0, read, written, self.job.software.tables)
        return Operation(name, work, traffic.host_bytes, traffic.ssd_bytes)

    def _pooled(self, name: str, *, backward: bool) -> Exchange:
        size = BYTES_OF[self.number]
        rows = [[n * size for n in v.pooled_split] for v in self.volumes]
        if backward:
            rows = [list(column) for column in zip(*rows, strict=True)]
        most = max(sum(row) for row in rows)
        uneven = len({n for row in rows for n in row}) > 1
        return Exchange(name, "all_to_all", most, tuple(tuple(row) for row in rows) if uneven else None)

    def _row_wise(self, name: str, kind: Kind) -> Exchange:
        return Exchange(name, kind, self.volumes[0].row_wise_elements * BYTES_OF[self.number])

    def _forward_layers(self, name: str, layers: Sequence[Layer]) -> None:
        for place, layer in enumerate(layers):
            work = self._layer(f"{name} {place}", layer).forward()
            self._on_compute(work, {})

    def _layer(self, name: str, layer: Layer) -> LayerWork:
        return LayerWork(name, layer, self.job.batch_per_rank, self.number, self.job.software.fused)

    def _interaction_forward(self) -> list[Operation]:
        arch, batch, number = self.job.architecture, self.job.batch_per_rank, self.number
        inputs, outputs = batch * (arch.dim + arch.table_width), batch * arch.interaction_width
        vectors, flops = len(arch.tables) + 1, arch.interaction_flops(batch)
        side = moved("interaction concatenate", OperatorClass.COPY, (inputs, inputs), number)
        if arch.interaction != "dot":
            cross = moved("cross products", OperatorClass.ELEMENTWISE, (3 * outputs, outputs), number, flops)
            return [side, cross] if flops else [side]
        if self.job.software.fused:
            # One kernel reads the vectors and writes what the top reads; the products stay on the chip.
            return [moved("interaction", OperatorClass.GEMM, (inputs, outputs), number, flops)]
        return [
            side,
            product("interaction products", (vectors, vectors, arch.dim), number, batch),
            moved("interaction select", OperatorClass.ELEMENTWISE, (outputs, outputs), number),
        ]

    def _interaction_backward(self) -> list[Operation]:
        """Twice the products of forward, and the copies the other way."""
        arch, batch, number = self.job.architecture, self.job.batch_per_rank, self.number
        inputs, outputs = batch * (arch.dim + arch.table_width), batch * arch.interaction_width
        vectors, flops = len(arch.tables) + 1, 2 * arch.interaction_flops(batch)
        side = moved("interaction split", OperatorClass.COPY, (inputs, inputs), number)
        if arch.interaction != "dot":
            cross = moved("cross gradients", OperatorClass.ELEMENTWISE, (4 * outputs, 2 * outputs), number, flops)
            return [cross, side] if flops else [side]
        if self.job.software.fused:
            return [moved("interaction backward", OperatorClass.GEMM, (inputs + outputs, inputs), number, flops)]
        return [
            moved("interaction select backward", OperatorClass.ELEMENTWISE, (outputs, batch * vectors**2), number),
            product("interaction gradients 1", (vectors, arch.dim, vectors), number, batch),
            product("interaction gradients 2", (vectors, arch.dim, vectors), number, batch),
            side,
        ]

    def _loss(self) -> list[Operation]:
        """The sigmoid with its cross entropy, and its gradient: a few numbers a sample."""
        batch = self.job.batch_per_rank
        return [
            moved("loss", OperatorClass.ELEMENTWISE, (2 * batch, batch), "fp32", 8 * batch),
            moved("loss backward", OperatorClass.ELEMENTWISE, (2 * batch, batch), "fp32", 4 * batch),
        ]

    def _backward(self, first: int, past: int, name: str) -> list[dict[int, int]]:
        """Layers ``first`` to ``past`` of all dense ones, last first; sends each bucket of gradients when it is complete."""
        sent, layers = [], self.job.architecture.dense_layers
        buckets = {place: count for count, place in self.buckets}
        for place in range(past - 1, first - 1, -1):
            work = self._layer(f"{name} {place - first}", layers[place]).backward(to_inputs=place > 0)
            ends = self._on_compute(work, {})
            if place in buckets:
                size = buckets[place] * BYTES_OF[self.job.software.gradients]
                sent.append(self._exchange(Exchange("dense gradients", "all_reduce", size), ends))
        return sent

    def _lookup_backward(self, gradients: dict[int, int]) -> None:
        pooled = self._exchange(self._pooled("gradients of pooled vectors", backward=True), gradients)
        pooled = self._exchange(self._row_wise("gradients of partial sums", "all_gather"), pooled)
        for rank in self.ranks:
            operation = self._lookup_operation("lookup backward and update", rank, backward=True)
            self._on(LOOKUP, rank, [operation], [pooled[rank]])

    def _reduce_replicated(self, gradients: dict[int, int]) -> list[dict[int, int]]:
        """The gradients of tables, or rows, that every rank has: one all-reduce."""
        if not self.replicated:
            return []
        size = self.replicated * BYTES_OF[self.job.software.gradients]
        return [self._exchange(Exchange("replicated rows", "all_reduce", size), gradients)]

    def _optimize(self, sent: Sequence[dict[int, int]]) -> None:
        """Weights and state read and written, gradients read."""
        parameters = self.job.architecture.dense_parameters
        state = self.job.placement.optimizer.numbers_a_weight
        numbers = (parameters * (2 + state), parameters * (1 + state))
        update = moved("optimizer", OperatorClass.OPTIMIZER, numbers, "fp32", 2 * parameters * (1 + 2 * state))
        for rank in self.ranks:
            self._on(COMPUTE, rank, [update], sorted({ends[rank] for ends in sent}))
