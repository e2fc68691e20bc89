"""Shapes that operators were called with: in, an event table; out, a shape number for each row.

The exporter writes ``"Input Dims": [[512, 64], []]`` into an operator's args where shapes were recorded. The texts are
searched as they stand (about 1 µs an event), not decoded.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from tracereplay.trace.columns import numbers
from tracereplay.trace.schema import Role
from tracereplay.trace.table import EventTable
from tracereplay.trace.times import Int64s

# Dimensions hold no quotes, so that the longest run up to the next quote that ends in a bracket is all of them.
_DIMS = r'"Input Dims"\s*:\s*(?P<dims>\[[^"]*\])'


@dataclass(frozen=True, slots=True)
class Shapes:
    """``code`` a row: an index into ``texts``, -1 where the row records no shapes; ``texts`` hold no white space."""

    code: Int64s
    texts: tuple[str, ...]


def input_shapes(table: EventTable) -> Shapes:
    """The shapes of each operator's inputs; made once a table."""
    return table.remembered("input shapes", lambda: _find(table))


def _find(table: EventTable) -> Shapes:
    code = np.full(len(table), -1, np.int64)
    rows = table.rows_of(Role.CPU_OP)
    texts = table.with_text().column("text").take(rows).combine_chunks()
    dims = pc.struct_field(pc.extract_regex(texts, _DIMS), "dims").dictionary_encode()
    code[rows] = numbers(dims.indices, -1)
    written = ["".join(text.decode("utf-8", "replace").split()) for text in dims.dictionary.to_pylist()]
    distinct = sorted(set(written))
    place = {text: position for position, text in enumerate(distinct)}
    renumbered = np.array([*(place[text] for text in written), -1], np.int64)
    return Shapes(renumbered[code], tuple(distinct))
