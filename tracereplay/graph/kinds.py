"""The kinds of nodes and edges, and the table of reasons from which the docs page is drawn."""

from dataclasses import dataclass
from enum import IntEnum


class NodeKind(IntEnum):
    """What a task is."""

    HOST = 0  # a piece of a host thread: the self time of its innermost event, or a gap
    DEVICE = 1  # a kernel, copy or memory set
    ARRIVAL = 2  # a participant has reached its collective
    RENDEZVOUS = 3  # the last participant has arrived; belongs to no rank
    TRANSFER = 4  # a participant's share of the wire time
    UNSPLIT = 5  # a collective whose other participants are not among the traces: waiting and transfer in one


class EdgeKind(IntEnum):
    """Why one task waits for another: the contract's kinds."""

    THREAD_ORDER = 0
    LAUNCH = 1
    STREAM_ORDER = 2
    EVENT_WAIT = 3
    SYNC = 4
    THREAD_HANDOFF = 5
    COLLECTIVE = 6


class Basis(IntEnum):
    """Whether the file says so or timing and program order do."""

    RECORDED = 0
    INFERRED = 1


@dataclass(frozen=True, slots=True)
class Reason:
    """One row of the table of reasons: why the edge exists and what in the file shows it."""

    kind: EdgeKind
    reason: str
    evidence: str
    rule: str


REASONS = (
    Reason(
        EdgeKind.THREAD_ORDER,
        "a host thread does one thing after another; its gaps are host time",
        "pid and tid of the events",
        "rules/thread_order.py",
    ),
    Reason(
        EdgeKind.LAUNCH,
        "device work starts after the call that launched it",
        "correlation id of call and work",
        "rules/launch.py",
    ),
    Reason(
        EdgeKind.STREAM_ORDER,
        "work of one stream runs in order",
        "device and stream of the work",
        "rules/stream_order.py",
    ),
    Reason(
        EdgeKind.EVENT_WAIT,
        "a stream waits for an event of another stream",
        "a cudaStreamWaitEvent before the launch, the producer from program order and timing",
        "rules/event_wait.py",
    ),
    Reason(
        EdgeKind.SYNC,
        "a host call returns when device work has ended",
        "names of blocking calls, stream from program order and timing; copies that end inside their call",
        "rules/sync.py",
    ),
    Reason(
        EdgeKind.THREAD_HANDOFF,
        "a host thread waits for another: backward thread, communication thread",
        "operators of the autograd engine and c10d calls matched with gloo annotations, resumption from timing",
        "rules/autograd.py, rules/host_collective.py",
    ),
    Reason(
        EdgeKind.COLLECTIVE,
        "no participant of a collective goes on before the last has arrived",
        "process group, order and kind of the collectives on every rank",
        "rules/collective.py",
    ),
)
