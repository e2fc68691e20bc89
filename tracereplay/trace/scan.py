"""Find the events of a Kineto document in a stream of text: in, blocks; out, chunks of whole events, and the header.

Theory of operation. A compiled scanner walks the text once, tracking strings and depth, and notes where each element of
the event array begins and ends; it knows nothing else of JSON. Whole elements of a block become a chunk that a JSON
library decodes; an unfinished one is carried into the next block. What lies outside the array is the header. Text whose
quotes do not pair (written by exporters that do not escape) can hide boundaries from the scanner: an element that grows
beyond ``_LONGEST_EVENT`` or is left over at the end is cut at the places where an event begins instead.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numba
import numpy as np

from tracereplay.trace.times import Int64s

_ARRAY_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
# An exporter's event begins with one of these keys; nothing inside an event does at that place.
_FIRST_KEYS = rb'\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args|id|s|bp)"\s*:'
_BOUNDARY = re.compile(rb"\}\s*,\s*(?=" + _FIRST_KEYS + rb")")
_LONGEST_EVENT = 8 << 20
_HEAD_LIMIT = 64 << 20


@dataclass(frozen=True, slots=True)
class Chunk:
    """Elements of the event array: ``text[starts[i]:ends[i]]`` is one; ``offset`` is the text's place in the document.

    ``doubtful``: boundaries were guessed, each element must be looked at by itself.
    """

    text: bytes
    starts: Int64s
    ends: Int64s
    offset: int
    doubtful: bool = False

    array: bytes = field(init=False)

    def __post_init__(self) -> None:
        """``array`` is the elements as one JSON array: brackets around the text from the first to the last."""
        inside = memoryview(self.text)[int(self.starts[0]) : int(self.ends[-1])]
        object.__setattr__(self, "array", b"".join((b"[", inside, b"]")))


@dataclass(slots=True)
class Scanner:
    """Splits a stream. After ``chunks`` is exhausted, ``head`` and ``tail`` hold the text around the array (``head`` is
    all the text where there is no array), ``closed`` says whether the array was closed, ``bare`` whether the document is
    the array itself, ``rest`` is an unfinished last element and ``rest_offset`` its place.
    """

    blocks: Iterator[bytes]
    head: bytes = b""
    tail: bytes = b""
    closed: bool = False
    bare: bool = False
    found: bool = False
    rest: bytes = b""
    rest_offset: int = 0
    tail_offset: int = 0
    _offset: int = field(default=0)

    def chunks(self) -> Iterator[Chunk]:
        """The chunks in document order."""
        buffer = self._find_array()
        if not self.found:
            return
        state = np.zeros(4, np.int64)  # depth, in a string, after a backslash, place of the open element
        state[3] = -1
        scanned = 0
        while True:
            view = np.frombuffer(buffer, np.uint8)
            starts, ends, position, closed = _scan(view, scanned, state)
            if starts.size:
                yield Chunk(buffer, starts, ends, self._offset)
            if closed:
                self.closed = True
                self.tail_offset = self._offset + position
                self.tail = buffer[position:]
                self.tail += b"".join(self.blocks)
                return
            keep = int(state[3]) if state[3] >= 0 else len(buffer)
            carry = buffer[keep:]
            self._offset += keep
            state[3] = min(state[3], 0)
            if len(carry) > _LONGEST_EVENT and _BOUNDARY.search(carry):
                chunk, carry = self._cut_by_starts(carry)
                yield chunk
                state[:] = (0, 0, 0, -1)
            block = next(self.blocks, b"")
            if not block:
                break
            scanned = len(carry) if state[3] >= 0 else 0
            if state[3] < 0 and carry:
                state[:] = (0, 0, 0, -1)
            buffer = carry + block
        self.rest, self.rest_offset = carry, self._offset

    def _find_array(self) -> bytes:
        """Read on until the event array begins; return the text after its bracket."""
        text = next(self.blocks, b"")
        while text and not text.strip():
            text = next(self.blocks, b"")
        if text.lstrip()[:1] == b"[":
            self.found = self.bare = True
            self._offset = len(text) - len(text.lstrip()) + 1
            return text.lstrip()[1:]
        while True:
            match = _ARRAY_KEY.search(text)
            if match is not None:
                self.found = True
                self.head, self._offset = text[: match.end()], match.end()
                return text[match.end() :]
            block = next(self.blocks, b"")
            if not block or len(text) > _HEAD_LIMIT:
                self.head = text
                return b""
            text += block

    def _cut_by_starts(self, text: bytes) -> tuple[Chunk, bytes]:
        """Guess boundaries where ``}, {"ph":`` stands; the last piece stays."""
        borders = [0, *(match.end() for match in _BOUNDARY.finditer(text))]
        chunk = Chunk(text, np.array(borders[:-1]), np.array(borders[1:]), self._offset, doubtful=True)
        self._offset += borders[-1]
        return chunk, text[borders[-1] :]


def split_events(text: bytes) -> list[bytes]:
    """Cut text that holds one or more events at the places where an event begins; separators are stripped."""
    borders = [0, *(match.end() for match in _BOUNDARY.finditer(text)), len(text)]
    return [text[a:b].strip().rstrip(b",").rstrip() for a, b in pairwise(borders) if text[a:b].strip(b", \t\r\n")]


@numba.njit(cache=True)
def _scan(buffer: Any, position: Any, state: Any) -> Any:  # noqa: PLR0912 - one loop, a branch a character class; numba infers types
    """Boundaries of the whole elements from ``position`` on; updates ``state``; stops at the array's closing bracket."""
    size = buffer.shape[0]
    # An element has two bytes at least.
    starts = np.empty((size - position) // 2 + 2, np.int64)
    ends = np.empty((size - position) // 2 + 2, np.int64)
    count = 0
    depth, quoted, escaped, begin = state[0], state[1], state[2], state[3]
    i = position
    closed = False
    while i < size:
        if quoted == 1:
            # Most of a trace is inside strings: a tight loop to the next quote that no backslash escapes.
            while i < size:
                c = buffer[i]
                if escaped == 1:
                    escaped = 0
                elif c == 92:
                    escaped = 1
                elif c == 34:
                    quoted = 0
                    i += 1
                    break
                i += 1
            continue
        c = buffer[i]
        i += 1
        if c == 34:
            quoted = 1
        elif c < 91:
            continue
        elif c in (123, 91):
            if depth == 0:
                begin = i - 1
            depth += 1
        elif c in (125, 93):
            if depth == 0:
                if c == 93:
                    closed = True
                    break
            else:
                depth -= 1
                if depth == 0:
                    starts[count] = begin
                    ends[count] = i
                    count += 1
                    begin = -1
    state[0], state[1], state[2], state[3] = depth, quoted, escaped, begin
    return starts[:count].copy(), ends[:count].copy(), i, closed
