from pathlib import Path
from typing import Any

import pytest

from tests.fakes.jobs import table_of
from tests.fakes.kineto import TraceFile
from tracereplay.trace.collectives import (
    CollectiveKey,
    RecordedCollective,
    collective_rows,
    is_host_annotation,
    keys_of,
    recorded_collectives,
)
from tracereplay.trace.steps import Step

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
SEND_RECV = "ncclDevKernel_SendRecv"
LAUNCH = "cudaLaunchKernel"


def only(folder: Path, trace: TraceFile) -> RecordedCollective:
    (found,) = recorded_collectives(table_of(folder, trace))
    return found


def recorded(**fields: Any) -> dict[str, Any]:
    """Args of an event; an underscore stands for a blank."""
    return {name.replace("_", " "): value for name, value in fields.items()}


def with_args(folder: Path, **args: Any) -> RecordedCollective:
    """What is recorded of an all-reduce kernel with these args."""
    return only(folder, TraceFile().kernel(ALL_REDUCE, 10, 5, 7, **args))


def collective(
    name: str = "all_reduce", *, at: int, group: str | None = None, seq: int | None = None, ranks: str | None = None
) -> RecordedCollective:
    return RecordedCollective(0, name, group, seq, None, ranks, None, None, None, at + 5, at + 9, at)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gloo:all_to_all", True),
        ("mpi:all_reduce", True),
        ("ucc:broadcast", True),
        ("nccl:all_reduce", False),
        ("## gloo: ##", False),
    ],
)
def test_annotations_of_cpu_backends_are_communication(name: str, expected: bool) -> None:
    assert is_host_annotation(name) is expected


def test_kernels_and_annotations_are_collectives_and_copies_and_operators_are_not(tmp_path: Path) -> None:
    trace = TraceFile().gloo("gloo:all_reduce", 50, 5, tid=5).kernel(ALL_REDUCE, 10, 5, 7).kernel("gemm", 20, 5, 7)
    trace.op("c10d::allreduce_", 0, 5).memcpy("nccl copy", 30, 5, 7).event("kernel", ALL_REDUCE, 40, None)

    assert collective_rows(table_of(tmp_path, trace)).tolist() == [0, 1]


def test_collectives_stand_in_order_of_their_start(tmp_path: Path) -> None:
    trace = TraceFile().kernel(ALL_REDUCE, 50, 5, 7).kernel(SEND_RECV, 10, 5, 7).kernel(ALL_REDUCE, 10, 5, 20)

    assert [c.row for c in recorded_collectives(table_of(tmp_path, trace))] == [1, 2, 0]


def test_the_kernels_own_args_say_everything(tmp_path: Path) -> None:
    args: dict[str, Any] = {
        "Collective name": "all_to_allv", "In msg nelems": 1000, "dtype": "BFloat16", "Process Group Name": "5", "Seq": 12,
        "Group size": 4, "Process Group Ranks": "[0, 2, 4, 6]",
    }  # fmt: skip
    trace = TraceFile().call(LAUNCH, 4, 2, 1).kernel(SEND_RECV, 10, 5, 7, 1, **args)

    assert only(tmp_path, trace) == RecordedCollective(
        row=1, name="all_to_all", group="5", seq=12, group_size=4, group_ranks="[0, 2, 4, 6]", elements=1000, dtype="BFloat16",
        bytes=2000, start_ns=10_000, end_ns=15_000, enqueued_ns=4_000,
    )  # fmt: skip


def test_what_is_not_recorded_is_none(tmp_path: Path) -> None:
    assert with_args(tmp_path) == RecordedCollective(
        row=0, name="all_reduce", group=None, seq=None, group_size=None, group_ranks=None, elements=None, dtype=None,
        bytes=None, start_ns=10_000, end_ns=15_000, enqueued_ns=10_000,
    )  # fmt: skip


