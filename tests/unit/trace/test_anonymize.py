import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.fakes.jobs import stored_files, table_of
from tests.fakes.kineto import TraceFile
from tracereplay.trace.anonymize import anonymized, public_name
from tracereplay.trace.store import write_job
from tracereplay.trace.table import EventTable

SECRETS = ("alice", "SecretModel", "secret_project", "node-of-acme", "train.py", "/home/", "AcmeFn", "acme-group")
KERNEL = "void cutlass::gemm<float, 128>(int*)"


def private_trace() -> TraceFile:
    """A trace in which every place that can name somebody's code, files or machines does."""
    trace = TraceFile(1, 2, "nccl", {"0": [0, 1]}, host_name="node-of-acme")
    trace.header["distributedInfo"]["pg_config"][0] |= {"pg_desc": "acme-group"}
    trace.header["trace_name"] = "/home/alice/secret_project/rank1.json"
    shown: dict[str, Any] = {"Input Dims": [[2, 3]], "Call stack": "/home/alice/train.py(3): main"}
    trace.step(3, 0, 200).op("aten::addmm", 1, 50, **shown)
    trace.event("python_function", "/home/alice/secret_project/train.py(12): main", 2, 40, args={"Python module id": 3})
    trace.event(
        "python_function", "nn.Module: SecretModel_0", 3, 30, args={"Python parent id": 1, "Concrete Inputs": ["alice"]}
    )
    trace.annotation("alice's SecretModel", 60, 10).annotation("alice's SecretModel", 80, 10).op("AcmeFnBackward", 90, 5)
    trace.op("autograd::engine::evaluate_function: AcmeFnBackward", 100, 5).op("MmBackward0", 110, 5)
    trace.event("Trace", "PyTorch Profiler (0)", 0, 200, pid="Spans of alice", args={"Op count": 0})
    trace.call("cudaLaunchKernel", 20, 5, 1)
    args: dict[str, Any] = {
        "dtype": "Float",
        "Process Group Name": "0",
        "user": "alice",
        "Process Group Description": "acme-group",
    }
    return trace.kernel(KERNEL, 30, 10, 7, 1, **args)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[EventTable, EventTable]:
    """The table and its anonymous twin."""
    folder = tmp_path / "alice" / "secret_project"
    folder.mkdir(parents=True)
    table = table_of(folder, private_trace())
    return table, anonymized(table)


@pytest.mark.parametrize(
    "name",
    [
        "aten::mm",
        "c10d::allreduce_",
        "record_param_comms",
        "ProfilerStep#7",
        "nccl:all_reduce",
        "gloo:all_to_all",
        "MmBackward0",
        "torch::autograd::AccumulateGrad",
        "autograd::engine::evaluate_function: MmBackward0",
        "Optimizer.step#SGD.step",
        "DistributedDataParallel.forward",
    ],
)
def test_names_of_pytorch_and_libraries_are_kept(name: str) -> None:
    assert public_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "SecretModel",
        "nn.Module: SecretModel_0",
        "train.py(3): main",
        "my_ops::secret",
        "Optimizer.step#Secret.step",
        "AcmeFnBackward",
        "## secret ##",
    ],
)
def test_names_of_others_are_hashed(name: str) -> None:
    assert public_name(name).startswith("anon_")
    assert len(public_name(name)) == 17


def test_an_autograd_function_of_somebody_stays_one_of_the_engine() -> None:
    name = public_name("autograd::engine::evaluate_function: AcmeFnBackward")

    assert name == "autograd::engine::evaluate_function: " + public_name("AcmeFnBackward")


def test_the_same_name_gives_the_same_hash_in_every_trace(tmp_path: Path) -> None:
    first = anonymized(table_of(tmp_path, TraceFile(0).annotation("mine", 1, 1).annotation("mine", 2, 1)))
    second = anonymized(table_of(tmp_path, TraceFile(1).annotation("other", 1, 1).annotation("mine", 2, 1)))

    assert first.name_of(0) == first.name_of(1) == second.name_of(1)
    assert second.name_of(0) != second.name_of(1)


def test_nothing_private_is_left_in_the_files(tmp_path: Path, pair: tuple[EventTable, EventTable]) -> None:
    write_job([(pair[1], 1)], tmp_path / "job", force=False)
    stored = pq.read_table(stored_files(tmp_path / "job")["rank1"])

    # The columns are compressed: their values are looked through beside the files' own bytes.
    values = json.dumps([[str(value) for value in column.to_pylist()] for column in stored.columns])
    content = "".join(path.read_bytes().decode("latin-1") for path in (tmp_path / "job").iterdir())
    meta = str(stored.schema.metadata)
    assert [secret for secret in SECRETS if secret.lower() in (values + content + meta).lower()] == []


def test_nothing_private_is_left_in_the_table(pair: tuple[EventTable, EventTable]) -> None:
    table = pair[1]

    shown = str([table.path, asdict(table.header), [table.dictionary(n) for n in ("name", "category", "pid", "tid")]])
    texts = str([table.args_of(row) for row in range(len(table))])
    assert [secret for secret in SECRETS if secret.lower() in (shown + texts).lower()] == []


def test_times_links_and_numbers_are_kept(pair: tuple[EventTable, EventTable]) -> None:
    before, after = pair
    kept = [name for name in before.table.schema.names if name not in {"name", "pid"}]

    assert after.table.select(kept).equals(before.table.select(kept))
    assert (after.quality, after.recorded_events) == (before.quality, before.recorded_events)
    assert (after.header.rank, after.header.world_size, after.header.backend) == (1, 2, "nccl")
    assert [(g.name, g.size, g.ranks) for g in after.header.groups] == [("0", 2, (0, 1))]


def test_operators_kernels_and_shapes_are_kept(pair: tuple[EventTable, EventTable]) -> None:
    table = pair[1]
    kernel = len(table) - 1
    kept = ["ProfilerStep#3", "aten::addmm", "MmBackward0", "cudaLaunchKernel", KERNEL]

    assert [name for name in table.names if not name.startswith(("anon_", "autograd::engine"))] == kept
    assert table.args_of(1) == {"Input Dims": [[2, 3]]}
    assert table.args_of(kernel) == {
        "device": 0, "stream": 7, "correlation": 1, "dtype": "Float", "Process Group Name": "0"
    }  # fmt: skip


def test_the_path_keeps_only_the_rank(tmp_path: Path, pair: tuple[EventTable, EventTable]) -> None:
    named: Any = anonymized(table_of(tmp_path, TraceFile(7).op("a", 1, 1)))

    assert (pair[1].path, named.path) == ("rank1.json", "rank7.json")


def test_ranks_of_one_host_still_share_it(tmp_path: Path) -> None:
    tables = [anonymized(table_of(tmp_path, TraceFile(r, host_name="node0").op("a", 1, 1))) for r in (0, 1)]

    assert tables[0].header.host == tables[1].header.host != "node0"
    assert tables[0].header.host is not None


def test_a_trace_without_a_host_still_has_none(tmp_path: Path) -> None:
    assert anonymized(table_of(tmp_path, TraceFile(0).op("a", 1, 1))).header.host is None
