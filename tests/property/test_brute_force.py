"""Predictions on the project's own recordings against a brute-force longest path with networkx."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from tracereplay.analyzers.attribution import attribute
from tracereplay.analyzers.prediction import predict
from tracereplay.graph.build import build_graph
from tracereplay.graph.model import NO_RELEASE, DependencyGraph
from tracereplay.replay.engine import Timing, recorded_timing, replay
from tracereplay.replay.steps import step_times, summarise
from tracereplay.replay.whatif import apply, parse_scale
from tracereplay.trace.job import read_job

STEPS = (10, 11, 12, 13, 14, 15)


def brute_force(graph: DependencyGraph, timing: Timing) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of every task as longest paths from a common origin in a graph of starts and ends.

    ``max(max(bound), max(bound + lag) + residue)`` is ``max(bound + max(lag + residue, 0))``: a longest path.
    """
    origin = int(timing.release_ns[timing.release_ns != NO_RELEASE].min())
    path = nx.DiGraph()
    for n in range(len(graph)):
        path.add_edge(("start", n), ("end", n), weight=int(timing.dur_ns[n]))
        if timing.release_ns[n] != NO_RELEASE:
            path.add_edge("origin", ("start", n), weight=int(timing.release_ns[n]) - origin)
    edges = graph.edges
    for i in range(len(edges)):
        source = ("start" if edges.from_start[i] else "end", int(edges.src[i]))
        target = ("start", int(edges.dst[i]))
        weight = max(int(timing.lag_ns[i]) + int(timing.residue_ns[edges.dst[i]]), 0)
        known = path.get_edge_data(source, target, {"weight": -1})["weight"]
        path.add_edge(source, target, weight=max(weight, known))
    distance: dict[object, int] = {}
    for node in nx.topological_sort(path):
        distance[node] = max((distance[p] + path[p][node]["weight"] for p in path.predecessors(node)), default=0)
    start = np.array([distance["start", n] for n in range(len(graph))]) + origin
    end = np.array([distance["end", n] for n in range(len(graph))]) + origin
    return start, end


def brute_step_ns(graph: DependencyGraph, timing: Timing) -> int:
    """The job's step by brute force: per number the longest rank, then the mean. CPU recordings: marks outlast the work
    or drain after it by what they did."""
    start, end = brute_force(graph, timing)
    longest: dict[int, int] = {}
    for span in graph.steps:
        longest[span.number] = max(longest.get(span.number, 0), int(end[span.last_node] - start[span.first_node]))
    return round(sum(longest.values()) / len(longest))


def one_step(samples: Path, number: int, name: str = "dlrm_2rank") -> DependencyGraph:
    return build_graph(read_job([str(samples / name)]), steps=frozenset({number}))


@pytest.mark.parametrize("number", STEPS)
def test_halving_all_to_all_saves_at_most_half_of_its_transfer_on_the_path(samples: Path, number: int) -> None:
    graph = one_step(samples, number)
    path_ns = {p.name: p.ns for p in attribute(graph).parts}.get("collective_transfer", 0)
    changes = [parse_scale("collective:all_to_all=0.5x")]

    prediction = predict(graph, changes)
    brute = brute_step_ns(graph, apply(graph, changes).timing)

    assert prediction.predicted_ns == pytest.approx(brute, rel=0.02)
    saved_ns = prediction.baseline_ns - (prediction.predicted_ns or 0)
    assert 0 <= saved_ns <= path_ns / 2 + len(graph.collectives)


@pytest.mark.parametrize("number", STEPS)
def test_ten_times_all_to_all_costs_at_least_what_each_transfer_grows_beyond_its_slack(samples: Path, number: int) -> None:
    graph = one_step(samples, number)
    changes = [parse_scale("collective:all_to_all=10x")]

    prediction = predict(graph, changes)
    brute = brute_step_ns(graph, apply(graph, changes).timing)

    assert prediction.predicted_ns == pytest.approx(brute, rel=0.02)
    added_ns = (prediction.predicted_ns or 0) - prediction.baseline_ns
    grown = [(n, 9 * int(graph.nodes.dur_ns[n])) for n in _transfers(graph)]
    slack_ns, path = _slack_and_path(graph)
    assert added_ns >= max(more - slack_ns[n] for n, more in grown) - len(grown)
    assert added_ns >= sum(more for n, more in grown if n in path) - len(grown)