def test_the_operator_that_records_comms_is_asked_where_the_kernel_says_nothing(tmp_path: Path) -> None:
    args: dict[str, Any] = {
        "Collective name": "allreduce",
        "In msg nelems": 10,
        "dtype": "Float",
        "Process Group Name": "3",
        "Seq": 2,
    }
    trace = TraceFile().op("c10d::allreduce_", 0, 50).op("record_param_comms", 5, 40, **args).call(LAUNCH, 10, 5, 1)

    found = only(tmp_path, trace.kernel("ncclDevKernel_Generic", 60, 5, 7, 1))

    assert (found.name, found.group, found.seq, found.elements, found.bytes) == ("all_reduce", "3", 2, 10, 40)


def test_the_kernels_word_goes_before_the_operators(tmp_path: Path) -> None:
    trace = TraceFile().op("record_param_comms", 0, 50, **recorded(Process_Group_Name="operator", Seq=1)).call(LAUNCH, 10, 5, 1)

    found = only(tmp_path, trace.kernel(ALL_REDUCE, 60, 5, 7, 1, **recorded(Process_Group_Name="kernel")))

    assert (found.group, found.seq) == ("kernel", 1)


def test_the_recording_operator_is_found_by_external_id_too(tmp_path: Path) -> None:
    args: dict[str, Any] = {"External id": 9, "Process Group Name": "3"}
    trace = TraceFile().op("record_param_comms", 0, 50, **args)

    assert only(tmp_path, trace.kernel(ALL_REDUCE, 60, 5, 7, **{"External id": 9})).group == "3"


def test_the_annotation_around_the_launch_names_a_send_receive_kernel(tmp_path: Path) -> None:
    trace = TraceFile().annotation("nccl:all_to_all", 0, 50).call(LAUNCH, 10, 5, 1).kernel(SEND_RECV, 60, 5, 7, 1)

    assert only(tmp_path, trace).name == "all_to_all"


@pytest.mark.parametrize(
    ("kernel", "name"), [(ALL_REDUCE, "all_reduce"), (SEND_RECV, "send_recv"), ("ncclDevKernel_Generic_4", "other")]
)
def test_without_any_record_the_kernels_name_counts(tmp_path: Path, kernel: str, name: str) -> None:
    assert only(tmp_path, TraceFile().kernel(kernel, 60, 5, 7)).name == name


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("Float", 40),
        ("float", 40),
        ("Int", 40),
        ("Double", 80),
        ("Long", 80),
        ("long int", 80),
        ("Half", 20),
        ("BFloat16", 20),
        ("c10::BFloat16", 20),
        ("Byte", 10),
        ("unsigned char", 10),
        ("Bool", 10),
        ("Float8_e4m3fn", 10),
        ("who knows", None),
    ],
)
def test_bytes_are_elements_times_their_width(tmp_path: Path, dtype: str, size: int | None) -> None:
    assert with_args(tmp_path, **{"In msg nelems": 10, "dtype": dtype}).bytes == size


@pytest.mark.parametrize(
    ("args", "elements", "size"),
    [
        ({"Input Dims": [[64, 10]], "Input type": ["float"]}, 640, 2560),
        ({"Input Dims": [[64, 10], [3]], "Input type": ["c10::Half", "float"]}, 640, 1280),
        ({"Input Dims": [[[100], [2, 3]], []], "Input type": ["TensorList", "float"]}, 106, 424),
        ({"Input Dims": [[[100], [2, 3]]], "Input type": ["TensorList"]}, 106, None),
        ({"Input Dims": [[[[5], [6]], [[7]]]], "Input type": ["GenericList", "double"]}, 18, None),
        ({"Input Dims": [[]], "Input type": ["float"]}, 1, 4),
        ({"Input Dims": [[[], [3]], []], "Input type": ["TensorList", "float"]}, 4, 16),
        ({"Input Dims": [[], []], "Input type": ["TensorList", "float"]}, None, None),
        ({"Input Dims": [], "Input type": []}, None, None),
        ({"Input Dims": [["x"]], "Input type": ["float"]}, None, None),
        ({"Input Dims": "no list", "Input type": ["float"]}, None, None),
        ({"In msg nelems": "10", "dtype": "Float"}, None, None),
    ],
)
def test_without_a_count_the_first_inputs_shape_gives_it(
    tmp_path: Path, args: dict[str, Any], elements: int | None, size: int | None
) -> None:
    found = with_args(tmp_path, **args)

    assert (found.elements, found.bytes) == (elements, size)


