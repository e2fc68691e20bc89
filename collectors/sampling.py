"""How often something is timed and what the times say: in, a clock that runs blocks of calls; out, median and spread.

Knows no torch: the same plan serves a host's clock, a GPU's events and a collective that all ranks time together.
"""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

# A block shorter than this would show the clock and the loop around the calls.
_BLOCK_NS = 1_000_000
_MOST_CALLS = 10_000
# A median needs three.
_FEWEST, _MOST = 3, 200
# The shortest of so many tells how long a call takes where other processes get in between.
_TRIALS = 3


@dataclass(frozen=True, slots=True)
class Timing:
    """Time of one call (ns), from each block of ``calls`` calls."""

    times_ns: tuple[float, ...]
    calls: int

    @property
    def median_ns(self) -> float:
        """The middle one; the mean of the middle two where there are as many below as above."""
        return statistics.median(self.times_ns)

    @property
    def spread_ns(self) -> float:
        """What the middle half spans: third quartile minus first (0 for a single time)."""
        if len(self.times_ns) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times_ns, n=4, method="inclusive")
        return high - low


def sample(block_ns: Callable[[int], float], budget_s: float) -> Timing:
    """Time blocks of calls for about ``budget_s`` seconds; ``block_ns(calls)`` runs a block and gives its time.

    How many calls and blocks there are follows from the times alone: ranks that are given the same times do the same.
    """
    budget_ns = budget_s * 1e9
    spent = block_ns(1)  # the first call pays for code and memory that the others find in place
    trials = [block_ns(1)]
    while len(trials) < _TRIALS and spent + sum(trials) < budget_ns / 4:
        trials.append(block_ns(1))
    one = max(min(trials), 1.0)
    calls = min(max(math.ceil(_BLOCK_NS / one), 1), _MOST_CALLS)
    blocks = min(max(int((budget_ns - spent - sum(trials)) / (one * calls)), _FEWEST), _MOST)
    times: list[float] = []
    while len(times) < blocks and (len(times) < _FEWEST or calls * sum(times) < budget_ns):
        times.append(block_ns(calls) / calls)
    return Timing(tuple(times), calls)
