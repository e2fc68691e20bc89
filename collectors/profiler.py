"""A torch.profiler session around a training loop: in, one rank's steps; out, its trace file, whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from torch.profiler import ProfilerActivity, profile, schedule

from tracereplay.collectors.hook.publish import publish_trace


@dataclass(frozen=True, slots=True)
class TracePlan:
    """Which steps are traced and where the trace goes; ``partial`` is a folder on the file system of ``trace``."""

    warmup_steps: int
    steps: int
    trace: Path
    partial: Path
    host: str


def write_trace(session: profile, plan: TracePlan) -> None:
    """Export ``session``: compressed, under the planned names, visible only when complete."""
    raw = plan.partial / f"{plan.trace.name}.raw"
    session.export_chrome_trace(str(raw))
    publish_trace(raw, plan.trace, plan.host)


@contextmanager
def record(plan: TracePlan) -> Iterator[profile]:
    """A session to be told of each step's end by ``step()``; the trace is on disk when the last step has ended."""
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=plan.warmup_steps, active=plan.steps, repeat=1),
        on_trace_ready=lambda session: write_trace(session, plan),
        record_shapes=True,
    ) as session:
        yield session
