"""Measure the machine at hand: in, how thorough and how many ranks; out, a file of measurements, whole or not at all.

The work is done by processes that this launcher starts, first one with all cores, then one a rank; it needs no torch itself.
"""

import json
import os
import platform
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tracereplay import __version__
from tracereplay.collectors.calibration_order import CalibrationOrder, Phase, write_order
from tracereplay.collectors.hook.machine import usable_cores
from tracereplay.collectors.host import read_host, share_cores, sockets
from tracereplay.collectors.measurement import SCHEMA
from tracereplay.collectors.processes import follow, running, torch_version
from tracereplay.collectors.protocol import Message
from tracereplay.errors import CollectError, UsageError
from tracereplay.signals import terminate_as_exit

_WORKER = "tracereplay.collectors.calibration_worker"
# Seconds of measuring, ALONE and TOGETHER; starting the processes comes on top.
_BUDGETS = {True: (8.0, 5.0), False: (50.0, 26.0)}
# More ranks than this on one host measure its scheduler.
_MOST_RANKS_BY_ITSELF = 8

Json = dict[str, Any]  # parsed JSON has no narrower type


@dataclass(frozen=True, slots=True)
class CalibrationRequest:
    """Where the measurements go, how thorough to be, how many ranks (None: a rank a GPU, else a rank a core, 2 to 8), and the
    name under which the host is recorded (None: its own).
    """

    file: Path
    quick: bool = False
    ranks: int | None = None
    host_name: str | None = None

    def __post_init__(self) -> None:
        if self.ranks is not None and self.ranks < 1:
            raise UsageError(f"--ranks is {self.ranks}", hint="it must be at least 1; 1 measures no collectives")

    def command(self) -> str:
        """The command line that asks for the same, without its paths."""
        ranks = "" if self.ranks is None else f" --ranks {self.ranks}"
        return f"tracereplay hardware calibrate{' --quick' if self.quick else ''}{ranks}"


def calibrate(request: CalibrationRequest, on_message: Callable[[Message], None]) -> tuple[str, ...]:
    """Measure and write the file; ``on_message`` is told what each worker says. Gives what workers wrote to stderr.

    Raises:
        CollectError: torch is missing, the file cannot be written, or a worker died: then there is no file, or the earlier one.
    """
    installed = torch_version("calibrating")
    place = request.file.resolve()
    try:
        with (
            terminate_as_exit(),
            tempfile.TemporaryDirectory(prefix=".partial-", dir=place.parent) as partial,
        ):
            load = round(os.getloadavg()[0], 2)
            document, words = _measure(request, Path(partial), on_message)
            draft = Path(partial) / "draft"
            text = json.dumps(_described(request, installed, load) | document, allow_nan=False, ensure_ascii=False, indent=1)
            draft.write_text(text + "\n", encoding="utf-8")
            draft.replace(place)
    except OSError as error:
        raise CollectError(
            f"cannot write there ({error.strerror})", where=str(request.file), hint="choose another --output"
        ) from error
    return words


# Facts of a host that the measurement file has under its device, or not at all.
_NOT_MEASURED = {"nics", "accelerators", "driver"}


def _described(request: CalibrationRequest, installed: str, load: float) -> Json:
    """What the file says of the run itself: no path and no environment is in it. ``load``: of the machine before the run."""
    host = read_host(request.host_name or socket.gethostname())
    return {
        "schema": SCHEMA,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": request.command(),
        "versions": {"python": platform.python_version(), "torch": installed, "tracereplay": __version__},
        "host": host.model_dump(exclude=_NOT_MEASURED) | {"sockets": sockets(), "load": load},
    }


def _measure(request: CalibrationRequest, scratch: Path, on_message: Callable[[Message], None]) -> tuple[Json, tuple[str, ...]]:
    """Both phases; the second only where there are ranks to speak to each other."""
    found, words = _phase(request, Phase.ALONE, 1, scratch, on_message)
    ranks, skipped = _ranks(request.ranks, found["device"])
    measurements, left_out = found["measurements"], [*found["skipped"], *skipped]
    if ranks > 1:
        more, more_words = _phase(request, Phase.TOGETHER, ranks, scratch, on_message)
        measurements, left_out, words = measurements + more["measurements"], left_out + more["skipped"], words + more_words
    return {"device": found["device"], "ranks": ranks, "measurements": measurements, "skipped": left_out}, words


def _ranks(asked: int | None, device: Json) -> tuple[int, list[Json]]:
    """How many ranks speak to each other, and what is left out: GPUs take a rank each."""
    on_gpu = device["kind"] != "cpu"
    most = int(device["count"]) if on_gpu else None
    ranks = asked or most or max(min(usable_cores(), _MOST_RANKS_BY_ITSELF), 2)
    if most is not None and ranks > most:
        why = f"{most} GPU{'s' if most > 1 else ''}, and a rank needs one of its own"
        return most, [{"what": f"collectives of {ranks} ranks", "why": why}]
    return ranks, [] if ranks > 1 else [{"what": "collectives", "why": "they need at least 2 ranks"}]


def _phase(
    request: CalibrationRequest, phase: Phase, ranks: int, scratch: Path, on_message: Callable[[Message], None]
) -> tuple[Json, tuple[str, ...]]:
    """Run the processes of a phase to their end and read what they measured."""
    budgets = dict(zip(Phase, _BUDGETS[request.quick], strict=True))
    order = CalibrationOrder(
        phase=phase,
        ranks=ranks,
        quick=request.quick,
        budget_s=budgets[phase],
        result=str(scratch / f"{phase}.json"),
        rendezvous=str(scratch / "rendezvous"),
        cores=share_cores(ranks),
        launcher_pid=os.getpid(),
    )
    order_file = scratch / f"{phase}-order.json"
    write_order(order, order_file)
    with running(_WORKER, order_file, ranks) as workers:
        follow(workers, on_message, "nothing was written")
        words = tuple(f"rank {worker.rank}: {line}" for worker in workers for line in worker.tail)
    found: Json = json.loads(Path(order.result).read_text())
    return found, words
