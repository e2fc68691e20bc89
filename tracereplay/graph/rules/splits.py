"""Who sends how much to whom in an all-to-all: in, what each participant recorded; out, bytes a pair, where they are uneven.

Profilers write the splits in rows of the tensor: a row's bytes are those of the whole over the rows. A list that is cut, that
does not fit the bytes, or that has another length than the group has ranks is not recorded; an empty one says nothing (it is
what an even all-to-all has, and what old versions wrote for any).
"""

from collections.abc import Sequence
from typing import NamedTuple

from tracereplay.trace.collectives import RecordedCollective

_Rows = tuple[tuple[int, ...] | None, ...]


class Splits(NamedTuple):
    """Bytes that each participant sends to each rank of the group and receives from each, None where that is not recorded; both
    empty where nothing shows that they are uneven.
    """

    sent: _Rows = ()
    received: _Rows = ()


def splits_of(records: Sequence[RecordedCollective], size: int) -> Splits:
    """The splits of an all-to-all among ``size`` ranks, of which the participants' records are here."""
    rows = {bytes_of for record in records if (bytes_of := _row_bytes(record, size)) is not None}
    if len(rows) != 1:  # none is known, or they contradict each other
        return Splits()
    row = rows.pop()
    sent = tuple(_in_bytes(record.in_split, size, row, record.bytes) for record in records)
    received = tuple(_in_bytes(record.out_split, size, row, None) for record in records)
    different = {number for one in (*sent, *received) if one is not None for number in one}
    return Splits(sent, received) if len(different) > 1 else Splits()


def _row_bytes(record: RecordedCollective, size: int) -> int | None:
    """Bytes of a row of the tensor that a participant splits; None where that is not recorded."""
    rows = sum(record.in_split)
    if record.bytes is None or len(record.in_split) != size or not rows or record.bytes % rows:
        return None
    return record.bytes // rows


def _in_bytes(split: tuple[int, ...], size: int, row: int, whole: int | None) -> tuple[int, ...] | None:
    """A split in bytes; one that does not make up the ``whole`` is none."""
    if len(split) != size or (whole is not None and sum(split) * row != whole):
        return None
    return tuple(rows * row for rows in split)
