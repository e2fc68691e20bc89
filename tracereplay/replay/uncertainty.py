"""What the models' known errors do to an answer: in, a timing and a move; out, timings sampled from the errors.

Errors of one class of work go together: a model that is 10 % short for one kernel of a class is so for its neighbours, so
one number is drawn for each group and sample. Bounds hold nine of ten predictions; between and beyond them errors are taken
for log-normal, with a half of its own on either side.
"""

from collections.abc import Iterator

import numpy as np

from tracereplay.replay.columns import GROUPS
from tracereplay.replay.engine import Timing
from tracereplay.replay.move import Move

SAMPLES = 64
_SEED = 20_220_104  # any: the same answer each time
# Nine of ten values of the normal distribution lie within so many standard deviations.
_DEVIATIONS = 1.6449


def sampled(timing: Timing, move: Move, count: int = SAMPLES) -> Iterator[Timing]:
    """Timings in which every group of errors, and what stands in the slots, is drawn anew."""
    rng = np.random.default_rng(_SEED)
    unsure = np.flatnonzero((move.group >= 0) & ((move.low != 0) | (move.high != 0)))
    group, low, high = move.group[unsure], -move.low[unsure] / _DEVIATIONS, move.high[unsure] / _DEVIATIONS
    others = [other / move.factor for other in move.others]
    for _ in range(count):
        drawn = rng.standard_normal(GROUPS)[group]
        factor = np.ones(timing.dur_ns.size)
        factor[unsure] = np.exp(drawn * np.where(drawn > 0, high, low))
        other = int(rng.integers(len(others) + 1))
        if other:
            factor *= others[other - 1]
        dur_ns = np.rint(timing.dur_ns * factor).astype(np.int64)
        yield Timing(dur_ns, timing.lag_ns, timing.residue_ns, timing.release_ns)
