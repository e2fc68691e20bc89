from pathlib import Path
from typing import Any

from tests.fakes.jobs import table_of
from tests.fakes.kineto import TraceFile
from tracereplay.trace.shapes import input_shapes


def dims(*inputs: list[int]) -> dict[str, Any]:
    return {"Input Dims": list(inputs)}


def test_shapes_are_numbered_alike_where_they_are_equal(tmp_path: Path) -> None:
    trace = TraceFile(0).op("aten::mm", 0, 5, **dims([4, 2], [])).op("aten::mm", 10, 5, **dims([3]))
    trace.op("aten::add", 20, 5, **dims([4, 2], []))

    shapes = input_shapes(table_of(tmp_path, trace))

    assert shapes.texts == ("[[3]]", "[[4,2],[]]")
    assert shapes.code.tolist() == [1, 0, 1]


def test_rows_without_shapes_have_none(tmp_path: Path) -> None:
    trace = TraceFile(0).op("aten::mm", 0, 5).call("cudaLaunchKernel", 1, 2, 7)

    shapes = input_shapes(table_of(tmp_path, trace))

    assert (shapes.code.tolist(), shapes.texts) == ([-1, -1], ())


def test_args_beside_the_shapes_do_not_disturb_them(tmp_path: Path) -> None:
    around: dict[str, Any] = {"Concrete Inputs": ["[1, 2]", ""], **dims([], [8]), "Input type": ["a]", "b"]}
    trace = TraceFile(0).op("aten::mm", 0, 5, **around)

    assert input_shapes(table_of(tmp_path, trace)).texts == ("[[],[8]]",)
