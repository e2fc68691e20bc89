"""A Kineto JSON document built event by event: in, events in microseconds; out, a trace file, plain or gzip."""

import gzip
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

import msgspec

HOST_PID = 100
MAIN = 1

# Numbers are written as plain decimal text; a text is written as it stands, so that a test can write any JSON there.
Microseconds = int | float | Decimal | str


class TraceFile:
    """One rank's trace. Every event method returns the trace, so that calls can be chained."""

    def __init__(
        self,
        rank: int | None = None,
        world_size: int | None = None,
        backend: str | None = None,
        groups: Mapping[str, Sequence[int]] | None = None,
        *,
        host_name: str | None = None,
        base_ns: int | None = None,
    ) -> None:
        self.rank = rank
        self.events: list[dict[str, Any]] = []
        info = _present(rank=rank, world_size=world_size, backend=backend)
        if groups is not None:
            info["pg_config"] = [{"pg_name": n, "pg_size": len(ranks), "ranks": list(ranks)} for n, ranks in groups.items()]
        self.header = _present(distributedInfo=info or None, host_name=host_name, baseTimeNanoseconds=base_ns)

    def event(
        self,
        category: str,
        name: str,
        ts: Microseconds | None,
        dur: Microseconds | None,
        *,
        pid: int | str = HOST_PID,
        tid: int | str = MAIN,
        args: Mapping[str, Any] | None = None,
    ) -> Self:
        """Any complete event; a time that is None is left out."""
        row = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid}
        self.events.append(row | _present(ts=_number(ts), dur=_number(dur), args=None if args is None else dict(args)))
        return self

    def op(self, name: str, ts: Microseconds, dur: Microseconds, tid: int = MAIN, **args: Any) -> Self:
        """An operator on a host thread."""
        return self.event("cpu_op", name, ts, dur, tid=tid, args=args or None)

    def annotation(self, name: str, ts: Microseconds, dur: Microseconds, tid: int = MAIN, **args: Any) -> Self:
        """A ``record_function`` range on a host thread."""
        return self.event("user_annotation", name, ts, dur, tid=tid, args=args or None)

    def step(self, number: int, ts: Microseconds, dur: Microseconds | None, tid: int = MAIN) -> Self:
        """The profiler's mark of a step; without ``dur`` the mark is not closed."""
        return self.event("user_annotation", f"ProfilerStep#{number}", ts, dur, tid=tid)

    def call(self, name: str, ts: Microseconds, dur: Microseconds, correlation: int | None = None, tid: int = MAIN) -> Self:
        """A runtime call such as ``cudaLaunchKernel``."""
        return self.event("cuda_runtime", name, ts, dur, tid=tid, args=_present(correlation=correlation))

    def kernel(
        self,
        name: str,
        ts: Microseconds,
        dur: Microseconds,
        stream: int,
        correlation: int | None = None,
        *,
        device: int = 0,
        **args: Any,
    ) -> Self:
        """A kernel on a stream."""
        return self._on_device("kernel", name, ts, dur, _present(device=device, stream=stream, correlation=correlation) | args)

    def memcpy(
        self,
        name: str,
        ts: Microseconds,
        dur: Microseconds,
        stream: int,
        correlation: int | None = None,
        *,
        device: int = 0,
        **args: Any,
    ) -> Self:
        """A copy on a stream, such as ``Memcpy HtoD (Pageable -> Device)``."""
        found = _present(device=device, stream=stream, correlation=correlation) | args
        return self._on_device("gpu_memcpy", name, ts, dur, found)

    def memset(
        self, name: str, ts: Microseconds, dur: Microseconds, stream: int, correlation: int | None = None, *, device: int = 0
    ) -> Self:
        """A memory set on a stream."""
        found = _present(device=device, stream=stream, correlation=correlation)
        return self._on_device("gpu_memset", name, ts, dur, found)

    def gloo(self, name: str, ts: Microseconds, dur: Microseconds, tid: int, **args: Any) -> Self:
        """A collective on a communication thread of gloo, such as ``gloo:all_to_all``."""
        return self.event("user_annotation", name, ts, dur, tid=tid, args=args or None)

    def encode(self) -> bytes:
        """The document as JSON text."""
        return msgspec.json.encode(self.header | {"traceEvents": self.events})

    def write(self, folder: Path, name: str | None = None) -> Path:
        """Write ``rank<R>.json`` or ``name`` into a folder; a name that ends in ``.gz`` is compressed."""
        path = folder / (name or f"rank{self.rank or 0}.json")
        text = self.encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
        return path

    def _on_device(self, category: str, name: str, ts: Microseconds, dur: Microseconds, args: dict[str, Any]) -> Self:
        return self.event(category, name, ts, dur, pid=args["device"], tid=args["stream"], args=args)


def _number(value: Microseconds | None) -> msgspec.Raw | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else format(Decimal(str(value)), "f")
    return msgspec.Raw(text.encode())


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
