"""How an algorithm moves the bytes: in, a fabric, a collective, its ranks; out, phases that follow each other.

A phase is a set of transfers that run side by side, again and again in equal rounds: what it puts on every link is known at
once, and its bytes take the time of its fullest link. All is per byte of *size*, which means the same as in nccl-tests:

============== ==========================================
all_reduce     the buffer of a rank
all_gather     what a rank has in the end
reduce_scatter what a rank has in the beginning
all_to_all     what a rank sends, itself included
broadcast      the buffer
send_recv      the message
============== ==========================================

With p ranks of which g are in a node, and bytes for a size of 1 between neighbours in each round:

============ ============== =================================================================================================
ring         all_reduce     2 (p - 1) rounds of 1/p; all_gather, reduce_scatter: (p - 1) rounds; broadcast: the buffer in chunks
tree         all_reduce     up and down a chain in every node and two binary trees over the nodes, each with half, in chunks
direct       all            everybody to everybody in one round (two for all_reduce)
hierarchical all_reduce     reduce_scatter in the node, all_reduce of 1/g on every rail, all_gather in the node
hierarchical all_to_all     in the node to the one on the receiver's rail, then over the rails: (p - g)/p of a rank's bytes
nvls         all_reduce     the switch adds up: every rank sends and receives 1 + 1/p
============ ============== =================================================================================================
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise, permutations, product
from typing import Literal

import numpy as np
import numpy.typing as npt

from tracereplay.errors import UsageError
from tracereplay.hardware.collectives.fabric import Fabric, Floats
from tracereplay.hardware.collectives.library import Hardware
from tracereplay.hardware.collectives.orders import orders
from tracereplay.hardware.collectives.paths import Route

Kind = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv"]
Ints = npt.NDArray[np.int64]
_WORST_FIRST: tuple[Hardware, ...] = ("net", "pci", "nvlink")
KINDS: tuple[Kind, ...] = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv")

Flow = tuple[int, int, float, int | None]  # from, to, bytes per byte of size, over which rail (None: as routed)
Matrix = Floats  # bytes per byte of size that each rank (row) sends to each (column)


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps that a chunk passes one after another: how many, over what hardware, the latency of the longest route among them
    (ns; likely, fast, slow), None where unknown.
    """

    count: float
    hardware: Hardware
    wire_ns: tuple[float, float, float] | None


