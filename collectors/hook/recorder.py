"""One process's recording: in, the ends of its training steps; out, traces, a part and a manifest, and never an exception.

A recorder is told of each step's end by ``edge``. It opens a window where its order says or somebody asks, closes it when it
is full, and measures what the tracer costs: the median of traced steps against the median of those before the window.
"""

import atexit
import os
import platform
import signal
import statistics
import sys
import threading
import time
from collections import deque
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from tracereplay import __version__
from tracereplay.collectors.hook import asking, rivals
from tracereplay.collectors.hook.accelerators import describe_accelerators, describe_device
from tracereplay.collectors.hook.machine import describe_machine, read_clock
from tracereplay.collectors.hook.order import Order
from tracereplay.collectors.hook.parts import Part, claim, write_manifest_of
from tracereplay.collectors.hook.place import Place, find_place
from tracereplay.collectors.hook.publish import write_json
from tracereplay.collectors.hook.redact import redacted_environment
from tracereplay.collectors.hook.window import Window, WindowPlan, tracer_options

_PLAIN_STEPS = 50  # the latest so many steps before a window are what its steps are compared with
_FRAMEWORKS = ("lightning", "pytorch_lightning", "transformers", "accelerate", "deepspeed", "torchrec", "fbgemm_gpu", "numpy")


