"""One rank of a recording: in, the launcher's order as a file; out, a trace, and a line on stdout for each step.

Run as ``python -m tracereplay.collectors.worker ORDER RANK``. Its launcher starts it; nobody else should.
"""

import ctypes
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path
from types import TracebackType

import torch
import torch.distributed as dist

from tracereplay.collectors.dlrm import Trainer
from tracereplay.collectors.order import WorkerOrder, read_order
from tracereplay.collectors.profiler import TracePlan, record
from tracereplay.collectors.protocol import Kind, Message

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_EXIT_ORPHANED = 1
# A dead peer is noticed by its closed socket; this only bounds a peer that hangs.
_COLLECTIVE_TIMEOUT = timedelta(minutes=10)


def main(arguments: list[str]) -> None:
    """Train and record as the order file says."""
    order_file, rank_text = arguments
    order, rank = read_order(Path(order_file)), int(rank_text)
    _die_with_the_launcher(order.launcher_pid)
    _tell_failures(rank)
    if order.cores:
        os.sched_setaffinity(0, order.cores[rank])
    torch.set_num_threads(order.threads)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{order.rendezvous}",
        rank=rank,
        world_size=order.job.ranks,
        timeout=_COLLECTIVE_TIMEOUT,
    )
    try:
        _train(order, rank)
    finally:
        dist.destroy_process_group()


def _train(order: WorkerOrder, rank: int) -> None:
    job = order.job
    trainer = Trainer(job, rank)
    delay_s = job.delay_of(rank)
    plan = TracePlan(job.warmup_steps, job.steps, order.trace_of(rank), Path(order.partial), order.host)
    _tell(Message(Kind.READY, rank, os.getpid()))
    with record(plan) as session:
        for number in range(job.warmup_steps + job.steps):
            start = time.perf_counter_ns()
            batch = trainer.draw()
            if delay_s:
                time.sleep(delay_s)
            loss = trainer.step(batch)
            wall_ns = time.perf_counter_ns() - start
            session.step()
            _tell(Message(Kind.STEP, rank, os.getpid(), number, wall_ns, loss))
    _tell(Message(Kind.TRACED, rank, os.getpid()))


def _tell(message: Message) -> None:
    sys.stdout.write(message.to_line())
    sys.stdout.flush()


def _tell_failures(rank: int) -> None:
    """Say at once that this rank failed: its peers fail on the closed sockets and may exit before it does."""

    def tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sys.__excepthook__(kind, error, trace)
        _tell(Message(Kind.FAILED, rank, os.getpid()))

    sys.excepthook = tell


def _die_with_the_launcher(launcher_pid: int) -> None:
    """Have the kernel end this process when its launcher ends, however that ends."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != launcher_pid:  # it died before the call above
        sys.exit(_EXIT_ORPHANED)


if __name__ == "__main__":
    main(sys.argv[1:])
