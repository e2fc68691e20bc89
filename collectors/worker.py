"""One rank of a recording: in, the launcher's order as a file; out, a trace, and a line on stdout for each step.

Run as ``python -m tracereplay.collectors.worker ORDER RANK``. Its launcher starts it; nobody else should.
"""

import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from tracereplay.collectors.child import die_with_the_launcher, tell, tell_failures
from tracereplay.collectors.dlrm import Trainer
from tracereplay.collectors.order import WorkerOrder, read_order
from tracereplay.collectors.profiler import TracePlan, record
from tracereplay.collectors.protocol import Kind, Message

# A dead peer is noticed by its closed socket; this only bounds a peer that hangs.
_COLLECTIVE_TIMEOUT = timedelta(minutes=10)


def main(arguments: list[str]) -> None:
    """Train and record as the order file says."""
    order_file, rank_text = arguments
    order, rank = read_order(Path(order_file)), int(rank_text)
    die_with_the_launcher(order.launcher_pid)
    tell_failures(rank)
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
    plan = TracePlan(job.warmup_steps, job.steps, order.trace_of(rank), Path(order.partial), order.hosts[rank])
    tell(Message(Kind.READY, rank, os.getpid()))
    with record(plan) as session:
        for number in range(job.warmup_steps + job.steps):
            start = time.perf_counter_ns()
            batch = trainer.draw()
            if delay_s:
                time.sleep(delay_s)
            loss = trainer.step(batch)
            wall_ns = time.perf_counter_ns() - start
            session.step()
            tell(Message(Kind.STEP, rank, os.getpid(), number, wall_ns, loss))
    tell(Message(Kind.DONE, rank, os.getpid()))


if __name__ == "__main__":
    main(sys.argv[1:])
