"""Recorded collectives of a rank, and which ones of several ranks are the same: in, event tables; out, frozen rows.

What a collective is called, how large it is, in which process group and with which sequence number it ran is recorded in
different places by different exporters. They are asked in this order: the work's own args (NCCL kernels since 2023, PyTorch
PR 177148 for ``Seq``), the ``record_param_comms``, c10d or NCCL event around its launch, an execution trace of the same
rank, its name.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tracereplay.trace.classify import WorkClass, class_of_kernel, collective_of
from tracereplay.trace.execution import elements_of, matching, split_sizes
from tracereplay.trace.schema import Role
from tracereplay.trace.steps import Step
from tracereplay.trace.table import EventTable, ExecutedCollective

ENDS_TOGETHER = frozenset({"all_to_all", "all_reduce", "all_gather", "reduce_scatter", "barrier", "other"})

_HOST_ANNOTATION = re.compile(r"^(gloo|mpi|ucc):")
# Bytes of one element by the spellings of NCCL args (Float), of shapes (float, long int) and of c10 types.
_WIDTHS = {
    "float": 4, "float32": 4, "int": 4, "double": 8, "float64": 8, "long": 8, "long int": 8, "int64": 8,
    "half": 2, "c10::half": 2,
    "float16": 2, "bfloat16": 2, "c10::bfloat16": 2, "short": 2, "byte": 1, "char": 1, "unsigned char": 1, "signed char": 1,
    "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip


# How far the guess from steps may be off, how few pairs say anything, and by which factor the ends must fit better before
# the guess is given up: recordings of one job start within a step of each other.
_FARTHEST = 16
_FEWEST = 4
_FAR_BETTER = 10.0
# Clocks agree where their difference is no more than so many times what it scatters. Chosen: three deviations of a median.
_WITHIN_SCATTER = 3.0


@dataclass(frozen=True, slots=True)
class RecordedCollective:
    """One collective of one rank; what is not recorded is None. ``bytes`` is the participant's input, ``in_split`` and
    ``out_split`` how many rows of its tensors go to and come from each rank of the group (empty: not recorded), ``peers`` the
    sending and the receiving rank of a point-to-point message.
    """

    row: int
    name: str
    group: str | None
    seq: int | None
    group_size: int | None
    group_ranks: str | None
    elements: int | None
    dtype: str | None
    bytes: int | None
    start_ns: int
    end_ns: int
    enqueued_ns: int
    in_split: tuple[int, ...] = ()
    out_split: tuple[int, ...] = ()
    peers: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class CollectiveKey:
    """What identifies a collective on every rank: its sequence number in its group, else its step and order there.

    Groups of one name with other members are other groups. Point-to-point work has sequence numbers of its own.
    """

    group: str | None
    name: str | None
    seq: int | None
    step: int
    order: int
    members: str | None = None


def is_host_annotation(name: str) -> bool:
    """True for the annotations that CPU backends put around a collective on their own threads."""
    return _HOST_ANNOTATION.match(name) is not None


def collective_rows(table: EventTable) -> np.ndarray:
    """Rows of collectives: communication kernels and the annotations of CPU backends, in file order."""
    kernels, annotations = table.rows_of(Role.KERNEL), table.rows_of(Role.ANNOTATION)
    codes = table.codes("name")
    is_kernel = np.array([class_of_kernel(name, table.rules) == WorkClass.COLLECTIVE for name in table.names], np.bool_)
    is_host = np.array([is_host_annotation(name) for name in table.names], np.bool_)
    rows = np.concatenate([kernels[is_kernel[codes[kernels]]], annotations[is_host[codes[annotations]]]])
    return np.sort(rows[table.column("dur_ns")[rows] >= 0])


def recorded_collectives(table: EventTable) -> tuple[RecordedCollective, ...]:
    """All collectives of a table in order of their start; decoded once a table."""
    return table.remembered("collectives", lambda: _recorded_collectives(table))


def _recorded_collectives(table: EventTable) -> tuple[RecordedCollective, ...]:
    rows = collective_rows(table)
    rows = rows[np.lexsort((rows, table.column("ts_ns")[rows]))]
    ts, dur, launch = table.column("ts_ns"), table.column("dur_ns"), table.column("launch_row")
    recorded = [_facts(table, row) for row in rows.tolist()]
    executed = matching([facts["name"] for facts in recorded], table.executed)
    found = []
    for row, own, more in zip(rows.tolist(), recorded, executed, strict=True):
        facts = own | _from_execution(own, more)
        enqueued = int(ts[launch[row]]) if launch[row] >= 0 else int(ts[row])
        found.append(
            RecordedCollective(row=row, start_ns=int(ts[row]), end_ns=int(ts[row] + dur[row]), enqueued_ns=enqueued, **facts)
        )
    return tuple(found)


def keys_of(collectives: Sequence[RecordedCollective], steps: Sequence[Step]) -> list[CollectiveKey]:
    """The key of each collective. Without a sequence number it is counted within the step in which it was enqueued, so
    that recordings of different step ranges match; -1 before the first step.
    """
    starts = np.array([s.start_ns for s in steps], np.int64)
    seen: Counter[tuple[str | None, str, int]] = Counter()
    keys = []
    for c in collectives:
        if c.peers is not None:
            # Each rank numbers its messages to all peers in one sequence; between two ranks they keep their order.
            pair = f"{c.peers[0]}>{c.peers[1]}"
            step = _step_of(c, starts, steps)
            keys.append(CollectiveKey(c.group, "send_recv", None, step, seen[c.group, pair, step], pair))
            seen[c.group, pair, step] += 1
            continue
        if c.seq is not None:
            point_to_point = "send_recv" if c.name == "send_recv" else None
            keys.append(CollectiveKey(c.group, point_to_point, c.seq, 0, 0, c.group_ranks))
            continue
        step = _step_of(c, starts, steps)
        keys.append(CollectiveKey(c.group, c.name, None, step, seen[c.group, c.name, step]))
        seen[c.group, c.name, step] += 1
    return keys


def _step_of(collective: RecordedCollective, starts: np.ndarray, steps: Sequence[Step]) -> int:
    """The number of the step in which a collective was enqueued, -1 before the first."""
    position = int(np.searchsorted(starts, collective.enqueued_ns, side="right")) - 1
    return steps[position].number if position >= 0 else -1


def keys_of_job(ranks: Sequence[tuple[Sequence[RecordedCollective], Sequence[Step]]]) -> list[list[CollectiveKey]]:
    """The keys of the collectives of all ranks; equal keys are one collective.

    Sequence numbers decide where they are recorded. Elsewhere the collectives of one kind in a group are one sequence, of
    which each rank recorded a stretch: a recording that starts earlier holds more of it. Where the stretches lie on each
    other is taken from steps and order, and corrected where another place makes the ends agree far better.
    """
    keys = [keys_of(collectives, steps) for collectives, steps in ranks]
    places: dict[tuple[str, str], list[list[int]]] = {}
    for rank, own in enumerate(keys):
        for place, key in enumerate(own):
            if key.seq is None and key.members is None:
                sequence = (key.group or "", kind_of(ranks[rank][0][place].name))
                places.setdefault(sequence, [[] for _ in ranks])[rank].append(place)
    for (group, kind), per_rank in places.items():
        reference = max(range(len(ranks)), key=lambda r: (len(per_rank[r]), -r))
        stretch = _Stretch.of(ranks[reference][0], keys[reference], per_rank[reference])
        shifts = [
            _shift(stretch, _Stretch.of(ranks[r][0], keys[r], mine)) if r != reference else 0 for r, mine in enumerate(per_rank)
        ]
        for rank, mine in enumerate(per_rank):
            for order, place in enumerate(mine):
                keys[rank][place] = CollectiveKey(group or None, kind, None, 0, order + shifts[rank])
    return keys


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A rank's part of a sequence: ends, and the keys by step and order."""

    ends_ns: np.ndarray
    keys: tuple[CollectiveKey, ...]

    @staticmethod
    def of(collectives: Sequence[RecordedCollective], keys: Sequence[CollectiveKey], places: Sequence[int]) -> "_Stretch":
        """The stretch of the collectives at ``places``."""
        return _Stretch(np.array([collectives[i].end_ns for i in places], np.int64), tuple(keys[i] for i in places))


