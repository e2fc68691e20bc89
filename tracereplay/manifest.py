"""Where a trace came from: in, a JSON file beside the traces; out, a frozen Manifest, and back.

The manifest is the only thing besides the trace files that crosses from a recording to the analysis.
"""

import json
import tempfile
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from tracereplay.errors import CollectError, TraceError

SCHEMA: Final = "tracereplay/manifest/1"
FILE_NAME = "manifest.json"

WorkloadValue = int | float | str | bool | None | tuple[int, ...]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OverheadRecord(_Record):
    """What tracing cost a rank: the medians of the traced steps and of those before them, and how much longer they are now.

    ``plain_ns`` and ``share`` (0.05 is 5 %) are null where no step before the window could be timed; ``write_ns`` is the
    time that the job stood still while its trace was written.
    """

    plain_ns: int | None
    plain_steps: int
    traced_ns: int
    traced_steps: int
    share: float | None
    write_ns: int


class MissingRank(_Record):
    """A rank of the world without a trace in this recording, and why as far as it is known."""

    rank: int
    why: str


class RankRecord(_Record):
    """One rank of the recording: which file holds it, on which host it ran, the numbers of the steps in it; the
    accelerator that it computed on, and what tracing cost it, where that was measured.
    """

    rank: int
    trace: str
    host: str
    pid: int
    steps: tuple[int, ...]
    device: str | None = None
    overhead: OverheadRecord | None = None


class NicRecord(_Record):
    """A network interface that is up, or a port of an RDMA adapter: bits a second one way, bytes of the largest packet."""

    name: str
    kind: str
    bits_per_s: int | None
    mtu: int | None


class AcceleratorRecord(_Record):
    """An accelerator as a process of the job saw it: bytes, its PCIe link to the host, the peers that it reaches directly."""

    index: int
    name: str
    memory_bytes: int
    capability: str
    compute_units: int
    host_link_speed: str | None
    host_link_width: int | None
    peers: tuple[int, ...]


class HostRecord(_Record):
    """The machine: what the operating system says of it. Unknown fields are null, never guessed; empty where nobody looked."""

    name: str
    cpu_model: str | None
    cpu_count: int
    memory_bytes: int
    kernel: str
    nics: tuple[NicRecord, ...] = ()
    accelerators: tuple[AcceleratorRecord, ...] = ()
    driver: str | None = None


class Manifest(_Record):
    """A recording: who ran, on what, with which software, and how it was traced.

    ``missing_ranks``: those of the world without a trace. ``command`` and ``environment`` hold no secrets, and of the
    environment only what a run's speed depends on. ``platform`` is what ``--from`` takes: a name of the hardware catalogue,
    or a file.
    """

    schema_: Literal["tracereplay/manifest/1"] = SCHEMA
    created: str
    world_size: int
    backend: str
    clock: str  # what the time stamps count: the system clock, and the kernel's source of it
    hosts: tuple[HostRecord, ...]
    ranks: tuple[RankRecord, ...]
    versions: dict[str, str]
    workload: dict[str, WorkloadValue]
    tracer: dict[str, int | str | bool]
    missing_ranks: tuple[MissingRank, ...] = ()
    command: tuple[str, ...] | None = None
    environment: dict[str, str] = {}
    git_commit: str | None = None
    platform: str | None = None

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=lambda name: name.rstrip("_"), populate_by_name=True)

    def host_of(self, rank: int) -> str | None:
        """The host name of a rank, or None where the manifest does not list the rank."""
        return next((row.host for row in self.ranks if row.rank == rank), None)


def read_manifest(path: Path) -> Manifest:
    """The manifest at ``path``.

    Raises:
        TraceError: the file is missing, is not JSON, or does not fit the schema; the message names the field.
    """
    try:
        fields = json.loads(path.read_bytes())
    except OSError as error:
        raise TraceError(f"cannot read the manifest ({error.strerror})", where=str(path)) from error
    except ValueError as error:
        raise TraceError(f"not JSON ({error})", where=str(path)) from error
    return manifest_of(fields, str(path))


def manifest_of(fields: object, where: str) -> Manifest:
    """The manifest that parsed JSON holds; ``where`` names its file.

    Raises:
        TraceError: it does not fit the schema; the message names the field.
    """
    try:
        return Manifest.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise TraceError(f"not a manifest: field {field!r}: {first['msg']}", where=where) from error


def write_manifest(manifest: Manifest, path: Path) -> None:
    """Write ``manifest`` so that ``path`` is either absent, as before, or whole.

    Raises:
        CollectError: the file cannot be written.
    """
    text = manifest.model_dump_json(by_alias=True, indent=2) + "\n"
    try:
        with tempfile.TemporaryDirectory(prefix=".partial-", dir=path.parent) as folder:
            draft = Path(folder) / path.name
            draft.write_text(text)
            draft.replace(path)
    except OSError as error:
        raise CollectError(f"cannot write the manifest ({error.strerror})", where=str(path)) from error
