"""Record a job that knows nothing of it: in, its command line; out, its traces, manifests and its exit code.

The job is started as it would be without us, with a folder more in ``PYTHONPATH`` and two variables (``collectors/site``).
Its processes write their own traces and manifest (``collectors/hook``); here it is only waited for, and said what is missing.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import tracereplay
from tracereplay.collectors.folder import clear_left_over, recordings_in, taken
from tracereplay.collectors.hook.machine import git_commit
from tracereplay.collectors.hook.order import LEAST_SKIP, VARIABLE, Order
from tracereplay.collectors.hook.parts import Part, manifest_fields, read_parts
from tracereplay.collectors.hook.redact import redacted_command
from tracereplay.errors import CollectError, UsageError
from tracereplay.manifest import FILE_NAME, Manifest, WorkloadValue, manifest_of, write_manifest

_SITE = Path(__file__).parent / "site"
_PYTHON = re.compile(r"python[\d.]*")
_SHEBANG = re.compile(rb"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(?P<program>[^\s\0]*python[\d.]*)\b")
_HAS_TORCH = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
_SIGNALLED = 128  # a shell's exit code for a process that a signal ended begins here


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A command line, and which of its steps are recorded where. ``platform`` and ``workload`` go into the manifest."""

    command: tuple[str, ...]
    folder: Path
    skip: int
    steps: int
    on_demand: bool = False
    force: bool = False
    host_name: str | None = None
    platform: str | None = None
    workload: Mapping[str, WorkloadValue] | None = None

    def __post_init__(self) -> None:
        if not self.command:
            raise UsageError("no command to run", hint="write it after --, such as -- python train.py")
        if self.steps < 1:
            raise UsageError(f"--steps is {self.steps}", hint="it must be at least 1")
        if self.skip < LEAST_SKIP and not self.on_demand:
            raise UsageError(
                f"--skip is {self.skip}",
                hint=f"it must be at least {LEAST_SKIP}: two steps show where a step ends, one readies the tracer",
            )


