"""What a calibration measured: in, a measurement file; out, frozen records that say what was run, how often, and what came out.

``tracereplay.collectors.calibrate`` writes such files. Nothing here needs torch.
"""

import json
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tracereplay.errors import HardwareError

SCHEMA: Final = "tracereplay/measurements/1"

Group = Literal["gemm", "memory", "host_copy", "lookup", "overhead", "launch", "collective"]
Place = Literal["host", "device", "fabric"]
Nanoseconds = Annotated[int, Field(ge=0)]
# The unit that the value of each group has.
_UNITS: dict[Group, str] = {
    "gemm": "FLOP/s", "memory": "B/s", "host_copy": "B/s", "lookup": "B/s", "overhead": "ns", "launch": "ns",
    "collective": "B/s",
}  # fmt: skip

# A machine that is idle has a load near 0; half of its cores taken is not idle.
_BUSY = 0.5
# Repeats on an idle machine lie within a few per cent of each other.
_UNEVEN = 1.5


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Measurement(_Record):
    """One piece of work. ``value``: from the median time, a rate (FLOP/s; bytes a second; of collectives the bus bandwidth of
    nccl-tests) or that time itself (ns). Times are of one call: median, least, and what the middle half of the repeats spans;
    a repeat is a block of ``calls`` calls. ``place``: ``host``, ``device`` (the first GPU) or ``fabric`` (between ranks).
    """

    group: Group
    run: str
    place: Place
    dtype: str
    parameters: dict[str, int | float | str]
    unit: Literal["FLOP/s", "B/s", "ns"]
    value: Annotated[float, Field(gt=0, lt=1e24)]
    repeats: Annotated[int, Field(ge=1)]
    calls: Annotated[int, Field(ge=1)]
    median_ns: Nanoseconds
    least_ns: Nanoseconds
    spread_ns: Nanoseconds

    @model_validator(mode="after")
    def _has_the_unit_of_its_group(self) -> "Measurement":
        if self.unit != _UNITS[self.group]:
            raise ValueError(f"a {self.group} is in {_UNITS[self.group]}, not {self.unit}")
        return self

    def number(self, name: str) -> int:
        """A whole number among the parameters, 0 where it is not given."""
        value = self.parameters.get(name, 0)
        return value if isinstance(value, int) else 0

    def words(self) -> str:
        """What was run and how often, as the source of a field has it."""
        numbers = ", ".join(f"{name} {value}" for name, value in self.parameters.items())
        uneven = f", {self.unevenness:.3g} times the least" if self.unevenness > _UNEVEN else ""
        return f"{self.run} {self.dtype} ({numbers}), median of {self.repeats}{uneven}"

    @property
    def unevenness(self) -> float:
        """The median time over the least: 1 where nothing got in between."""
        return self.median_ns / max(self.least_ns, 1)


class Skipped(_Record):
    """What was to be measured and was not, and why."""

    what: str
    why: str


class HostFacts(_Record):
    """What the operating system says of the machine; ``load``: its load average of one minute before the run."""

    name: str
    cpu_model: str | None
    cpu_count: Annotated[int, Field(ge=1)]
    memory_bytes: Annotated[int, Field(gt=0)]
    kernel: str
    sockets: Annotated[int, Field(ge=1)] | None
    load: Annotated[float, Field(ge=0)]


class DeviceFacts(_Record):
    """What was calibrated: ``cpu``, or ``count`` GPUs of one kind as their driver describes the first."""

    kind: Literal["cpu", "cuda", "hip"]
    name: str | None
    count: Annotated[int, Field(ge=1)]
    memory_bytes: Annotated[int, Field(gt=0)] | None
    cache_bytes: Annotated[int, Field(gt=0)] | None


class Measurements(_Record):
    """A measurement file. ``command`` asks for the same again; ``ranks``: how many took part in collectives."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=lambda name: name.rstrip("_"), populate_by_name=True)

    schema_: Literal["tracereplay/measurements/1"]
    created: Annotated[str, Field(min_length=10)]
    command: Annotated[str, Field(min_length=1)]
    versions: dict[str, str]
    host: HostFacts
    device: DeviceFacts
    ranks: Annotated[int, Field(ge=1)]
    measurements: tuple[Measurement, ...]
    skipped: tuple[Skipped, ...]

    def of(self, group: Group, place: Place) -> list[Measurement]:
        """The measurements of a group at a place, in the order of the file."""
        return [row for row in self.measurements if row.group == group and row.place == place]

    def doubts(self) -> list[str]:
        """What makes the values doubtful: a machine that had other work."""
        uneven = [row for row in self.measurements if row.unevenness > _UNEVEN]
        found = []
        if self.host.load > _BUSY * self.host.cpu_count:
            found.append(
                f"the machine was busy before the run (load {self.host.load:g} on {self.host.cpu_count} cores): "
                "measure again when it is idle"
            )
        if uneven:
            worst = max(uneven, key=lambda row: row.unevenness)
            found.append(
                f"in {len(uneven)} of {len(self.measurements)} measurements the median time is more than {_UNEVEN:g} times the "
                f"least, most of all in {worst.words()}"
            )
        return found


def read_measurements(path: Path) -> Measurements:
    """The measurements in a file.

    Raises:
        HardwareError: the file cannot be read, is not JSON, or does not fit the schema; the message names the field.
    """
    try:
        content: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise HardwareError(
            f"cannot read the measurements ({error.strerror})",
            where=str(path),
            hint="tracereplay hardware calibrate measures this machine",
        ) from error
    except (ValueError, RecursionError) as error:
        raise HardwareError(f"not JSON ({error})", where=str(path), hint="give a file that calibrate wrote") from error
    try:
        return Measurements.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the file"
        raise HardwareError(
            f"no measurements: {field}: {first['msg']}", where=str(path), hint="give a file that calibrate wrote"
        ) from error
