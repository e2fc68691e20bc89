"""One process of a calibration: in, the launcher's order as a file; out, a file of measurements, and a line on stdout for each.

Run as ``python -m tracereplay.collectors.calibration_worker ORDER RANK``. Its launcher starts it; nobody else should.
"""

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.benchmark import Timer

from tracereplay.collectors import collective_workloads as collectives
from tracereplay.collectors.calibration_order import CalibrationOrder, Phase, read_order
from tracereplay.collectors.child import die_with_the_launcher, tell, tell_failures
from tracereplay.collectors.collective_workloads import Group
from tracereplay.collectors.device import (
    Device,
    GpuDevice,
    HostDevice,
    Run,
    describe_device,
    finished_block_ns,
    has_gpu,
    launched_block_ns,
)
from tracereplay.collectors.measurement import Skipped, Work, row_of
from tracereplay.collectors.protocol import Kind, Message
from tracereplay.collectors.sampling import Timing, sample
from tracereplay.collectors.workloads import (
    Arena,
    Case,
    dlrm_products,
    host_copies,
    lookups,
    memory,
    overheads,
    square_products,
)

# A dead peer is noticed by its closed socket; this only bounds a peer that hangs.
_COLLECTIVE_TIMEOUT = timedelta(minutes=10)
_LATE = "out of time"
# For what is needed when it is late: the fewest repeats are all that it gets.
_MOMENT_S = 1e-3
_WORDS_OF_AN_ERROR = 200
# A block of collectives stands between a barrier and an agreement on its time, which take about as long each.
_SHARE_OF_BLOCKS = 1 / 3


class Notebook:
    """What is measured as it comes, and how much time is left; on rank 0 it tells the launcher what comes next."""

    def __init__(self, order: CalibrationOrder, rank: int, expected: int) -> None:
        self.rows: list[dict[str, Any]] = []
        self.skipped: list[Skipped] = []
        self._rank, self._left, self._asked = rank, expected, 0
        self._deadline = time.monotonic() + order.budget_s

    def share_s(self, *, needed: bool) -> float:
        """Seconds for the next piece of work: an equal share of what is left; once it is late none, or a moment if needed."""
        share = max(self._deadline - time.monotonic(), 0.0) / max(self._left, 1)
        return max(share, _MOMENT_S) if needed else share

    def next(self, work: Work) -> None:
        """Say what comes next."""
        if self._rank == 0:
            tell(Message(Kind.STEP, 0, os.getpid(), self._asked, what=work.label()))
        self._asked, self._left = self._asked + 1, self._left - 1

    def keep(self, work: Work, timing: Timing) -> None:
        """Note what was measured."""
        self.rows.append(row_of(work, timing))

    def skip(self, what: str, why: str) -> None:
        """Note what was not."""
        self.skipped.append(Skipped(what, " ".join(why.split())[:_WORDS_OF_AN_ERROR]))

    def write(self, path: Path) -> None:
        """Write it all, and what was measured on."""
        skipped = [{"what": row.what, "why": row.why} for row in self.skipped]
        document = {"device": describe_device(), "measurements": self.rows, "skipped": skipped}
        path.write_text(json.dumps(document, allow_nan=False))


def main(arguments: list[str]) -> None:
    """Measure as the order file says."""
    order_file, rank_text = arguments
    order, rank = read_order(Path(order_file)), int(rank_text)
    die_with_the_launcher(order.launcher_pid)
    tell_failures(rank)
    if order.cores:
        os.sched_setaffinity(0, order.cores[rank])
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    tell(Message(Kind.READY, rank, os.getpid()))
    gc.disable()  # a collection in the middle of a block would be measured with it
    notebook = alone(order) if order.phase is Phase.ALONE else together(order, rank)
    if rank == 0:
        notebook.write(Path(order.result))
    tell(Message(Kind.DONE, rank, os.getpid()))


def alone(order: CalibrationOrder) -> Notebook:
    """Measure each device by itself: the host, and the first GPU where there is one."""
    devices: list[Device] = [HostDevice(), *([GpuDevice(0)] if has_gpu() else [])]
    arenas = [Arena(device, quick=order.quick) for device in devices]
    plans = [(device, list(cases_of(device, arena, quick=order.quick))) for device, arena in zip(devices, arenas, strict=True)]
    for arena in arenas:
        arena.arrays()  # before the time for measuring begins: fresh memory may take seconds
    notebook = Notebook(order, 0, sum(len(cases) for _, cases in plans))
    for device, cases in plans:
        for case in cases:
            notebook.next(case.work)
            measure(case, device, notebook)
    return notebook


def cases_of(device: Device, arena: Arena, *, quick: bool) -> Iterator[Case]:
    """All that is measured on a device; what a platform needs comes before what only the measurement file shows."""
    yield from overheads(device)
    yield from memory(device, arena)
    if device.place == "device":
        yield from host_copies(device, quick=quick)
    yield from square_products(device, quick=quick)
    yield from lookups(device, arena, quick=quick)
    yield from dlrm_products(device, quick=quick)


