"""Edges as columns: what a rule hands on. An edge without a kind and a basis cannot be made."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracereplay.graph.kinds import REASONS, Basis, Why
from tracereplay.trace.times import Int64s

NO_LAG = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Edges:
    """Columns of edges. ``from_start``: the destination waits for the start of the source, not for its end; ``why`` is a row
    of ``kinds.REASONS``.

    ``lag_ns`` is a lag that the rule itself fixes; ``NO_LAG`` leaves it to the population of its kind.
    """

    src: Int64s
    dst: Int64s
    kind: npt.NDArray[np.int8]
    basis: npt.NDArray[np.int8]
    from_start: npt.NDArray[np.bool_]
    lag_ns: Int64s
    why: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return int(self.src.size)

    def where(self, mask: npt.NDArray[np.bool_]) -> "Edges":
        """The edges of a mask, in order."""
        return Edges(
            self.src[mask],
            self.dst[mask],
            self.kind[mask],
            self.basis[mask],
            self.from_start[mask],
            self.lag_ns[mask],
            self.why[mask],
        )


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule found in one rank: edges, host nodes that are partly waits (with the CPU time that is their own), how
    many candidate edges timing refuted, and blocking time that nothing covers.
    """

    edges: Edges
    own_node: Int64s
    own_ns: Int64s
    refuted: int = 0
    uncovered_ns: int = 0


def make_edges(  # noqa: PLR0913 - the columns of an edge
    why: Why,
    basis: Basis,
    src: npt.ArrayLike,
    dst: npt.ArrayLike,
    *,
    from_start: bool = False,
    lag_ns: npt.ArrayLike = NO_LAG,
) -> Edges:
    """Edges of one reason and basis between pairs of nodes; ``lag_ns`` is one for all or one an edge."""
    sources = np.asarray(src, np.int64).reshape(-1)
    count = sources.size
    return Edges(
        sources,
        np.asarray(dst, np.int64).reshape(-1),
        np.full(count, int(REASONS[why].kind), np.int8),
        np.full(count, int(basis), np.int8),
        np.full(count, from_start, np.bool_),
        np.broadcast_to(np.asarray(lag_ns, np.int64), count).copy(),
        np.full(count, int(why), np.int8),
    )


def concat_edges(parts: list[Edges]) -> Edges:
    """All edges of ``parts`` in order."""
    return Edges(
        np.concatenate([p.src for p in parts]),
        np.concatenate([p.dst for p in parts]),
        np.concatenate([p.kind for p in parts]),
        np.concatenate([p.basis for p in parts]),
        np.concatenate([p.from_start for p in parts]),
        np.concatenate([p.lag_ns for p in parts]),
        np.concatenate([p.why for p in parts]),
    )


def found(edges: Edges, waits: list[tuple[int, int]] | None = None, refuted: int = 0, uncovered_ns: int = 0) -> Found:
    """A rule's result; ``waits`` are (host node, CPU time of its own in ns)."""
    pairs = np.array(waits or np.empty((0, 2)), np.int64).reshape(-1, 2)
    return Found(edges, pairs[:, 0], pairs[:, 1], refuted, uncovered_ns)