def kind_of(name: str) -> str:
    """What a collective certainly is: without its launch an all-to-all is known by its kernel alone, a send/receive."""
    return "send_recv" if name == "all_to_all" else name


def _shift(reference: _Stretch, own: _Stretch) -> int:
    """By how many places the first of ``own`` lies after the first of ``reference``. What steps and order say stands where the
    clocks agree under it but for what the ends scatter: ends that come late by turns fit a shift by a whole step better.
    """
    place_of = {key: place for place, key in enumerate(reference.keys)}
    votes = Counter(place_of[key] - place for place, key in enumerate(own.keys) if key in place_of)
    guess = min(votes, key=lambda shift: (-votes[shift], abs(shift))) if votes else 0
    found = {shift: fit for shift in range(guess - _FARTHEST, guess + _FARTHEST + 1) if (fit := _misfit(reference, own, shift))}
    if guess in found and abs(found[guess].offset_ns) <= _WITHIN_SCATTER * found[guess].scatter_ns:
        return guess
    scores = {shift: fit.scatter_ns for shift, fit in found.items()}
    best = min(scores, key=lambda shift: (scores[shift], abs(shift - guess)), default=guess)
    return best if guess not in scores or scores[best] * _FAR_BETTER < scores[guess] else guess


class _Misfit(NamedTuple):
    """The clock difference that the ends show under a shift (their median), and how much it scatters (at least 1), in ns."""

    offset_ns: float
    scatter_ns: float


