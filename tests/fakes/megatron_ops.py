"""A pipeline-parallel job from a table of its operations: in, one row an operation; out, a DependencyGraph and its scenarios.

The table (``ground_truth/straggler`` of the corpus) has neither threads nor launches nor streams, only what each rank ran
and when, in seconds since its step began. What it shows of the program is all that the graph says:

- A rank runs one thing after another (``stream_order``): each operation begins when the one before has ended. Operations
  that begin at the very same time were issued together (a send fused with the opposite receive).
- A send and the peer's receive of the same number, gradient and parameter collectives over the data-parallel ranks of a
  stage, the embedding's gradients between the first and the last stage, and the gradient norm over all ranks go on when
  the last participant has arrived (``collective``), as in ``graph/rules/collective.py``.
- What remains between an operation's causes and its start is launch delay: the median of its operation and stage is a lag
  on its edges, the rest its residue.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from tests.fakes.graphs import Edge, Task, graph_by_hand
from tracereplay.graph.kinds import EdgeKind, NodeKind
from tracereplay.graph.model import NO_RELEASE, DependencyGraph, StepSpan
from tracereplay.replay.engine import Timing, recorded_timing
from tracereplay.trace.times import Int64s

# Operations that the job's own tool calls communication: their typical value is the median, all others' the mean.
COMMUNICATION = frozenset(
    (
        "forward-send",
        "forward-recv",
        "backward-send",
        "backward-recv",
        "params-all-gather",
        "grads-reduce-scatter",
        "separate-grads-all-reduce",
        "layernorm-grads-all-reduce",
        "embedding-grads-all-reduce",
        "optimizer-clip-main-grad",
    )
)
_OVER_DATA_RANKS = ("params-all-gather", "grads-reduce-scatter", "separate-grads-all-reduce")


@dataclass(frozen=True, slots=True)
class Op:
    """One operation of one rank in one step; times in ns since the step began."""

    step: int
    rank: int
    dp_rank: int
    stage: int
    name: str
    seq: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class OpsJob:
    """The graph of a job's operations; ``last`` is the node with which each one ends: its transfer where it meets others."""

    ops: tuple[Op, ...]
    graph: DependencyGraph
    last: Int64s


def read_ops(path: Path) -> tuple[Op, ...]:
    """The operations in order of step, rank and start."""
    table = pq.read_table(path).to_pydict()
    names = ("step", "rank", "dp_rank", "stage", "optype", "seq_id", "start_ts", "duration")
    ops = [
        Op(step, rank, dp_rank, stage, name, seq, round(start * 1e9), round((start + dur) * 1e9))
        for step, rank, dp_rank, stage, name, seq, start, dur in zip(*(table[n] for n in names), strict=True)
    ]
    return tuple(sorted(ops, key=lambda o: (o.step, o.rank, o.start, o.name, o.seq)))


def build_ops(ops: tuple[Op, ...]) -> OpsJob:
    """The graph of all steps; each begins at 0 and knows nothing of the others."""
    meetings = _meetings(ops)
    met = {i: number for number, members in enumerate(meetings) for i in members}
    width = np.array([2 if i in met else 1 for i in range(len(ops))])
    last = np.cumsum(width) - 1
    first = last - width + 1
    latest = [max(ops[i].start for i in members) for members in meetings]
    causes = _causes(ops)
    delays = [op.start - max((ops[c].end for c in causes[i]), default=op.start) for i, op in enumerate(ops)]
    lags = _typical(ops, delays)
    steps = {number: index for index, number in enumerate(sorted({op.step for op in ops}))}
    tasks: list[Task] = []
    edges: list[Edge] = []
    for i, op in enumerate(ops):
        residue, release = (delays[i] - lags[i], NO_RELEASE) if causes[i] else (0, op.start)
        head = Task(op.start, op.end - op.start, NodeKind.DEVICE, op.rank, steps[op.step], residue, release)
        edges += [Edge(int(last[c]), int(first[i]), lags[i], kind=EdgeKind.STREAM_ORDER) for c in causes[i]]
        if i not in met:
            tasks.append(head)
            continue
        share = max(op.end - latest[met[i]], 0)
        meeting = int(last[-1]) + 1 + met[i]
        tasks.append(replace(head, dur=0, kind=NodeKind.ARRIVAL))
        tasks.append(Task(op.end - share, share, NodeKind.TRANSFER, op.rank, steps[op.step]))
        edges.append(Edge(int(first[i]), meeting, kind=EdgeKind.COLLECTIVE))
        edges.append(Edge(meeting, int(last[i]), kind=EdgeKind.COLLECTIVE))
    tasks += [Task(time, 0, NodeKind.RENDEZVOUS, rank=-1, step=-1) for time in latest]
    return OpsJob(ops, graph_by_hand(tasks, edges, _steps(ops)), last)


