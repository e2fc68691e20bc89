"""A recording's manifest: in, a job and what its run was like; out, a Manifest with no path and no secret in it."""

import platform
from datetime import UTC, datetime

from tracereplay import __version__
from tracereplay.collectors.hook.machine import read_clock
from tracereplay.collectors.host import read_host
from tracereplay.collectors.job import DlrmJob
from tracereplay.collectors.link import Link
from tracereplay.collectors.namespaces import CONGESTION_CONTROL
from tracereplay.collectors.order import WorkerOrder, trace_name
from tracereplay.manifest import Manifest, RankRecord, WorkloadValue


def describe(order: WorkerOrder, pids: dict[int, int], torch_version: str, link: Link | None = None) -> Manifest:
    """The manifest of a run of ``order`` on this machine whose rank r had the process id ``pids[r]``; ``link``: what joined its
    hosts, where they are those of a laboratory.
    """
    job, hosts = order.job, order.hosts
    numbers = tuple(range(job.warmup_steps, job.warmup_steps + job.steps))
    return Manifest(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        world_size=job.ranks,
        backend="gloo",
        clock=read_clock(),
        hosts=tuple(read_host(name) for name in dict.fromkeys(hosts)),
        ranks=tuple(
            RankRecord(rank=rank, trace=trace_name(rank), host=hosts[rank], pid=pid, steps=numbers)
            for rank, pid in sorted(pids.items())
        ),
        versions={"python": platform.python_version(), "torch": torch_version, "tracereplay": __version__},
        workload=_workload(job),
        tracer={
            "profiler": "torch.profiler",
            "activities": "cpu",
            "record_shapes": True,
            "with_stack": False,
            "profile_memory": False,
            "warmup_steps": job.warmup_steps,
            "threads_per_rank": order.threads,
            "bound_to_cores": bool(order.cores),
            **({} if link is None else _laboratory(link)),
        },
    )


def _laboratory(link: Link) -> dict[str, int | str | bool]:
    said: dict[str, int | str | bool] = {"laboratory": True, "link": link.text, "link_delay_ns": link.delay_ns}
    if link.rate_bits is not None:
        said |= {"link_bits_per_s": link.rate_bits, "link_bucket_bytes": link.bucket_bytes}
    return said | {"congestion_control": CONGESTION_CONTROL}


def _workload(job: DlrmJob) -> dict[str, WorkloadValue]:
    config = job.config
    slow = job.slow_peer
    return {
        "model": "dlrm",
        "bottom": config.bottom,
        "top": config.top,
        "dim": config.dim,
        "interaction": config.interaction,
        "table_rows": config.table_rows,
        "poolings": config.poolings,
        "table_ranks": job.plan,
        "batch_per_rank": job.batch_per_rank,
        "warmup_steps": job.warmup_steps,
        "steps": job.steps,
        "seed": job.seed,
        "learning_rate": job.learning_rate,
        "slow_rank": None if slow is None else slow.rank,
        "slow_ms": None if slow is None else slow.delay_ms,
    }
