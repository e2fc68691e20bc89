"""The worker processes of one run: in, an order file; out, their messages in order of arrival, or a CollectError.

Only processes started here are ever signalled, each through its own handle.
"""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO

from tracereplay.collectors.protocol import Kind, Message
from tracereplay.errors import CollectError

# libkineto announces the start and stop of each recording on stderr, whatever its log level.
_NOISE = re.compile(r"USDT:.*|.*profiler_(start|stop)|\s*")
_TAIL_LINES = 20
_TAIL_IN_MESSAGE = 2
_GRACE_S = 3.0
# A killed process is reaped by the kernel within milliseconds of its sockets closing; a loaded machine takes longer.
_KILLED_WITHIN_S = 0.5
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Station:
    """Where a rank is started: words before its command, such as those that enter a namespace, and more environment."""

    enter: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Worker:
    """One running rank. ``tail`` fills with the last lines of its stderr, ``inbox`` is shared by all ranks."""

    rank: int
    process: subprocess.Popen[str]
    inbox: "queue.SimpleQueue[tuple[int, Message | None]]"
    tail: deque[str]
    stderr_reader: threading.Thread


def torch_version(purpose: str) -> str:
    """The installed torch, found without importing it: a launcher itself never needs it.

    Raises:
        CollectError: there is none; ``purpose`` begins the message.
    """
    try:
        return version("torch")
    except PackageNotFoundError as error:
        raise CollectError(f"{purpose} needs torch", hint="pip install 'tracereplay[collect]'") from error


@contextmanager
def running(program: str, order_file: Path, ranks: int, stations: tuple[Station, ...] = ()) -> Iterator[tuple[Worker, ...]]:
    """Processes for all ranks, each ``python -m program ORDER RANK``; none is left when the block ends, however it ends.
    ``stations``: one a rank, where they do not all start here.
    """
    inbox: queue.SimpleQueue[tuple[int, Message | None]] = queue.SimpleQueue()
    workers: list[Worker] = []
    try:
        for rank in range(ranks):
            workers.append(_start(program, order_file, rank, inbox, stations[rank] if stations else Station()))
        yield tuple(workers)
    finally:
        _stop(workers)


def follow(workers: tuple[Worker, ...], on_message: Callable[[Message], None], left: str) -> list[Message]:
    """Pass on what the workers say until all of them have ended well; ``left`` says what a failed run leaves behind.

    Raises:
        CollectError: a rank failed or ended before it was done; the message names the first one.
    """
    messages: list[Message] = []
    open_ranks = {worker.rank for worker in workers}
    while open_ranks:
        rank, message = workers[0].inbox.get()
        if message is None:
            if _ended_badly(workers[rank], messages):
                raise _death_of(_first_to_go(workers, rank), left)
            open_ranks.discard(rank)
        elif message.kind is Kind.FAILED:
            raise _death_of(_first_to_go(workers, rank), left)
        else:
            messages.append(message)
            on_message(message)
    return messages


def _start(
    program: str, order_file: Path, rank: int, inbox: "queue.SimpleQueue[tuple[int, Message | None]]", station: Station
) -> Worker:
    process = subprocess.Popen(
        [*station.enter, sys.executable, "-m", program, str(order_file), str(rank)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=_environment() | dict(station.environment),
        start_new_session=True,  # a Ctrl-C reaches the launcher alone, which then ends its workers in order
    )
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    stderr_reader = threading.Thread(target=_read_stderr, args=(process.stderr, tail), daemon=True)
    stderr_reader.start()
    threading.Thread(target=_read_stdout, args=(process.stdout, rank, inbox), daemon=True).start()
    return Worker(rank, process, inbox, tail, stderr_reader)


def _environment() -> dict[str, str]:
    """The launcher's environment with gloo on the loopback device, which every host has and no firewall blocks."""
    loopback = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
    return loopback | dict(os.environ)


def _read_stdout(stream: IO[str], rank: int, inbox: "queue.SimpleQueue[tuple[int, Message | None]]") -> None:
    with stream:
        for line in stream:
            message = Message.from_line(line)
            if message is not None:
                inbox.put((rank, message))
    inbox.put((rank, None))


def _read_stderr(stream: IO[str], tail: deque[str]) -> None:
    with stream:
        tail.extend(line.strip() for line in stream if not _NOISE.fullmatch(line.rstrip("\n")))


def _ended_badly(worker: Worker, messages: list[Message]) -> bool:
    done = any(row.rank == worker.rank and row.kind is Kind.DONE for row in messages)
    if worker.process.wait() != 0 or not done:
        return True
    worker.stderr_reader.join()
    return False


def _first_to_go(workers: tuple[Worker, ...], told: int) -> Worker:
    """The rank to blame when ``told`` is the first heard of: a rank that a signal killed cannot speak, and the first to
    speak may be a peer that lost its connection to it.
    """
    deadline = time.monotonic() + _KILLED_WITHIN_S
    while time.monotonic() < deadline:
        killed = [worker for worker in workers if (worker.process.poll() or 0) < 0]
        if killed:
            return killed[0]
        time.sleep(_POLL_S)
    return workers[told]


def _death_of(worker: Worker, left: str) -> CollectError:
    """The error that names ``worker``, how it ended and what it said last."""
    try:
        code = worker.process.wait(_GRACE_S)
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    except subprocess.TimeoutExpired:
        how = "failed and does not end"
    worker.stderr_reader.join(_GRACE_S)
    last_words = " | ".join(list(worker.tail)[-_TAIL_IN_MESSAGE:]) or "it wrote nothing to stderr"
    return CollectError(
        f"rank {worker.rank} (pid {worker.process.pid}) {how}: {last_words}",
        hint=f"the other ranks were ended; {left}",
    )


def _stop(workers: list[Worker]) -> None:
    """End what still runs: politely, then not."""
    for worker in workers:
        if worker.process.poll() is None:
            worker.process.terminate()
    for worker in workers:
        try:
            worker.process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()
        worker.stderr_reader.join(_GRACE_S)
