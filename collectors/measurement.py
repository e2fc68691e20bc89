"""What a calibration found: in, a piece of work and its times; out, a row of the measurement file.

The file's schema is read by ``tracereplay.hardware.measurements``; here it is only written, as plain JSON.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from tracereplay.collectors.sampling import Timing

SCHEMA = "tracereplay/measurements/1"

Place = Literal["host", "device", "fabric"]
Parameters = dict[str, int | float | str]


@dataclass(frozen=True, slots=True)
class Work:
    """What is run. ``amount``: what one call does, in FLOP or bytes; None where its time itself is the measurement.

    ``group``: ``gemm``, ``memory``, ``host_copy``, ``lookup``, ``overhead``, ``launch`` or ``collective``.
    """

    group: str
    run: str
    place: Place
    dtype: str
    parameters: Parameters
    unit: Literal["FLOP/s", "B/s", "ns"]
    amount: float | None = None

    def label(self) -> str:
        """The work in a few words, for a progress bar and for what was left out."""
        numbers = " ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.run} {self.dtype} {numbers}".strip()


@dataclass(frozen=True, slots=True)
class Skipped:
    """Work that was not measured, and why."""

    what: str
    why: str


def row_of(work: Work, timing: Timing) -> dict[str, Any]:  # JSON
    """The row of a piece of work: a rate from the median time, or that time."""
    median = max(timing.median_ns, 1.0)
    row = asdict(work)
    amount = row.pop("amount")
    return row | {
        "value": median if amount is None else amount / median * 1e9,
        "repeats": len(timing.times_ns),
        "calls": timing.calls,
        "median_ns": round(median),
        "least_ns": round(min(timing.times_ns)),
        "spread_ns": round(timing.spread_ns),
    }
