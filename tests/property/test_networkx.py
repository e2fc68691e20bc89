"""Whatever networkx answers for a plain graph, the arrays answer too."""

import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.simulated import jobs, wild_jobs
from tracereplay.graph.model import DependencyGraph

FEW = settings(max_examples=40, deadline=None)


def built(traces: list[TraceFile]) -> DependencyGraph:
    with tempfile.TemporaryDirectory() as folder:
        return graph_of(Path(folder), *traces)


def answer(call: Callable[..., Any], *arguments: Any) -> Any:
    """What a call gives, or what it refuses with."""
    try:
        result = call(*arguments)
        return list(result) if isinstance(result, Iterator) else result
    except nx.NetworkXException as error:
        return type(error)


@FEW
@given(st.one_of(jobs(), wild_jobs()))
def test_a_job_s_graph_answers_as_its_plain_copy(traces: list[TraceFile]) -> None:
    graph = built(traces)
    plain = graph.to_networkx()

    assert nx.dag_longest_path(graph) == nx.dag_longest_path(plain)
    assert nx.dag_longest_path_length(graph) == nx.dag_longest_path_length(plain)
    assert nx.dag_longest_path_length(graph, weight="lag_ns") == nx.dag_longest_path_length(plain, weight="lag_ns")
    assert list(nx.topological_generations(graph)) == list(nx.topological_generations(plain))
    assert (list(graph), len(graph), graph.number_of_edges()) == (list(plain), len(plain), plain.number_of_edges())
    for node in random.Random(1).sample(range(len(graph)), min(len(graph), 5)):
        assert nx.ancestors(graph, node) == nx.ancestors(plain, node)
        assert nx.descendants(graph, node) == nx.descendants(plain, node)
        assert (list(graph.successors(node)), list(graph.predecessors(node))) == (
            list(plain.successors(node)),
            list(plain.predecessors(node)),
        )


@st.composite
def digraphs(draw: st.DrawFn) -> "nx.DiGraph[str]":
    """Directed graphs, circles and loops among them, with whole, broken, negative and missing weights."""
    names = st.sampled_from("abcdefg")
    weights = st.one_of(st.none(), st.integers(-9, 9), st.floats(-9, 9).map(lambda x: round(x * 8) / 8))
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(draw(st.lists(names)))
    for u, v, weight in draw(st.lists(st.tuples(names, names, weights), max_size=14)):
        graph.add_edge(u, v, **({} if weight is None else {"weight": weight}))
    return graph


@FEW
@given(digraphs(), st.integers(-2, 2))
def test_a_networkx_graph_answers_as_itself(graph: "nx.DiGraph[str]", default: int) -> None:
    def here(function: Any) -> Callable[..., Any]:
        return lambda *arguments: function(*arguments, backend="tracereplay")

    graph.__networkx_cache__ = None  # networkx would keep the arrays of the first call and say so

    for function in (nx.dag_longest_path, nx.dag_longest_path_length):
        assert answer(here(function), graph, "weight", default) == answer(function, graph, "weight", default)
    for function in (
        nx.topological_sort,
        nx.topological_generations,
        nx.is_directed_acyclic_graph,
        nx.algorithms.dag.has_cycle,
    ):
        assert answer(here(function), graph) == answer(function, graph)
    for node in "abc":
        assert answer(here(nx.ancestors), graph, node) == answer(nx.ancestors, graph, node)
        assert answer(here(nx.descendants), graph, node) == answer(nx.descendants, graph, node)
        assert answer(here(nx.has_path), graph, node, "d") == answer(nx.has_path, graph, node, "d")


def test_a_long_chain_is_walked_without_recursion() -> None:
    chain = nx.path_graph(200_000, create_using=nx.DiGraph)

    assert nx.dag_longest_path_length(chain, backend="tracereplay") == 199_999
