"""In which orders rings and chains pass the endpoints of one node: in, a fabric and its members; out, orders over links of
their own.

Where a switch joins the members, or nothing but the host does, one order is as good as any: theirs. Where links join them in
pairs, as in a hybrid cube mesh, as many orders are laid as there are links for: a ring uses up one link, one way, between
neighbours; a chain uses it both ways. Eight V100 of a DGX-1 have six links each, hence six rings.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from tracereplay.hardware.collectives.fabric import Fabric

Wires = npt.NDArray[np.int64]

# How many partial orders are looked at before fewer rings have to do; eight members need some hundreds.
_MOST_LOOKED_AT = 20_000


def orders(fabric: Fabric, members: Sequence[int], *, closed: bool) -> tuple[tuple[int, ...], ...]:
    """Orders of the members: rings if ``closed`` (the last sends to the first), else chains."""
    whole = tuple(members)
    if len(whole) == 1 or fabric.is_switched(whole):
        return (whole,)
    wires = _wires(fabric, whole)
    found = _laid(wires.tobytes(), len(whole), closed=closed)
    return tuple(tuple(whole[i] for i in order) for order in found) or (whole,)


def _wires(fabric: Fabric, members: Sequence[int]) -> Wires:
    """How many links lead from each member to each, as multiples of the fewest that join any two."""
    counts = np.zeros((len(members), len(members)))
    for a, b in combinations(range(len(members)), 2):
        counts[a, b] = counts[b, a] = fabric.neighbours(members[a], members[b])
    some = counts[counts > 0]
    return np.rint(counts / some.min()).astype(np.int64) if some.size else counts.astype(np.int64)


@lru_cache(maxsize=256)
def _laid(content: bytes, members: int, *, closed: bool) -> list[list[int]]:
    """As many orders as links allow, none of them using a link that another one uses. Fabrics that differ in their rates alone
    are wired alike: the search is made once.
    """
    wires = np.frombuffer(content, np.int64).reshape(members, members)
    most = int(wires.sum(axis=0).min()) if closed else int(wires.sum()) // 2 // (members - 1)
    for count in range(most, 0, -1):
        found = _lay(wires.copy(), count, closed=closed, budget=[_MOST_LOOKED_AT])
        if found is not None:
            return found
    return []


def _lay(wires: Wires, count: int, *, closed: bool, budget: list[int]) -> list[list[int]] | None:
    """``count`` orders over the links that are left; None where there are none, or the search took too long."""
    if count == 0:
        return []
    if closed and min(wires.sum(axis=0).min(), wires.sum(axis=1).min()) < count:
        return None
    for start in [0] if closed else range(len(wires)):
        for order in _through(wires, [start], closed=closed, budget=budget):
            _use(wires, order, closed, 1)
            rest = _lay(wires, count - 1, closed=closed, budget=budget)
            _use(wires, order, closed, -1)
            if rest is not None:
                return [order, *rest]
    return None


def _use(wires: Wires, order: list[int], closed: bool, links: int) -> None:
    """Take links along an order, or with -1 give them back."""
    if closed:
        np.subtract.at(wires, (order, order[1:] + order[:1]), links)
    else:
        np.subtract.at(wires, (order[:-1], order[1:]), links)
        np.subtract.at(wires, (order[1:], order[:-1]), links)


def _through(wires: Wires, begun: list[int], *, closed: bool, budget: list[int]) -> Iterator[list[int]]:
    """Every order that goes on from the one begun, over links that are left."""
    if budget[0] <= 0:
        return
    budget[0] -= 1
    if len(begun) == len(wires):
        if not closed or wires[begun[-1], begun[0]] > 0:
            yield begun
        return
    for following in np.flatnonzero(wires[begun[-1]]).tolist():
        if following not in begun:
            yield from _through(wires, [*begun, following], closed=closed, budget=budget)
