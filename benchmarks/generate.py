"""Write a large Kineto trace in the shape of a training job's: in, a number of events; out, a gzip file.

Steps of a host thread with nested operators, launches, kernels on two streams and flow events, in the layout and with the
arguments that Kineto writes (one event over several lines, 220 to 420 bytes each). The same number gives the same bytes.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path

_OP = """  {{
    "ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 1000, "tid": 1000,
    "ts": {ts}.{fraction:03d}, "dur": {dur}.125,
    "args": {{
      "External id": {id},"Record function id": {id}, "Concrete Inputs": ["", "", ""],
      "Input type": ["float", "float", "Scalar"],
      "Input Strides": [[512, 1], [1, 512], []], "Input Dims": [[2048, 512], [512, 256], []], "Ev Idx": {id}
    }}
  }}"""
_CALL = """  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1000, "tid": 1000,
    "ts": {ts}.{fraction:03d}, "dur": 4.500,
    "args": {{
      "External id": {id}, "cbid": 211, "correlation": {id}
    }}
  }}"""
_KERNEL = """  {{
    "ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": {stream},
    "ts": {ts}.{fraction:03d}, "dur": {dur}.250,
    "args": {{
      "External id": {id}, "queued": 0, "device": 0, "context": 1,
      "stream": {stream}, "correlation": {id}, "registers per thread": 32, "shared memory": 0,
      "blocks per SM": 1.2, "warps per SM": 9.6, "grid": [128, 1, 1], "block": [256, 1, 1], "est. achieved occupancy %": 15
    }}
  }}"""
_FLOW = """  {{
    "ph": "{ph}", "id": {id}, "pid": {pid}, "tid": {tid}, "ts": {ts}.{fraction:03d},
    "cat": "ac2g", "name": "ac2g"{bind}
  }}"""
_OPERATORS = (
    "aten::linear",
    "aten::addmm",
    "aten::relu",
    "aten::embedding_bag",
    "aten::cat",
    "aten::bmm",
    "aten::add_",
    "aten::mul",
)
_KERNELS = (
    "volta_sgemm_128x64_tn",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int)",
    "void split_embedding_codegen_forward_unweighted_kernel<float, float, float, long, 128u>(PackedTensorAccessor)",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float> > >()",
)
_HEAD = '{\n  "schemaVersion": 1,\n  "deviceProperties": [{"id": 0, "name": "Generated"}],\n  "traceEvents": [\n'
_TAIL = '\n  ],\n  "traceName": "generated.json"\n}\n'
_BASE_US = 1_700_000_000_000_000
# HTA keeps row numbers in the narrowest type that holds the correlation ids: ids like a job's, not from 1 on.
_FIRST_ID = 100_000


def events(count: int) -> Iterator[str]:
    """``count`` events as JSON text, six to an operator: outer and inner operator, call, kernel, two flow ends."""
    made = 0
    number = _FIRST_ID
    while True:
        number += 1
        ts, fraction = _BASE_US + number * 40, number * 37 % 1000
        common = {"id": number, "ts": ts, "fraction": fraction}
        kernel = {"id": number, "ts": ts + 19, "fraction": fraction}
        stream = 7 if number % 9 else 20
        for text in (
            _OP.format(name=_OPERATORS[number % 8], dur=30, **common),
            _OP.format(name=_OPERATORS[(number + 1) % 8], dur=20, **(common | {"ts": ts + 2})),
            _CALL.format(**(common | {"ts": ts + 9})),
            _KERNEL.format(name=_KERNELS[number % 4], stream=stream, dur=11 + number % 7, **kernel),
            _FLOW.format(ph="s", pid=1000, tid=1000, bind="", **(common | {"ts": ts + 9})),
            _FLOW.format(ph="f", pid=0, tid=stream, bind=', "bp": "e"', **kernel),
        ):
            if made == count:
                return
            made += 1
            yield text


def generate(path: Path, count: int) -> None:
    """Write the trace; whole or not at all."""
    scratch = path.with_suffix(".partial")
    with gzip.open(scratch, "wt", compresslevel=1, encoding="utf-8") as file:
        file.write(_HEAD)
        for position, text in enumerate(events(count)):
            file.write(",\n" if position else "")
            file.write(text)
        file.write(_TAIL)
    scratch.replace(path)


def generated(count: int) -> Path:
    """The trace of ``count`` events under ``build/``, written where it is not there yet."""
    path = Path("build") / f"generated_{count}.json.gz"
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        generate(path, count)
    return path
