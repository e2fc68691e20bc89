"""Any bytes end in an event table or in a TraceError, soon: truncations, random damage, and documents that hypothesis makes.

``TRACEREPLAY_FUZZ=10000`` runs that many random mutations instead of 300.
"""

import gzip
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.kineto import TraceFile
from tracereplay.errors import TraceError
from tracereplay.trace.kineto import read_kineto
from tracereplay.trace.table import EventTable

MUTATIONS = int(os.environ.get("TRACEREPLAY_FUZZ", "300"))
LONGEST_S = 1.0
# What exporters write, and what breaks readers: pieces from which mutations and hypothesis build.
PIECES = (
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\0", b"\x01", b"\n", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"NaN",
    b"-inf", b"1e999", b"-0", b"1e-999", b"9223372036854775808", b"-9223372036854775808", b"1" * 400, b"0.1234567890123456789",
    b"null", b"true", b'"\\ud800"', b"{}", b"[]", b"{" * 50, b"[" * 50, b'"ts":', b'"dur":', b'"traceEvents":[', b'{"ph":"X",',
    b'"args":', b'},{"name":', b'"correlation":1e30', b'"stream":[]', b'"device":{}', b'"External id":"7"', b'"pid":1.5',
    b'"baseTimeNanoseconds":9223372036854775807,', b'"ts":9223372036854775.807,', b'"dur":9223372036854775.807,',
    b"]}", b"]} {", b"\x1f\x8b\x08", b"PK\x03\x04",
)  # fmt: skip


def args(**fields: Any) -> dict[str, Any]:
    """Args of an event; an underscore stands for a blank."""
    return {name.replace("_", " "): value for name, value in fields.items()}


def representative() -> bytes:
    """A small trace with a header on both sides and every kind of event."""
    trace = TraceFile(0, 2, "nccl", {"0": [0, 1]}, host_name="node0", base_ns=1_783_322_452_000_000_000)
    trace.header["deviceProperties"] = [{"id": 0, "name": "V100"}]
    trace.step(1, "0.123", "100.5").op("aten::mm", 1, "50.001", **args(External_id=5, Input_Dims=[[2, 3]]))
    trace.call("cudaLaunchKernel", 10, 5, 1).kernel('void k<"q">(µ)', 20, 10, 7, 1, **args(bytes=4, bandwidth=1.5e3))
    trace.kernel("ncclDevKernel_AllReduce_Sum", 35, 10, 20, **args(In_msg_nelems=8, dtype="Float", Seq=3))
    trace.memcpy("Memcpy HtoD", 40, 0, 7).gloo("gloo:all_reduce", 60, 5, tid=9).event("cpu_op", "cut", 5, None)
    trace.events.insert(1, {"ph": "M", "name": "process_name", "pid": 100, "args": {"name": "python"}})
    return trace.encode()[:-1] + b', "displayTimeUnit": "ms"}'


WHOLE = representative()
PACKED = gzip.compress(WHOLE, mtime=0)


def outcome(path: Path, content: bytes) -> EventTable | TraceError:
    """What reading the bytes ends in; anything but a table or a TraceError escapes, and so does what takes too long."""
    path.write_bytes(content)
    began = time.perf_counter()
    try:
        result: EventTable | TraceError = read_kineto(path)
    except TraceError as error:
        result = error
    took = time.perf_counter() - began
    assert took < LONGEST_S, f"{took:.1f} s for {content!r}"
    if isinstance(result, EventTable):
        looked_through(result)
    return result


def looked_through(table: EventTable) -> None:
    """Read everything of a table that a verb may ask for."""
    assert len(table) > 0
    assert table.quality.complete == (table.quality.damage is None)
    assert int(table.column("event").max()) < table.recorded_events
    for row in range(len(table)):
        assert isinstance(table.args_of(row), dict)
        assert isinstance(table.name_of(row), str)
    for name in ("parent_row", "launch_row", "owner_row"):
        assert -1 <= int(table.column(name).min()) <= int(table.column(name).max()) < len(table)


def mutated(chance: random.Random, content: bytes) -> bytes:
    """One to eight bytes flipped, inserted, deleted, doubled or replaced by a piece."""
    result = bytearray(content)
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(result) + 1)
        kind = chance.randrange(6)
        if kind == 0 and place < len(result):
            result[place] ^= 1 << chance.randrange(8)
        elif kind == 1:
            result[place:place] = bytes([chance.randrange(256)])
        elif kind == 2:
            del result[place : place + chance.randint(1, 12)]
        elif kind == 3:
            result[place:place] = chance.choice(PIECES)
        elif kind == 4:
            piece = chance.choice(PIECES)
            result[place : place + len(piece)] = piece
        else:
            other = chance.randrange(len(result) + 1)
            result[place:place] = result[other : other + chance.randint(1, 200)]
    return bytes(result)


@pytest.fixture(scope="session", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Read once, so that no test pays for loading compiled loops."""
    path = tmp_path_factory.mktemp("compiled") / "rank0.json"
    path.write_bytes(WHOLE)
    read_kineto(path)


def test_the_representative_trace_is_whole(tmp_path: Path) -> None:
    table = outcome(tmp_path / "rank0.json", WHOLE)

    assert isinstance(table, EventTable)
    assert (len(table), table.recorded_events, table.quality.complete) == (8, 9, True)


def test_a_trace_cut_at_any_byte_gives_its_whole_events_or_an_error(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json"

    counts = [len(t) if isinstance(t := outcome(path, WHOLE[:kept]), EventTable) else 0 for kept in range(len(WHOLE))]

    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 8)


def test_a_compressed_trace_cut_at_any_byte_gives_its_whole_events_or_an_error(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json.gz"

    results = [outcome(path, PACKED[:kept]) for kept in range(len(PACKED))]

    tables = [result for result in results if isinstance(result, EventTable)]
    assert [table.quality.complete for table in tables] == [False] * len(tables)
    assert len(tables[-1]) == 8


@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("content", [WHOLE, PACKED], ids=["plain", "gzip"])
def test_random_damage_ends_in_a_table_or_an_error(tmp_path: Path, content: bytes, part: int) -> None:
    chance = random.Random(part)

    for _ in range(MUTATIONS // 20):
        outcome(tmp_path / "rank0.json", mutated(chance, content))


@settings(
    max_examples=MUTATIONS // 3, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=6), st.just(WHOLE[:300])), max_size=30))
def test_any_bytes_end_in_a_table_or_an_error(tmp_path: Path, pieces: list[bytes]) -> None:
    outcome(tmp_path / "rank0.json", b"".join(pieces))


@settings(
    max_examples=MUTATIONS // 3, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id"]),
            st.one_of(
                st.sampled_from([b'"X"', b'"kernel"', b'"cpu_op"', b"1.5", b'"7"', b"{}", b'{"stream":7,"device":0}', b"NaN"]),
                st.sampled_from(PIECES),
            ),
            max_size=8,
        ),
        max_size=6,
    )
)
def test_events_of_any_fields_end_in_a_table_or_an_error(tmp_path: Path, events: list[dict[str, bytes]]) -> None:
    texts = [b"{" + b",".join(b'"%s":%s' % (key.encode(), value) for key, value in event.items()) + b"}" for event in events]

    outcome(tmp_path / "rank0.json", b'{"traceEvents":[' + b",".join(texts) + b"]}")
