"""The event loop with shared links: in, a graph, the links that transfers run over, a timing; out, a Schedule.

Transfers that overlap on a link share it fairly: each runs at the largest rate that takes nothing from one that has less
(max-min fairness by progressive filling; Bertsekas and Gallager, Data Networks, 2nd edition, section 6.5.2), and never
faster than alone. Everything else is decided by ``engine.forward``: with no shared links, or links that hold all their
transfers, the schedule is that of the compiled pass to the nanosecond.

    alone        A |----------|          10 ns at full rate
    two at once  A |--------------------|
                 B |--------------------|     half the rate each: both end at 20
    5 ns later   A |-----==========|          alone until 5, then half the rate: ends at 15
                 B      |==========-----|     half the rate until 15, then alone: ends at 20

Only starts and ends of transfers need a clock; what lies between them is known as soon as its sources are, so the heap
holds nothing else. Its entries are (time, end before start, running number, task, version): ties keep the order in which
they were made, and a prediction that a change of rates overtook is known by its version. No files, no randomness.
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from tracereplay.errors import UsageError
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import Timing, blank_schedule, check_timing, forward, recorded_timing
from tracereplay.replay.schedule import Schedule
from tracereplay.trace.times import Int64s

_END, _START = 0, 1
# Transfers end at whole nanoseconds, rounded up. Rates are floating point: less than this over a whole one is its error.
SLIVER_NS = 1e-3


@dataclass(frozen=True, slots=True)
class Links:
    """The links that each task runs over, in CSR form: those of node ``n`` are ``link[first[n]:first[n + 1]]``.

    ``capacity`` is per link how many transfers it carries at full rate, any number above 0. A task's work is its duration
    in the timing, which is the time it takes at full rate; it loads each of its links by its rate, times ``load`` where that
    is given (an entry of ``link`` each, above 0). A task without links, and one of no length, contends with nothing.
    """

    first: Int64s
    link: Int64s
    capacity: npt.NDArray[np.float64]
    load: npt.NDArray[np.float64] | None = None


def links_of(graph: DependencyGraph, routes: Mapping[int, Sequence[int]], capacity: Sequence[float]) -> Links:
    """The links of the tasks in ``routes`` (node to link numbers); all others have none.

    Raises:
        UsageError: a node or link that is not there, a link twice in a route, a capacity that is not a number above 0.
    """
    capacities = np.array(capacity, np.float64).reshape(-1)
    if not (np.isfinite(capacities) & (capacities > 0)).all():
        raise UsageError(f"capacities of links are {list(capacity)}", hint="give finite numbers above 0")
    for node, route in routes.items():
        if not 0 <= node < len(graph):
            raise UsageError(f"a route for task {node}", hint=f"the graph's tasks are 0 to {len(graph) - 1}")
        if len(set(route)) != len(route) or not all(0 <= link < capacities.size for link in route):
            raise UsageError(
                f"task {node} has the links {list(route)}", hint=f"name each link once, of 0 to {capacities.size - 1}"
            )
    width = np.zeros(len(graph) + 1, np.int64)
    for node, route in routes.items():
        width[node + 1] = len(route)
    flat = [link for node in sorted(routes) for link in routes[node]]
    return Links(np.cumsum(width), np.array(flat, np.int64), capacities)


def replay_on_links(
    graph: DependencyGraph, links: Links, timing: Timing | None = None, work_ns: npt.NDArray[np.float64] | None = None
) -> Schedule:
    """The schedule of a graph whose transfers share links, under the recorded timing by default. ``work_ns``: the work of the
    tasks on links, where it is not their duration in the timing (``work_on_links``).

    ``waited_for`` says why a task started when it did; what it lost to sharing is ``end - start - duration``. Linear in
    nodes plus edges, and per start or end of a transfer in the transfers that are connected to it over busy links.

    Raises:
        UsageError: the timing or the links are not of this graph, or the timing is not in whole nanoseconds.
    """
    timing = timing or recorded_timing(graph)
    check_timing(graph, timing)
    _check_links(graph, links)
    schedule = blank_schedule(graph)
    edges = graph.edges
    outgoing = np.argsort(edges.src, kind="stable")
    tasks = _Tasks(
        edges.first, edges.src, edges.dst, edges.from_start, timing.lag_ns, timing.dur_ns, timing.residue_ns,
        timing.release_ns, np.searchsorted(edges.src[outgoing], np.arange(len(graph) + 1)), outgoing,
        timing.dur_ns.astype(np.float64) if work_ns is None else work_ns,
    )  # fmt: skip
    missing = np.diff(edges.first)
    _run(tasks, _network(links), _Progress(schedule.start_ns, schedule.end_ns, schedule.waited_for, missing))
    return schedule


def work_on_links(graph: DependencyGraph, links: Links, schedule: Schedule) -> npt.NDArray[np.float64]:
    """The work of each task in ns that shared these links in this schedule: the integral of its rate from its start to its end,
    its length where it has no links. ``replay_on_links`` with that work gives the schedule again, to the nanosecond.

    Raises:
        UsageError: the links are not of this graph.
    """
    _check_links(graph, links)
    work = (schedule.end_ns - schedule.start_ns).astype(np.float64)
    tasks = np.flatnonzero((np.diff(links.first) > 0) & (work > 0))
    work[tasks] = 0.0
    times = np.concatenate([schedule.start_ns[tasks], schedule.end_ns[tasks]])
    order = np.argsort(times, kind="stable")
    _integrate(_network(links), np.concatenate([tasks, tasks])[order], order < tasks.size, times[order], work)
    return work


def _check_links(graph: DependencyGraph, links: Links) -> None:
    if links.first.shape != (len(graph) + 1,):
        raise UsageError(
            f"links of {links.first.size - 1} tasks, the graph has {len(graph)}", hint="make them with links_of(graph, ...)"
        )


class _Tasks(NamedTuple):
    """Graph and timing as numba takes them; ``out_edge`` are the edges by source."""

    first: Any
    src: Any
    dst: Any
    from_start: Any
    lag: Any
    dur: Any
    residue: Any
    release: Any
    out_first: Any
    out_edge: Any
    work: Any


class _Progress(NamedTuple):
    """The schedule so far, and for each task how many of its edges still wait for their source."""

    start: Any
    end: Any
    waited_for: Any
    missing: Any


class _Network(NamedTuple):
    """Links and the transfers that run on them now.

    A task: ``work`` left at ``since``, ``rate`` since then, ``version`` of its prediction, ``seen`` a mark of searches. A
    link: ``head`` of its list of running transfers, ``reached`` a mark, and while rates are filled in its capacity ``used``,
    how many transfers are still ``open`` and their loads ``opened``, whether it is ``full``. An entry of ``link``: its
    ``load``, its neighbours ``after`` and ``before`` in the link's list, and ``owner``, its task.
    """

    first: Any
    link: Any
    capacity: Any
    work: Any
    since: Any
    rate: Any
    version: Any
    seen: Any
    head: Any
    used: Any
    open: Any
    opened: Any
    full: Any
    reached: Any
    load: Any
    after: Any
    before: Any
    owner: Any


def _network(links: Links) -> _Network:
    nodes, entries, count = links.first.size - 1, links.link.size, links.capacity.size
    return _Network(
        first=links.first,
        link=links.link,
        capacity=links.capacity,
        work=np.zeros(nodes),
        since=np.zeros(nodes, np.int64),
        rate=np.zeros(nodes),
        version=np.zeros(nodes, np.int64),
        seen=np.zeros(nodes, np.int64),
        head=np.full(count, -1, np.int64),
        used=np.zeros(count),
        open=np.zeros(count, np.int64),
        opened=np.zeros(count),
        full=np.zeros(count, np.bool_),
        reached=np.zeros(count, np.int64),
        load=np.ones(entries) if links.load is None else links.load,
        after=np.full(entries, -1, np.int64),
        before=np.full(entries, -1, np.int64),
        owner=np.repeat(np.arange(nodes), np.diff(links.first)),
    )


@numba.njit(cache=True)
def _run(tasks: Any, net: Any, done: Any) -> None:
    """The loop: everything that is known is decided; else the next event; rates once per instant, after all its events."""
    ready = [node for node in range(tasks.dur.shape[0]) if done.missing[node] == 0]
    heap = [(np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)) for _ in range(0)]
    changed = [np.int64(0) for _ in range(0)]
    now = np.int64(0)
    made = np.int64(0)
    while True:
        made = _decide(tasks, net, done, ready, heap, made)
        if len(heap) > 0 and heap[0][0] == now:
            _, kind, _, node, version = heapq.heappop(heap)
            if kind == _START:
                _join(net, node, tasks.work[node], now, changed)
            elif version == net.version[node]:
                _leave(net, node, changed)
                done.end[node] = now
                _release(tasks, done, node, False, ready)
        elif len(changed) > 0:
            made = _settle(net, changed, now, heap, made)
        elif len(heap) > 0:
            now = heap[0][0]
        else:
            return


@numba.njit(cache=True)
def _decide(tasks: Any, net: Any, done: Any, ready: Any, heap: Any, made: Any) -> Any:  # noqa: PLR0913, PLR0917 - as in engine
    """Start all tasks whose sources have happened; transfers over links are put on the heap for when they start."""
    one = np.empty(1, np.int64)
    while len(ready) > 0:
        node = one[0] = ready.pop()
        forward(
            one, tasks.first, tasks.src, tasks.from_start, tasks.lag, tasks.dur, tasks.residue, tasks.release,
            done.start, done.end, done.waited_for,
        )  # fmt: skip
        _release(tasks, done, node, True, ready)
        if net.first[node] < net.first[node + 1] and tasks.dur[node] > 0:
            heapq.heappush(heap, (done.start[node], np.int64(_START), made, np.int64(node), np.int64(0)))
            made += 1
        else:
            _release(tasks, done, node, False, ready)
    return made


@numba.njit(cache=True)
def _release(tasks: Any, done: Any, node: Any, by_start: Any, ready: Any) -> None:
    """A task has started (or ended): what waited only for that is ready."""
    for k in range(tasks.out_first[node], tasks.out_first[node + 1]):
        edge = tasks.out_edge[k]
        if tasks.from_start[edge] == by_start:
            target = tasks.dst[edge]
            done.missing[target] -= 1
            if done.missing[target] == 0:
                ready.append(target)


@numba.njit(cache=True)
def _join(net: Any, node: Any, work: Any, now: Any, changed: Any) -> None:
    """A transfer begins on its links; its rate is found when the instant's events are all in."""
    net.work[node] = work
    net.rate[node] = 0.0
    net.since[node] = now
    for entry in range(net.first[node], net.first[node + 1]):
        link = net.link[entry]
        net.after[entry] = net.head[link]
        net.before[entry] = -1
        if net.head[link] >= 0:
            net.before[net.head[link]] = entry
        net.head[link] = entry
        changed.append(link)


