"""A real calibration of this machine over gloo, and the code for GPUs with something in their place."""

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from tests.collect.processes import still_running_after
from tracereplay.cli.main import main
from tracereplay.collectors.calibrate import CalibrationRequest, calibrate
from tracereplay.collectors.collective_workloads import NAMES, group_sizes
from tracereplay.collectors.device import GpuDevice, HostDevice, finished_block_ns, launched_block_ns
from tracereplay.collectors.measurement import Place
from tracereplay.collectors.protocol import Kind, Message
from tracereplay.collectors.workloads import Arena, Lookup, draw_indices, index_sets, lookups, memory, square_products
from tracereplay.errors import CollectError
from tracereplay.hardware.load import load_platform
from tracereplay.hardware.measurements import Measurements, read_measurements

LAUNCHER = """
import signal, sys
from pathlib import Path
from tracereplay.collectors.calibrate import CalibrationRequest, calibrate
from tracereplay.collectors.protocol import Kind

# A shell that starts a job in the background has it ignore SIGINT; this launcher is to hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)

def tell(message):
    if message.kind is Kind.STEP:
        sys.stdout.write(f"{message.pid}\\n")
        sys.stdout.flush()

calibrate(CalibrationRequest(Path(sys.argv[1])), tell)
"""


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A quick calibration with two ranks, of one second for each part and what is needed."""
    output = tmp_path_factory.mktemp("calibrated") / "ours.toml"
    code = (
        "import sys; import tracereplay.collectors.calibrate as c; from tracereplay.cli.main import main; "
        "c._BUDGETS = {True: (1.0, 1.0)}; sys.exit(main(sys.argv[1:]))"
    )
    words = ["hardware", "calibrate", "--quick", "--ranks", "2", "--host-name", "node0", "--json", "--output", str(output)]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output, json.loads(done.stdout)


def measured(output: Path) -> Measurements:
    return read_measurements(output.with_suffix(".measurements.json"))


def test_what_is_written_is_a_platform_in_order(
    calibrated: tuple[Path, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    output, document = calibrated

    assert main(["hardware", "validate", str(output)]) == 0
    assert main(["hardware", "show", str(output)]) == 0
    assert "fabric.scale_up.technology" in capsys.readouterr().out
    assert document["result"]["name"] == "ours"
    fields = dict(load_platform(str(output)).fields())
    formats = [f"host.achievable_flops.{name}" for name in ("fp32", "bf16", "fp16", "fp64")]
    fabric = ["fabric.scale_up.latency", "fabric.scale_up.achievable"]
    for key in ["host.memory.achievable", "host.overhead", "host.lookup", *formats, *fabric]:
        assert fields[key].kind == "measured"
        assert "ours.measurements.json" in fields[key].source


def test_every_value_follows_from_its_median_time(calibrated: tuple[Path, dict[str, Any]]) -> None:
    found = measured(calibrated[0])
    rows = {(row.run, row.number("bytes")): row for row in found.measurements}

    triad = next(row for row in found.of("memory", "host") if row.run == "triad")
    assert triad.value == pytest.approx(3 * triad.number("array_bytes") / triad.median_ns * 1e9, rel=1e-6)
    product = found.of("gemm", "host")[0]
    assert product.value == pytest.approx(2 * 1024**3 / product.median_ns * 1e9, rel=1e-6)
    # Two ranks: the bus carries 2 (n - 1) / n = 1 of an all-reduce.
    summed = rows["all_reduce", 2**24]
    assert summed.value == pytest.approx(2**24 / summed.median_ns * 1e9, rel=1e-6)
    assert rows["send_recv", 1024].value == pytest.approx(1024 / rows["send_recv", 1024].median_ns * 1e9, rel=1e-2)
    assert all(row.least_ns <= row.median_ns for row in found.measurements)


def test_all_collectives_are_measured_or_said_to_be_left_out(calibrated: tuple[Path, dict[str, Any]]) -> None:
    found = measured(calibrated[0])

    names = [row.run for row in found.of("collective", "fabric")]
    names += [row.what.split()[0] for row in found.skipped if "gloo" in row.what]
    assert {name: names.count(name) for name in NAMES} == dict.fromkeys(NAMES, 4)  # four sizes
    assert {row.why for row in found.skipped} <= {"out of time"}


def test_the_file_names_the_given_host_and_no_path(calibrated: tuple[Path, dict[str, Any]]) -> None:
    text = calibrated[0].with_suffix(".measurements.json").read_text()

    assert re.findall(r'"(?:/|[A-Z]:\\)[^"]*"', text) == []
    assert f'"{socket.gethostname()}"' not in text
    assert measured(calibrated[0]).command == "tracereplay hardware calibrate --quick --ranks 2"
    assert [path.name for path in calibrated[0].parent.iterdir() if path.name.startswith(".")] == []


def test_a_killed_worker_is_named_and_leaves_the_earlier_file(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text("the earlier one")
    heard: list[int] = []

    def kill(message: Message) -> None:
        heard.append(message.pid)
        if message.kind is Kind.STEP:
            os.kill(message.pid, signal.SIGKILL)

    with pytest.raises(
        CollectError, match=r"rank 0 \(pid \d+\) was killed by SIGKILL: .*; the other ranks were ended; nothing was wri"
    ):
        calibrate(CalibrationRequest(file), kill)

    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]
    assert file.read_text() == "the earlier one"
    assert still_running_after(heard, 0.0) == []


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_an_ended_calibration_leaves_no_process_and_nothing_half_written(tmp_path: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-c", LAUNCHER, str(tmp_path / "m.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as launcher:
        assert launcher.stdout is not None
        pid = int(launcher.stdout.readline())

        launcher.send_signal(how)
        launcher.wait(20)

    assert still_running_after([pid], 10.0) == []
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    heard: list[Message] = []

    with pytest.raises(CollectError, match="cannot write there"):
        calibrate(CalibrationRequest(tmp_path / "none" / "m.json"), heard.append)

    assert heard == []


class FakeCuda:
    """``torch.cuda`` with a clock of its own: each call of ``work`` takes 0.25 ms of the device."""

    def __init__(self, major: int = 7) -> None:
        self.major = major
        self.now_ms = 0.0
        self.said: list[str] = []

    def set_device(self, number: int) -> None:
        self.said.append(f"device {number}")

    def mem_get_info(self, number: int) -> tuple[int, int]:
        return 4_000, 8_000

    def get_device_properties(self, number: int) -> object:
        return type("Properties", (), {"L2_cache_size": 6_000, "major": self.major})

    def synchronize(self, number: int) -> None:
        self.said.append("wait")

    def work(self) -> None:
        self.said.append("work")
        self.now_ms += 0.25

    def Event(self, enable_timing: bool) -> "FakeEvent":  # noqa: N802 - torch's name
        assert enable_timing
        return FakeEvent(self)


class FakeEvent:
    """A moment of a FakeCuda."""

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda
        self.at_ms = 0.0

    def record(self) -> None:
        self.cuda.said.append("record")
        self.at_ms = self.cuda.now_ms

    def synchronize(self) -> None:
        self.cuda.said.append("wait for event")

    def elapsed_time(self, end: "FakeEvent") -> float:
        return end.at_ms - self.at_ms


def test_work_of_a_gpu_is_timed_by_events_around_it() -> None:
    cuda = FakeCuda()
    device = GpuDevice(3, cuda)

    assert device.block_ns(cuda.work, calls=2) == 500_000
    assert cuda.said == ["device 3", "wait", "record", "work", "work", "record", "wait for event"]
    assert (device.free_bytes, device.cache_bytes, str(device.where)) == (4_000, 6_000, "cuda:3")


def test_a_launch_is_timed_without_its_work_and_a_round_trip_with_it() -> None:
    cuda = FakeCuda()
    device = GpuDevice(0, cuda)

    launched_block_ns(device, cuda.work, calls=2)
    finished_block_ns(device, cuda.work, calls=2)

    assert cuda.said[1:] == ["wait", "work", "work", "wait", "wait", "work", "wait", "work", "wait"]


class SmallGpu(HostDevice):
    """What is run on a GPU, run by the processor, with room for arrays of 1 MiB."""

    place: Place = "device"
    has_tf32 = True

    def __init__(self) -> None:
        self.free_bytes = 16 * 2**20
        self.cache_bytes = 2**18


def test_arrays_take_no_more_than_a_share_of_the_memory() -> None:
    arena = Arena(SmallGpu(), quick=True)

    assert [array.numel() * 4 for array in arena.arrays()] == [2**20] * 3
    assert arena.table(arena.rows_of(64), 64).shape == (4096, 64)


def test_tf32_is_measured_where_it_is() -> None:
    assert [GpuDevice(0, FakeCuda(major)).has_tf32 for major in (7, 8, 9)] == [False, True, True]
    assert {case.work.dtype for case in square_products(SmallGpu(), quick=True)} == {"fp32", "tf32", "bf16", "fp16", "fp64"}
    assert {case.work.dtype for case in square_products(HostDevice(), quick=True)} == {"fp32", "bf16", "fp16", "fp64"}


def test_memory_work_moves_what_it_says() -> None:
    device = SmallGpu()
    arena = Arena(device, quick=True)
    a, b, _ = arena.arrays()
    cases = {case.work.run: case for case in memory(device, arena)}

    triad, copy = cases["triad"].prepare(), cases["copy"].prepare()
    triad()
    assert (float(a.min()), float(a.max())) == (11.0, 11.0)  # 2 + 3 x 3
    copy()

    assert torch.equal(a, b)
    assert {run: case.work.amount for run, case in cases.items()} == {"triad": 3 * 2**20, "copy": 2 * 2**20, "read": 2**20}


def test_a_lookup_counts_rows_indices_and_sums() -> None:
    # 2 bags of 3 rows of 4 numbers: 6 x 16 B of rows, 6 x 8 B of indices, 2 x 16 B of sums.
    assert Lookup(rows=9, dim=4, pooling=3, bags=2, indices="uniform").bytes_moved == 96 + 48 + 32


def test_lookups_run_on_tables_of_their_size() -> None:
    device = SmallGpu()
    cases = list(itertools.islice(lookups(device, Arena(device, quick=True), quick=True), 2))

    pooled = [case.prepare()() for case in cases]

    assert isinstance(pooled[0], torch.Tensor)
    assert isinstance(pooled[1], torch.Tensor)
    assert [case.work.parameters["indices"] for case in cases] == ["uniform", "zipf"]
    assert pooled[0].shape == pooled[1].shape == (65536, 64)
    assert float(pooled[0].min()) == float(pooled[0].max()) == 20.0  # 20 rows of ones


@pytest.mark.parametrize(
    ("pooling", "cache_bytes", "sets"),
    [
        (1, 2**28, 1024),  # a call touches 512 KiB, all of them 512 MiB
        (20, 2**28, 52),  # 10 MiB a call
        (1, 2**32, 2048),  # 1 GiB, the whole table
        (1, 0, 1),
    ],
)
def test_calls_use_other_rows_until_they_have_touched_two_caches(pooling: int, cache_bytes: int, sets: int) -> None:
    assert index_sets(Lookup(2**22, 64, pooling, 2048, "uniform"), cache_bytes) == sets


def test_skewed_indices_want_few_rows_often() -> None:
    of = Lookup(rows=1000, dim=4, pooling=50, bags=400, indices="zipf")

    (drawn,) = draw_indices(of, 1, torch.device("cpu"))

    counts = torch.bincount(drawn.flatten(), minlength=1000).sort(descending=True).values
    assert (tuple(drawn.shape), len(counts)) == ((400, 50), 1000)
    # The sum of k^-1.05 to 1000 is 6.42, to 10 it is 2.80: the first row is wanted in 15.6 % of the lookups, ten in 43.6 %.
    assert float(counts[0]) / 20_000 == pytest.approx(0.156, abs=0.01)
    assert float(counts[:10].sum()) / 20_000 == pytest.approx(0.436, abs=0.02)


def test_groups_are_the_powers_of_two_and_all() -> None:
    assert [group_sizes(ranks) for ranks in (2, 3, 4, 6, 8)] == [(2,), (2, 3), (2, 4), (2, 4, 6), (2, 4, 8)]
