"""Directed graphs in arrays as networkx sees them: in, edges as numpy columns; out, neighbours, orders, reach, longest paths.

``ArrayDiGraph`` is what ``DependencyGraph`` and ``FrozenDiGraph`` (a networkx graph turned into arrays) have in common. Node
indices are 0 to count − 1; every loop over them is compiled.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import numpy.typing as npt

from tracereplay.graph.networkx_reads import ReadByNetworkx
from tracereplay.graph.topology import topological_order
from tracereplay.trace.times import Int64s

if TYPE_CHECKING:
    import networkx as nx

Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]

_LARGEST_SUM = 2**62


@dataclass(frozen=True)
class Adjacency:
    """Edges between node indices, no two between the same nodes in the same direction.

    ``src`` and ``dst`` stand in the order in which each node meets its successors; ``incoming`` lists the edges by
    destination, in the order in which each node meets its predecessors. Both orders decide ties, as they do in networkx.
    """

    count: int
    src: Int64s
    dst: Int64s
    incoming: Int64s

    @cached_property
    def outgoing(self) -> Int64s:
        """The edges by source."""
        return np.argsort(self.src, kind="stable")

    @cached_property
    def first_out(self) -> Int64s:
        """Those out of node ``n`` are ``outgoing[first_out[n]:first_out[n + 1]]``."""
        return _firsts(self.src[self.outgoing], self.count)

    @cached_property
    def first_in(self) -> Int64s:
        """Those into node ``n`` are ``incoming[first_in[n]:first_in[n + 1]]``."""
        return _firsts(self.dst[self.incoming], self.count)

    @cached_property
    def successors(self) -> Int64s:
        """The successors of node ``n`` at ``first_out[n]:first_out[n + 1]``."""
        return self.dst[self.outgoing]

    @cached_property
    def predecessors(self) -> Int64s:
        """The predecessors of node ``n`` at ``first_in[n]:first_in[n + 1]``."""
        return self.src[self.incoming]

    @cached_property
    def order(self) -> Int64s:
        """A topological order, generation by generation; shorter than ``count`` where edges run in a circle."""
        return topological_order(self.count, self.src, self.dst)

    @cached_property
    def generation(self) -> Int64s:
        """The longest number of edges that lead to each node of ``order``, along ``order``."""
        level: Int64s = _levels(self.order, self.first_in, self.predecessors, np.zeros(self.count, np.int64))
        return level[self.order]

    def reach(self, node: int, *, backward: bool) -> Int64s:
        """The nodes that lie after a node (or before it), itself left out, in ascending order."""
        first, neighbours = (self.first_in, self.predecessors) if backward else (self.first_out, self.successors)
        seen: npt.NDArray[np.bool_] = _reach(first, neighbours, node)
        seen[node] = False
        return np.flatnonzero(seen)

    def longest_path(self, weight: Numbers) -> Int64s:
        """The path with the largest sum of weights, one weight an edge, as networkx chooses it: a path begins anew where its
        sum would be negative; of equal ones the first met wins.

        Raises:
            OverflowError: whole-number weights whose sum may not fit in 64 bits.
        """
        if self.count == 0:
            return np.empty(0, np.int64)
        if np.abs(weight.astype(np.float64)).sum() > _LARGEST_SUM and weight.dtype == np.int64:
            raise OverflowError("the sum of the weights does not fit in 64 bits")
        best, before = _longest(self.order, self.first_in, self.predecessors, weight[self.incoming])
        return _trace_back(before, int(self.order[np.argmax(best[self.order])]))

    def edges_along(self, path: Int64s) -> Int64s:
        """The edges between consecutive nodes of a path."""
        keys = self.src * self.count + self.dst
        order = np.argsort(keys)
        return order[np.searchsorted(keys[order], path[:-1] * self.count + path[1:])]


def _trace_back(before: Int64s, last: int) -> Int64s:
    path = [last]
    while before[path[-1]] != path[-1]:
        path.append(int(before[path[-1]]))
    return np.array(path[::-1], np.int64)


def _firsts(sorted_nodes: Int64s, count: int) -> Int64s:
    return np.searchsorted(sorted_nodes, np.arange(count + 1)).astype(np.int64)


@numba.njit(cache=True)
def _levels(order: Any, first: Any, predecessors: Any, level: Any) -> Any:  # numba infers the types
    for node in order:
        for i in range(first[node], first[node + 1]):
            level[node] = max(level[node], level[predecessors[i]] + 1)
    return level


@numba.njit(cache=True)
def _reach(first: Any, neighbours: Any, start: Any) -> Any:  # numba infers the types
    seen = np.zeros(first.shape[0] - 1, np.bool_)
    stack = np.empty(first.shape[0], np.int64)
    seen[start] = True
    stack[0], depth = start, 1
    while depth:
        depth -= 1
        node = stack[depth]
        for i in range(first[node], first[node + 1]):
            if not seen[neighbours[i]]:
                seen[neighbours[i]] = True
                stack[depth] = neighbours[i]
                depth += 1
    return seen


@numba.njit(cache=True)
def _longest(order: Any, first: Any, predecessors: Any, weight: Any) -> Any:  # numba infers the types
    best = np.zeros(first.shape[0] - 1, weight.dtype)
    before = np.arange(first.shape[0] - 1)
    for node in order:
        for i in range(first[node], first[node + 1]):
            length = best[predecessors[i]] + weight[i]
            if i == first[node] or length > best[node]:
                best[node], before[node] = length, predecessors[i]
        if best[node] < 0:
            best[node], before[node] = 0, node
    return best, before


class ArrayDiGraph(ReadByNetworkx, ABC):
    """A read-only directed graph without parallel edges, to which networkx dispatches by ``__networkx_backend__``."""

    __networkx_backend__ = "tracereplay"

    @property
    @abstractmethod
    def links(self) -> Adjacency:
        """The edges between node indices."""

    @abstractmethod
    def edge_weight(self, attribute: object, default: float) -> Numbers:
        """A number for each edge of ``links``: the attribute, ``default`` for edges without it.

        Raises:
            TypeError: the attribute is not a number.
        """

    def index_of(self, node: Hashable) -> int:
        """The index of a node.

        Raises:
            KeyError: there is no such node.
        """
        # A bool and a float equal to a whole number are that number to networkx, which looks nodes up in a dictionary.
        if isinstance(node, int | float | np.integer) and node == int(node) and 0 <= node < self.links.count:
            return int(node)
        raise KeyError(node)

    def nodes_at(self, indices: Int64s) -> list[Any]:
        """The nodes with these indices."""
        return list(indices.tolist())

    def is_directed(self) -> bool:
        """True, for networkx."""
        return True

    def is_multigraph(self) -> bool:
        """False, for networkx: of parallel edges the one that counts is shown."""
        return False

    def number_of_nodes(self) -> int:
        """How many nodes there are."""
        return self.links.count

    def number_of_edges(self) -> int:
        """How many pairs of nodes an edge joins."""
        return int(self.links.src.size)

    def successors(self, node: Hashable) -> Iterator[Any]:
        """The nodes to which an edge leads."""
        a, n = self.links, self.index_of(node)
        return iter(self.nodes_at(a.successors[a.first_out[n] : a.first_out[n + 1]]))

    def predecessors(self, node: Hashable) -> Iterator[Any]:
        """The nodes from which an edge comes."""
        a, n = self.links, self.index_of(node)
        return iter(self.nodes_at(a.predecessors[a.first_in[n] : a.first_in[n + 1]]))

    def __reduce__(self) -> tuple[Any, ...]:
        """For copies and pickles: the fields alone. What was made of them is made again."""
        given: Any = self
        return type(self), tuple(getattr(self, column.name) for column in fields(given))

    def __str__(self) -> str:
        return f"{type(self).__name__} with {self.number_of_nodes()} nodes and {self.number_of_edges()} edges"

    def __len__(self) -> int:
        return self.links.count

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes_at(np.arange(self.links.count)))

    def __contains__(self, node: Hashable) -> bool:
        try:
            self.index_of(node)
        except KeyError:
            return False
        return True


@dataclass(frozen=True)
class FrozenDiGraph(ArrayDiGraph):
    """A networkx graph as it was when it was turned into arrays: its nodes in order, its edges, the edge attributes asked for.

    ``attributes`` maps an attribute's name to one value an edge of ``links``.
    """

    labels: tuple[Hashable, ...]
    pairs: Adjacency
    attributes: Mapping[object, tuple[Any, ...]] = field(default_factory=dict)

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {label: n for n, label in enumerate(self.labels)}

    @property
    def links(self) -> Adjacency:
        """The edges between node indices."""
        return self.pairs

    def to_networkx(self) -> "nx.DiGraph[Any]":
        """A plain graph of the same nodes and edges, with the attributes that were asked for."""
        import networkx as nx  # noqa: PLC0415 - 0.2 s that no verb on the arrays needs

        plain: nx.DiGraph[Any] = nx.DiGraph()
        plain.add_nodes_from(self.labels)
        for n, (u, v) in enumerate(zip(self.nodes_at(self.pairs.src), self.nodes_at(self.pairs.dst), strict=True)):
            plain.add_edge(u, v, **{str(key): values[n] for key, values in self.attributes.items()})
        return plain

    def index_of(self, node: Hashable) -> int:
        """The index of a node.

        Raises:
            KeyError: there is no such node.
        """
        return self._index[node]

    def nodes_at(self, indices: Int64s) -> list[Any]:
        """The nodes with these indices."""
        return [self.labels[n] for n in indices.tolist()]

    def edge_weight(self, attribute: object, default: float) -> Numbers:
        """A number for each edge of ``links``: the attribute, ``default`` for edges without it.

        Raises:
            TypeError: the attribute is not a number.
            OverflowError: a number that arrays cannot hold exactly.
        """
        values = self.attributes.get(attribute)
        return numbers_of([default] * self.number_of_edges() if values is None else values)


def numbers_of(values: Iterable[Any]) -> Numbers:
    """Values as int64 where all are whole numbers, else as float64.

    Raises:
        TypeError: a value that is no real number.
        OverflowError: a number that the array would not hold exactly.
    """
    given = list(values)
    if not all(isinstance(value, int | float | np.integer | np.floating) for value in given):
        raise TypeError("an edge attribute is not a number")
    whole = all(isinstance(value, int | np.integer) for value in given)
    array: Numbers = np.array(given, np.int64) if whole else np.array(given, np.float64)
    if array.tolist() != given:
        raise OverflowError("an edge attribute is not a number or does not fit in 64 bits")
    return array
