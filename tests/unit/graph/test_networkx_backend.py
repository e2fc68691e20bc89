import networkx as nx
import pytest

from tests.fakes.graphs import Edge, Task, graph_by_hand
from tracereplay.graph.array_graph import FrozenDiGraph
from tracereplay.graph.kinds import EdgeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.graph.networkx_backend import backend, convert_from_nx, convert_to_nx


@pytest.fixture
def graph() -> DependencyGraph:
    """A host of three segments that launches a kernel and waits for it; the launch leads from start to start.

    host     |0: 10|1: 5|          |2: 20|
    stream      3: |--- 40 ---|           lags: launch 8, wake-up 2
    """
    tasks = [Task(0, 10), Task(10, 5), Task(50, 20), Task(8, 40)]
    edges = [
        Edge(0, 1),
        Edge(1, 2),
        Edge(0, 3, lag=8, from_start=True, kind=EdgeKind.LAUNCH),
        Edge(3, 2, lag=2, kind=EdgeKind.SYNC),
    ]
    return graph_by_hand(tasks, edges)


def test_the_longest_path_is_the_chain_from_start_to_start(graph: DependencyGraph) -> None:
    # 0 to 3 by its launch after 8, 3 to 2 by its own 40 and a wake-up of 2; the host by itself is there after 10 + 5.
    assert nx.dag_longest_path(graph) == [0, 3, 2]
    assert nx.dag_longest_path_length(graph) == 50


def test_lags_alone_and_plain_counts_can_be_asked_for(graph: DependencyGraph) -> None:
    assert nx.dag_longest_path_length(graph, weight="lag_ns") == 10
    assert nx.dag_longest_path_length(graph, weight="from_start") == 1
    assert nx.dag_longest_path_length(graph, weight=None) == 2
    assert nx.dag_longest_path_length(graph, weight="unknown", default_weight=4) == 8


def test_an_attribute_that_is_text_cannot_be_summed(graph: DependencyGraph) -> None:
    with pytest.raises(TypeError, match="'kind' is not a number"):
        nx.dag_longest_path(graph, weight="kind")


def test_orders_run_generation_by_generation(graph: DependencyGraph) -> None:
    assert list(nx.topological_generations(graph)) == [[0], [1, 3], [2]]
    assert list(nx.topological_sort(graph)) == [0, 1, 3, 2]


def test_an_order_may_be_given(graph: DependencyGraph) -> None:
    assert nx.dag_longest_path(graph, topo_order=[0, 3, 1, 2]) == [0, 3, 2]


def test_what_lies_before_and_after_a_task_is_known(graph: DependencyGraph) -> None:
    assert (nx.ancestors(graph, 3), nx.descendants(graph, 1), nx.descendants(graph, 2)) == ({0}, {2}, set())
    assert (nx.has_path(graph, 0, 2), nx.has_path(graph, 1, 3), nx.has_path(graph, 3, 3)) == (True, False, True)


@pytest.mark.parametrize("call", [nx.ancestors, nx.descendants])
def test_a_node_that_is_not_there_is_networkx_s_error(call: "nx.utils.backends._dispatchable", graph: DependencyGraph) -> None:
    with pytest.raises(nx.NetworkXError, match="The node 9 is not in the digraph"):
        call(graph, 9)


def test_a_path_to_a_node_that_is_not_there_is_networkx_s_error(graph: DependencyGraph) -> None:
    with pytest.raises(nx.NodeNotFound, match="Target 9"):
        nx.has_path(graph, 0, 9)


def test_every_other_function_runs_on_a_copy(graph: DependencyGraph) -> None:
    assert nx.number_weakly_connected_components(graph) == 1
    assert list(nx.all_topological_sorts(graph)) == [[0, 3, 1, 2], [0, 1, 3, 2]]
    assert sorted(nx.transitive_reduction(graph).edges) == [(0, 1), (0, 3), (1, 2), (3, 2)]
    assert nx.number_of_nodes(graph) == 4


def test_nothing_may_change_the_graph(graph: DependencyGraph) -> None:
    with pytest.raises(NotImplementedError, match="relabel_nodes"):
        nx.relabel_nodes(graph, {0: 9}, copy=False)

    assert 9 in nx.relabel_nodes(graph, {0: 9})


def test_the_backend_leaves_networkx_s_configuration_alone(graph: DependencyGraph) -> None:
    nx.dag_longest_path(graph)

    assert not nx.config.fallback_to_nx
    assert nx.config.backend_priority.algos == []


def test_of_parallel_edges_the_one_that_leads_latest_is_shown() -> None:
    edges = [
        Edge(0, 1, lag=12, from_start=True, kind=EdgeKind.LAUNCH),
        Edge(0, 1, lag=5, kind=EdgeKind.EVENT_WAIT),
        Edge(0, 1, kind=EdgeKind.STREAM_ORDER),
    ]

    graph = graph_by_hand([Task(0, 10), Task(20, 5)], edges)

    assert graph.number_of_edges() == 1
    assert graph.to_networkx().edges[0, 1]["kind"] == "event_wait"
    assert nx.dag_longest_path_length(graph) == 15


def test_a_networkx_graph_becomes_arrays_and_comes_back() -> None:
    plain = nx.DiGraph([("a", "c", {"w": 3}), ("b", "c"), ("a", "b", {"w": 4, "other": 1})])

    frozen = convert_from_nx(plain, edge_attrs={"w": 1})

    assert isinstance(frozen, FrozenDiGraph)
    back = convert_to_nx(frozen)
    assert list(back.adj["a"].items()) == [("c", {"w": 3}), ("b", {"w": 4})]
    assert (list(back), list(back.pred["c"].items())) == (["a", "c", "b"], [("a", {"w": 3}), ("b", {"w": 1})])


@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiDiGraph])
def test_other_kinds_of_graph_do_not_become_arrays(kind: type) -> None:
    with pytest.raises(NotImplementedError, match="directed graphs without parallel edges"):
        convert_from_nx(kind([(1, 2)]))


def test_weights_that_arrays_cannot_hold_are_left_to_networkx() -> None:
    plain = nx.DiGraph([(1, 2, {"weight": 2**80}), (2, 3, {"weight": 1})])

    with nx.config(cache_converted_graphs=False), nx.config.backend_priority(algos=["tracereplay"]):
        assert nx.dag_longest_path_length(plain) == 2**80 + 1


def test_what_is_no_function_of_networkx_is_no_attribute() -> None:
    assert not hasattr(backend, "no_such_function")