def _misfit(reference: _Stretch, own: _Stretch, shift: int) -> _Misfit | None:
    """How the ends meet under a shift; None where few do."""
    places = np.arange(len(own.keys))
    places = places[(places + shift >= 0) & (places + shift < len(reference.keys))]
    if places.size < max(_FEWEST, min(len(own.keys), len(reference.keys)) // 2):
        return None
    difference = own.ends_ns[places] - reference.ends_ns[places + shift]
    middle = np.median(difference)
    return _Misfit(float(middle), max(float(np.median(np.abs(difference - middle))), 1.0))


def _facts(table: EventTable, row: int) -> dict[str, Any]:
    """Name, group, sequence, sizes, asked source by source."""
    own = table.args_of(row)
    sources = [own, *(table.args_of(r) for r in _recording_operators(table, row))]
    name = _recorded_name(sources) or _name_around(table, row) or collective_of(table.name_of(row), table.rules) or "other"
    elements = _first_int(sources, "In msg nelems")
    dtype = _first_text(sources, "dtype")
    if elements is None:
        elements, dtype = _from_shapes(sources)
    width = _WIDTHS.get((dtype or "").lower())
    return {
        "name": name,
        "peers": _peers(sources, table.header.rank) if name == "send_recv" else None,
        "group": _first_text(sources, "Process Group Name"),
        "seq": _first_int(sources, "Seq"),
        "group_size": _first_int(sources, "Group size"),
        "group_ranks": _first_text(sources, "Process Group Ranks"),
        "elements": elements,
        "dtype": dtype,
        "bytes": elements * width if elements is not None and width is not None else None,
        "in_split": _first_split(sources, "In split size"),
        "out_split": _first_split(sources, "Out split size"),
    }


def _peers(sources: list[dict[str, Any]], own: int | None) -> tuple[int, int] | None:
    """Sending and receiving rank of a message. PyTorch names the other side alone: a send its destination, a receive its
    source (ParamCommsUtils, saveNcclMeta).
    """
    source, destination = _first_int(sources, "Src Rank"), _first_int(sources, "Dst Rank")
    source, destination = own if source is None else source, own if destination is None else destination
    if source is None or destination is None or source == destination:
        return None
    return source, destination


def _from_execution(facts: dict[str, Any], executed: ExecutedCollective | None) -> dict[str, Any]:
    """What an execution trace adds where the Kineto trace records nothing."""
    if executed is None:
        return {}
    more: dict[str, Any] = {key: getattr(executed, key) for key in ("group", "elements", "dtype") if facts[key] is None}
    width = _WIDTHS.get((more.get("dtype") or facts["dtype"] or "").lower())
    elements = more.get("elements") or facts["elements"]
    if facts["bytes"] is None and elements is not None and width is not None:
        more["bytes"] = elements * width
    return more | {key: facts[key] or getattr(executed, key) for key in ("in_split", "out_split")}


def _recording_operators(table: EventTable, row: int) -> list[int]:
    """The ``record_param_comms``, c10d and NCCL events around a collective's launch, innermost first."""
    above = int(table.column("launch_row")[row])
    if above < 0:
        above = int(table.column("owner_row")[row])
    rows = []
    while above >= 0:
        name = table.name_of(above)
        if name == "record_param_comms" or name.startswith(("c10d::", "nccl:")):
            rows.append(above)
        above = int(table.column("parent_row")[above])
    return rows


def _recorded_name(sources: list[dict[str, Any]]) -> str | None:
    text = _first_text(sources, "Collective name")
    return collective_of(f"nccl:{text}") if text else None


def _name_around(table: EventTable, row: int) -> str | None:
    """The innermost communication event around the launch: NCCL runs an all-to-all as a send/receive kernel."""
    above = int(table.column("launch_row")[row])
    while above >= 0:
        name = collective_of(table.name_of(above), table.rules)
        if name is not None and name != "other":
            return name
        above = int(table.column("parent_row")[above])
    return None


def _from_shapes(sources: list[dict[str, Any]]) -> tuple[int | None, str | None]:
    """Elements and type of the first input that is a tensor or a list of tensors."""
    for args in sources:
        dims, types = args.get("Input Dims"), args.get("Input type")
        if not (isinstance(dims, list) and dims and isinstance(types, list) and types):
            continue
        kind = str(types[0])
        listed = isinstance(dims[0], list) and bool(dims[0]) and isinstance(dims[0][0], list)
        dtype = _list_type(types) if kind == "TensorList" else kind
        count = elements_of(dims[0])
        if count is not None and (listed or kind.lower() in _WIDTHS):
            return count, dtype
    return None, None


def _list_type(types: list[Any]) -> str | None:
    named = [str(t) for t in types if str(t).lower() in _WIDTHS]
    return named[0] if named else None


def _first_int(sources: list[dict[str, Any]], key: str) -> int | None:
    return next((args[key] for args in sources if isinstance(args.get(key), int)), None)


def _first_split(sources: list[dict[str, Any]], key: str) -> tuple[int, ...]:
    return next((sizes for args in sources if (sizes := split_sizes(args.get(key)))), ())


def _first_text(sources: list[dict[str, Any]], key: str) -> str | None:
    return next((str(args[key]) for args in sources if args.get(key) not in (None, "")), None)