def test_a_sequence_number_identifies_a_collective_in_its_group() -> None:
    # Q24: the name says nothing then, nor does the step.
    found = keys_of([collective(at=5, group="5", seq=2), collective(at=50, group="5", seq=3)], [Step(7, 0, 100, None)])

    assert found == [CollectiveKey("5", None, 2, 0, 0), CollectiveKey("5", None, 3, 0, 0)]


def test_point_to_point_work_has_sequence_numbers_of_its_own() -> None:
    found = keys_of([collective("send_recv", at=5, group="5", seq=2), collective(at=9, group="5", seq=2)], [])

    assert found == [CollectiveKey("5", "send_recv", 2, 0, 0), CollectiveKey("5", None, 2, 0, 0)]


def test_groups_of_one_name_with_other_members_are_other_groups() -> None:
    found = keys_of([collective(at=5, group="5", seq=2, ranks="[0, 1]"), collective(at=9, group="5", seq=2, ranks="[2]")], [])

    assert found == [CollectiveKey("5", None, 2, 0, 0, "[0, 1]"), CollectiveKey("5", None, 2, 0, 0, "[2]")]


def test_without_one_collectives_are_counted_by_group_kind_and_step() -> None:
    steps = [Step(3, 10, 100, None), Step(4, 100, 200, None)]
    parts = [
        collective(at=5),
        collective(at=10),
        collective(at=20),
        collective("broadcast", at=30),
        collective(at=40, group="1"),
        collective(at=99),
        collective(at=100),
        collective(at=250),
    ]

    assert keys_of(parts, steps) == [
        CollectiveKey(None, "all_reduce", None, -1, 0),
        CollectiveKey(None, "all_reduce", None, 3, 0),
        CollectiveKey(None, "all_reduce", None, 3, 1),
        CollectiveKey(None, "broadcast", None, 3, 0),
        CollectiveKey("1", "all_reduce", None, 3, 0),
        CollectiveKey(None, "all_reduce", None, 3, 2),
        CollectiveKey(None, "all_reduce", None, 4, 0),
        CollectiveKey(None, "all_reduce", None, 4, 1),
    ]


def test_recordings_of_different_steps_have_the_same_keys_for_the_steps_in_common() -> None:
    first = keys_of([collective(at=5), collective(at=15)], [Step(3, 0, 10, None), Step(4, 10, 20, None)])
    second = keys_of([collective(at=1005), collective(at=1015)], [Step(4, 1000, 1010, None), Step(5, 1010, 1020, None)])

    assert set(first) & set(second) == {CollectiveKey(None, "all_reduce", None, 4, 0)}


def test_a_collective_belongs_to_the_step_that_enqueued_it(tmp_path: Path) -> None:
    trace = TraceFile().call(LAUNCH, 90, 5, 1).kernel(ALL_REDUCE, 110, 5, 7, 1)

    (key,) = keys_of(
        recorded_collectives(table_of(tmp_path, trace)), [Step(1, 0, 100_000, None), Step(2, 100_000, 200_000, None)]
    )

    assert key.step == 1


@pytest.mark.parametrize("backend", ["gloo", "mpi", "ucc"])
def test_host_annotations_give_the_name_of_their_collective(tmp_path: Path, backend: str) -> None:
    trace = TraceFile(0, 1).step(1, 0, 200).op("a", 1, 1).gloo(f"{backend}:all_reduce", 20, 30, tid=5)

    assert only(tmp_path, trace).name == "all_reduce"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[96, 224, 288]", (96, 224, 288)),
        ("[96,224]", (96, 224)),
        ("[0, 7]", (0, 7)),
        ("[96, 224, ..., 240]", ()),
        ("[...]", ()),
        ("[]", ()),
        ("", ()),
        ("[1, -2]", ()),
        ([96, 224], (96, 224)),
        ([96, "..."], ()),
        ([96, 2.5], ()),
        (None, ()),
        (7, ()),
    ],
)
def test_a_split_is_read_whole_or_not_at_all(tmp_path: Path, text: Any, expected: tuple[int, ...]) -> None:
    found = with_args(tmp_path, **recorded(In_split_size=text, Out_split_size=text))

    assert (found.in_split, found.out_split) == (expected, expected)
