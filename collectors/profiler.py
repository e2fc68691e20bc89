"""A torch.profiler session around a training loop: in, one rank's steps; out, its trace file, whole or not at all."""

import gzip
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from torch.profiler import ProfilerActivity, profile, schedule

# Kineto writes the path it exports to and the machine's name into the file. The path is nobody's business, and the
# name has to be the one that the manifest gives the host.
_JSON_STRING = rb'"(?:[^"\\]|\\.)*"'
_TRACE_NAME = re.compile(rb'("traceName":\s*)' + _JSON_STRING)
_HOST_NAME = re.compile(rb'("host_name":\s*)' + _JSON_STRING)


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
    text = raw.read_bytes()
    for pattern, name in ((_TRACE_NAME, plan.trace.name), (_HOST_NAME, plan.host)):
        quoted = json.dumps(name).encode()
        text = pattern.sub(lambda match, quoted=quoted: match[1] + quoted, text)  # type: ignore[misc]
    packed = plan.partial / plan.trace.name
    packed.write_bytes(gzip.compress(text, mtime=0))
    packed.replace(plan.trace)


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
