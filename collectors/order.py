"""The order that a launcher leaves for its workers: in, a job and its places; out, a file that each rank reads."""

import json
from dataclasses import dataclass
from pathlib import Path

from tracereplay.collectors.job import DlrmJob


@dataclass(frozen=True, slots=True)
class WorkerOrder:
    """What all ranks are told; ``rendezvous`` is a file that does not exist yet, ``partial`` a folder in ``folder``.

    ``hosts`` holds the host of each rank. ``cores`` holds the cores that each rank binds itself to; empty: ranks run where the
    operating system puts them.
    """

    job: DlrmJob
    folder: str
    partial: str
    rendezvous: str
    hosts: tuple[str, ...]
    cores: tuple[tuple[int, ...], ...]
    launcher_pid: int

    @property
    def threads(self) -> int:
        """Threads of each rank's operators: one for each of its cores."""
        return len(self.cores[0]) if self.cores else 1

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
    cores = tuple(tuple(of_rank) for of_rank in raw["cores"])
    return WorkerOrder(**raw | {"job": DlrmJob.from_json(raw["job"]), "hosts": tuple(raw["hosts"]), "cores": cores})
