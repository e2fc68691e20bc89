"""Build the dependency graph of a job: in, a Job; out, a DependencyGraph.

The stages, each a function below: lay out every rank; apply the rules; join collectives over ranks; set lags and residues;
order. A rule never sees another rule's edges.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tracereplay.errors import TraceError
from tracereplay.graph.draft import HostThread, RankDraft
from tracereplay.graph.edges import Edges, Found, concat_edges
from tracereplay.graph.faults import EdgeFaults, edge_faults, fault_counts, fault_warnings
from tracereplay.graph.kinds import Basis, EdgeKind, NodeKind
from tracereplay.graph.lags import Alike, populations, residues, typical_lags
from tracereplay.graph.layout import lay_out, step_of_time
from tracereplay.graph.model import NO_RELEASE, Collective, Coverage, DependencyGraph, EdgeArrays, Nodes, StepSpan
from tracereplay.graph.rules.autograd import autograd
from tracereplay.graph.rules.collective import join_collectives
from tracereplay.graph.rules.device_wait import device_wait
from tracereplay.graph.rules.event_wait import event_wait
from tracereplay.graph.rules.graph_end import graph_end
from tracereplay.graph.rules.host_collective import ended_when_waited_for, host_collective
from tracereplay.graph.rules.launch import launch
from tracereplay.graph.rules.launch_queue import launch_queue
from tracereplay.graph.rules.stream_order import stream_order
from tracereplay.graph.rules.sync import sync
from tracereplay.graph.rules.thread_order import thread_order
from tracereplay.graph.rules.thread_wait import thread_wait
from tracereplay.graph.topology import topological_order
from tracereplay.trace.classify import WorkClass, class_of_role, classes_of_names
from tracereplay.trace.job import Job, listed
from tracereplay.trace.schema import Role
from tracereplay.trace.steps import Step
from tracereplay.trace.times import Int64s, union_ns

RANK_RULES: tuple[Callable[[RankDraft], Found], ...] = (
    thread_order,
    launch,
    stream_order,
    event_wait,
    graph_end,
    sync,
    launch_queue,
    autograd,
)
# What one rank does not show may show on all of them.
JOB_RULES: tuple[Callable[[list[RankDraft]], list[Found]], ...] = (host_collective, device_wait, thread_wait)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What the stages have made so far."""

    drafts: list[RankDraft]
    found: list[Found]
    collectives: tuple[Collective, ...]
    edges: Edges
    count: int
    cut: int


def build_graph(job: Job, *, steps: frozenset[int] | None = None) -> DependencyGraph:
    """The dependency graph of the job's whole steps; ``steps`` keeps those numbers only. Linear in events times log events.

    Raises:
        TraceError: a rank without a whole step, or ranks without a common one.
    """
    drafts: list[RankDraft] = []
    for index, trace in enumerate(job.ranks):
        drafts.append(lay_out(index, trace.table, drafts[-1].next_node if drafts else 0, steps))
    _refuse_no_common_step(drafts)
    drafts, cut = ended_when_waited_for(drafts)
    found = [_merge([rule(draft) for rule in RANK_RULES]) for draft in drafts]
    for rule in JOB_RULES:
        found = [_merge([a, b]) for a, b in zip(found, rule(drafts), strict=True)]
    base = drafts[-1].next_node
    collectives, joined = join_collectives(job, drafts, base)
    count = base + sum(c.rendezvous is not None for c in collectives)
    parts = _Parts(drafts, found, collectives, concat_edges([*(f.edges for f in found), joined]), count, cut)
    return _assemble(job, parts)


def _refuse_no_common_step(drafts: list[RankDraft]) -> None:
    common = set.intersection(*({s.number for s in d.marks.whole} for d in drafts))
    if not common:
        ranges = "; ".join(f"{d.table.path}: {sorted(s.number for s in d.marks.whole)}" for d in drafts[:4])
        raise TraceError(f"the ranks have no whole step in common ({ranges})", hint="pass the ranks of one recording")


def _merge(results: list[Found]) -> Found:
    return Found(
        concat_edges([r.edges for r in results]),
        np.concatenate([r.own_node for r in results]),
        np.concatenate([r.own_ns for r in results]),
        sum(r.refuted for r in results),
        sum(r.uncovered_ns for r in results),
    )


