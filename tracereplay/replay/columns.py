"""What a move makes of a job's tasks, node by node: in, old and new times; out, factors, bounds, groups of errors."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracereplay.hardware.operators.work import CLASSES
from tracereplay.trace.times import Int64s

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Groups of errors that go together: classes of operators, then transfers of each level, then the host.
SCALE_UP, SCALE_OUT, HOST, GROUPS = len(CLASSES), len(CLASSES) + 1, len(CLASSES) + 2, len(CLASSES) + 3


@dataclass(frozen=True, slots=True)
class Times:
    """Times of some nodes in ns: as recorded, as predicted, and the bounds of the prediction."""

    before_ns: Floats
    ns: Floats
    low_ns: Floats
    high_ns: Floats

    def where(self, mask: Mask) -> "Times":
        """The rows of a mask."""
        return Times(self.before_ns[mask], self.ns[mask], self.low_ns[mask], self.high_ns[mask])


@dataclass(slots=True)
class Columns:
    """The columns of a ``Move`` while they are made: see there."""

    factor: Floats
    low: Floats
    high: Floats
    group: Int64s
    kept: Mask

    @staticmethod
    def of(count: int) -> "Columns":
        """Columns of so many nodes that nothing moves yet."""
        ones, zeros = np.ones(count), np.zeros(count)
        return Columns(ones, zeros, zeros.copy(), np.full(count, -1, np.int64), np.zeros(count, np.bool_))

    def put(self, nodes: Int64s, group: Int64s | int, times: "Times") -> None:
        """New times of nodes."""
        positive = times.before_ns > 0
        nodes, times = nodes[positive], times.where(positive)
        self.factor[nodes] = times.ns / times.before_ns
        safe = np.maximum(times.ns, 1.0)
        self.low[nodes] = np.log(np.clip(times.low_ns, 1e-3, None) / safe)
        self.high[nodes] = np.log(np.maximum(times.high_ns, 1e-3) / safe)
        self.group[nodes] = group[positive] if isinstance(group, np.ndarray) else group

    def rows(self, nodes: Int64s) -> "Columns":
        """The columns of some nodes alone."""
        return Columns(self.factor[nodes], self.low[nodes], self.high[nodes], self.group[nodes], self.kept[nodes])

    def take(self, nodes: Int64s, rows: "Columns") -> None:
        """Take what ``rows`` of these nodes gave."""
        self.factor[nodes], self.low[nodes], self.high[nodes] = rows.factor, rows.low, rows.high
        self.group[nodes], self.kept[nodes] = rows.group, rows.kept

    def copied(self) -> "Columns":
        """The same columns, to be written over."""
        return self.rows(np.arange(self.factor.size))
