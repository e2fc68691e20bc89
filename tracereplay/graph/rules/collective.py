"""No participant of a collective goes on before the last has arrived.

    rank 0   |arrival ········ waits ·······|-- transfer --|
    rank 1                    |arrival ·····|-- transfer --|
    rank 2                                  |-- transfer --|     the last to arrive; its duration is the wire time
                                            ^ rendezvous

Collectives are matched over ranks by process group, step, kind and order. Where participants end together the transfer is
the shortest participant's duration: an upper bound of the wire time that needs no common clock. Rooted and point-to-point
transfers run from the latest start to the end. A collective whose other participants are missing keeps its time unsplit.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracereplay.graph.draft import RankDraft
from tracereplay.graph.edges import Edges, concat_edges, make_edges
from tracereplay.graph.kinds import Basis, EdgeKind
from tracereplay.graph.model import Collective
from tracereplay.trace.classify import collective_of
from tracereplay.trace.job import Job

_ENDS_TOGETHER = frozenset({"all_to_all", "all_reduce", "all_gather", "reduce_scatter", "barrier", "other"})
_DTYPE_BYTES = {
    "float": 4, "double": 8, "c10::half": 2, "c10::bfloat16": 2, "long int": 8, "int": 4, "long": 8, "unsigned char": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Key:
    """What identifies a collective on every rank."""

    group: str | None
    step: int
    name: str
    order: int


@dataclass(frozen=True, slots=True)
class _Member:
    draft: RankDraft
    work: int


def join_collectives(job: Job, drafts: list[RankDraft], first_node: int) -> tuple[tuple[Collective, ...], Edges]:
    """The job's collectives and their edges; rendezvous are numbered from ``first_node`` on."""
    members: dict[_Key, list[_Member]] = defaultdict(list)
    for draft in drafts:
        for key, member in _members(draft):
            members[key].append(member)
    ordered = sorted(members.items(), key=lambda item: (min(int(m.draft.work.start_ns[m.work]) for m in item[1]), str(item[0])))
    collectives: list[Collective] = []
    node = first_node
    for key, group in ordered:
        whole = _all_present(job, key, group)
        collectives.append(_collective(job, key, group, node if whole else None))
        node += whole
    return tuple(collectives), _edges(collectives)


def _members(draft: RankDraft) -> list[tuple[_Key, _Member]]:
    work = draft.work
    chosen = np.flatnonzero(work.collective)
    chosen = chosen[np.argsort(work.start_ns[chosen], kind="stable")]
    starts = np.array([s.start_ns for s in draft.marks.whole])
    call_ns = draft.call_ns
    seen: Counter[tuple[str | None, int, str]] = Counter()
    result = []
    for w in chosen:
        args = draft.table.args_of(int(work.row[w]))
        group = str(args["Process Group Name"]) if "Process Group Name" in args else None
        name = _name(draft, int(w), args)
        position = int(np.searchsorted(starts, call_ns[w], side="right")) - 1
        step = draft.marks.whole[position].number if position >= 0 else -1
        key = _Key(group, step, name, seen[group, step, name])
        seen[group, step, name] += 1
        result.append((key, _Member(draft, int(w))))
    return result


def _name(draft: RankDraft, w: int, args: dict[str, Any]) -> str:
    """The collective's name: as recorded on the work, else of the innermost communication event around its call, else
    of the kernel (NCCL runs an all-to-all as a send/receive kernel, so its own name comes last).
    """
    recorded = collective_of(f"nccl:{args['Collective name']}") if "Collective name" in args else None
    if recorded is not None:
        return recorded
    work = draft.work
    if work.call_thread[w] >= 0 and not work.on_host[w]:
        thread = draft.threads[work.call_thread[w]]
        position = int(thread.tiling.parent[work.call_position[w]])
        while position >= 0:
            row = int(thread.rows[position])
            around = collective_of(draft.table.name_of(row)) if row >= 0 else None
            if around is not None and around != "other":
                return around
            position = int(thread.tiling.parent[position])
    return collective_of(draft.table.name_of(int(work.row[w]))) or "other"


def _all_present(job: Job, key: _Key, group: list[_Member]) -> bool:
    expected = _expected_size(job, key, group)
    return expected is not None and len(group) >= expected and len({m.draft.index for m in group}) == len(group)


def _expected_size(job: Job, key: _Key, group: list[_Member]) -> int | None:
    for recorded in group[0].draft.table.header.groups:
        if recorded.name == key.group and recorded.size is not None:
            return recorded.size
    if job.world_size is not None:
        return job.world_size
    # Nothing says how many take part: several ranks are taken to be all of them, a single one never is.
    return len(job.ranks) if len(job.ranks) > 1 else None


def _collective(job: Job, key: _Key, group: list[_Member], rendezvous: int | None) -> Collective:
    group = sorted(group, key=lambda m: m.draft.index)
    starts = tuple(int(m.draft.work.start_ns[m.work]) for m in group)
    ends = tuple(int(m.draft.work.end_ns[m.work]) for m in group)
    hosts = {job.ranks[m.draft.index].host for m in group}
    return Collective(
        name=key.name,
        step=key.step,
        order=key.order,
        group=key.group,
        bytes=_bytes(group[0]),
        scale_out=len(hosts) > 1,
        ranks=tuple(m.draft.index for m in group),
        arrivals=tuple(int(m.draft.work_node[m.work]) for m in group),
        transfers=tuple(int(m.draft.work_last_node[m.work]) for m in group),
        rendezvous=rendezvous,
        start_ns=starts,
        end_ns=ends,
        transfer_ns=_transfer(key.name, starts, ends) if rendezvous is not None else None,
    )


def _transfer(name: str, starts: tuple[int, ...], ends: tuple[int, ...]) -> int:
    if name in _ENDS_TOGETHER:
        return min(end - start for start, end in zip(starts, ends, strict=True))
    return max(max(ends) - max(starts), 0)


def _bytes(member: _Member) -> int | None:
    """Size of a participant's input where the work's own row records shape and type."""
    args = member.draft.table.args_of(int(member.draft.work.row[member.work]))
    if isinstance(args.get("In msg nelems"), int):
        width = {"Float": 4, "Half": 2, "BFloat16": 2, "Double": 8, "Long": 8, "Int": 4, "Byte": 1, "Char": 1}.get(
            str(args.get("dtype"))
        )
        return args["In msg nelems"] * width if width else None
    dims, types = args.get("Input Dims"), args.get("Input type")
    if not (isinstance(dims, list) and isinstance(types, list) and dims and types):
        return None
    width = _DTYPE_BYTES.get(str(types[0]))
    shape = dims[0]
    if width is None or not isinstance(shape, list) or not all(isinstance(d, int) for d in shape):
        return None
    return int(np.prod(shape, dtype=np.int64)) * width


def _edges(collectives: list[Collective]) -> Edges:
    parts = [make_edges(EdgeKind.COLLECTIVE, Basis.RECORDED, [], [])]
    for c in collectives:
        if c.rendezvous is None:
            parts.append(make_edges(EdgeKind.COLLECTIVE, Basis.INFERRED, c.arrivals, c.transfers, lag_ns=0))
            continue
        meeting = [c.rendezvous] * len(c.ranks)
        basis = Basis.RECORDED if c.group is not None else Basis.INFERRED
        parts.append(make_edges(EdgeKind.COLLECTIVE, basis, c.arrivals, meeting, lag_ns=0))
        parts.append(make_edges(EdgeKind.COLLECTIVE, basis, meeting, c.transfers, lag_ns=0))
    return concat_edges(parts)
