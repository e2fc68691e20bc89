"""No participant of a collective goes on before the last has arrived.

    rank 0   |arrival ········ waits ·······|-- transfer --|
    rank 1                    |arrival ·····|-- transfer --|
    rank 2                                  |-- transfer --|     the last to arrive; its duration is the wire time
                                            ^ rendezvous

Collectives are matched over ranks by process group, step, kind and order. Where participants end together the transfer is
the shortest participant's duration: an upper bound of the wire time that needs no common clock. Rooted and point-to-point
transfers run from the latest start to the end. A collective whose other participants are missing keeps its time unsplit.
Where no recording names groups, and the collectives that kind and order put together do not end together, common ends say
who took part. Send/receive kernels that nothing recorded tells from all-to-alls are joined where order and common ends agree.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from tracereplay.graph.common_ends import WITHIN_NS, ended_together
from tracereplay.graph.draft import RankDraft
from tracereplay.graph.edges import Edges, concat_edges, make_edges
from tracereplay.graph.kinds import Basis, Why
from tracereplay.graph.model import Collective
from tracereplay.graph.rules.splits import Splits, splits_of
from tracereplay.trace.collectives import (
    ENDS_TOGETHER,
    CollectiveKey,
    RecordedCollective,
    keys_of_job,
    kind_of,
    recorded_collectives,
)
from tracereplay.trace.job import Job

# Groups by kind and order are kept where this share of them ends together.
_NEARLY_ALL = 0.9
# Common ends are believed where they put this share of the collectives together, in a job that can have several groups.
_MOST = 0.75
_FEWEST_RANKS = 3
# What stands for the members of a group that its common ends alone show.
BY_ENDS = "ended together"
# Long lists are cut: "[0, 1, 2, ..., 15]".
_RANK_LIST = re.compile(r"\[(\d{1,9}(?:, ?\d{1,9})*)\]")


@dataclass(frozen=True, slots=True)
class _Member:
    draft: RankDraft
    work: int
    recorded: RecordedCollective
    step: int
    order: int


_ByKey = dict[CollectiveKey, list[_Member]]


def join_collectives(job: Job, drafts: list[RankDraft], first_node: int) -> tuple[tuple[Collective, ...], Edges]:
    """The job's collectives and their edges; rendezvous are numbered from ``first_node`` on."""
    members: _ByKey = defaultdict(list)
    per_rank = [_members(draft) for draft in drafts]
    keys = keys_of_job([([m.recorded for m in own], draft.marks.whole) for own, draft in zip(per_rank, drafts, strict=True)])
    for own, own_keys in zip(per_rank, keys, strict=True):
        for member, key in zip(own, own_keys, strict=True):
            members[key].append(member)
    members = _regrouped(job, members)
    ordered = sorted(members.items(), key=lambda item: (min(int(m.draft.work.start_ns[m.work]) for m in item[1]), str(item[0])))
    collectives: list[Collective] = []
    node = first_node
    for key, group in ordered:
        whole = _all_present(job, key, group)
        collectives.append(_collective(job, key, group, node if whole else None))
        node += whole
    return tuple(collectives), _edges(collectives)


def _regrouped(job: Job, members: _ByKey) -> _ByKey:
    """The same with collectives of which no group is recorded put together by their ends, where kind and order do not fit: a
    job whose ranks form several groups runs collectives that not every rank takes part in.
    """
    if len(job.ranks) < _FEWEST_RANKS or job.ranks_missing or not _clocks_known(job):
        return members
    # All-to-alls and messages run as one kind of kernel, and only some ranks tell which: they are put together at once.
    return _by_ends(job, members, {key: group for key, group in members.items() if _is_loose(key, group)})