def _transfers(graph: DependencyGraph) -> list[int]:
    return [n for c in graph.collectives if c.name == "all_to_all" for n in c.transfers]


def _slack_and_path(graph: DependencyGraph) -> tuple[list[int], set[int]]:
    """How much later each task could end before the longest rank's step does, and the tasks whose time is on the path to
    that end, both by brute force."""
    recorded = recorded_timing(graph)
    start, end = brute_force(graph, recorded)
    edges, path = graph.edges, set[int]()
    node, whole = max(graph.steps, key=lambda s: s.end_ns - s.start_ns).last_node, True
    while node >= 0:
        path |= {node} if whole else set()
        before = [
            (int(edges.src[i]), not edges.from_start[i])
            for i in range(edges.first[node], edges.first[node + 1])
            if _reached(graph, recorded, i, node, start if edges.from_start[i] else end) == start[node]
        ]
        node, whole = before[0] if before else (-1, True)
    return [int(late) for late in _latest_ends(graph, recorded, end) - end], path


def _reached(graph: DependencyGraph, timing: Timing, edge: int, node: int, bound: np.ndarray) -> int:
    weight = max(int(timing.lag_ns[edge]) + int(timing.residue_ns[node]), 0)
    return int(bound[graph.edges.src[edge]]) + weight


def _latest_ends(graph: DependencyGraph, timing: Timing, end: np.ndarray) -> np.ndarray:
    """The latest end of every task that leaves the end of the longest rank's step as it is."""
    spans = max(graph.steps, key=lambda s: s.end_ns - s.start_ns)
    goal = spans.last_node
    latest = np.full(len(graph), int(end.max()) + 10**12)
    latest[goal] = int(end[goal])
    edges = graph.edges
    for n in graph.replay_order[::-1]:
        for i in range(edges.first[n], edges.first[n + 1]):
            weight = max(int(timing.lag_ns[i]) + int(timing.residue_ns[n]), 0)
            limit = int(latest[n]) - int(timing.dur_ns[n]) - weight
            source = int(edges.src[i])
            if edges.from_start[i]:
                limit += int(timing.dur_ns[source])
            latest[source] = min(int(latest[source]), limit)
    return latest


@pytest.mark.parametrize("scale", ["collective:all_to_all=0.5x", "collective:all_to_all=10x", "host=0.5x", "class:gemm=3x"])
def test_all_steps_together_equal_brute_force(samples: Path, scale: str) -> None:
    graph = build_graph(read_job([str(samples / "dlrm_2rank")]))
    timing = apply(graph, [parse_scale(scale)]).timing

    schedule = replay(graph, timing)
    start, end = brute_force(graph, timing)

    np.testing.assert_array_equal(schedule.start_ns, start)
    np.testing.assert_array_equal(schedule.end_ns, end)


def test_a_faster_waiting_host_still_waits_for_a_deliberately_slow_peer(samples: Path) -> None:
    """Rank 1 sleeps 30 ms before each forward pass: half the host time on rank 0 only makes rank 0 wait longer."""
    graph = one_step(samples, 4, "dlrm_2rank_slow_peer")
    first = next(c for c in graph.collectives if c.name == "all_to_all" and c.order == 0)
    before, after = replay(graph), replay(graph, apply(graph, [parse_scale("host=0.5x@rank=0")]).timing)

    def wait_ns(starts: np.ndarray) -> int:
        return int(starts[first.arrivals[1]] - starts[first.arrivals[0]])

    assert wait_ns(before.start_ns) >= 25_000_000
    assert wait_ns(after.start_ns) >= wait_ns(before.start_ns)
    assert after.start_ns[first.arrivals[1]] == before.start_ns[first.arrivals[1]]


def test_half_the_host_time_everywhere_shortens_a_wait_only_by_what_the_peer_s_own_host_saves(samples: Path) -> None:
    graph = one_step(samples, 4, "dlrm_2rank_slow_peer")
    timing = apply(graph, [parse_scale("host=0.5x")]).timing

    predicted = summarise(graph, step_times(graph, replay(graph, timing))).mean_ns

    assert predicted == pytest.approx(brute_step_ns(graph, timing), rel=0.02)