def _meetings(ops: tuple[Op, ...]) -> list[list[int]]:
    """The operations that meet each other."""
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    last_stage = max(op.stage for op in ops)
    for i, op in enumerate(ops):
        key = _meeting(op, last_stage)
        if key is not None:
            groups[key].append(i)
    return list(groups.values())


def _meeting(op: Op, last_stage: int) -> tuple[object, ...] | None:
    """Operations with the same key meet; None for one that meets nobody."""
    way, _, side = op.name.partition("-")
    if side in ("send", "recv"):
        towards = 1 if way == "forward" else -1
        sender = op.stage if side == "send" else op.stage - towards
        return (op.step, op.dp_rank, way, sender, op.seq)
    if op.name in _OVER_DATA_RANKS:
        return (op.step, op.name, op.stage, op.seq)
    if op.name == "embedding-grads-all-reduce" and op.stage in (0, last_stage):
        return (op.step, op.name, op.dp_rank, op.seq)
    if op.name == "optimizer-clip-main-grad":
        return (op.step, op.name, op.seq)
    return None


def _causes(ops: tuple[Op, ...]) -> list[list[int]]:
    """For each operation those that it follows on its rank: all that were issued together just before it."""
    causes: list[list[int]] = []
    before: list[int] = []
    together: list[int] = []
    for i, op in enumerate(ops):
        if i and (ops[i - 1].step, ops[i - 1].rank) != (op.step, op.rank):
            before, together = [], []
        elif together and ops[together[0]].start != op.start:
            before, together = together, []
        causes.append(before)
        together = [*together, i]
    return causes


def _typical(ops: tuple[Op, ...], delays: list[int]) -> list[int]:
    """The median delay of each operation's name and stage, never negative."""
    populations: dict[tuple[str, int], list[int]] = defaultdict(list)
    for op, delay in zip(ops, delays, strict=True):
        populations[op.name, op.stage].append(delay)
    medians = {key: max(round(float(np.median(values))), 0) for key, values in populations.items()}
    return [medians[op.name, op.stage] for op in ops]


def _steps(ops: tuple[Op, ...]) -> list[StepSpan]:
    """One span a rank and step, from the step's common begin to the end of the rank's last operation."""
    ends: dict[tuple[int, int], int] = defaultdict(int)
    for op in ops:
        ends[op.rank, op.step] = max(ends[op.rank, op.step], op.end)
    return [StepSpan(rank, step, -1, -1, 0, end, end, 0) for (rank, step), end in sorted(ends.items())]


def without_residues(job: OpsJob) -> Timing:
    """Every launch delay the typical one of its operation and stage."""
    recorded = recorded_timing(job.graph)
    return replace(recorded, residue_ns=np.zeros_like(recorded.residue_ns))


def without_delays(job: OpsJob) -> Timing:
    """No launch delay: everything starts when its causes have happened, the first operation of a rank with the step."""
    timing = without_residues(job)
    release_ns = np.where(timing.release_ns == NO_RELEASE, NO_RELEASE, 0)
    return replace(timing, lag_ns=np.zeros_like(timing.lag_ns), release_ns=release_ns)


def without_stragglers(job: OpsJob) -> Timing:
    """No launch delay, and each operation takes what its kind takes over all data ranks, stages and steps: the mean of
    computation, the median of communication (of the transfer, where it meets others).
    """
    timing = without_delays(job)
    dur_ns = timing.dur_ns.copy()
    names = np.array([op.name for op in job.ops])
    for name in np.unique(names):
        nodes = job.last[names == name]
        typical = np.median(dur_ns[nodes]) if name in COMMUNICATION else np.mean(dur_ns[nodes])
        dur_ns[nodes] = round(float(typical))
    return replace(timing, dur_ns=dur_ns)
