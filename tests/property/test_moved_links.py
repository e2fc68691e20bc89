"""Laws of moves: on the hardware of the recording every step is the recorded one, whoever shared links there; no transfer is
faster among others than alone."""

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.fakes.jobs import graph_of
from tests.fakes.kineto import TraceFile
from tests.fakes.platforms import small_platform
from tracereplay.analyzers.prediction import OtherHardware, predict
from tracereplay.graph.model import DependencyGraph
from tracereplay.replay.engine import replay
from tracereplay.replay.move import move
from tracereplay.replay.sharing import on_links
from tracereplay.replay.site import Site
from tracereplay.replay.whatif import apply, hardware_change

LAW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ALL_REDUCE, COPY = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "Memcpy HtoD (Pinned -> Device)"
GROUPS = ((0, 1, 2, 3), (0, 2), (1, 3), (0, 3))
ONE_NIC = ('nics = { value = 4, unit = "1"', 'nics = { value = 1, unit = "1"')
SLOW_UPLINK = ('uplink = { value = 31, unit = "GB/s"', 'uplink = { value = 1, unit = "GB/s"')


@dataclass(frozen=True)
class Piece:
    """A collective of a group, or a copy of one rank, on its queue: how long after the one before, how long it takes."""

    group: int
    after_us: int
    us: int


PIECES = st.lists(st.builds(Piece, st.integers(0, 7), st.integers(0, 60), st.integers(1, 90)), min_size=2, max_size=12)


def recorded(pieces: list[Piece]) -> DependencyGraph:
    """Four ranks on two hosts. Pieces of group 4 to 7 are copies of rank 0 to 3."""
    traces = [TraceFile(rank, 4, host_name=f"n{rank // 2}").step(1, 0, 5_000) for rank in range(4)]
    free, count = dict.fromkeys(range(8), 100), [0] * 8
    for number, piece in enumerate(pieces):
        begin = free[piece.group] + piece.after_us
        free[piece.group] = begin + piece.us
        count[piece.group] += 1
        for rank in GROUPS[piece.group] if piece.group < 4 else (piece.group - 4,):
            trace = traces[rank].call("cudaLaunchKernel", 5 + 2 * number, 1, number + 1)
            if piece.group < 4:
                trace.kernel(ALL_REDUCE, begin, piece.us, 20 + piece.group, number + 1, **args(piece, count[piece.group]))
            else:
                trace.memcpy(COPY, begin, piece.us, 30, number + 1, bytes=20_000 * piece.us)
    for trace in traces:
        trace.call("cudaDeviceSynchronize", 90, max(free.values()) - 80)
    with tempfile.TemporaryDirectory() as folder:
        return graph_of(Path(folder), *traces)


def args(piece: Piece, seq: int) -> dict[str, Any]:
    ranks = GROUPS[piece.group]
    return {
        "Collective name": "allreduce", "In msg nelems": 20_000 * piece.us, "dtype": "Float", "Seq": seq,
        "Process Group Name": f"g{piece.group}", "Process Group Ranks": str(list(ranks)), "Group size": len(ranks),
    }  # fmt: skip


@cache
def sites() -> tuple[Site, Site]:
    """Nodes with one network interface and a slow way to the host, and with four and a fast one."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        slots = '"./fast.toml", unit = "name", kind = "spec", source = "a sheet" }\ncount = { value ='
        two = (f"{slots} 4", f"{slots} 2")
        narrow = small_platform(Path(one), two, ONE_NIC, SLOW_UPLINK)
        return Site(narrow, 1.0), Site(small_platform(Path(other), two), 1.0)


@LAW
@given(PIECES)
def test_on_the_hardware_of_the_recording_every_task_is_as_it_was(pieces: list[Piece]) -> None:
    graph, (narrow, _) = recorded(pieces), sites()
    found = move(graph, narrow, narrow)
    changes = [hardware_change("same", found.factor)]

    timing = on_links(graph, apply(graph, changes), found.sharing).timing
    prediction = predict(graph, changes, hardware=OtherHardware(found))

    assert (found.factor == 1).all()
    np.testing.assert_array_equal(replay(graph, timing).start_ns, replay(graph).start_ns)
    np.testing.assert_array_equal(timing.dur_ns, graph.nodes.dur_ns)
    assert prediction.predicted_ns == prediction.baseline_ns


@LAW
@given(PIECES)
def test_no_transfer_is_faster_among_others_than_alone(pieces: list[Piece]) -> None:
    graph, (narrow, wide) = recorded(pieces), sites()
    found = move(graph, wide, narrow)
    assume(found.sharing is not None)
    assert found.sharing is not None
    asked = apply(graph, [hardware_change("narrow", found.factor)])

    own, timing = found.sharing.without(asked.timing), on_links(graph, asked, found.sharing).timing

    assert (timing.dur_ns >= own.dur_ns).all()
    assert (found.sharing.alone <= 1 + 1e-9).all()
    assert (found.sharing.alone > 0).all()


def test_the_jobs_of_these_laws_do_share_links() -> None:
    graph, (narrow, _) = recorded([Piece(1, 0, 80), Piece(2, 0, 80), Piece(4, 0, 80), Piece(5, 0, 80)]), sites()

    found = move(graph, narrow, narrow)

    assert found.sharing is not None
    # Ranks 1 and 3 reach the interface over the ways to the hosts, which the copies have half of; ranks 0 and 2 do not.
    assert (found.sharing.alone < 0.9).sum() == 2 + 2