def _assemble(job: Job, parts: _Parts) -> DependencyGraph:
    on_device = any((~d.work.on_host).any() for d in parts.drafts)
    nodes = _nodes(parts, host_carries_classes=not on_device)
    edges, dropped = _acyclic(parts.edges, nodes)
    end_ns = nodes.start_ns + nodes.dur_ns
    lags = typical_lags(edges, nodes.start_ns, end_ns, nodes.population)
    residue_ns = residues(edges, lags, nodes.start_ns, end_ns)
    faults = edge_faults(edges, dropped, nodes.start_ns, end_ns)
    counts = [fault_counts(draft) for draft in parts.drafts]
    pinned = np.ones(parts.count, np.bool_)
    pinned[edges.dst] = False
    nodes = _with_residues(nodes, residue_ns, np.where(pinned, nodes.start_ns, NO_RELEASE))
    graph_edges = _by_destination(edges, lags, parts.count)
    return DependencyGraph(
        tables=tuple(t.table for t in job.ranks),
        rank_numbers=tuple(t.rank for t in job.ranks),
        nodes=nodes,
        edges=graph_edges,
        replay_order=topological_order(parts.count, graph_edges.src, graph_edges.dst),
        steps=tuple(span for draft in parts.drafts for span in _spans(draft)),
        collectives=parts.collectives,
        coverage=_coverage(parts, edges, pinned, faults, counts),
        host_carries_classes=not on_device,
        warnings=(*_warnings(job, parts), *fault_warnings(parts.drafts, counts, nodes, faults)),
        hosts=tuple(job.host_of(trace.rank) for trace in job.ranks),
    )


def _nodes(parts: _Parts, *, host_carries_classes: bool) -> Nodes:
    count = parts.count
    columns = {
        name: np.full(count, -1, np.int64)
        for name in ("rank", "row", "start", "dur", "step", "collective", "owner_row", "queue", "in_graph")
    }
    kind, work_class = np.zeros(count, np.int8), np.zeros(count, np.int8)
    for draft, found in zip(parts.drafts, parts.found, strict=True):
        _fill_host(draft, columns, work_class, host_carries_classes)
        np.minimum.at(columns["dur"], found.own_node, found.own_ns)
        _fill_work(draft, columns, kind, work_class)
        mine = slice(draft.threads[0].first_node if draft.threads else draft.first_work_node, draft.next_node)
        columns["rank"][mine] = draft.index
    for number, collective in enumerate(parts.collectives):
        _fill_collective(number, collective, columns, kind, work_class)
    nothing = np.zeros(count, np.int64)
    alike = Alike(columns["rank"], kind, work_class, columns["dur"], columns["queue"], columns["in_graph"] == 1)
    return Nodes(
        columns["rank"], kind, work_class, columns["row"], columns["start"], columns["dur"],
        nothing, nothing, columns["step"], columns["collective"], columns["owner_row"], populations(alike),
    )  # fmt: skip


def _fill_host(draft: RankDraft, columns: dict[str, Int64s], work_class: np.ndarray, carries: bool) -> None:
    classes = classes_of_names(draft.table.names, operators=True, rules=draft.table.rules)
    for thread in draft.threads:
        part = slice(thread.first_node, thread.first_node + thread.node_count)
        tiling = thread.tiling
        rows = np.where(tiling.owner >= 0, thread.rows[tiling.owner], -1)
        columns["row"][part] = rows
        columns["start"][part] = tiling.start_ns
        columns["dur"][part] = tiling.end_ns - tiling.start_ns
        columns["step"][part] = step_of_time(draft.marks.whole, tiling.start_ns)
        if carries:
            operator = (rows >= 0) & (draft.table.column("role")[rows] == Role.CPU_OP)
            own = classes[draft.table.codes("name")[rows]]
            # A c10d call is host work that enqueues; the collective itself is another task.
            own = np.where(own == WorkClass.COLLECTIVE, int(WorkClass.OTHER), own)
            work_class[part] = np.where(operator, own, int(WorkClass.HOST))


def _fill_work(draft: RankDraft, columns: dict[str, Int64s], kind: np.ndarray, work_class: np.ndarray) -> None:
    work, table = draft.work, draft.table
    nodes, last = draft.work_node, draft.work_last_node
    classes = classes_of_names(table.names, operators=False, rules=table.rules)[table.codes("name")[work.row]]
    roles = table.column("role")[work.row]
    for role in (Role.MEMCPY, Role.MEMSET):
        classes = np.where(roles == role, int(class_of_role(role) or WorkClass.OTHER), classes)
    steps = step_of_time(draft.marks.whole, draft.call_ns)
    columns["row"][nodes] = columns["row"][last] = work.row
    columns["owner_row"][nodes] = columns["owner_row"][last] = _owners(draft)
    columns["start"][nodes] = columns["start"][last] = work.start_ns
    columns["step"][nodes] = columns["step"][last] = steps
    columns["queue"][nodes] = columns["queue"][last] = work.queue
    columns["in_graph"][nodes] = columns["in_graph"][last] = work.launched_together
    columns["dur"][nodes] = 0
    columns["dur"][last] = work.end_ns - work.start_ns
    kind[nodes] = np.where(work.collective, int(NodeKind.ARRIVAL), int(NodeKind.DEVICE))
    kind[last] = np.where(work.collective, int(NodeKind.UNSPLIT), int(NodeKind.DEVICE))
    work_class[nodes] = work_class[last] = np.where(work.collective, int(WorkClass.COLLECTIVE), classes)


