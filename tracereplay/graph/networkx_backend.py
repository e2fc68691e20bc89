"""The networkx backend: in, calls that networkx dispatches for our graphs; out, what networkx itself would answer.

``networkx_info.ON_ARRAYS`` names the functions that run on the arrays, compiled. Every other function of networkx that reads
a graph runs on ``to_networkx()``, made anew for each call: whoever asks several such questions makes that copy once. Functions
that change their graph are refused, for ours is read-only. Nothing of networkx's configuration is touched.
"""

import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
from networkx.utils.backends import _registered_algorithms

from tracereplay.graph.array_graph import Adjacency, ArrayDiGraph, FrozenDiGraph, Numbers
from tracereplay.graph.networkx_info import ON_ARRAYS
from tracereplay.trace.times import Int64s


def topological_generations(G: ArrayDiGraph) -> Iterator[list[Any]]:  # noqa: N803 - networkx calls by its names
    """Nodes by the longest number of edges that lead to them.

    Raises:
        NetworkXUnfeasible: the edges run in a circle; what lies before it has been given by then.
    """
    links = G.links
    borders = np.flatnonzero(np.diff(links.generation)) + 1
    for part in np.split(links.order, borders) if links.order.size else ():
        yield G.nodes_at(part)
    if links.order.size < links.count:
        raise nx.NetworkXUnfeasible("Graph contains a cycle or graph changed during iteration")


def topological_sort(G: ArrayDiGraph) -> Iterator[Any]:  # noqa: N803
    """Nodes in an order in which every edge runs forward, generation by generation.

    Raises:
        NetworkXUnfeasible: the edges run in a circle.
    """
    for generation in topological_generations(G):
        yield from generation


def is_directed_acyclic_graph(G: ArrayDiGraph) -> bool:  # noqa: N803
    """Whether no edges run in a circle."""
    return G.links.order.size == G.links.count


def has_cycle(G: ArrayDiGraph) -> bool:  # noqa: N803
    """Whether edges run in a circle."""
    return not is_directed_acyclic_graph(G)


def descendants(G: ArrayDiGraph, source: Hashable) -> set[Any]:  # noqa: N803
    """The nodes that lie after ``source``."""
    return set(G.nodes_at(G.links.reach(_index(G, source), backward=False)))


def ancestors(G: ArrayDiGraph, source: Hashable) -> set[Any]:  # noqa: N803
    """The nodes that lie before ``source``."""
    return set(G.nodes_at(G.links.reach(_index(G, source), backward=True)))


def has_path(G: ArrayDiGraph, source: Hashable, target: Hashable) -> bool:  # noqa: N803
    """Whether edges lead from ``source`` to ``target``; they do from a node to itself.

    Raises:
        NodeNotFound: one of them is not in the graph.
    """
    for node, role in ((source, "Source"), (target, "Target")):
        if node not in G:
            raise nx.NodeNotFound(f"{role} {node} is not in G")
    first, last = G.index_of(source), G.index_of(target)
    return first == last or bool(np.isin(last, G.links.reach(first, backward=False)))


def dag_longest_path(
    G: ArrayDiGraph,  # noqa: N803
    weight: object = "weight",
    default_weight: float = 1,
    topo_order: Any = None,
) -> list[Any]:
    """The path with the largest sum of weights; see ``DependencyGraph.to_networkx`` for what a weight is.

    Raises:
        NetworkXUnfeasible: the edges run in a circle.
    """
    if topo_order is not None:
        return list(_by_conversion("dag_longest_path", G, weight, default_weight, topo_order))
    return G.nodes_at(_longest(G, _weights(G, weight, default_weight)))


def dag_longest_path_length(
    G: ArrayDiGraph,  # noqa: N803
    weight: object = "weight",
    default_weight: float = 1,
) -> float:
    """The sum of weights along the longest path.

    Raises:
        NetworkXUnfeasible: the edges run in a circle.
    """
    weights = _weights(G, weight, default_weight)
    length: float = sum(weights[G.links.edges_along(_longest(G, weights))].tolist())
    return length


def convert_to_nx(obj: Any, *, name: str | None = None) -> Any:
    """A plain networkx graph with all that ours knows; what is no graph of ours comes back as it is."""
    del name
    return obj.to_networkx() if isinstance(obj, ArrayDiGraph) else obj


