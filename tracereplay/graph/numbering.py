"""Numbers for what is equal: in, columns of integers; out, a number a distinct row, ordinals within equal ones."""

from itertools import pairwise

import numpy as np

from tracereplay.trace.times import Int64s


def numbered(*columns: Int64s) -> Int64s:
    """One number for each distinct row of columns, from 0 in the order of their values."""
    result = np.zeros(columns[0].size, np.int64)
    for column in columns:
        _, code = np.unique(column, return_inverse=True)
        _, result = np.unique(result * (int(code.max(initial=0)) + 1) + code, return_inverse=True)
    return result.astype(np.int64)


def ordinals(group: Int64s) -> Int64s:
    """How many earlier entries of the same group each entry has."""
    order = np.argsort(group, kind="stable")
    result = np.empty(group.size, np.int64)
    begins = _begins(group[order])
    result[order] = np.arange(group.size) - np.repeat(begins, np.diff(np.append(begins, group.size)))
    return result


def runs(values: Int64s) -> list[slice]:
    """The slices of equal neighbours."""
    begins = _begins(values)
    return [slice(a, b) for a, b in pairwise([*begins.tolist(), values.size])]


def _begins(values: Int64s) -> Int64s:
    """The positions at which runs of equal neighbours begin."""
    changed = np.ones(values.size, np.bool_)
    changed[1:] = values[1:] != values[:-1]
    return np.flatnonzero(changed)
