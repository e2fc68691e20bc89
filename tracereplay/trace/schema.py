"""Columns and categories of an event table: the only words for them past the reader.

Requirements of a valid table (checked by ``EventTable.__post_init__``):

- one row a complete event (``ph`` = ``X``), in file order; ``event`` is its index in the file's ``traceEvents``;
- ``ts_ns`` is int64 nanoseconds, never null; ``raw_dur_ns`` is the recorded duration, null where the file gives none;
  ``dur_ns`` is that with impossible ones cut and lost ones null; ``time_class`` is a ``times.TimeClass``;
- ``device``, ``stream``, ``correlation`` are null where the file gives none, never -1 or 0 as a stand-in;
- ``parent_row`` is the host event around a host event, ``launch_row`` the call that launched device work, ``owner_row``
  the operator that owns it: rows of this table, null where there is none;
- ``text`` is the event's own JSON text, repaired where it had to be; separators may follow it;
- ``role`` is a ``Role``; ``name``, ``pid`` and ``tid`` are dictionary-encoded text.
"""

from enum import IntEnum

import pyarrow as pa

SCHEMA_NUMBER = 2


class Role(IntEnum):
    """What an event is, from its category alone."""

    OTHER = 0
    CPU_OP = 1
    ANNOTATION = 2
    RUNTIME = 3
    KERNEL = 4
    MEMCPY = 5
    MEMSET = 6
    GPU_ANNOTATION = 7
    PYTHON = 8
    CUDA_SYNC = 9


HOST_ROLES = (Role.CPU_OP, Role.ANNOTATION, Role.RUNTIME, Role.PYTHON)
DEVICE_ROLES = (Role.KERNEL, Role.MEMCPY, Role.MEMSET)

# Category spellings of Kineto exporters: the lower-case ones are today's (libkineto/src/ActivityType.cpp), the
# capitalised ones those of 2021 (schemaVersion 1, PyTorch 1.8-1.10).
ROLE_OF_CATEGORY = {
    "cpu_op": Role.CPU_OP,
    "Operator": Role.CPU_OP,
    "user_annotation": Role.ANNOTATION,
    "cuda_runtime": Role.RUNTIME,
    "cuda_driver": Role.RUNTIME,
    "hip_runtime": Role.RUNTIME,
    "xpu_runtime": Role.RUNTIME,
    "mtia_runtime": Role.RUNTIME,
    "privateuse1_runtime": Role.RUNTIME,
    "privateuse1_driver": Role.RUNTIME,
    "Runtime": Role.RUNTIME,
    "kernel": Role.KERNEL,
    "Kernel": Role.KERNEL,
    "gpu_memcpy": Role.MEMCPY,
    "Memcpy": Role.MEMCPY,
    "gpu_memset": Role.MEMSET,
    "Memset": Role.MEMSET,
    "gpu_user_annotation": Role.GPU_ANNOTATION,
    "python_function": Role.PYTHON,
    "cuda_sync": Role.CUDA_SYNC,
}

_TEXT = pa.dictionary(pa.int32(), pa.string())

SCHEMA = pa.schema(
    [
        ("event", pa.int64()),
        ("ts_ns", pa.int64()),
        ("dur_ns", pa.int64()),
        ("raw_dur_ns", pa.int64()),
        ("time_class", pa.int8()),
        ("role", pa.int8()),
        ("name", _TEXT),
        ("category", _TEXT),
        ("pid", _TEXT),
        ("tid", _TEXT),
        ("device", pa.int64()),
        ("stream", pa.int64()),
        ("correlation", pa.int64()),
        ("external_id", pa.int64()),
        ("parent_row", pa.int64()),
        ("launch_row", pa.int64()),
        ("owner_row", pa.int64()),
        ("text", pa.large_binary()),
    ]
)

# The columns that every verb needs; the text is read when one event's args are asked for.
COLUMNS = pa.schema([field for field in SCHEMA if field.name != "text"])
