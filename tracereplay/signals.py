"""Signals that end a process: how a block of code is left when one comes, or goes on until it is through."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def terminate_as_exit() -> Iterator[None]:
    """Let SIGTERM unwind the stack like Ctrl-C does, so that workers and temporary folders go first."""
    if threading.current_thread() is not threading.main_thread():  # Python sets handlers in the main thread only
        yield
        return

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)  # the shell's code for a process ended by this signal

    previous = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextmanager
def held_back() -> Iterator[None]:
    """Let SIGTERM and Ctrl-C wait until the block is through; the first one that came takes effect then."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    previous = {number: signal.signal(number, lambda n, _frame: came.append(n)) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
