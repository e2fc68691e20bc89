"""Laws of transfers that share links, on random graphs, and a simulation in exact fractions that knows nothing of ours."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.random_graphs import graphs
from tracereplay.graph.model import NO_RELEASE, DependencyGraph
from tracereplay.replay.contention import Links, links_of, replay_on_links, work_on_links
from tracereplay.replay.engine import replay
from tracereplay.replay.schedule import Schedule

LAW = settings(max_examples=150, deadline=None)
LINKS = 3
Routes = dict[int, list[int]]
ROUTE = st.lists(st.integers(0, LINKS - 1), unique=True, max_size=LINKS)
CAPACITY = st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(2), Fraction(7, 3)])
LOAD = st.sampled_from([0.125, 1 / 3, 0.5, 0.9, 1.0])
CAPACITIES = st.lists(CAPACITY, min_size=LINKS, max_size=LINKS)


def routes_of(graph: DependencyGraph, drawn: list[list[int]]) -> Routes:
    return {n: drawn[n] for n in range(len(graph))}


def same(a: Schedule, b: Schedule) -> None:
    np.testing.assert_array_equal(a.start_ns, b.start_ns)
    np.testing.assert_array_equal(a.end_ns, b.end_ns)
    np.testing.assert_array_equal(a.waited_for, b.waited_for)


@LAW
@given(graphs())
def test_without_links_the_loop_is_the_compiled_pass(graph: DependencyGraph) -> None:
    same(replay(graph), replay_on_links(graph, links_of(graph, {}, [])))


@LAW
@given(graphs(), st.lists(ROUTE, min_size=20, max_size=20))
def test_links_that_hold_all_their_transfers_change_nothing(graph: DependencyGraph, drawn: list[list[int]]) -> None:
    same(replay(graph), replay_on_links(graph, links_of(graph, routes_of(graph, drawn), [len(graph)] * LINKS)))


@LAW
@given(graphs(), st.lists(ROUTE, min_size=20, max_size=20), CAPACITIES, st.lists(LOAD, min_size=60, max_size=60))
def test_the_work_behind_a_recorded_schedule_gives_that_schedule_again(
    graph: DependencyGraph, drawn: list[list[int]], capacity: list[Fraction], loads: list[float]
) -> None:
    links = links_of(graph, routes_of(graph, drawn), [float(c) for c in capacity])
    links = replace(links, load=np.array(loads[: links.link.size]))
    recorded = replay(graph)

    work_ns = work_on_links(graph, links, recorded)

    assert (work_ns <= recorded.end_ns - recorded.start_ns + 1e-6).all()
    same(recorded, replay_on_links(graph, links, work_ns=work_ns))


@LAW
@given(graphs(), st.lists(ROUTE, min_size=20, max_size=20), CAPACITIES)
def test_loads_of_one_are_no_loads_and_half_loads_are_twice_the_capacity(
    graph: DependencyGraph, drawn: list[list[int]], capacity: list[Fraction]
) -> None:
    links = links_of(graph, routes_of(graph, drawn), [float(c) for c in capacity])
    entries, twice = np.ones(links.link.size), replace(links, capacity=links.capacity * 2)

    same(replay_on_links(graph, links), replay_on_links(graph, replace(links, load=entries)))
    same(replay_on_links(graph, twice), replay_on_links(graph, replace(links, load=entries / 2)))


@LAW
@given(graphs())
def test_links_of_their_own_change_nothing(graph: DependencyGraph) -> None:
    same(replay(graph), replay_on_links(graph, links_of(graph, {n: [n] for n in range(len(graph))}, [1.0] * len(graph))))


@LAW
@given(graphs(), st.lists(ROUTE, min_size=20, max_size=20), CAPACITIES)
def test_no_transfer_ends_earlier_than_alone_and_no_task_before_what_it_waits_for(
    graph: DependencyGraph, drawn: list[list[int]], capacity: list[Fraction]
) -> None:
    routes = routes_of(graph, drawn)
    schedule = replay_on_links(graph, links_of(graph, routes, [float(c) for c in capacity]))

    for node in range(len(graph)):
        slowest = min([Fraction(1), *(capacity[link] for link in routes[node])])
        assert schedule.end_ns[node] - schedule.start_ns[node] >= graph.nodes.dur_ns[node] / slowest
    edges = graph.edges
    bound = np.where(edges.from_start, schedule.start_ns[edges.src], schedule.end_ns[edges.src])
    assert (schedule.start_ns[edges.dst] >= bound).all()


@LAW
@given(graphs(), st.lists(ROUTE, min_size=20, max_size=20), CAPACITIES)
def test_a_link_carries_no_more_than_its_capacity_in_any_span_of_time(
    graph: DependencyGraph, drawn: list[list[int]], capacity: list[Fraction]
) -> None:
    routes = routes_of(graph, drawn)
    schedule = replay_on_links(graph, links_of(graph, routes, [float(c) for c in capacity]))

    start, end, work = schedule.start_ns, schedule.end_ns, graph.nodes.dur_ns
    for link in range(LINKS):
        mine = np.array([n for n in range(len(graph)) if link in routes[n]], np.int64)
        for low in start[mine]:
            for high in end[mine]:
                inside = mine[(start[mine] >= low) & (end[mine] <= high)]
                assert work[inside].sum() <= float(capacity[link]) * (high - low) + 0.01 if inside.size else True


@LAW
@given(graphs(), st.lists(st.booleans(), min_size=20, max_size=20), st.sampled_from([Fraction(1, 2), Fraction(1)]))
def test_a_single_link_never_idles_while_a_transfer_wants_it(
    graph: DependencyGraph, chosen: list[bool], capacity: Fraction
) -> None:
    on_link = [n for n in range(len(graph)) if chosen[n] and graph.nodes.dur_ns[n] > 0]
    schedule = replay_on_links(graph, links_of(graph, {n: [0] for n in on_link}, [float(capacity)]))

    busy, latest = 0, np.iinfo(np.int64).min
    for begin, end in sorted((int(schedule.start_ns[n]), int(schedule.end_ns[n])) for n in on_link):
        busy += max(end - max(begin, latest), 0)
        latest = max(latest, end)
    # Each end is rounded up by less than a nanosecond.
    assert busy <= int(graph.nodes.dur_ns[on_link].sum()) / capacity + len(on_link)


def fair_rates(running: list[int], routes: Routes, capacity: list[Fraction]) -> dict[int, Fraction]:
    """Max-min fair rates from their definition: fix the transfers of the scarcest link, take their share away, go on."""
    rates: dict[int, Fraction] = {}
    left = dict(enumerate(capacity))
    while len(rates) < len(running):
        open_ = [n for n in running if n not in rates]
        shares = {k: left[k] / len(users) for k in left if (users := [n for n in open_ if k in routes[n]])}
        scarcest = min(shares, key=lambda k: shares[k], default=None)
        level = Fraction(1) if scarcest is None else min(shares[scarcest], Fraction(1))
        fixed = open_ if level == 1 else [n for n in open_ if scarcest in routes[n]]
        for n in fixed:
            rates[n] = level
            for link in routes[n]:
                left[link] -= level
    return rates


class Fluid:
    """The same job in continuous time and exact fractions, one event after the other over all tasks."""

    def __init__(self, graph: DependencyGraph, routes: Routes, capacity: list[Fraction]) -> None:
        self.graph, self.routes, self.capacity = graph, routes, capacity
        self.starts: dict[int, Fraction] = {}
        self.ends: dict[int, Fraction] = {}
        self.left: dict[int, Fraction] = {}
        self.now = Fraction(-(10**6))

    def begin(self, node: int) -> Fraction | None:
        """When a task may start, None while a source has not happened."""
        edges, nodes = self.graph.edges, self.graph.nodes
        hard, soft = [], []
        for i in np.flatnonzero(edges.dst == node):
            source = int(edges.src[i])
            bound = (self.starts if edges.from_start[i] else self.ends).get(source)
            if bound is None:
                return None
            hard.append(bound)
            soft.append(bound + int(edges.lag_ns[i]))
        release = Fraction(int(nodes.release_ns[node])) if nodes.release_ns[node] != NO_RELEASE else None
        starts = [
            *hard,
            *([max(soft) + int(nodes.residue_ns[node])] if soft else []),
            *([release] if release is not None else []),
        ]
        return max(starts)

    def run(self) -> list[Fraction]:
        """The end of each task."""
        count = len(self.graph)
        while len(self.ends) < count:
            rates = fair_rates(list(self.left), self.routes, self.capacity)
            pending = {n: when for n in range(count) if n not in self.starts and (when := self.begin(n)) is not None}
            finishes = {n: self.now + self.left[n] / rates[n] for n in self.left}
            then = min([*pending.values(), *finishes.values()])
            for n in list(self.left):
                self.left[n] -= rates[n] * (then - self.now)
                if self.left[n] == 0:
                    self.ends[n] = then
                    del self.left[n]
            self.now = then
            for n, when in pending.items():
                if when == then:
                    self.starts[n] = then
                    self.left[n] = Fraction(int(self.graph.nodes.dur_ns[n]))
                    if self.left[n] == 0:
                        self.ends[n] = then
                        del self.left[n]
        return [self.ends[n] for n in range(count)]


@settings(max_examples=60, deadline=None)
@given(graphs(longest_ns=1_000_000), st.lists(ROUTE, min_size=20, max_size=20), CAPACITIES)
def test_ends_are_those_of_an_exact_simulation_to_a_few_nanoseconds(
    graph: DependencyGraph, drawn: list[list[int]], capacity: list[Fraction]
) -> None:
    routes = routes_of(graph, drawn)

    ours = replay_on_links(graph, links_of(graph, routes, [float(c) for c in capacity])).end_ns
    exact = Fluid(graph, routes, capacity).run()

    # Every start and end on a link is rounded to a whole nanosecond, and what waits for it inherits that.
    rounding = 2 * len(graph)
    assert all(abs(int(a) - b) <= rounding for a, b in zip(ours, exact, strict=True))


@LAW
@given(graphs(), st.lists(ROUTE, min_size=20, max_size=20), CAPACITIES)
def test_the_same_input_gives_the_same_schedule(
    graph: DependencyGraph, drawn: list[list[int]], capacity: list[Fraction]
) -> None:
    links = links_of(graph, routes_of(graph, drawn), [float(c) for c in capacity])
    again = Links(links.first.copy(), links.link.copy(), links.capacity.copy())

    same(replay_on_links(graph, links), replay_on_links(graph, again))