def _fill_collective(number: int, c: Collective, columns: dict[str, Int64s], kind: np.ndarray, work_class: np.ndarray) -> None:
    columns["collective"][[*c.arrivals, *c.transfers]] = number
    if c.rendezvous is None or c.transfer_ns is None:
        return
    meeting = max(c.start_ns)
    kind[c.rendezvous] = int(NodeKind.RENDEZVOUS)
    work_class[c.rendezvous] = int(WorkClass.COLLECTIVE)
    columns["collective"][c.rendezvous] = number
    columns["start"][c.rendezvous], columns["dur"][c.rendezvous] = meeting, 0
    for node, end in zip(c.transfers, c.end_ns, strict=True):
        # Ends differ by clock steps and wake-ups: a share cannot be longer than what is left after the rendezvous.
        share = min(c.transfer_ns, max(end - meeting, 0))
        kind[node] = int(NodeKind.TRANSFER)
        columns["start"][node], columns["dur"][node] = end - share, share


def _owners(draft: RankDraft) -> Int64s:
    """The host row under which each piece of work counts: the operator that owns it, else the call that enqueued it."""
    owners = draft.table.column("owner_row")[draft.work.row]
    return np.where(owners >= 0, owners, draft.call_row)


def _with_residues(nodes: Nodes, residue_ns: Int64s, release_ns: Int64s) -> Nodes:
    return replace(nodes, release_ns=release_ns, residue_ns=residue_ns)


def _acyclic(edges: Edges, nodes: Nodes) -> tuple[Edges, Edges]:
    """The edges without those that close a circle, and those that were dropped for it.

    Edges that run with the recorded time cannot close a circle except among tasks of no length at one instant; so edges
    that run against it are dropped first, and only between tasks that lie both behind a circle and before one.
    """
    kept = np.ones(len(edges), np.bool_)
    for against in (nodes.start_ns[edges.dst] < nodes.start_ns[edges.src], edges.kind != EdgeKind.THREAD_ORDER):
        src, dst = edges.src[kept], edges.dst[kept]
        forward = topological_order(len(nodes), src, dst)
        if forward.size == len(nodes):
            break
        circular = np.ones(len(nodes), np.bool_)
        circular[forward] = False
        circular[topological_order(len(nodes), dst, src)] = False
        kept &= ~(against & circular[edges.dst] & circular[edges.src])
    return edges.where(kept), edges.where(~kept)


def _by_destination(edges: Edges, lags: Int64s, count: int) -> EdgeArrays:
    order = np.lexsort((edges.src, edges.kind, edges.dst))
    dst = edges.dst[order]
    return EdgeArrays(
        first=np.searchsorted(dst, np.arange(count + 1)).astype(np.int64),
        src=edges.src[order],
        dst=dst,
        kind=edges.kind[order],
        basis=edges.basis[order],
        from_start=edges.from_start[order],
        lag_ns=lags[order],
        why=edges.why[order],
    )


def _spans(draft: RankDraft) -> list[StepSpan]:
    """Where each step of a rank lies on its main thread, and when the work it enqueued had drained."""
    thread = draft.threads[draft.main] if draft.main >= 0 else None
    work = draft.work
    enqueued_in = step_of_time(draft.marks.whole, draft.call_ns)
    spans = []
    for number, step in enumerate(draft.marks.whole):
        mine = enqueued_in == number
        drain = int(work.end_ns[mine].max()) if mine.any() else None
        carried = _carried_in(draft, enqueued_in < number, step)
        first, last = _borders(thread, step.start_ns, step.end_ns, draft)
        others = () if draft.marks.marked else _other_ends(draft)
        spans.append(StepSpan(draft.index, step.number, first, last, step.start_ns, step.end_ns, drain, carried, others))
    return spans


def _other_ends(draft: RankDraft) -> tuple[int, ...]:
    """The node with which each host thread but the main one ends."""
    return tuple(t.first_node + t.node_count - 1 for n, t in enumerate(draft.threads) if n != draft.main)


def _carried_in(draft: RankDraft, earlier: npt.NDArray[np.bool_], step: Step) -> int:
    """Time within a step during which device work of an earlier one still ran."""
    work = draft.work
    mine = earlier & ~work.on_host & (work.end_ns > step.start_ns) & (work.start_ns < step.end_ns)
    starts = np.maximum(work.start_ns[mine], step.start_ns)
    ends = np.minimum(work.end_ns[mine], step.end_ns)
    return union_ns(starts, ends)