def _by_ends(job: Job, members: _ByKey, loose: _ByKey) -> _ByKey:
    """The same with the ``loose`` ones put together by their ends, unless they fit as they are or their ends do not tell."""
    fitting = sum(_all_present(job, key, group) and _ends_agree(group) for key, group in loose.items())
    if fitting >= _NEARLY_ALL * len(loose):
        return members
    scattered = [member for group in loose.values() for member in group]
    kinds = {name: code for code, name in enumerate(sorted({kind_of(m.recorded.name) for m in scattered}))}
    numbers = ended_together(
        np.array([m.draft.index for m in scattered], np.int64),
        np.array([m.draft.work.queue[m.work] for m in scattered], np.int64),
        np.array([kinds[kind_of(m.recorded.name)] for m in scattered], np.int64),
        np.array([m.recorded.end_ns for m in scattered], np.int64),
    )
    if np.count_nonzero(np.bincount(numbers)[numbers] > 1) < _MOST * numbers.size:
        return members
    found: _ByKey = {key: group for key, group in members.items() if key not in loose}
    for member, number in zip(scattered, numbers.tolist(), strict=True):
        key = CollectiveKey(None, kind_of(member.recorded.name), None, 0, number, BY_ENDS)
        found.setdefault(key, []).append(member)
    return found


def _clocks_known(job: Job) -> bool:
    return all(trace.clock.offset_ns is not None for trace in job.ranks)


def _is_message(group: list[_Member]) -> bool:
    """True for send/receive kernels of which nothing says whether they are messages or an all-to-all."""
    return all(m.recorded.name == "send_recv" for m in group)


def _is_loose(key: CollectiveKey, group: list[_Member]) -> bool:
    """True where nothing recorded says who takes part. Ends on CPU backends differ too much to tell."""
    named = key.group is not None or key.seq is not None or key.members is not None
    return not named and all(m.recorded.group_size is None and not m.draft.work.on_host[m.work] for m in group)


def _ends_agree(group: list[_Member]) -> bool:
    ends = [m.recorded.end_ns for m in group]
    return max(ends) - min(ends) <= WITHIN_NS


def _members(draft: RankDraft) -> list[_Member]:
    """The rank's collectives inside the window, in order of their start."""
    work_of = {int(row): int(w) for w, row in enumerate(draft.work.row) if draft.work.collective[w]}
    recorded = [c for c in recorded_collectives(draft.table) if c.row in work_of]
    starts = np.array([s.start_ns for s in draft.marks.whole])
    members = []
    seen: Counter[tuple[int, str]] = Counter()
    for c in recorded:
        position = int(np.searchsorted(starts, c.enqueued_ns, side="right")) - 1
        step = draft.marks.whole[position].number if position >= 0 else -1
        members.append(_Member(draft, work_of[c.row], c, step, seen[step, c.name]))
        seen[step, c.name] += 1
    return members


def _all_present(job: Job, key: CollectiveKey, group: list[_Member]) -> bool:
    """True where each participant is here once, and they do not contradict each other. Point-to-point work without a
    recorded group does not say who they are: where all ranks are here, it is of those that end together.
    """
    if _contradictory([m.recorded for m in group]):
        return False
    if key.members == BY_ENDS:
        return len(group) > 1
    if group[0].recorded.peers is not None:
        return sorted(job.ranks[m.draft.index].rank or 0 for m in group) == sorted(group[0].recorded.peers)
    if _is_message(group) and all(m.recorded.group_size is None for m in group):
        told = not job.ranks_missing and _clocks_known(job) and not any(m.draft.work.on_host[m.work] for m in group)
        if not (told and _ends_agree(group)):
            return False
    expected = _expected_size(job, key, group)
    return expected is not None and len(group) == expected and len({m.draft.index for m in group}) == len(group)


def _contradictory(records: list[RecordedCollective]) -> bool:
    """True where the participants cannot have run one collective: of different kinds, or an all-reduce of different sizes."""
    kinds = {kind_of(record.name) for record in records} - {"other"}
    sizes = {record.bytes for record in records} - {None}
    return len(kinds) > 1 or (kinds == {"all_reduce"} and len(sizes) > 1)


def _expected_size(job: Job, key: CollectiveKey, group: list[_Member]) -> int | None:
    recorded_sizes = [m.recorded.group_size for m in group if m.recorded.group_size is not None]
    if recorded_sizes:
        return max(recorded_sizes)
    for recorded in group[0].draft.table.header.groups:
        if recorded.name == key.group and recorded.size is not None:
            return recorded.size
    if job.world_size is not None:
        return job.world_size
    # Nothing says how many take part: several ranks are taken to be all of them, a single one never is.
    return len(job.ranks) if len(job.ranks) > 1 else None


