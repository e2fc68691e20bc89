"""A window of steps under torch.profiler: in, the ends of a job's steps; out, a trace with those steps in it.

The step before the window is the profiler's own, to get ready in. A window that is cut short keeps the steps that are whole.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerAction, ProfilerActivity, profile

from tracereplay.collectors.hook.publish import publish_trace, scratch_in


@dataclass(frozen=True)
class WindowPlan:
    """Record steps ``first`` to ``first + steps - 1`` into the file ``trace``, under the name of ``host``."""

    first: int
    steps: int
    trace: Path
    host: str


def has_device() -> bool:
    """Whether the profiler is asked for device work: where torch has a CUDA or HIP device."""
    return torch.cuda.is_available()


def tracer_options(plan: WindowPlan) -> dict[str, Any]:  # JSON
    """How the window is traced, for the manifest."""
    on_device = has_device()
    return {
        "profiler": "torch.profiler",
        "activities": "cpu, cuda" if on_device else "cpu",
        "record_shapes": True,
        "with_stack": False,
        "profile_memory": False,
        "cuda_sync_events": on_device,
        "first_step": plan.first,
        "steps": plan.steps,
    }


class Window:
    """A running recording; made at the beginning of step ``plan.first - 1``. ``done`` when the trace is in its place."""

    def __init__(self, plan: WindowPlan) -> None:
        self.plan = plan
        self.done = False
        self.whole: list[int] = []
        self.durations_ns: list[int] = []
        self.trace_bytes = 0
        self.write_ns = 0
        device = [ProfilerActivity.CUDA] if has_device() else []
        self._session = profile(
            activities=[ProfilerActivity.CPU, *device],
            schedule=self._action,
            on_trace_ready=self._write,
            record_shapes=True,
            experimental_config=_ExperimentalConfig(enable_cuda_sync_events=bool(device)),
        )
        self._session.step_num = plan.first - 1  # so that marks carry the job's numbers
        self._session.start()

    def step_ended(self, took_ns: int) -> None:
        """The running step has ended after ``took_ns``, the next begins; with the last one the trace is written."""
        number = self._session.step_num
        if number >= self.plan.first:
            self.whole.append(number)
            self.durations_ns.append(took_ns)
        self._session.step()
        if self.done:
            self._session.stop()  # it has begun a mark after the window, which is in no trace

    def cut(self) -> None:
        """End before the window is full; the trace is written if a step is whole."""
        self._session.stop()

    def abandon(self) -> None:
        """End without a trace, after an error."""
        self.whole.clear()
        self._session.stop()

    def _action(self, step: int) -> ProfilerAction:
        if step < self.plan.first:
            return ProfilerAction.WARMUP
        last = self.plan.first + self.plan.steps - 1
        if step > last:
            return ProfilerAction.NONE
        return ProfilerAction.RECORD_AND_SAVE if step == last else ProfilerAction.RECORD

    def _write(self, session: profile) -> None:
        begun = time.perf_counter_ns()
        if self.whole:
            with scratch_in(self.plan.trace.parent) as scratch:
                raw = scratch / "raw.json"
                session.export_chrome_trace(str(raw))
                self.trace_bytes = publish_trace(raw, self.plan.trace, self.plan.host, self.whole[-1])
        self.done = True
        self.write_ns = time.perf_counter_ns() - begun
