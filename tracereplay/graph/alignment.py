"""Which entries of several sequences are the same: in, labels and signatures; out, which of its label each entry is.

Two sequences are aligned in order, entries of one label only. The alignment is the longest common subsequence (Wagner,
Fischer: The String-to-String Correction Problem, JACM 21(1), 1974) in which a pair counts 2 where the signatures are equal
too, else 1:

    one       A   B   A'  C
    other     A   B   A   A'  C          the second A is extra: pairing A' with it would lose a point

Several sequences are merged one after the other, the most common first, into one that holds the entries of all (progressive
alignment as in Feng, Doolittle: Progressive sequence alignment, J. Mol. Evol. 25, 1987).
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from tracereplay.graph.numbering import ordinals
from tracereplay.trace.times import Int64s

# A table of scores beyond this (80 MB) is not made.
MOST_CELLS = 20_000_000

_Content = tuple[bytes, bytes]


def merge(sequences: Sequence[tuple[Int64s, Int64s]]) -> list[Int64s | None]:
    """For each sequence of (labels, signatures), which of its label each entry is in the merged sequence; None for one that
    is too long to be aligned. Sequences are taken by how often their labels occur, then by length, then by content: their
    order does not matter.
    """
    contents: list[_Content] = [(label.tobytes(), signature.tobytes()) for label, signature in sequences]
    same_labels, same = Counter(c[0] for c in contents), Counter(contents)
    distinct = sorted(same, key=lambda c: (-same_labels[c[0]], -len(c[0]), c[0], -same[c], c[1]))
    merged, signature, identity = (np.empty(0, np.int64) for _ in range(3))
    found: dict[_Content, Int64s] = {}
    for content in distinct:
        own, own_signature = sequences[contents.index(content)]
        partner = align(merged, own, signature, own_signature)
        if partner is None:
            continue
        extra = np.flatnonzero(partner < 0)
        fresh = np.arange(identity.size, identity.size + extra.size)
        found[content] = np.empty(own.size, np.int64)
        found[content][partner >= 0] = identity[partner[partner >= 0]]
        found[content][extra] = fresh
        # Extra entries stand behind the entry of the merged sequence that the entry before them is paired with.
        behind = np.maximum.accumulate(partner)[extra] + 1
        merged, signature, identity = (
            np.insert(old, behind, new)
            for old, new in ((merged, own[extra]), (signature, own_signature[extra]), (identity, fresh))
        )
    which = np.empty(identity.size, np.int64)
    which[identity] = ordinals(merged)
    return [which[found[c]] if c in found else None for c in contents]


def align(one: Int64s, other: Int64s, one_signature: Int64s, other_signature: Int64s) -> Int64s | None:
    """For each entry of ``other`` the position of its partner in ``one``, -1 without one; None where the part in which they
    differ is too long. Quadratic in that part.
    """
    head = _common(one, other, one_signature, other_signature)
    tail = _common(one[head:][::-1], other[head:][::-1], one_signature[head:][::-1], other_signature[head:][::-1])
    inner, theirs = one.size - head - tail, other.size - head - tail
    if (inner + 1) * (theirs + 1) > MOST_CELLS:
        return None
    partner = np.empty(other.size, np.int64)
    partner[:head] = np.arange(head)
    partner[other.size - tail :] = np.arange(one.size - tail, one.size)
    a, b = slice(head, head + inner), slice(head, head + theirs)
    found = _pair(one[a], other[b], one_signature[a], other_signature[b])
    partner[b] = np.where(found >= 0, found + head, -1)
    return partner


def _common(a: Int64s, b: Int64s, a_signature: Int64s, b_signature: Int64s) -> int:
    """How many entries two sequences begin with in common."""
    shorter = min(a.size, b.size)
    differ = (a[:shorter] != b[:shorter]) | (a_signature[:shorter] != b_signature[:shorter])
    return int(np.argmax(differ)) if differ.any() else shorter


@numba.njit(cache=True)
def _pair(a: Any, b: Any, a_signature: Any, b_signature: Any) -> Any:  # numba infers the types
    n, m = a.shape[0], b.shape[0]
    # score[i, j] is the best for what follows a[i] and b[j], so that the walk below goes forward and ties pair the first.
    score = np.zeros((n + 1, m + 1), np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            best = max(score[i + 1, j], score[i, j + 1])
            if a[i] == b[j]:
                best = max(best, score[i + 1, j + 1] + (2 if a_signature[i] == b_signature[j] else 1))
            score[i, j] = best
    partner = np.full(m, -1, np.int64)
    i, j = 0, 0
    while i < n and j < m:
        if a[i] == b[j] and score[i, j] == score[i + 1, j + 1] + (2 if a_signature[i] == b_signature[j] else 1):
            partner[j] = i
            i += 1
            j += 1
        elif score[i, j] == score[i + 1, j]:
            i += 1
        else:
            j += 1
    return partner