def _borders(thread: HostThread | None, start_ns: int, end_ns: int, draft: RankDraft) -> tuple[int, int]:
    if thread is None:
        return -1, -1
    main = draft.threads[draft.main]
    first = main.first_node + int(np.searchsorted(main.tiling.start_ns, start_ns, side="left"))
    last = main.first_node + int(np.searchsorted(main.tiling.end_ns, end_ns, side="right")) - 1
    closing = main.first_node + main.node_count - 1
    return min(first, closing), min(last, closing - 1)


def _coverage(parts: _Parts, edges: Edges, pinned: np.ndarray, faults: EdgeFaults, counts: list[dict[str, int]]) -> Coverage:
    kinds: dict[str, dict[str, int]] = {}
    for kind in EdgeKind:
        of_kind = edges.basis[edges.kind == kind]
        kinds[kind.name.lower()] = {b.name.lower(): int(np.count_nonzero(of_kind == b)) for b in Basis}
    totals = {name: sum(own[name] for own in counts) for name in counts[0]}
    firsts = [t.first_node for d in parts.drafts for n, t in enumerate(d.threads) if n != d.main]
    return Coverage(
        edges=kinds,
        refuted=sum(f.refuted for f in parts.found),
        uncovered_blocking_ns=sum(f.uncovered_ns for f in parts.found),
        unlinked_work=sum(int(np.count_nonzero(d.work.unlinked)) for d in parts.drafts),
        pinned_threads=int(np.count_nonzero(pinned[firsts])) if firsts else 0,
        clock_violations=len(faults.violated),
        dropped_edges=len(faults.dropped),
        events_outside_steps=sum(d.dropped_before for d in parts.drafts),
        overlapping_events=totals.pop("overlapping_events"),
        faults=totals,
    )


def _warnings(job: Job, parts: _Parts) -> tuple[str, ...]:
    warnings = list(job.warnings)
    if parts.cut:
        warnings.append(
            f"{parts.cut} collectives had ended before their threads wrote it down: who waited for them had gone on by then"
        )
    unsplit = [c for c in parts.collectives if c.transfer_ns is None]
    if unsplit:
        alone = [c for c in unsplit if not c.absent]
        missing = sorted({rank for c in unsplit for rank in c.absent})
        if missing:
            warnings.append(
                f"{len(unsplit) - len(alone)} collectives cannot be split into waiting and transfer: add the missing ranks "
                f"({listed(missing)})"
            )
        warnings += _unsplit_alone(job, alone)
    of_some = [c for c in parts.collectives if c.transfer_ns is not None and c.group is None and _is_of_some(c, len(job.ranks))]
    if of_some:
        warnings.append(
            f"{len(of_some)} collectives are taken to be of those ranks whose ends lie together: the recording names no groups"
        )
    overlapping = [d for d in parts.drafts if any(a.end_ns > b.start_ns for a, b in pairwise(d.marks.whole))]
    if overlapping:
        files = ", ".join(Path(d.table.path).name for d in overlapping[:4])
        warnings.append(f"steps overlap in {files}: a step is replayed up to where the next one begins on its thread")
    numbers = [{s.number for s in d.marks.whole} for d in parts.drafts]
    every, common = numbers[0].union(*numbers[1:]), numbers[0].intersection(*numbers[1:])
    some = sorted(every - common)
    if some:
        warnings.append(f"steps that only some ranks have whole do not count for the job: {listed(some)}")
    if (len(job.ranks) > 1 or job.ranks_missing) and all(job.host_of(rank) is None for rank in _everybody(job)):
        warnings.append("no host is recorded: the fabric between the ranks is taken to be scale_up")
    return tuple(warnings)


def _unsplit_alone(job: Job, alone: list[Collective]) -> list[str]:
    """Why collectives that miss no rank as far as the files say cannot be split."""
    messages = sum(c.name == "send_recv" for c in alone)
    if len(job.ranks) == 1:
        reasons = [(len(alone), "add the other ranks of the job")]
    else:
        aligned = all(trace.clock.offset_ns is not None for trace in job.ranks)
        why = "their ends do not lie together on all of them or on two" if aligned else "no clock tells which ended together"
        reasons = [
            (len(alone) - messages, "the ranks recorded different participants, kinds, sizes, counts or order"),
            (messages, f"sends and receives of which nothing recorded names the ranks, and {why}"),
        ]
    return [f"{count} collectives cannot be split into waiting and transfer: {reason}" for count, reason in reasons if count]


def _is_of_some(collective: Collective, ranks: int) -> bool:
    return len(collective.ranks) < ranks and collective.name != "send_recv"


def _everybody(job: Job) -> set[int | None]:
    return {*(trace.rank for trace in job.ranks), *job.ranks_missing}