@numba.njit(cache=True)
def _leave(net: Any, node: Any, changed: Any) -> None:
    """A transfer has ended: its links are free for the others."""
    for entry in range(net.first[node], net.first[node + 1]):
        link = net.link[entry]
        if net.before[entry] >= 0:
            net.after[net.before[entry]] = net.after[entry]
        else:
            net.head[link] = net.after[entry]
        if net.after[entry] >= 0:
            net.before[net.after[entry]] = net.before[entry]
        changed.append(link)


@numba.njit(cache=True)
def _settle(net: Any, changed: Any, now: Any, heap: Any, made: Any) -> Any:
    """New rates for all transfers that are connected to a changed link; a transfer whose rate changes is predicted anew."""
    links, members = _connected(net, changed, made + 1)
    made += 1
    rates = _fill(net, links, members)
    for k in range(len(members)):
        node = members[k]
        if rates[k] != net.rate[node]:
            net.work[node] = max(net.work[node] - net.rate[node] * (now - net.since[node]), 0.0)
            net.since[node] = now
            net.rate[node] = rates[k]
            net.version[node] += 1
            until = now + np.int64(max(math.ceil(net.work[node] / rates[k] - SLIVER_NS), 0))
            heapq.heappush(heap, (until, np.int64(_END), made, node, net.version[node]))
            made += 1
    return made