class Recorder:
    """Records one process as ``order`` says. Steps are numbered by the caller."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._pid = os.getpid()
        self._place: Place | None = None
        self._number = 0
        self._began_ns: int | None = None
        self._plain: deque[int] = deque(maxlen=_PLAIN_STEPS)
        self._turn = 1
        self._window: Window | None = None
        self._folder = Path(order.folder)
        self._part: Part = {}
        self._part_name = ""
        self._over = False
        self._before_term: Any = None
        self.error: str | None = None

    @property
    def window(self) -> Window | None:
        """The window that is open."""
        return self._window

    def introduce(self) -> None:
        """Say that this process trains, and listen where there is something to hear."""
        atexit.register(self.finish)
        rivals.before_theirs(self.give_way)
        self._guarded(self._introduce)
        if self._order.on_demand:
            self._guarded(self._listen)

    def edge(self, number: int) -> None:
        """Step ``number`` begins now; with the first call nothing is known of the step before, with others it ends now."""
        if self._over:
            return
        now = time.perf_counter_ns()
        self._number = number
        if self._began_ns is None:
            self._guarded(self._open_if_due, number)
        else:
            self._guarded(self._step_ended, number, now - self._began_ns)
        self._began_ns = time.perf_counter_ns()

    def finish(self, why: str = "the job ended") -> None:
        """No step comes any more: what was recorded is written, and what was not is said. May be called again."""
        if self._over or os.getpid() != self._pid:  # a forked child has inherited this object, and its end is not the job's
            return
        self._guarded(self._finish, why)
        self._over = True

    def give_way(self) -> None:
        """The script starts a profiler of its own, and torch has room for one."""
        if self._over or self._window is None:
            return
        self._guarded(self._cut, "the script began to record itself with torch.profiler")
        self._over = True

    # What may fail -----------------------------------------------------------------------------------------------

    def _guarded(self, what: Any, *arguments: object) -> None:
        """Run one of the methods below; what it raises ends the recording and not the job."""
        if self._over:
            return
        try:
            what(*arguments)
        except Exception as error:  # noqa: BLE001 - a training job goes on, whatever happens to its recording
            self._over = True
            self._fail(error)

    def _introduce(self) -> None:
        """Say that this process trains, before anything is recorded."""
        self._place = place = find_place()
        self._part = {
            "rank": place.rank,
            "world": place.world,
            "backend": place.backend,
            "pid": self._pid,
            "host": self._order.host or platform.node(),
            "clock": read_clock(),
            "machine": describe_machine(self._order.host) | {"accelerators": describe_accelerators()},
            "device": describe_device(),
            "versions": _versions(),
            "environment": redacted_environment(os.environ),
            "facts": self._order.facts,
            "tracer": {},
            "overhead": None,
            "trace": None,
            "trace_bytes": 0,
            "steps": [],
            "state": "waiting",
            "why": "its window was not open yet",
        }
        self._part["host"] = self._part["machine"]["name"]
        self._told()
        self._folder, self._part_name = claim(Path(self._order.folder), self._part)

    def _listen(self) -> None:
        """Let SIGUSR2 ask for a recording, and a second one stop it."""
        if threading.current_thread() is not threading.main_thread():
            return  # only the main thread may set handlers; the file works all the same
        if signal.getsignal(signal.SIGUSR2) is not signal.SIG_DFL:
            self._say("the job uses SIGUSR2 itself: ask with `tracereplay collect trigger` only")
            return
        signal.signal(signal.SIGUSR2, self._signalled)

    def _signalled(self, _number: int, _frame: FrameType | None) -> None:
        base = Path(self._order.folder)
        if self._window is not None:
            self._guarded(asking.ask_to_stop, base / str(self._turn))
        elif asking.asked_steps(base / str(self._turn)) is None:  # else it is asked for, perhaps by the same signal to a peer
            self._guarded(asking.ask, base, self._order.steps)

    def _step_ended(self, number: int, took_ns: int) -> None:
        if self._window is None:
            self._plain.append(took_ns)
            self._open_if_due(number)
            return
        self._window.step_ended(took_ns)
        if self._window.done:
            self._close("recorded", "")
        elif self._order.on_demand:
            stop = asking.agreed_stop(Path(self._order.folder) / str(self._turn), number, self._plain_ns())
            if stop is not None and number >= stop:
                self._cut("it was asked to stop")

    def _open_if_due(self, number: int) -> None:
        plan = self._next_plan(number)
        if plan is None or number < plan[0] - 1:
            return
        first, steps, folder = plan[0], plan[1], plan[2]
        if rivals.is_active():
            raise RuntimeError("the script records itself with torch.profiler, and torch has room for one profiler at a time")
        if self._order.on_demand:
            self._folder, self._part_name = claim(folder, self._part)
        trace = self._folder / f"rank{self._part['rank']}.json.gz"
        window_plan = WindowPlan(max(first, number + 1), steps, trace, self._part["host"])
        self._part |= {
            "state": "recording",
            "why": "it ended before its window was full",
            "tracer": tracer_options(window_plan),
        }
        self._tell()
        self._hold_term()
        with rivals.ours():
            self._window = Window(window_plan)

    def _next_plan(self, number: int) -> tuple[int, int, Path] | None:
        """First step, number of steps and folder of the window that comes next; None where none is asked for."""
        if not self._order.on_demand:
            return self._order.skip, self._order.steps, self._folder
        folder = Path(self._order.folder) / str(self._turn)
        steps = asking.asked_steps(folder)
        return None if steps is None else (asking.agreed_start(folder, number, self._plain_ns()), steps, folder)

    def _close(self, state: str, why: str) -> None:
        """The window is over: tell of it, and wait for the next one where there may be one."""
        window, self._window = self._window, None
        assert window is not None
        self._release_term()
        if window.whole:
            self._part |= {
                "trace": window.plan.trace.name,
                "trace_bytes": window.trace_bytes,
                "steps": window.whole,
                "overhead": self._overhead(window),
            }
        self._part |= {"state": state, "why": why}
        self._tell()
        if window.whole:
            write_manifest_of(self._folder, keep_parts=self._order.mail is not None)  # a launcher reads them, and clears up
            self._say_recorded(window, why)
        self._over = not self._order.on_demand
        self._turn += 1
        self._part |= {"trace": None, "steps": [], "overhead": None}

    def _cut(self, why: str) -> None:
        """Close the window before it is full, with the steps that are whole."""
        if self._window is None:
            return
        self._window.cut()
        self._close("cut", f"{why} in step {self._number}, before its window was full")

    def _finish(self, why: str) -> None:
        if self._window is not None:
            self._cut(why)
        elif not self._order.on_demand and self._part:
            why = f"{why} after {self._number} steps, and its window begins at step {self._order.skip}"
            self._part |= {"state": "short", "why": why}
            self._tell()

    def _fail(self, error: Exception) -> None:
        """Say what went wrong, wherever that can still be written."""
        text = f"{error.strerror} in {self._folder}" if isinstance(error, OSError) else " ".join(str(error).split())
        self.error = text or type(error).__name__
        self._say(f"not recorded: {self.error}")
        self._release_term()
        window, self._window = self._window, None
        try:
            if window is not None and not window.done:
                window.abandon()
            self._part |= {"state": "failed", "why": self.error, "trace": None}
            self._tell()
        except Exception as another:  # noqa: BLE001 - as above
            self._say(f"and that could not be told either: {another}")

    # Telling -----------------------------------------------------------------------------------------------------

    def _told(self) -> None:
        self._part["told"] = time.time_ns()

    def _tell(self) -> None:
        """Write the part beside the traces, or where that is refused into the launcher's own folder."""
        self._told()
        try:
            write_json(self._part, self._folder / ".parts" / f"{self._part_name}.json")
        except OSError:
            mail = self._order.mail
            if mail is None or not Path(mail).is_dir():
                raise
            (Path(mail) / ".parts").mkdir(exist_ok=True)
            write_json(self._part, Path(mail) / ".parts" / f"{self._part_name}.json")

    def _say_recorded(self, window: Window, why: str) -> None:
        if self._part["rank"] == 0 or why:
            numbers = f"{window.whole[0]} to {window.whole[-1]}"
            self._say(f"recorded steps {numbers} in {window.plan.trace}{f': {why}' if why else ''}")

    def _say(self, text: str) -> None:
        rank = self._part.get("rank", "?")
        sys.stderr.write(f"tracereplay: rank {rank}: {text}\n")
        sys.stderr.flush()

    # What ends a window early ------------------------------------------------------------------------------------

    def _hold_term(self) -> None:
        """While a window is open let SIGTERM write what is whole first; launchers send it to the peers of a rank that died."""
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._before_term = signal.signal(signal.SIGTERM, self._terminated)

    def _release_term(self) -> None:
        if self._before_term is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._before_term)
        self._before_term = None

    def _terminated(self, number: int, _frame: FrameType | None) -> None:
        if os.getpid() == self._pid:
            self.finish("the job was ended by SIGTERM")
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    # Figures -----------------------------------------------------------------------------------------------------

    def _plain_ns(self) -> int:
        return round(statistics.median(self._plain)) if self._plain else 0

    def _overhead(self, window: Window) -> dict[str, Any]:  # JSON
        traced = round(statistics.median(window.durations_ns))
        plain = self._plain_ns() if self._plain else None
        return {
            "plain_ns": plain,
            "plain_steps": len(self._plain),
            "traced_ns": traced,
            "traced_steps": len(window.durations_ns),
            "share": None if not plain else traced / plain - 1,
            "write_ns": window.write_ns,
        }


def _versions() -> dict[str, str]:
    """Versions of what the job has loaded."""
    found = {"python": platform.python_version(), "torch": str(torch.__version__), "tracereplay": __version__}
    for name in ("cuda", "hip"):
        if (version := getattr(torch.version, name, None)) is not None:
            found[name] = str(version)
    if torch.cuda.is_available() and torch.version.hip is None:
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))  # type: ignore[no-untyped-call]
    for name in _FRAMEWORKS:
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    return found
