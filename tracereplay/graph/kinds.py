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


class Why(IntEnum):
    """The rows of ``REASONS``: what an edge is there for, finer than its kind."""

    THREAD_ORDER = 0
    LAUNCH = 1
    GRAPH_LAUNCH = 2
    STREAM_ORDER = 3
    EVENT_WAIT = 4
    FULL_DEVICE = 5
    SYNC = 6
    UNRECORDED_SYNC = 7
    AUTOGRAD = 8
    HOST_COLLECTIVE = 9
    THREAD_WAIT = 10
    COLLECTIVE = 11
    MESSAGE = 12
    FULL_QUEUE = 13
    GRAPH_END = 14


@dataclass(frozen=True, slots=True)
class Reason:
    """One row of the table of reasons, in the order of ``Why``: why the edge exists and what in the file shows it."""

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
        "device work starts after the call that launched it; a call that loads a module or stages a copy launches late",
        "correlation id of call and work; work that starts late inside its own call while the device is idle",
        "rules/launch.py, late_launch.py",
    ),
    Reason(
        EdgeKind.LAUNCH,
        "a graph's work starts after the call that launched the graph, each queue of it in order",
        "one correlation id on a call and several pieces of work",
        "rules/launch.py",
    ),
    Reason(
        EdgeKind.STREAM_ORDER,
        "work of one stream runs in order; work that overlaps with the one before waits for its start",
        "device and stream of the work",
        "rules/stream_order.py",
    ),
    Reason(
        EdgeKind.EVENT_WAIT,
        "a stream waits for an event of another stream",
        "a row of cuda_sync; else a start right after the end of other work, with a wait called before the launch or inside "
        "one graph; else program order of waits and launches (slack)",
        "rules/event_wait.py",
    ),
    Reason(
        EdgeKind.EVENT_WAIT,
        "work waits for a device that other work fills, or for an event awaited before the recording",
        "a start right after the end of other work, many times later than launch and stream explain",
        "rules/event_wait.py",
    ),
    Reason(
        EdgeKind.SYNC,
        "a host call returns when device work has ended",
        "a row of cuda_sync; else names of blocking calls, the stream from timing and program order; copies that end inside "
        "their call; calls of any name that last until device work ends",
        "rules/sync.py",
    ),
    Reason(
        EdgeKind.SYNC,
        "a host thread waits for the device in a call that is not recorded",
        "time without events that ends right after the same work at every visit of a place of the program",
        "rules/device_wait.py",
    ),
    Reason(
        EdgeKind.THREAD_HANDOFF,
        "forward and backward thread take turns",
        "operators of the autograd engine while the forward thread is silent",
        "rules/autograd.py",
    ),
    Reason(
        EdgeKind.THREAD_HANDOFF,
        "a thread waits for a collective that a CPU backend runs on threads of its own",
        "c10d calls matched with gloo annotations, resumption from timing",
        "rules/host_collective.py",
    ),
    Reason(
        EdgeKind.THREAD_HANDOFF,
        "a thread waits for what another thread prepares, or for a lock that another thread's call holds",
        "time without events, or a call of unusual length, that ends right after long work of another thread",
        "rules/thread_wait.py",
    ),
    Reason(
        EdgeKind.COLLECTIVE,
        "no participant of a collective goes on before the last has arrived",
        "process group and sequence number; else step, kind and order on every rank",
        "rules/collective.py",
    ),
    Reason(
        EdgeKind.COLLECTIVE,
        "a message ends when both ranks have come to it",
        "source and destination rank, and the order of messages between them",
        "rules/collective.py",
    ),
    Reason(
        EdgeKind.SYNC,
        "a launch waits for room where the queue of launched work is full",
        "launch calls of unusual length that nearly all return at one number of outstanding launches",
        "rules/launch_queue.py",
    ),
    Reason(
        EdgeKind.EVENT_WAIT,
        "work behind a graph waits for all of the graph, a graph on several streams for all that its stream held before",
        "the stream on which the graphs of a thread begin, unless one start contradicts it (slack)",
        "rules/graph_end.py",
    ),
)
