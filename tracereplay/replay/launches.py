"""What launches would do to a job of CPUs on accelerators: in, a graph, a timing, a move; out, between what the step lies.

The replay runs such operators one after the other on the host's thread, each in the device's time. In truth the host launches
and goes on while the device works::

    host    |launch|own|launch|····waits····|own|
    device         |---- one ----|--- two ---|

Where the host waits for results a trace of CPUs does not say. But neither chain is shorter for it: the step takes at least the
host's own time with its launches, and at least the device's, with the transfers that join the ranks; and at most both one
after the other. One launch an operator, shared by its pieces.
"""

from dataclasses import dataclass

import numpy as np

from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.graph.numbering import numbered
from tracereplay.hardware.operators.work import CLASSES
from tracereplay.replay.columns import Floats
from tracereplay.replay.engine import Timing, replay
from tracereplay.replay.move import Move
from tracereplay.replay.steps import step_times, summarise
from tracereplay.trace.times import Int64s


@dataclass(frozen=True, slots=True)
class LaunchBounds:
    """Steps in ns: of the host alone with its launches, of the device alone, of launching and running one after the other."""

    host_ns: int
    device_ns: int
    serial_ns: int

    @property
    def low_ns(self) -> int:
        """No step is shorter: that of the longer chain."""
        return max(self.host_ns, self.device_ns)


def launch_bounds(graph: DependencyGraph, timing: Timing, move: Move) -> LaunchBounds | None:
    """The bounds under a timing, with the launch at the low end of its range for the least and at the high end for the most;
    None where a job's operators do not come to accelerators from CPUs.
    """
    if move.launch is None:
        return None
    nodes = graph.nodes
    host = nodes.kind == NodeKind.HOST
    on_device = host & (move.group >= 0) & (move.group < len(CLASSES))
    shares = _shares(graph, np.flatnonzero(on_device))
    quick, slow = (np.rint(shares * launch_ns).astype(np.int64) for launch_ns in (move.launch.low_ns, move.launch.high_ns))
    dur_ns = timing.dur_ns
    none, no_lag = np.zeros_like(timing.residue_ns), np.zeros_like(timing.lag_ns)
    return LaunchBounds(
        host_ns=_step_ns(
            graph, Timing(np.where(on_device, quick, dur_ns), timing.lag_ns, timing.residue_ns, timing.release_ns)
        ),
        device_ns=_step_ns(graph, Timing(np.where(host & ~on_device, 0, dur_ns), no_lag, none, timing.release_ns)),
        serial_ns=_step_ns(graph, Timing(dur_ns + slow, timing.lag_ns, timing.residue_ns, timing.release_ns)),
    )


def _shares(graph: DependencyGraph, nodes: Int64s) -> Floats:
    """Of each task the part of an operator's launch that it pays: pieces of one operator pay one together."""
    shares = np.zeros(len(graph))
    if nodes.size:
        operator = numbered(graph.nodes.rank[nodes], graph.nodes.row[nodes])
        shares[nodes] = 1 / np.bincount(operator)[operator]
    return shares


def _step_ns(graph: DependencyGraph, timing: Timing) -> int:
    return summarise(graph, step_times(graph, replay(graph, timing))).mean_ns
