from pathlib import Path

import numpy as np
import pytest

from tests.fakes.jobs import table_of
from tests.fakes.kineto import TraceFile
from tracereplay.trace.links import LinkColumns, OwnerKind, launch_rows, owner_rows

LAUNCH = "cudaLaunchKernel"


def launches(folder: Path, trace: TraceFile) -> list[int]:
    """The launch row of each row of device work."""
    table = table_of(folder, trace)
    return [int(row) for row, stream in zip(table.column("launch_row"), table.column("stream"), strict=True) if stream >= 0]


def owners(folder: Path, trace: TraceFile) -> list[int]:
    """The owner row of each row of device work."""
    table = table_of(folder, trace)
    return [int(row) for row, stream in zip(table.column("owner_row"), table.column("stream"), strict=True) if stream >= 0]


def external(number: int) -> dict[str, int]:
    return {"External id": number}


def test_a_launch_is_known_by_its_correlation_id(tmp_path: Path) -> None:
    trace = TraceFile().call(LAUNCH, 10, 5, 1).call(LAUNCH, 20, 5, 2).kernel("k", 30, 5, 7, 2).kernel("l", 40, 5, 7, 9)

    assert launches(tmp_path, trace) == [1, -1]


@pytest.mark.parametrize(
    "name", [LAUNCH, "cuLaunchKernelEx", "cudaLaunchCooperativeKernel", "hipModuleLaunchKernel", "brandNewLaunch"]
)
def test_a_launch_is_a_launch_whatever_it_is_called(tmp_path: Path, name: str) -> None:
    assert launches(tmp_path, TraceFile().call(name, 10, 5, 1).kernel("k", 30, 5, 7, 1)) == [0]


def test_a_unique_id_links_though_the_work_began_before_its_launch(tmp_path: Path) -> None:
    assert launches(tmp_path, TraceFile().call(LAUNCH, 100, 5, 1).kernel("k", 98, 10, 7, 1)) == [0]


def test_copies_and_memory_sets_are_linked_too(tmp_path: Path) -> None:
    trace = TraceFile().call("cudaMemcpyAsync", 0, 5, 1).call("cudaMemsetAsync", 6, 5, 2)

    assert launches(tmp_path, trace.memcpy("Memcpy HtoD", 20, 5, 7, 1).memset("Memset", 30, 5, 7, 2)) == [0, 1]


def test_one_graph_launch_launches_many_kernels(tmp_path: Path) -> None:
    # Q09: cudaGraphLaunch with three kernels, an ordinary launch with one.
    trace = TraceFile().call("cudaGraphLaunch", 100, 10, 50).call(LAUNCH, 112, 5, 51)
    trace.kernel("g1", 120, 10, 7, 50).kernel("g2", 130, 20, 7, 50).kernel("g3", 152, 8, 7, 50).kernel("k", 165, 5, 7, 51)

    assert launches(tmp_path, trace) == [0, 0, 0, 1]


def test_as_many_calls_as_pieces_of_work_are_paired_in_order_of_time(tmp_path: Path) -> None:
    # Q11, out of order in the file; the second piece began before its launch by the clocks.
    trace = TraceFile().call(LAUNCH, 900, 5, 7).call(LAUNCH, 100, 5, 7)

    assert launches(tmp_path, trace.kernel("second", 899, 5, 7, 7).kernel("first", 120, 5, 7, 7)) == [0, 1]


def test_of_fewer_calls_than_pieces_each_takes_what_began_after_it(tmp_path: Path) -> None:
    trace = TraceFile().call(LAUNCH, 10, 5, 1).call(LAUNCH, 100, 5, 1)
    trace.kernel("first", 30, 5, 7, 1).kernel("second", 110, 5, 7, 1).kernel("before both", 5, 1, 7, 1)

    assert launches(tmp_path, trace) == [0, 1, 0]


def test_of_more_calls_than_pieces_the_last_before_the_work_launched_it(tmp_path: Path) -> None:
    trace = TraceFile().call(LAUNCH, 10, 5, 1).call(LAUNCH, 50, 5, 1).call(LAUNCH, 100, 5, 1)

    assert launches(tmp_path, trace.kernel("first", 60, 5, 7, 1).kernel("second", 110, 5, 7, 1)) == [1, 2]


