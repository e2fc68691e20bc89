"""Take names out of a trace so that it can be shown to others: in, an event table; out, the same with names hashed.

Kept: operators, kernels, copies, runtime calls, profiler marks, communication annotations, shapes, types, sizes, ids, times.
Replaced by stable hashes (the same name gives the same hash in every trace): Python functions, modules and files, users'
annotations and autograd functions, hosts, process names. Dropped: every argument that is not on the list below.
"""

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tracereplay.trace.columns import bytes_column, coded_column
from tracereplay.trace.schema import DEVICE_ROLES, Role
from tracereplay.trace.table import ElementTexts, EventTable, Group, HeldText

if TYPE_CHECKING:
    from tracereplay.manifest import Manifest

_PUBLIC = re.compile(
    r"^(aten|prims?|fbgemm|torchvision|torchrec|quantized|quantized_decomposed|c10d|_c10d_functional|torch\.distributed|mkldnn|nccl|gloo|mpi|ucc|"
    r"inductor|triton|profiler|torch|cuda|autograd)::?|^ProfilerStep#\d+$|^record_param_comms$|^DistributedDataParallel\.forward$|"
    r"^Optimizer\.(step|zero_grad)#(SGD|Adam|AdamW|Adagrad|RMSprop|RowWiseAdagrad|Adadelta)\.|^detach_?$|^(torch::)?autograd::"
)
_BUILT_IN_BACKWARD = re.compile(r"^(autograd::engine::evaluate_function: )?(torch::autograd::\w+|[A-Z]\w*Backward\d+)$")
_ENGINE = "autograd::engine::evaluate_function: "
_KEPT_ARGS = frozenset({
    "External id", "external id", "correlation", "stream", "device", "context", "bytes", "memory bandwidth (GB/s)", "Ev Idx",
    "Sequence number", "Fwd thread id", "Record function id", "Input Dims", "Input type", "Input Strides", "grid", "block",
    "registers per thread", "shared memory", "blocks per SM", "warps per SM", "est. achieved occupancy %", "queued", "cbid",
    "Collective name", "In msg nelems", "Out msg nelems", "In split size", "Out split size", "dtype", "Group size",
    "Process Group Name", "Process Group Ranks", "Seq", "Rank", "Src Rank", "Dst Rank", "Comms Id", "graph node id", "graph id",
    "wait_on_stream", "wait_on_cuda_event_record_corr_id", "wait_on_cuda_event_id", "cuda_sync_kind", "priority",
})  # fmt: skip


def anonymized(table: EventTable) -> EventTable:
    """The table without names of people's code, files and machines. Linear in the events' text."""
    roles = table.column("role")
    names = table.names
    codes = table.codes("name")
    on_device = np.zeros(len(names), np.bool_)
    on_device[codes[np.isin(roles, [*DEVICE_ROLES, Role.RUNTIME, Role.CUDA_SYNC])]] = True
    shown = [name if on_device[code] else public_name(name) for code, name in enumerate(names)]
    pids = [value if value.isdigit() else _hashed(value) for value in table.dictionary("pid")]
    columns = table.table
    for column, values in (("name", shown), ("pid", pids)):
        place = columns.schema.get_field_index(column)
        columns = columns.set_column(place, columns.schema.field(place), coded_column(table.codes(column), values))
    texts = bytes_column([_text(table, row, shown[codes[row]]) for row in range(len(table))])
    held = HeldText((ElementTexts(texts, np.arange(len(table))),))
    groups = tuple(_group(g) for g in table.header.groups)
    header = replace(table.header, host=_hashed(table.header.host) or None, groups=groups)
    return replace(table, path=_file_name(table.path), table=columns, header=header, text=held, _columns={}, _memory={})


def anonymized_manifest(manifest: "Manifest") -> "Manifest":
    """A manifest with its hosts' names hashed as they are in the tables."""
    hosts = tuple(host.model_copy(update={"name": _hashed(host.name)}) for host in manifest.hosts)
    ranks = tuple(row.model_copy(update={"host": _hashed(row.host), "trace": _file_name(row.trace)}) for row in manifest.ranks)
    return manifest.model_copy(update={"hosts": hosts, "ranks": ranks})


def public_name(name: str) -> str:
    """A name as it may be shown: itself where it is PyTorch's or a library's, a hash where it is somebody's."""
    if _PUBLIC.match(name) and not name.startswith(_ENGINE):
        return name
    if _BUILT_IN_BACKWARD.match(name):
        return name
    if name.startswith(_ENGINE):
        return _ENGINE + _hashed(name.removeprefix(_ENGINE))
    return _hashed(name)


def _hashed(text: str | None) -> str:
    if not text:
        return ""
    return "anon_" + hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _file_name(path: str) -> str:
    """Only the part of a file name that says which rank it is."""
    match = re.search(r"(rank|worker)[_-]?\d+", Path(path).name, re.IGNORECASE)
    return f"{match.group() if match else _hashed(Path(path).name)}.json"


def _group(group: Group) -> Group:
    return replace(group, description="")


def _text(table: EventTable, row: int, name: str) -> bytes:
    args = {key: value for key, value in table.args_of(row).items() if key in _KEPT_ARGS and _is_plain(value)}
    return json.dumps({"ph": "X", "name": name, "args": args}, separators=(",", ":")).encode()


def _is_plain(value: Any) -> bool:
    """Numbers, and text and lists of what shapes and types are made of."""
    if isinstance(value, list):
        return all(_is_plain(part) for part in value)
    return (
        value is None
        or isinstance(value, int | float)
        or (isinstance(value, str) and re.fullmatch(r"[\w :<>,.\[\]()-]*", value) is not None)
    )