def measure(case: Case, device: Device, notebook: Notebook) -> None:
    """One case: kept, or skipped with the reason (no time is left, the device cannot do it)."""
    share = notebook.share_s(needed=case.needed)
    if not share:
        notebook.skip(case.work.label(), _LATE)
        return
    try:
        run = case.prepare()
        timing = CLOCKS[case.clock](device, run, share)
    except RuntimeError as error:  # what torch raises for a type that a device does not know, and for memory that is not there
        notebook.skip(case.work.label(), str(error).partition("\n")[0])
        return
    notebook.keep(case.work, timing)


def _statement(_device: Device, run: Run, budget_s: float) -> Timing:
    """Torch's own timer: its loop around the statement is compiled and costs less than what is measured."""
    timer = Timer("run()", globals={"run": run}, num_threads=torch.get_num_threads())
    measured = timer.blocked_autorange(min_run_time=budget_s)
    return Timing(tuple(seconds * 1e9 for seconds in measured.times), measured.number_per_run)


def _by(block_ns: Callable[[Device, Run, int], float]) -> Callable[[Device, Run, float], Timing]:
    return lambda device, run, budget_s: sample(lambda calls: block_ns(device, run, calls), budget_s)


CLOCKS: dict[str, Callable[[Device, Run, float], Timing]] = {
    "device": _by(lambda device, run, calls: device.block_ns(run, calls)),
    "launched": _by(launched_block_ns),
    "finished": _by(finished_block_ns),
    "statement": _statement,
}


def together(order: CalibrationOrder, rank: int) -> Notebook:
    """Time collectives in groups of 2 to all ranks."""
    on_gpu = has_gpu()
    backend = "nccl" if on_gpu else "gloo"
    device: Device = GpuDevice(rank) if on_gpu else HostDevice()
    dist.init_process_group(
        backend,
        init_method=f"file://{order.rendezvous}",
        rank=rank,
        world_size=order.ranks,
        timeout=_COLLECTIVE_TIMEOUT,
        device_id=device.where if on_gpu else None,
    )
    try:
        return _groups(order, rank, device, backend)
    finally:
        dist.destroy_process_group()


def _groups(order: CalibrationOrder, rank: int, device: Device, backend: str) -> Notebook:
    counts, sizes = collectives.group_sizes(order.ranks), collectives.sizes(quick=order.quick)
    notebook = Notebook(order, rank, len(counts) * len(sizes) * len(collectives.NAMES))
    for ranks in counts:
        handle = dist.new_group(list(range(ranks)))  # every rank takes part in making it
        if rank < ranks:
            group = Group(handle, ranks, rank, backend)
            for name in collectives.NAMES:
                if name != "send_recv" or ranks == counts[0]:  # two ranks take part, however many there are
                    _one_collective(name, sizes, group, device, notebook)
        dist.barrier()
    return notebook


def _one_collective(name: str, sizes: tuple[int, ...], group: Group, device: Device, notebook: Notebook) -> None:
    """A collective at all sizes. Members decide alike: what a decision rests on is rank 0's or the slowest member's."""
    needed = {("send_recv", sizes[0]), ("all_reduce", sizes[-1])}  # a platform's latency and bandwidth
    for size in sizes:
        work = collectives.work_of(name, size, group)
        notebook.next(work)
        share = _from_rank_0(notebook.share_s(needed=(name, size) in needed), group, device)
        if not share:
            notebook.skip(work.label(), _LATE)
            continue
        try:
            run = collectives.prepare(name, size, group, device)
            run()
        except RuntimeError as error:
            if "support" not in str(error):  # a backend says so on every rank; anything else is a fault
                raise
            notebook.skip(f"{name} over {group.backend}", str(error).partition("\n")[0])
            return
        timing = sample(partial(_slowest_ns, run, group, device), share * _SHARE_OF_BLOCKS)
        # There and back are two messages.
        halved = Timing(tuple(ns / 2 for ns in timing.times_ns), timing.calls * 2) if name == "send_recv" else timing
        notebook.keep(work, halved)


def _slowest_ns(run: Run, group: Group, device: Device, calls: int) -> float:
    """A block of calls that all members begin together: the time of the one that took longest."""
    dist.barrier(group=group.handle)
    taken = torch.tensor([device.block_ns(run, calls)], dtype=torch.float64, device=device.where)
    dist.all_reduce(taken, op=dist.ReduceOp.MAX, group=group.handle)
    return float(taken.item())


def _from_rank_0(number: float, group: Group, device: Device) -> float:
    said = torch.tensor([number], dtype=torch.float64, device=device.where)
    dist.broadcast(said, src=0, group=group.handle)
    return float(said.item())


if __name__ == "__main__":
    main(sys.argv[1:])
