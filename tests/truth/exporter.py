"""What the profiler would have written of a machine's run: in, recorded events; out, one Kineto trace a rank.

Ids of threads, correlation ids and args are those of Kineto's exporter (libkineto output_json.cpp). ``Dialect`` chooses
between what exporters of different years record: ``cuda_sync`` rows, ids of events, args of collectives, whole microseconds.
"""

from dataclasses import dataclass
from decimal import Decimal

from tests.fakes.kineto import TraceFile
from tests.truth.machine import Machine, Recorded

_TIDS = {"main": 1, "backward": 2, "loader": 3}
_BASE_NS = 5_000_000_000


@dataclass(frozen=True)
class Dialect:
    """What the exporter records. ``clocks``: offset in ns and drift in parts per million of each rank's clock."""

    sync_rows: bool = True
    comm_args: bool = True
    record_calls: bool = True
    whole_us: bool = False
    clocks: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Export:
    """The traces, and where each event of the machine stands: (rank, index in ``traceEvents``), None where not recorded."""

    traces: tuple[TraceFile, ...]
    place: tuple[tuple[int, int] | None, ...]


def export(machine: Machine, dialect: Dialect) -> Export:
    """One trace a rank."""
    groups = {name: ranks for name, ranks in machine.groups.items() if not name.startswith("p")}
    ranks = sorted({e.rank for e in machine.events})
    described = groups if dialect.comm_args else None
    # Ranks of one host share its clock.
    hosts = {r: f"node{r if dialect.clocks else 0}" for r in ranks}
    traces = {r: TraceFile(r, len(ranks), "nccl", described, host_name=hosts[r]) for r in ranks}
    place: list[tuple[int, int] | None] = []
    for event in machine.events:
        trace = traces[event.rank]
        if not _is_written(event, dialect):
            place.append(None)
            continue
        place.append((event.rank, len(trace.events)))
        _write(trace, event, machine, dialect)
    return Export(tuple(traces[r] for r in ranks), tuple(place))


def _is_written(event: Recorded, dialect: Dialect) -> bool:
    if event.kind == "cuda_sync":
        return dialect.sync_rows
    return dialect.record_calls or event.name != "cudaEventRecord"


def _write(trace: TraceFile, event: Recorded, machine: Machine, dialect: Dialect) -> None:
    # A row of cuda_sync keeps in ``end`` the number of the call that it describes.
    end = machine.events[event.end].end if event.kind == "cuda_sync" else event.end
    ts, dur = _times(event.rank, event.start, end, dialect)
    if event.kind in ("kernel", "gpu_memcpy"):
        args: dict[str, object] = {"device": 0, "context": 1, "stream": event.stream, "correlation": event.correlation}
        if event.args and dialect.comm_args:
            args |= _comm_args(event, machine)
        trace.event(event.kind, event.name, ts, dur, pid=0, tid=event.stream, args=args)
    elif event.kind == "cuda_sync":
        args = event.args | {"stream": event.stream, "correlation": event.correlation, "device": 0, "context": 1}
        trace.event(event.kind, event.name, ts, dur, pid=0, tid=event.stream, args=args)
    elif event.kind == "cuda_runtime":
        trace.call(event.name, ts, dur, event.correlation, _TIDS[event.thread])
    else:
        trace.event(event.kind, event.name, ts, dur, tid=_TIDS[event.thread])


def _comm_args(event: Recorded, machine: Machine) -> dict[str, object]:
    name, group = str(event.args["name"]), str(event.args["group"])
    ranks = machine.groups[group]
    args = {
        "Collective name": {"all_to_all": "all_to_allv", "all_reduce": "allreduce"}.get(name, name),
        "Process Group Name": group,
        "Process Group Ranks": str(list(ranks)),
        "Group size": len(ranks),
        "In msg nelems": event.args["nelems"],
        "dtype": "Float",
        "Seq": event.args["seq"],
    }
    if name in ("send", "recv"):
        # Messages run in the job's own group; each rank numbers its messages to all peers in one sequence.
        everybody = sorted({r for g in machine.groups.values() for r in g})
        args |= {"Process Group Name": "0", "Process Group Ranks": str(everybody), "Group size": len(everybody)}
        other = {"Dst Rank": ranks[1]} if name == "send" else {"Src Rank": ranks[0]}
        args |= other | {"Seq": _message_number(event, machine)}
    return args


def _message_number(event: Recorded, machine: Machine) -> int:
    earlier = [e for e in machine.events if e.rank == event.rank and e.args.get("name") in ("send", "recv")]
    return 1 + [id(e) for e in sorted(earlier, key=lambda e: e.start)].index(id(event))


def _times(rank: int, start: int, end: int, dialect: Dialect) -> tuple[str, str]:
    first, last = _clock(rank, start, dialect), _clock(rank, end, dialect)
    if dialect.whole_us:
        return str(first // 1000), str(last // 1000 - first // 1000)
    return format(Decimal(first) / 1000, "f"), format(Decimal(last - first) / 1000, "f")


def _clock(rank: int, time: int, dialect: Dialect) -> int:
    offset, drift = dialect.clocks[rank] if dialect.clocks else (0, 0.0)
    return _BASE_NS + offset + round(time * (1 + drift * 1e-6))