def convert_from_nx(  # noqa: PLR0913 - networkx fixes the parameters
    graph: Any,
    *,
    edge_attrs: Mapping[object, Any] | None = None,
    node_attrs: Mapping[object, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    name: str | None = None,
    graph_name: str | None = None,
) -> FrozenDiGraph:
    """A directed networkx graph as arrays: its nodes, its edges and the edge attributes asked for; attributes of nodes and of
    the graph are left behind, for no function on the arrays reads them. It is no DependencyGraph: nothing makes a trace of it.

    Raises:
        NotImplementedError: an undirected graph or one with parallel edges.
    """
    del node_attrs, preserve_edge_attrs, preserve_node_attrs, preserve_graph_attrs, name, graph_name
    if not graph.is_directed() or graph.is_multigraph():
        raise NotImplementedError("only directed graphs without parallel edges become arrays")
    labels = tuple(graph)
    index = {label: n for n, label in enumerate(labels)}
    pairs = [(index[u], index[v]) for u in labels for v in graph._adj[u]]
    place = {pair: n for n, pair in enumerate(pairs)}
    incoming = [place[index[u], n] for n, v in enumerate(labels) for u in graph._pred[v]]
    columns = np.array(pairs, np.int64).reshape(-1, 2)
    adjacency = Adjacency(len(labels), columns[:, 0].copy(), columns[:, 1].copy(), np.array(incoming, np.int64))
    data = [attributes for u in labels for attributes in graph._adj[u].values()]
    kept = {key: tuple(one.get(key, default) for one in data) for key, default in (edge_attrs or {}).items()}
    return FrozenDiGraph(labels, adjacency, kept)


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Whether a call can be answered here, or why not."""
    function = _registered_algorithms[name]
    if _changes_its_graph(function, args, kwargs):
        return "graphs of tracereplay are read-only; change graph.copy()"
    if name in ON_ARRAYS:
        graph = args[0] if args else kwargs.get("G")
        apt = graph is not None and graph.is_directed() and not graph.is_multigraph()
        return True if apt else "only directed graphs without parallel edges become arrays"
    ours = any(isinstance(g, ArrayDiGraph) for value in (*args, *kwargs.values()) for g in _graphs_in(value))
    return True if ours else "it does not run on the arrays"


def _changes_its_graph(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call would change its input: always, never, or by an argument such as ``copy=False``."""
    by = function.mutates_input
    if isinstance(by, bool):
        return by
    bound = inspect.signature(function.orig_func).bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    return any(not given[key[4:]] if key.startswith("not ") else given[key] is not None for key in by)


def _graphs_in(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _by_conversion(name: str, *args: Any, **kwargs: Any) -> Any:
    """What networkx answers for plain copies of the graphs."""

    def plain(value: Any) -> Any:
        return type(value)(map(convert_to_nx, value)) if type(value) in {list, tuple} else convert_to_nx(value)

    named = {key: plain(value) for key, value in kwargs.items()}
    return _registered_algorithms[name](*map(plain, args), **named, backend="networkx")


def _index(graph: ArrayDiGraph, node: Hashable) -> int:
    try:
        return graph.index_of(node)
    except KeyError:
        raise nx.NetworkXError(f"The node {node} is not in the digraph.") from None


def _weights(graph: ArrayDiGraph, attribute: object, default: float) -> Numbers:
    try:
        return graph.edge_weight(attribute, default)
    except OverflowError as error:
        raise NotImplementedError(str(error)) from error


def _longest(graph: ArrayDiGraph, weights: Numbers) -> Int64s:
    if not is_directed_acyclic_graph(graph):
        raise nx.NetworkXUnfeasible("Graph contains a cycle or graph changed during iteration")
    try:
        return graph.links.longest_path(weights)
    except OverflowError as error:
        raise NotImplementedError(str(error)) from error


class Backend:
    """What the entry point ``networkx.backends`` gives: an attribute a function, as networkx looks them up."""

    convert_to_nx = staticmethod(convert_to_nx)
    convert_from_nx = staticmethod(convert_from_nx)
    can_run = staticmethod(can_run)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The function on the arrays where there is one, else networkx's own on a copy."""
        if name in ON_ARRAYS:
            function: Callable[..., Any] = globals()[name]
            return function
        if name in _registered_algorithms:
            return partial(_by_conversion, name)
        raise AttributeError(name)


backend = Backend()
