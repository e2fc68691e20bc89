"""Record a DLRM run with one process for each rank: in, a CollectRequest; out, a folder of traces and its manifest."""

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tracereplay.collectors.describe import describe
from tracereplay.collectors.folder import taken
from tracereplay.collectors.host import share_cores
from tracereplay.collectors.job import DlrmJob
from tracereplay.collectors.lab_platform import FILE_NAME as PLATFORM
from tracereplay.collectors.lab_platform import platform_text
from tracereplay.collectors.link import Link
from tracereplay.collectors.namespaces import INTERFACE, joined_hosts
from tracereplay.collectors.order import WorkerOrder, trace_name, write_order
from tracereplay.collectors.processes import Station, follow, running, torch_version
from tracereplay.collectors.protocol import Kind, Message
from tracereplay.errors import CollectError
from tracereplay.manifest import FILE_NAME, Manifest, write_manifest
from tracereplay.signals import terminate_as_exit

_WORKER = "tracereplay.collectors.worker"


@dataclass(frozen=True, slots=True)
class CollectRequest:
    """A job, the folder for its traces, and the name under which the host is recorded (None: its own). ``link``: ranks run on
    hosts of a laboratory, one each, that it joins.
    """

    job: DlrmJob
    folder: Path
    host_name: str | None = None
    force: bool = False
    link: Link | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """What a run left behind; ``steps`` are the traced ones, ``warnings`` what the workers wrote to stderr."""

    folder: Path
    manifest: Manifest
    trace_bytes: dict[int, int]
    steps: tuple[Message, ...]
    warnings: tuple[str, ...]


def collect_dlrm(request: CollectRequest, on_message: Callable[[Message], None]) -> Recording:
    """Run the job to its end and write the manifest last; ``on_message`` is told what each worker says.

    Raises:
        CollectError: torch is missing, the folder is taken or cannot be written, no laboratory can be built here, or a rank
            died. Traces of ranks that had finished stay; no process of the run does.
    """
    installed = torch_version("recording a DLRM")
    job = request.job
    host = request.host_name or socket.gethostname()
    with (
        terminate_as_exit(),
        taken(request.folder, force=request.force),
        tempfile.TemporaryDirectory(prefix="tracereplay-") as scratch,
        tempfile.TemporaryDirectory(prefix=".partial-", dir=request.folder) as partial,
        _stations(request) as stations,
    ):
        order = WorkerOrder(
            job=job,
            folder=str(request.folder.absolute()),
            partial=str(Path(partial).absolute()),
            rendezvous=str(Path(scratch) / "rendezvous"),
            hosts=(host,) * job.ranks if request.link is None else tuple(f"{host}-lab{rank}" for rank in range(job.ranks)),
            cores=share_cores(job.ranks),
            launcher_pid=os.getpid(),
        )
        order_file = Path(scratch) / "order.json"
        write_order(order, order_file)
        with running(_WORKER, order_file, job.ranks, stations) as workers:
            messages = follow(workers, on_message, "traces already written are whole")
            warnings = tuple(f"rank {worker.rank}: {line}" for worker in workers for line in worker.tail)
    pids = {message.rank: message.pid for message in messages if message.kind is Kind.READY}
    manifest = describe(order, pids, installed, request.link)
    if request.link is not None:
        _write_platform(request.folder, platform_text(request.link, manifest.hosts[0], max(order.threads, 1)))
    write_manifest(manifest, request.folder / FILE_NAME)
    return Recording(
        folder=request.folder,
        manifest=manifest,
        trace_bytes={rank: (request.folder / trace_name(rank)).stat().st_size for rank in sorted(pids)},
        steps=tuple(row for row in messages if row.step is not None and row.step >= job.warmup_steps),
        warnings=warnings,
    )


def _write_platform(folder: Path, text: str) -> None:
    """The hardware file of the laboratory's hosts beside their traces, whole or not at all."""
    try:
        with tempfile.TemporaryDirectory(prefix=".partial-", dir=folder) as partial:
            draft = Path(partial) / PLATFORM
            draft.write_text(text, encoding="utf-8")
            draft.replace(folder / PLATFORM)
    except OSError as error:
        raise CollectError(f"cannot write {PLATFORM} ({error.strerror})", where=str(folder)) from error


@contextmanager
def _stations(request: CollectRequest) -> Iterator[tuple[Station, ...]]:
    """Where ranks start: each on a host of its own in a laboratory, all of them here else."""
    if request.link is None:
        yield ()
        return
    with joined_hosts(request.job.ranks, request.link) as hosts:
        yield tuple(Station(host.enter, {"GLOO_SOCKET_IFNAME": INTERFACE}) for host in hosts)
