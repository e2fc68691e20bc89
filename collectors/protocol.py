"""What a worker tells its launcher: in, one fact of a rank; out, one line of JSON on the worker's standard output."""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Self


class Kind(StrEnum):
    """The four things a worker says, in this order; DONE when its result is on disk, FAILED at any time and as the last."""

    READY = "ready"
    STEP = "step"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Message:
    """One line of a worker. ``step`` and what follows are set on STEP only: of a recording the profiler's step, its time and
    its loss, of a calibration ``what`` is measured next.
    """

    kind: Kind
    rank: int
    pid: int
    step: int | None = None
    wall_ns: int | None = None
    loss: float | None = None
    what: str | None = None

    def to_line(self) -> str:
        """The message as a line, with its end."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Self | None:
        """The message of a line, or None where a library wrote the line."""
        try:
            raw = json.loads(line)
            return cls(**{**raw, "kind": Kind(raw["kind"])})
        except (ValueError, TypeError, KeyError):
            return None
