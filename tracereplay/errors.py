"""The error tree: each child names whose fault it is and carries the exit code of the contract.

A message is one line in three parts: what happened, where (file, byte, rank or event), what to do.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of ``docs/reference/contract.md``."""

    OK = 0
    REGRESSION = 1
    USAGE = 2
    INPUT = 3
    NOT_COMPARABLE = 4
    INCONCLUSIVE = 5
    FAULT = 70


class TracereplayError(Exception):
    """Root of every error that a user can cause and mend."""

    exit_code = ExitCode.FAULT

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what = what
        self.where = where
        self.hint = hint
        super().__init__(self.line())

    def line(self) -> str:
        """The whole message as one line: ``where: what; hint``."""
        text = f"{self.where}: {self.what}" if self.where else self.what
        if self.hint:
            text = f"{text}; {self.hint}"
        return " ".join(text.split())


class UsageError(TracereplayError):
    """The call is wrong: an unknown option value, a selector that names nothing valid."""

    exit_code = ExitCode.USAGE


class TraceError(TracereplayError):
    """The input is unreadable, empty or of another kind."""

    exit_code = ExitCode.INPUT


class NotComparableError(TracereplayError):
    """Two inputs cannot be compared."""

    exit_code = ExitCode.NOT_COMPARABLE


class CollectError(TracereplayError):
    """A recording could not be made: a rank died, the disk is full, the folder is taken."""

    exit_code = ExitCode.INPUT


class HardwareError(TracereplayError):
    """A hardware file is unreadable or wrong."""

    exit_code = ExitCode.INPUT