@dataclass(frozen=True, slots=True)
class JobRecording:
    """One folder of traces with its manifest and the files' sizes in bytes by rank."""

    folder: Path
    manifest: Manifest
    trace_bytes: dict[int, int]


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a job left behind; ``exit_code`` is its own, as a shell would say it."""

    exit_code: int
    recordings: tuple[JobRecording, ...]
    warnings: tuple[str, ...]


def run_job(request: RunRequest, *, own_stdout: bool = True) -> RunResult:
    """Run the job to its end. With ``own_stdout`` False what it prints goes to stderr.

    Raises:
        CollectError: there is no such command or no torch for it, the folder is taken or cannot be written; or the job went
            well and no rank has a trace.
    """
    program = shutil.which(request.command[0])
    if program is None:
        raise CollectError("there is no such command", where=request.command[0], hint=_hint_for(request.command[0]))
    refuse_without_torch(program)
    with taken(request.folder, force=request.force), tempfile.TemporaryDirectory(prefix="tracereplay-") as mail:
        order = Order(
            folder=str(request.folder.absolute()),
            skip=request.skip,
            steps=request.steps,
            on_demand=request.on_demand,
            mail=mail,
            host=request.host_name,
            facts=_facts(request),
        )
        code = _wait_for([program, *request.command[1:]], order, own_stdout=own_stdout)
        recordings, warnings = _gather(request.folder, Path(mail))
    if not recordings and code == 0 and not (request.on_demand and not warnings):
        raise _nothing(request, warnings)
    return RunResult(code, recordings, tuple(warnings))


def refuse_without_torch(program: str) -> None:
    """Look for torch in the Python that runs ``program``, where it can be told which that is; torch is not imported for it.

    Raises:
        CollectError: that Python has none.
    """
    interpreter = _interpreter_of(Path(program))
    if (
        interpreter is not None
        and subprocess.run([interpreter, "-c", _HAS_TORCH], check=False, capture_output=True).returncode == 1
    ):
        raise CollectError("recording a job needs torch", where=interpreter, hint="pip install 'tracereplay[collect]'")


def _interpreter_of(program: Path) -> str | None:
    """The Python that a program is or that its first line names."""
    if _PYTHON.fullmatch(program.name):
        return str(program)
    try:
        with program.open("rb") as file:
            first = _SHEBANG.match(file.readline(512))
    except OSError:
        return None
    return None if first is None else shutil.which(os.fsdecode(first["program"]))


def _hint_for(name: str) -> str:
    return "pip install 'tracereplay[collect]'" if name == "torchrun" else "is it spelled right, and in PATH?"


def _facts(request: RunRequest) -> dict[str, Any]:  # JSON
    return {
        "command": redacted_command(request.command),
        "git_commit": git_commit(Path.cwd()),
        "platform": request.platform,
        "workload": dict(request.workload or {}),
    }


def _wait_for(command: list[str], order: Order, *, own_stdout: bool) -> int:
    """Start the job and wait for its end; signals to us are signals to it."""
    path = os.pathsep.join([str(_SITE), *filter(None, [os.environ.get("PYTHONPATH")])])
    ours = {
        "PYTHONPATH": path,
        "TRACEREPLAY_PACKAGE": str(Path(tracereplay.__file__).parent.absolute()),
        VARIABLE: order.to_text(),
    }
    try:
        job = subprocess.Popen(command, env=os.environ | ours, stdout=None if own_stdout else sys.stderr.fileno())
    except OSError as error:
        raise CollectError(f"cannot be started ({error.strerror})", where=command[0]) from error
    with _passed_on(job):
        code = job.wait()
    return code if code >= 0 else _SIGNALLED - code


@contextmanager
def _passed_on(job: subprocess.Popen[bytes]) -> Iterator[None]:
    """Pass signals on to the job and outlive it. The terminal's Ctrl-C reaches the job by itself."""

    def forward(number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGINT or not sys.stdin.isatty():
            job.send_signal(number)

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, forward) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _gather(folder: Path, mail: Path) -> tuple[tuple[JobRecording, ...], list[str]]:
    """Finish each recording of the job: its manifest, and what is to be said about it."""
    recordings, warnings = [], []
    for place in recordings_in(folder):
        parts = read_parts([place, mail] if place == folder else [place])
        fields = manifest_fields(parts)
        prefix = "" if place == folder else f"{place.relative_to(folder)}: "
        if fields is not None:
            manifest = manifest_of(fields, str(place / FILE_NAME))
            write_manifest(manifest, place / FILE_NAME)
            sizes = {row.rank: (place / row.trace).stat().st_size for row in manifest.ranks}
            recordings.append(JobRecording(place, manifest, sizes))
        warnings += [prefix + line for line in _warnings(parts, None if fields is None else manifest)]
        clear_left_over(place)
    return tuple(recordings), warnings


def _warnings(parts: list[Part], manifest: Manifest | None) -> list[str]:
    """What a reader of a recording has to know: missing ranks, windows that were cut, steps that not all ranks have."""
    if manifest is None:
        return [f"rank {part['rank']} has no trace: {part['why']}" for part in parts if part["state"] != "waiting"]
    lines = [f"rank {missing.rank} has no trace: {missing.why}" for missing in manifest.missing_ranks]
    lines += [f"rank {part['rank']}: {part['why']}" for part in parts if part["trace"] is not None and part["state"] == "cut"]
    if len({row.steps for row in manifest.ranks}) > 1:
        common = sorted(set.intersection(*(set(row.steps) for row in manifest.ranks)))
        lines.append(f"ranks recorded different steps; all have {', '.join(map(str, common)) or 'none in common'}")
    return lines


def _nothing(request: RunRequest, warnings: list[str]) -> CollectError:
    """The error that says why nothing was recorded."""
    if not warnings:
        return CollectError(
            "no process of the job stepped an optimizer of torch",
            where=request.command[0],
            hint="Python must not be started with -E, -I or -S, and a launcher has to pass PYTHONPATH and TRACEREPLAY_* on",
        )
    more = f" ({len(warnings) - 1} more)" if len(warnings) > 1 else ""
    short = "window begins at step" in warnings[0]
    hint = "choose a smaller --skip" if short else ""
    return CollectError(f"nothing was recorded: {warnings[0]}{more}", where=str(request.folder), hint=hint)
