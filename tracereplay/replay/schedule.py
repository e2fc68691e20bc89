"""The result of a replay: when every task starts and ends, and which edge made it wait."""

from dataclasses import dataclass

from tracereplay.trace.times import Int64s

RELEASED = -1


@dataclass(frozen=True, slots=True)
class Schedule:
    """Start and end of every node in ns, and ``waited_for``: the index of the edge that decided its start, -1 for a
    task that was pinned to its recorded start.
    """

    start_ns: Int64s
    end_ns: Int64s
    waited_for: Int64s
