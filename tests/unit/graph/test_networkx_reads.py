"""What networkx does not dispatch, and a graph's own methods, answer as they do for the plain copy; nothing changes it."""

import copy
import io
import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from networkx.readwrite import json_graph

from tests.fakes.jobs import graph_of
from tests.fakes.workloads import late_peer
from tracereplay.graph.model import DependencyGraph
from tracereplay.graph.networkx_backend import convert_from_nx

OTHER = nx.DiGraph([("a", "b")])


@pytest.fixture
def graph(tmp_path: Path) -> DependencyGraph:
    """Two ranks with an all-reduce: host segments, gaps, arrivals, a rendezvous, transfers."""
    return graph_of(tmp_path, *late_peer())


def written(writer: Callable[[Any, io.BytesIO], None]) -> Callable[[Any], bytes]:
    """What a writer writes."""

    def call(graph: Any) -> bytes:
        buffer = io.BytesIO()
        writer(graph, buffer)
        return buffer.getvalue()

    return call


def shown(graph: Any) -> tuple[Any, ...]:
    """All that a plain graph holds, in order."""
    return type(graph), dict(graph.nodes(data=True)), list(graph.edges(data=True)), graph.graph


def compared(value: Any) -> Any:
    """A value as it can be compared."""
    if isinstance(value, nx.Graph):
        return shown(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return list(value) if isinstance(value, Iterator) or hasattr(value, "__iter__") else value


READS: dict[str, Callable[[Any], Any]] = {
    # Writers.
    "node_link_data": lambda g: json.dumps(nx.node_link_data(g, edges="edges")),
    "adjacency_data": lambda g: json.dumps(json_graph.adjacency_data(g)),
    "cytoscape_data": lambda g: json.dumps(json_graph.cytoscape_data(g)),
    "write_gml": written(nx.write_gml),
    "write_graphml": written(nx.write_graphml),
    "write_graphml_xml": written(nx.write_graphml_xml),
    "write_adjlist": lambda g: list(nx.generate_adjlist(g)),
    "write_multiline_adjlist": lambda g: list(nx.generate_multiline_adjlist(g)),
    "write_edgelist": written(nx.write_edgelist),
    "write_weighted_edgelist": written(nx.write_weighted_edgelist),
    "write_network_text": lambda g: list(nx.generate_network_text(g)),
    "to_latex": nx.to_latex,
    # To other forms.
    "to_dict_of_dicts": nx.to_dict_of_dicts,
    "to_dict_of_lists": nx.to_dict_of_lists,
    "to_edgelist": nx.to_edgelist,
    "to_numpy_array": nx.to_numpy_array,
    "to_networkx_graph": nx.to_networkx_graph,
    "DiGraph": nx.DiGraph,
    "Graph": nx.Graph,
    "copy": lambda g: g.copy(),
    "copy as a view": lambda g: g.copy(as_view=True),
    "to_undirected": nx.to_undirected,
    "to_directed": nx.to_directed,
    "reverse": lambda g: g.reverse(),
    # Several graphs.
    "compose": lambda g: nx.compose(g, OTHER, backend="networkx"),
    "compose with itself": lambda g: nx.compose(g, g),
    "union": lambda g: nx.union(g, OTHER, backend="networkx"),
    "union with itself": lambda g: nx.union(g, g, rename=("a", "b")),
    "disjoint_union": lambda g: nx.disjoint_union(g, g),
    "intersection": lambda g: nx.intersection(g, g),
    "difference": lambda g: nx.difference(g, g),
    # Of other nodes.
    "relabel_nodes": lambda g: nx.relabel_nodes(g, {0: "first"}),
    "convert_node_labels": lambda g: nx.convert_node_labels_to_integers(g, first_label=5),
    "subgraph": lambda g: nx.subgraph(g, [0, 1, 2]),
    "edge_subgraph": lambda g: nx.edge_subgraph(g, [next(iter(g.edges))]),
    "induced_subgraph": lambda g: nx.induced_subgraph(g, [0, 1]),
    "restricted_view": lambda g: nx.restricted_view(g, [0], []),
    "subgraph_view": lambda g: nx.subgraph_view(g, filter_node=lambda n: n < 3),
    "reverse_view": nx.reverse_view,
    "create_empty_copy": nx.create_empty_copy,
    "quotient_graph": lambda g: nx.quotient_graph(g, [set(list(g)[:3]), set(list(g)[3:])]).edges,
    # Questions.
    "nodes": lambda g: list(g.nodes),
    "nodes()": lambda g: g.nodes(data=True),
    "nodes.data": lambda g: g.nodes.data("kind"),
    "nodes.items": lambda g: g.nodes.items(),
    "nodes.values": lambda g: g.nodes.values(),
    "nodes.keys": lambda g: g.nodes.keys(),
    "nodes.get": lambda g: g.nodes.get(0),
    "nodes[]": lambda g: g.nodes[0],
    "in nodes": lambda g: (0 in g.nodes, -1 in g.nodes),
    "edges": lambda g: list(g.edges),
    "edges()": lambda g: g.edges(data="kind"),
    "edges[]": lambda g: [g.edges[u, v] for u, v in g.edges],
    "nx.nodes": nx.nodes,
    "nx.edges": nx.edges,
    "adj": lambda g: {n: dict(g.adj[n]) for n in g.adj},
    "[]": lambda g: g[0],
    "adjacency": lambda g: g.adjacency(),
    "degree": nx.degree,
    "degree_histogram": nx.degree_histogram,
    "density": nx.density,
    "neighbors": lambda g: nx.neighbors(g, 0),
    "non_neighbors": lambda g: nx.non_neighbors(g, 0),
    "non_edges": nx.non_edges,
    "is_path": lambda g: nx.is_path(g, nx.dag_longest_path(g)),
    "path_weight": lambda g: nx.path_weight(g, nx.dag_longest_path(g), "weight"),
    "selfloop_edges": nx.selfloop_edges,
    "is_weighted": nx.is_weighted,
    "get_node_attributes": lambda g: nx.get_node_attributes(g, "event"),
    "get_edge_attributes": lambda g: nx.get_edge_attributes(g, "basis"),
    "has_edge": lambda g: (g.has_edge(0, 1), g.has_edge(1, 0), g.has_node(0), g.has_successor(0, 1)),
    "get_edge_data": lambda g: g.get_edge_data(0, 1),
    "sizes": lambda g: (g.order(), g.size(), g.size("weight"), g.name),
    "in and out": lambda g: (list(g.in_edges(2)), list(g.out_edges(2)), g.in_degree(2), g.out_degree(2), list(g.pred[2])),
}


@pytest.mark.parametrize("name", READS)
def test_what_networkx_reads_is_what_the_plain_copy_says(name: str, graph: DependencyGraph) -> None:
    read = READS[name]

    assert compared(read(graph)) == compared(read(graph.to_networkx()))


CHANGES: dict[str, Callable[[Any], Any]] = {
    "add_node": lambda g: g.add_node(99),
    "add_edge": lambda g: g.add_edge(0, 99),
    "remove_node": lambda g: g.remove_node(0),
    "clear": lambda g: g.clear(),
    "add_path": lambda g: nx.add_path(g, [0, 99]),
    "set_node_attributes": lambda g: nx.set_node_attributes(g, 1, "x"),
    "set_edge_attributes": lambda g: nx.set_edge_attributes(g, 1, "x"),
    "relabel_nodes": lambda g: nx.relabel_nodes(g, {0: 99}, copy=False),
    "of a subgraph": lambda g: g.subgraph([0, 1]).add_node(99),
    "of a view": lambda g: nx.reverse_view(g).add_node(99),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_would_change_the_graph_is_refused_in_one_line(name: str, graph: DependencyGraph) -> None:
    before = shown(graph)

    with pytest.raises((nx.NetworkXError, NotImplementedError)) as refused:
        CHANGES[name](graph)

    assert str(refused.value)
    assert "\n" not in str(refused.value)
    assert shown(graph) == before
    assert nx.is_frozen(graph)


def test_graphs_of_two_kinds_need_to_be_told_where_to_meet(graph: DependencyGraph) -> None:
    with pytest.raises(TypeError, match="specify a backend"):
        nx.compose(graph, OTHER)


def test_attributes_are_plain_and_none_is_none(graph: DependencyGraph) -> None:
    values = [
        value
        for attributes in (*(d for _, d in graph.nodes(data=True)), *(d for *_, d in graph.edges(data=True)))
        for value in attributes.values()
    ]

    assert {type(value) for value in values} == {str, int, bool}
    assert {d["kind"] for _, d in graph.nodes(data=True) if "rank" not in d} == {"rendezvous"}
    assert {d["name"] for _, d in graph.nodes(data=True) if "event" not in d} == {"gap", "all_reduce"}


def test_a_file_comes_back_as_it_was(graph: DependencyGraph, tmp_path: Path) -> None:
    nx.write_graphml(graph, tmp_path / "graph.graphml")

    back = nx.read_graphml(tmp_path / "graph.graphml", node_type=int)

    assert (dict(back.nodes(data=True)), list(back.edges(data=True))) == shown(graph)[1:3]


@pytest.mark.parametrize("again", [lambda g: pickle.loads(pickle.dumps(g)), copy.copy, copy.deepcopy])
def test_copies_and_pickles_are_the_graph_again(again: Callable[[Any], Any], graph: DependencyGraph) -> None:
    assert graph.number_of_edges()  # what was made of the columns is made again
    assert 0 in graph.nodes

    other = again(graph)

    assert isinstance(other, DependencyGraph)
    assert nx.dag_longest_path(other) == nx.dag_longest_path(graph)
    del graph
    assert list(other.nodes)[:2] == [0, 1]
    assert other.nodes.start_ns.size == len(other)


def test_columns_outlive_their_graph_and_say_that_it_is_gone(tmp_path: Path) -> None:
    nodes = graph_of(tmp_path, *late_peer()).nodes

    assert nodes.start_ns.size == len(nodes)
    with pytest.raises(ReferenceError, match="these nodes stand in no graph, or it is gone; keep the graph"):
        nodes(data=True)


def test_a_graph_in_arrays_that_was_networkx_s_reads_alike() -> None:
    plain = nx.DiGraph([("a", "c", {"w": 3}), ("b", "c", {"w": 1})])
    frozen: Any = convert_from_nx(plain, edge_attrs={"w": 1})

    assert shown(frozen)[1:] == shown(plain)[1:]
    assert str(frozen) == "FrozenDiGraph with 3 nodes and 2 edges"
    with pytest.raises(AttributeError, match="no attribute 'no_such_thing'"):
        _ = frozen.no_such_thing
