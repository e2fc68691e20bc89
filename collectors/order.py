"""The order that a launcher leaves for its workers: in, a job and its places; out, a file that each rank reads."""

import json
from dataclasses import dataclass
from pathlib import Path

from tracereplay.collectors.job import DlrmJob


@dataclass(frozen=True, slots=True)
class WorkerOrder:
    """What all ranks are told; ``rendezvous`` is a file that does not exist yet, ``partial`` a folder in ``folder``."""

    job: DlrmJob
    folder: str
    partial: str
    rendezvous: str
    host: str
    threads: int
    launcher_pid: int

    def trace_of(self, rank: int) -> Path:
        """Where the trace of ``rank`` goes."""
        return Path(self.folder) / trace_name(rank)


def trace_name(rank: int) -> str:
    """The file name of a rank's trace."""
    return f"rank{rank}.json.gz"


def write_order(order: WorkerOrder, path: Path) -> None:
    """Write ``order`` to ``path``."""
    fields = {name: getattr(order, name) for name in WorkerOrder.__slots__}
    path.write_text(json.dumps(fields | {"job": order.job.to_json()}))


def read_order(path: Path) -> WorkerOrder:
    """The order that ``write_order`` wrote."""
    raw = json.loads(path.read_text())
    return WorkerOrder(**raw | {"job": DlrmJob.from_json(raw["job"])})
