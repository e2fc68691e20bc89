"""Record a training loop from within: in, the ends of its steps; out, a trace a rank and a manifest.

    with collect("run/", workload={"batch_per_rank": 256}) as session:
        for batch in loader:
            train(batch)
            session.step()

Imports the standard library and torch, nothing else. Every rank calls it with the same folder and numbers.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tracereplay.collectors.hook.machine import git_commit
from tracereplay.collectors.hook.order import Order
from tracereplay.collectors.hook.parts import MANIFEST, PARTS
from tracereplay.collectors.hook.place import find_place
from tracereplay.collectors.hook.recorder import Recorder
from tracereplay.collectors.hook.redact import redacted_command
from tracereplay.errors import CollectError, UsageError


class Session:
    """A recording of this process. ``error`` says why there is no trace, where there is none; a training goes on all the
    same.
    """

    def __init__(self, order: Order) -> None:
        self._recorder = Recorder(order)
        self._number = 0

    @property
    def error(self) -> str | None:
        """What went wrong, or None."""
        return self._recorder.error

    def __enter__(self) -> "Session":
        self._recorder.introduce()
        self._recorder.edge(0)
        return self

    def step(self) -> None:
        """A training step has ended, and the next one begins. Never raises."""
        self._number += 1
        self._recorder.edge(self._number)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._recorder.finish("the loop ended" if kind is None else f"the loop raised {kind.__name__}")


def collect(  # noqa: PLR0913 - a front door: each is one independent wish
    folder: str | os.PathLike[str],
    *,
    skip: int = 10,
    steps: int = 5,
    workload: Mapping[str, int | float | str | bool | None] | None = None,
    platform: str | None = None,
    host: str | None = None,
    force: bool = False,
) -> Session:
    """A session that records ``steps`` steps after ``skip`` others into ``folder``; use it in a ``with`` statement.

    ``workload`` goes into the manifest (batch, sharding, ...), ``platform`` is the hardware that ``--from`` would name,
    ``host`` replaces this host's name.

    Raises:
        UsageError: ``skip`` or ``steps`` is below 1; the profiler needs a step to get ready in.
        CollectError: the folder holds this rank's trace and ``force`` is not given, or it cannot be written.
    """
    for name, value in (("skip", skip), ("steps", steps)):
        if value < 1:
            raise UsageError(f"{name} is {value}", hint="it must be at least 1")
    place = Path(folder)
    _make_ready(place, force=force)
    facts = {
        "command": redacted_command(sys.orig_argv),
        "git_commit": git_commit(Path.cwd()),
        "platform": platform,
        "workload": dict(workload or {}),
    }
    return Session(Order(str(place.absolute()), skip, steps, host=host, facts=facts))


def _make_ready(folder: Path, *, force: bool) -> None:
    """A folder without a trace of this rank. Each rank looks after its own, as none knows when the others come."""
    rank = find_place().rank
    own = [folder / f"rank{rank}.json.gz", folder / PARTS / f"rank{rank}.json"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        finished = (folder / MANIFEST).exists() and not (folder / PARTS).exists()  # a launcher's, who clears up
        if not force and (own[0].exists() or finished):
            raise CollectError("there is a recording already", where=str(folder), hint="choose another folder, or pass force")
        for file in own:
            file.unlink(missing_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise CollectError(f"cannot write there ({error.strerror})", where=str(folder), hint="choose another folder") from error
