"""What a worker process owes its launcher: it ends when the launcher does, and says what happens to it, a line each."""

import ctypes
import os
import signal
import sys
from types import TracebackType

from tracereplay.collectors.protocol import Kind, Message

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_EXIT_ORPHANED = 1


def tell(message: Message) -> None:
    """Say something on standard output, at once."""
    sys.stdout.write(message.to_line())
    sys.stdout.flush()


def tell_failures(rank: int) -> None:
    """Say at once that this rank failed: its peers fail on the closed sockets and may exit before it does."""

    def say(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sys.__excepthook__(kind, error, trace)
        tell(Message(Kind.FAILED, rank, os.getpid()))

    sys.excepthook = say


def die_with_the_launcher(launcher_pid: int) -> None:
    """Have the kernel end this process when its launcher ends, however that ends."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != launcher_pid:  # it died before the call above
        sys.exit(_EXIT_ORPHANED)