@numba.njit(cache=True)
def _integrate(net: Any, node: Any, starts: Any, time: Any, work: Any) -> None:
    """Work done by tasks that start and end as given, in order of time: rates once per instant, after all its events."""
    changed = [np.int64(0) for _ in range(0)]
    mark = np.int64(0)
    for k in range(node.size):
        if starts[k]:
            _join(net, node[k], 0.0, time[k], changed)
        else:
            work[node[k]] = net.work[node[k]] + net.rate[node[k]] * (time[k] - net.since[node[k]])
            _leave(net, node[k], changed)
        if k + 1 == node.size or time[k + 1] > time[k]:
            mark += 1
            links, members = _connected(net, changed, mark)
            rates = _fill(net, links, members)
            for m in range(len(members)):
                net.work[members[m]] += net.rate[members[m]] * (time[k] - net.since[members[m]])
                net.since[members[m]] = time[k]
                net.rate[members[m]] = rates[m]


@numba.njit(cache=True)
def _connected(net: Any, changed: Any, mark: Any) -> Any:
    """All links and running transfers that share links with the changed ones, directly or over others; empties the list."""
    links = [np.int64(0) for _ in range(0)]
    members = [np.int64(0) for _ in range(0)]
    while len(changed) > 0:
        link = changed.pop()
        if net.reached[link] == mark:
            continue
        net.reached[link] = mark
        links.append(link)
        entry = net.head[link]
        while entry >= 0:
            node = net.owner[entry]
            if net.seen[node] != mark:
                net.seen[node] = mark
                members.append(node)
                for other in range(net.first[node], net.first[node + 1]):
                    changed.append(net.link[other])
            entry = net.after[entry]
    return links, members