@pytest.mark.parametrize("correlation", [0, -1, None])
def test_ids_that_mean_none_link_nothing(tmp_path: Path, correlation: int | None) -> None:
    trace = TraceFile().call(LAUNCH, 10, 5, correlation).kernel("k", 30, 5, 7, correlation)

    assert launches(tmp_path, trace) == [-1]


def test_without_calls_nothing_is_linked(tmp_path: Path) -> None:
    assert launches(tmp_path, TraceFile().op("a", 1, 1).kernel("k", 30, 5, 7, 1)) == [-1]


def test_the_owner_is_the_operator_with_the_works_own_external_id(tmp_path: Path) -> None:
    # Q27: by time alone the launch lies in linear, for it sticks out of addmm.
    trace = TraceFile().op("aten::linear", 100, 50, **external(1)).op("aten::addmm", 110, 30, **external(2))
    trace.call(LAUNCH, 135, 7, 1)

    assert owners(tmp_path, trace.kernel("k", 145, 10, 7, 1, **external(2))) == [1]


def test_without_an_id_of_its_own_the_work_takes_its_launchs(tmp_path: Path) -> None:
    trace = TraceFile().op("a", 0, 50, **external(3)).op("b", 60, 50)
    trace.event("cuda_runtime", LAUNCH, 70, 5, args={"correlation": 9, "External id": 3})

    assert owners(tmp_path, trace.kernel("k", 80, 10, 7, 9)) == [0]


def test_without_any_id_the_innermost_operator_around_the_launch_owns_the_work(tmp_path: Path) -> None:
    trace = TraceFile().op("outer", 0, 100).op("inner", 10, 50).annotation("## mark ##", 15, 30).call(LAUNCH, 20, 5, 1)

    assert owners(tmp_path, trace.kernel("k", 200, 10, 7, 1)) == [1]


def test_an_external_id_that_no_operator_has_leaves_it_to_containment(tmp_path: Path) -> None:
    trace = TraceFile().op("outer", 0, 100, **external(3)).call(LAUNCH, 20, 5, 1)

    assert owners(tmp_path, trace.kernel("k", 200, 10, 7, 1, **external(99))) == [0]


def test_external_ids_and_correlation_ids_are_not_one_name_space(tmp_path: Path) -> None:
    # Operator a has External id 7; correlation id 7 on launch and kernel, repeated as their External id, is not that.
    trace = TraceFile().op("a", 0, 10, **external(7)).op("b", 20, 30, **external(8))
    trace.event("cuda_runtime", LAUNCH, 25, 5, args={"correlation": 7, "External id": 7})

    assert owners(tmp_path, trace.kernel("k", 60, 10, 7, 7, **external(7))) == [1]


def test_a_launch_outside_of_operators_has_no_owner(tmp_path: Path) -> None:
    trace = TraceFile().op("a", 0, 10).annotation("## mark ##", 20, 20).call(LAUNCH, 25, 5, 1)

    assert owners(tmp_path, trace.kernel("k", 60, 10, 7, 1)) == [-1]


def test_an_operator_of_another_thread_owns_nothing_by_time(tmp_path: Path) -> None:
    trace = TraceFile().op("a", 0, 100, tid=2).call(LAUNCH, 25, 5, 1)

    assert owners(tmp_path, trace.kernel("k", 60, 10, 7, 1)) == [-1]


def test_how_an_owner_is_known_is_told() -> None:
    # Rows: operators 0 (External id 5) and 1, call 2 (correlation 1) in operator 1, work 3 (id 5), 4 (correlation 1), 5.
    none = np.array([-1, -1, -1, -1, -1, -1], np.int64)
    correlation, external_id, parent = none.copy(), none.copy(), none.copy()
    correlation[[2, 4]], external_id[[0, 3]], parent[2] = 1, 5, 1
    work, rows = np.array([3, 4, 5]), np.arange(6, dtype=np.int64)
    columns = LinkColumns(work, np.array([2]), np.array([0, 1]), rows * 10, correlation, external_id, parent)

    found = launch_rows(columns)
    owner, kind = owner_rows(columns, found)

    assert (found.tolist(), owner.tolist()) == ([-1, 2, -1], [0, 1, -1])
    assert kind.tolist() == [OwnerKind.EXTERNAL_ID, OwnerKind.CONTAINMENT, OwnerKind.NONE]
