"""Whether ends that lie together do so by accident: in, how probable each coincidence is; out, how probable all of them are.

A stretch of time that is no wait ends anywhere. That the last of ``ends`` ends within it lies no more than ``lag`` before its
own end then has a probability of about ``ends * lag / length``. Over the visits of a place such probabilities are combined
by Fisher's method (Statistical Methods for Research Workers, 1932, section 21.1): minus twice the sum of their logarithms is
chi-squared with two degrees of freedom a visit. A visit without a coincidence counts as 1.
"""

import math
from collections.abc import Sequence

# What is believed: less than this probable by accident, over all the places that were looked at (Bonferroni).
BELIEVED = 0.02


def coincidence(ends: int, lag_ns: int, length_ns: int) -> float:
    """The probability that one of so many ends within a length lies within a lag of the length's own end; at most 1."""
    return min(ends * (lag_ns + 1) / max(length_ns, 1), 1.0)


def by_accident(coincidences: Sequence[float]) -> float:
    """The probability of coincidences at least as improbable as these, taken together."""
    total = -sum(math.log(max(p, 1e-300)) for p in coincidences)
    term, tail = 1.0, 0.0
    for number in range(len(coincidences)):
        tail += term
        term *= total / (number + 1)
    return min(math.exp(-total) * tail, 1.0) if total < 700 else 0.0