@numba.njit(cache=True)
def _fill(net: Any, links: Any, members: Any) -> Any:
    """Max-min fair rates: all rise together; those over a link that is full stay where they are, and all at full rate."""
    for link in links:
        net.used[link] = 0.0
        net.open[link] = 0
        net.opened[link] = 0.0
    for node in members:
        for entry in range(net.first[node], net.first[node + 1]):
            net.open[net.link[entry]] += 1
            net.opened[net.link[entry]] += net.load[entry]
    rates = np.zeros(len(members))
    rising = len(members)
    level = 0.0
    while rising > 0:
        level = max(level, _next_level(net, links))
        for k in range(len(members)):
            if rates[k] == 0.0 and (level >= 1.0 or _is_held(net, members[k])):
                rates[k] = level
                rising -= 1
                for entry in range(net.first[members[k]], net.first[members[k] + 1]):
                    net.used[net.link[entry]] += level * net.load[entry]
                    net.open[net.link[entry]] -= 1
                    net.opened[net.link[entry]] -= net.load[entry]
    return rates


@numba.njit(cache=True)
def _next_level(net: Any, links: Any) -> Any:
    """To what rate all open transfers can rise before a link is full or they run at full rate; marks those links."""
    level = 1.0
    for link in links:
        if net.open[link] > 0:
            level = min(level, (net.capacity[link] - net.used[link]) / net.opened[link])
    for link in links:
        net.full[link] = net.open[link] > 0 and (net.capacity[link] - net.used[link]) / net.opened[link] <= level
    return level


@numba.njit(cache=True)
def _is_held(net: Any, node: Any) -> Any:
    for entry in range(net.first[node], net.first[node + 1]):  # noqa: SIM110 - numba takes no generators
        if net.full[net.link[entry]]:
            return True
    return False
