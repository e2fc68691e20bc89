"""Where the ranks of a job stand on a platform: in, the hosts that they ran on and how many ranks a node takes; out, endpoints.

Ranks of one recorded host stay on one node where it takes them all, and ranks of two hosts on two; what a node does not take
goes to further nodes. Ranks that are not here, or whose host nobody recorded, fill what is free, in the order of their numbers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Places:
    """The endpoint of each rank, by its number, on a fabric of so many nodes."""

    endpoint: Mapping[int, int]
    nodes: int


def places(ranks: Iterable[int], host_of: Mapping[int, str | None], each: int) -> Places:
    """The places of ranks, ``each`` to a node at most; ``host_of`` holds those that are known."""
    numbers = sorted(set(ranks))
    known: dict[str, list[int]] = {}
    for rank in numbers:
        host = host_of.get(rank)
        if host is not None:
            known.setdefault(host, []).append(rank)
    taken: dict[int, int] = {}
    nodes = 0
    for members in known.values():
        for position, rank in enumerate(members):
            taken[rank] = (nodes + position // each) * each + position % each
        nodes += -(-len(members) // each)
    used, free = set(taken.values()), 0
    for rank in numbers:
        if rank not in taken:
            while free in used:
                free += 1
            taken[rank] = free
            used.add(free)
    last = max(taken.values(), default=0)
    return Places(taken, max(nodes, last // each + 1))
