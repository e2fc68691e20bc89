"""Uneven all-to-alls: in, what a collective's participants recorded; out, the bytes from each rank to each, whole.

What a rank sends is its own record, else what those here say that they received from it. The rest is a guess that favours
nobody: of a rank that is here its other bytes in equal parts, of one that is not the mean of what is recorded between two.
"""

import numpy as np

from tracereplay.graph.model import Collective, DependencyGraph
from tracereplay.replay.columns import Floats


def splits_between(graph: DependencyGraph, c: Collective, members: tuple[int, ...]) -> Floats | None:
    """Bytes from the rank of each row to that of each column, in the order of ``members``; None for a collective whose splits
    are even, or not recorded.
    """
    if not c.is_uneven or len(members) != len(c.ranks) + len(c.absent):
        return None
    matrix = np.full((len(members), len(members)), np.nan)
    place = [members.index(graph.rank_numbers[rank] or 0) for rank in c.ranks]
    for at, received in zip(place, c.received, strict=True):
        if received is not None:
            matrix[:, at] = received
    for at, sent in zip(place, c.sent, strict=True):
        if sent is not None:
            matrix[at] = sent
    mean = float(np.nanmean(matrix[~np.eye(len(members), dtype=bool)])) if np.isfinite(matrix).any() else 0.0
    for at in range(len(members)):
        unknown = np.isnan(matrix[at])
        if unknown.any():
            whole = dict(zip(place, c.own_bytes, strict=False)).get(at)
            left = None if whole is None else whole - float(np.nansum(matrix[at]))
            matrix[at, unknown] = mean if left is None else max(left, 0.0) / np.count_nonzero(unknown)
    return matrix