def _collective(job: Job, key: CollectiveKey, group: list[_Member], rendezvous: int | None) -> Collective:
    group = sorted(group, key=lambda m: m.draft.index)
    starts = tuple(int(m.draft.work.start_ns[m.work]) for m in group)
    ends = tuple(int(m.draft.work.end_ns[m.work]) for m in group)
    absent = _absent(job, key, group) if rendezvous is None else ()
    # Of a rank that is not here only a manifest tells the host; one that nobody tells says nothing.
    hosts = {job.ranks[m.draft.index].host for m in group} | {host for r in absent if (host := job.host_of(r)) is not None}
    name = _name(group)
    size = len(group) + len(absent)
    splits = splits_of([m.recorded for m in group], size) if name == "all_to_all" else Splits()
    shown = max(group, key=lambda m: (m.step, m.recorded.name == name, -m.draft.index))
    return Collective(
        name=name,
        step=shown.step,
        order=key.seq if key.seq is not None else shown.order,
        group=key.group,
        bytes=group[0].recorded.bytes,
        scale_out=len(hosts) > 1,
        ranks=tuple(m.draft.index for m in group),
        arrivals=tuple(int(m.draft.work_node[m.work]) for m in group),
        transfers=tuple(int(m.draft.work_last_node[m.work]) for m in group),
        rendezvous=rendezvous,
        start_ns=starts,
        end_ns=ends,
        transfer_ns=_transfer(name, starts, ends) if rendezvous is not None else None,
        absent=absent,
        sent=splits.sent,
        received=splits.received,
        own_bytes=tuple(m.recorded.bytes for m in group),
    )


def _absent(job: Job, key: CollectiveKey, group: list[_Member]) -> tuple[int, ...]:
    """The ranks that take part and that the job lacks; all that it lacks where the files do not list who takes part."""
    listed = _listed(group[0].recorded)
    if listed is None:
        configured = (g.ranks for g in group[0].draft.table.header.groups if g.name == key.group)
        listed = next((ranks for ranks in configured if ranks is not None), None)
    missing = set(job.ranks_missing)
    return tuple(sorted(missing if listed is None else set(listed) - set(job.ranks_present)))


def _listed(recorded: RecordedCollective) -> tuple[int, ...] | None:
    """The participants that a collective lists; None where it lists none or the list is cut."""
    if recorded.peers is not None:
        return recorded.peers
    match = _RANK_LIST.fullmatch(recorded.group_ranks or "")
    ranks = tuple(int(number) for number in match[1].split(",")) if match else ()
    return ranks if len(ranks) == recorded.group_size else None


def _name(group: list[_Member]) -> str:
    """The name that most participants give; one that knows better than the kernel's send/receive wins."""
    names = Counter(m.recorded.name for m in group)
    return min(names, key=lambda n: (n == "send_recv" and len(names) > 1, -names[n], n))


def _transfer(name: str, starts: tuple[int, ...], ends: tuple[int, ...]) -> int:
    if name in ENDS_TOGETHER:
        return min(end - start for start, end in zip(starts, ends, strict=True))
    return max(max(ends) - max(starts), 0)


def _edges(collectives: list[Collective]) -> Edges:
    parts = [make_edges(Why.COLLECTIVE, Basis.RECORDED, [], [])]
    for c in collectives:
        if c.rendezvous is None:
            parts.append(make_edges(Why.COLLECTIVE, Basis.INFERRED, c.arrivals, c.transfers, lag_ns=0))
            continue
        meeting = [c.rendezvous] * len(c.ranks)
        basis = Basis.RECORDED if c.group is not None else Basis.INFERRED
        why = Why.MESSAGE if c.name == "send_recv" else Why.COLLECTIVE
        parts.append(make_edges(why, basis, c.arrivals, meeting, lag_ns=0))
        parts.append(make_edges(why, basis, meeting, c.transfers, lag_ns=0))
    return concat_edges(parts)
