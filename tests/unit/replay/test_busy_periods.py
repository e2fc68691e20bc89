"""Transfers between hosts side by side, by hand."""

import numpy as np
import pytest

from tests.fakes.graphs import Task, graph_by_hand
from tracereplay.graph.kinds import NodeKind
from tracereplay.hardware.collectives.times import CollectiveTime
from tracereplay.replay.busy_periods import carry_over_together
from tracereplay.replay.columns import Times
from tracereplay.replay.transfers import Transfer, Wire


def of_wire(wire_ns: int, stack_ns: int = 1) -> CollectiveTime:
    total = wire_ns + stack_ns
    return CollectiveTime(total, total, total, 0, "ring", "Simple", None, "model", (), (), (), stack_ns)


def transfer(node: int, recorded_ns: int, here: CollectiveTime | None, there: CollectiveTime | None) -> Transfer:
    times = Times(*(np.array([float(recorded_ns)]) for _ in range(4)))
    wire = Wire("all_reduce", 8.0, "ring", None, 0.0, recorded_ns, recorded_ns)
    return Transfer(np.array([node]), 0, times, wire, (), here, there)


def test_a_period_is_corrected_as_one_and_each_of_it_goes_by_its_own_parts() -> None:
    # 0 to 60 and 10 to 50 overlap: alone 40 and 20 of them, which the model gives as 45 and 15. 100 to 130 stands by itself.
    tasks = [Task(0, 60_000, NodeKind.TRANSFER, release=0), Task(10_000, 40_000, NodeKind.TRANSFER, release=10_000),
             Task(100_000, 30_000, NodeKind.TRANSFER, release=100_000)]  # fmt: skip
    graph = graph_by_hand(tasks, [])
    transfers = [
        transfer(0, 60_000, of_wire(45_000), of_wire(22_500)),
        transfer(1, 40_000, of_wire(15_000), of_wire(7_500)),
        transfer(2, 30_000, of_wire(30_000), of_wire(15_000)),
    ]

    moved = carry_over_together(graph, transfers, np.array([2 / 3, 1 / 2, 1.0]))

    assert [float(one.times.ns[0]) for one in moved] == pytest.approx([30_000, 20_000, 15_000], rel=1e-3)
    assert [one.wire.after_ns for one in moved if one.wire is not None] == pytest.approx([30_000, 20_000, 15_000], rel=1e-3)


def test_transfers_of_accelerators_and_those_without_a_model_stay_as_they_are() -> None:
    graph = graph_by_hand([Task(0, 10, NodeKind.TRANSFER), Task(0, 10, NodeKind.TRANSFER)], [])
    transfers = [transfer(0, 10, of_wire(5, stack_ns=0), of_wire(9, stack_ns=0)), transfer(1, 10, None, of_wire(9))]

    assert carry_over_together(graph, transfers, np.ones(2)) == transfers