@dataclass(frozen=True, slots=True)
class Phase:
    """``loads``: bytes on each one-way link, ``sent``: what the busiest rank sends, both in all rounds together."""

    loads: Floats
    sent: float
    steps: tuple[Steps, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The phases of an algorithm; over how many nodes it runs (those that a scale-up switch joins count as one); ``posts``:
    messages that a network interface posts besides those that ``steps`` count.
    """

    phases: tuple[Phase, ...]
    nodes: int
    posts: int = 0


@dataclass(frozen=True)
class Group:
    """The ranks of a collective, as numbers of a fabric's endpoints."""

    fabric: Fabric
    ranks: tuple[int, ...]

    @cached_property
    def islands(self) -> tuple[tuple[int, ...], ...]:
        """The ranks of each node, or of nodes that a scale-up switch joins."""
        found: dict[int, list[int]] = {}
        for rank in self.ranks:
            found.setdefault(self.fabric.island[rank], []).append(rank)
        return tuple(tuple(members) for members in found.values())

    @cached_property
    def rails(self) -> tuple[int, ...]:
        """The network interfaces of the first node's ranks."""
        names = {name for rank in self.islands[0] for name in self.fabric.interfaces[rank]}
        return tuple(sorted(int(name.rpartition("nic")[2]) for name in names))


def ring(group: Group, kind: Kind, root: int = 0) -> Schedule:
    """Rings over all ranks, each with an equal share of the size. A broadcast passes the buffer on in chunks, from ``root``."""
    count, islands = len(group.ranks), len(group.islands)
    rings = _rings(group)
    rounds = 2 * (count - 1) if kind == "all_reduce" else count - 1
    part = 1.0 if kind == "broadcast" else rounds / count
    flows: list[Flow] = []
    for order, rail in rings:
        ways = zip(order, order[1:] + order[:1], strict=True)
        flows += [(a, b, part / len(rings), rail) for a, b in ways if kind != "broadcast" or b != group.ranks[root]]
    crossings = (islands - 1) * (2 if kind == "all_reduce" else 1)
    return Schedule((_phase(group, flows, part, inner=rounds - crossings, outer=crossings),), islands)


def tree(group: Group, kind: Kind, root: int = 0) -> Schedule:  # noqa: ARG001 - all algorithms are called alike
    """Two binary trees over the nodes, each with half of the size, at the heads of chains; sums go up, results come down."""
    islands = group.islands
    count = len(group.rails) if len(islands) > 1 else _trees(group)
    flows: list[Flow] = []
    for k in range(count):
        chains = [_chain(group, island, k) for island in islands]
        rail = group.rails[k] if len(islands) > 1 else None
        ways = [(a, b, 1.0) for chain in chains for a, b in pairwise(chain)]
        ways += [(chains[n][0], chains[above][0], 0.5) for n, above in _two_trees(len(islands))]
        flows += [flow for a, b, part in ways for flow in ((a, b, part / count, rail), (b, a, part / count, rail))]
    depth = math.floor(math.log2(len(islands)))
    longest = max(map(len, islands)) - 1
    return Schedule((_phase(group, flows, 2.0, inner=2 * longest, outer=2 * depth),), len(islands))


def direct(group: Group, kind: Kind, root: int = 0, splits: Matrix | None = None) -> Schedule:
    """Everybody sends to everybody at once what it has for them; ``splits`` makes an all-to-all uneven."""
    count = len(group.ranks)
    if kind == "all_to_all":
        matrix = np.full((count, count), 1 / count) if splits is None else splits
    elif kind in {"broadcast", "send_recv"}:
        matrix = np.zeros((count, count))
        matrix[root] = 1.0
    else:
        matrix = np.full((count, count), 1 / count)
    phase = _exchange(group, matrix)
    phases = (phase, phase) if kind == "all_reduce" else (phase,)
    islands = group.islands
    remote = len(islands) - 1 if group.fabric.library.relays else count - min(map(len, islands))
    return Schedule(phases, len(islands), max(remote - 1, 0) if len(islands) > 1 else 0)


def hierarchical(group: Group, kind: Kind, root: int = 0, splits: Matrix | None = None) -> Schedule:
    """First in the nodes, then between those that have the same place in their nodes; in what order depends on the kind.

    Raises:
        UsageError: a single node, nodes with different numbers of ranks, or a kind for which there is none.
    """
    islands = group.islands
    if len(islands) < 2 or len({len(members) for members in islands}) > 1:
        sizes = [len(members) for members in islands]
        raise UsageError(f"a hierarchical algorithm over nodes with {sizes} ranks", hint="it needs several nodes, all alike")
    size = len(islands[0])
    if kind == "all_to_all":
        return _two_exchanges(group, splits)
    inside = [Group(group.fabric, members) for members in islands]
    across = [Group(group.fabric, rail) for rail in zip(*islands, strict=True)]
    outer = [ring(rail, kind, root).phases[0] for rail in across]
    gather = [ring(members, "all_gather").phases[0] for members in inside]
    scatter = [ring(members, "reduce_scatter").phases[0] for members in inside]
    between = _side_by_side(outer, 1 / size)
    by_kind = {
        "all_reduce": (_side_by_side(scatter), between, _side_by_side(gather)),
        "all_gather": (between, _side_by_side(gather)),
        "reduce_scatter": (_side_by_side(scatter), between),
    }
    if kind not in by_kind:
        raise UsageError(f"no hierarchical {kind}", hint=f"there is one of {', '.join((*by_kind, 'all_to_all'))}")
    return Schedule(by_kind[kind], len(islands))


def nvls(group: Group, kind: Kind, root: int = 0) -> Schedule:  # noqa: ARG001 - all algorithms are called alike
    """The switch adds up what all send to it, and sends the results to all."""
    loads = np.zeros(len(group.fabric.links))
    part = 1 + 1 / len(group.ranks)
    for rank in group.ranks:
        loads[group.fabric.to_switch(rank, up=True)] = part
        loads[group.fabric.to_switch(rank, up=False)] = part
    return Schedule((Phase(loads, part, ()),), 1)


def matrix_of(group: Group, splits: npt.ArrayLike) -> Matrix:
    """Splits as bytes, a row for each sender.

    Raises:
        UsageError: they are not a square of numbers of at least 0, a row for each rank.
    """
    matrix = np.asarray(splits, np.float64)
    count = len(group.ranks)
    if matrix.shape != (count, count) or not np.isfinite(matrix).all() or (matrix < 0).any():
        raise UsageError(f"splits of shape {matrix.shape}", hint=f"give {count} rows of {count} numbers of bytes, none below 0")
    return matrix


def _rings(group: Group) -> list[tuple[tuple[int, ...], int | None]]:
    """Rings with the rail that they take between nodes: one for each interface, each beginning at another rank."""
    islands = group.islands
    if len(islands) == 1:
        return [(order, None) for order in orders(group.fabric, islands[0], closed=True)]
    return [
        (tuple(rank for island in islands for rank in _chain(group, island, k)), rail) for k, rail in enumerate(group.rails)
    ]


def _trees(group: Group) -> int:
    """How many trees there are in a node: NCCL lays as many as rings (src/init.cc: treeGraph), but they use links both ways."""
    rings = orders(group.fabric, group.islands[0], closed=True)
    return max(1, min(len(rings) // 2, len(orders(group.fabric, group.islands[0], closed=False))))


def _chain(group: Group, island: Sequence[int], number: int) -> tuple[int, ...]:
    """The order in which a node's ranks pass things on in the given ring or tree; it begins at another rank each time."""
    chains = orders(group.fabric, island, closed=False)
    chain = chains[number % len(chains)]
    if len(chains) > 1 or not group.fabric.is_switched(island):
        return chain if number % 2 == 0 else chain[::-1]
    start = number % len(chain)
    return chain[start:] + chain[:start]


def _two_trees(nodes: int) -> list[tuple[int, int]]:
    """Pairs (node, the one above it) of two binary trees; what has others below it in one has none in the other
    (NVIDIA/nccl src/graph/trees.cc: ncclGetBtree, ncclGetDtree).
    """
    first = [(node, _above(node, nodes)) for node in range(1, nodes)]
    if nodes % 2:
        second = [((a + 1) % nodes, (b + 1) % nodes) for a, b in first]
    else:
        second = [(nodes - 1 - a, nodes - 1 - b) for a, b in first]
    return first + second


def _above(node: int, nodes: int) -> int:
    bit = node & -node
    above = (node ^ bit) | (bit << 1)
    return above if above < nodes else node ^ bit


def _phase(group: Group, flows: Iterable[Flow], sent: float, *, inner: float, outer: float) -> Phase:
    """What flows put on the links, with ``inner`` steps within nodes and ``outer`` ones between them."""
    fabric = group.fabric
    loads = np.zeros(len(fabric.links))
    routes: dict[bool, list[Route]] = {False: [], True: []}
    for a, b, part, rail in flows:
        crosses = fabric.island[a] != fabric.island[b]
        route = fabric.route(a, b, rail if crosses else None)
        routes[crosses].append(route)
        for link, share in route.loads:
            loads[link] += part * share
    counts = ((inner, routes[False]), (outer, routes[True]))
    return Phase(loads, sent, tuple(_longest(count, of) for count, of in counts if count and of))


def _longest(count: float, routes: Sequence[Route]) -> Steps:
    """Steps over the worst of these routes."""
    hardware = next(hw for hw in _WORST_FIRST if any(route.hardware == hw for route in routes))
    known = [route.wire_ns for route in routes if route.wire_ns is not None and route.hardware == hardware]
    if not known:
        return Steps(count, hardware, None)
    likely, fast, slow = (max(wire[k] for wire in known) for k in range(3))
    return Steps(count, hardware, (likely, fast, slow))


@lru_cache(maxsize=256)
def _pairs(group: Group) -> tuple[Ints, Ints, Floats, Steps]:
    """All routes of a group at once: which pair (row by row) puts which share of its bytes on which link; and their longest."""
    count = len(group.ranks)
    entries, routes = [], []
    for (i, a), (j, b) in product(enumerate(group.ranks), repeat=2):
        if i != j:
            routes.append(group.fabric.route(a, b))
            entries += [(i * count + j, link, share) for link, share in routes[-1].loads]
    pair, link, share = zip(*entries, strict=True)
    return np.array(pair), np.array(link), np.array(share, np.float64), _longest(1, routes)


def _exchange(group: Group, matrix: Matrix) -> Phase:
    """Every rank sends its row of the matrix; what it keeps goes nowhere."""
    pair, link, share, steps = _pairs(group)
    loads = np.bincount(link, weights=matrix.ravel()[pair] * share, minlength=len(group.fabric.links))
    sent = float((matrix.sum(axis=1) - np.diag(matrix)).max())
    return Phase(loads.astype(np.float64), sent, (steps,))


def _two_exchanges(group: Group, splits: Matrix | None) -> Schedule:
    """In the node each rank gathers what is for its place in all other nodes; then equal places exchange over their rails."""
    islands, count = group.islands, len(group.ranks)
    place = {rank: (n, j) for n, members in enumerate(islands) for j, rank in enumerate(members)}
    matrix = np.full((count, count), 1 / count) if splits is None else splits
    inside, across = np.zeros_like(matrix), np.zeros_like(matrix)
    index = {rank: i for i, rank in enumerate(group.ranks)}
    for i, j in np.argwhere(matrix > 0).tolist():
        node, _ = place[group.ranks[i]]
        target, seat = place[group.ranks[j]]
        passing = index[islands[node][seat]]
        inside[i, passing] += matrix[i, j]
        if target != node:
            across[passing, j] += matrix[i, j]
    phases = [_exchange(Group(group.fabric, group.ranks), part) for part in (inside, across)]
    local = _longest(1, [group.fabric.route(a, b) for members in islands for a, b in permutations(members, 2)])
    first = replace(phases[0], steps=(local,))
    return Schedule((first, phases[1]), len(islands), max(len(islands) - 2, 0))


def _side_by_side(phases: Sequence[Phase], part: float = 1.0) -> Phase:
    """Phases of different ranks that run at the same time, each with a part of the size."""
    loads = np.sum([phase.loads for phase in phases], axis=0) * part
    return Phase(loads, max(phase.sent for phase in phases) * part, phases[0].steps)
