"""One field of a hardware file: in, a table ``{value, unit, kind, source}``; out, a frozen Fact that says how far it is known.

Kinds: ``spec`` (a data sheet or system description says so), ``measured``, ``derived`` (by the formula that its source gives),
``assumed`` (a choice, with the range in which the truth is thought to lie) and ``unknown`` (no value, never a guess).
"""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from tracereplay.hardware.quantity import Dimension, Quantity, unit_of

Kind = Literal["spec", "measured", "derived", "assumed", "unknown"]
Direction = Literal["one-way", "both-ways"]

# Above any figure of a computer in any unit of this product, and far from where floats overflow.
_LARGEST = 1e24


def _number(value: Any) -> Any:  # pydantic hands a validator whatever the file holds
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number")
    if not 0 < value < _LARGEST:
        raise ValueError(f"{value!r} is not a positive number below {_LARGEST:g}")
    return value


Number = Annotated[int | float, BeforeValidator(_number)]


class Fact(BaseModel):
    """What every field has. An unknown one has no value; an assumed one, and no other, has a range."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    unit: str
    kind: Kind
    source: Annotated[str, Field(min_length=1)]

    def text(self) -> str:
        """The value as a person reads it."""
        raise NotImplementedError

    def _agree(self, value: object, span: object) -> None:
        if (value is None) != (self.kind == "unknown"):
            missing = "has no value; say kind = 'unknown' or give one"
            raise ValueError(
                missing if value is None else "is unknown and has a value; leave out value or say where it is from"
            )
        if (span is None) == (self.kind == "assumed"):
            missing = "is assumed and has no range; add range = [low, high]"
            raise ValueError(missing if span is None else "has a range; only kind = 'assumed' has one")


class Measure(Fact):
    """A number with a unit of one dimension."""

    dimension: ClassVar[Dimension]

    value: Number | None = None
    range: tuple[Number, Number] | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        unit_of(self.unit, self.dimension)
        self._agree(self.value, self.range)
        if self.value is not None and self.range is not None and not self.range[0] <= self.value <= self.range[1]:
            raise ValueError(f"{self.value} lies outside its range {list(self.range)}; give low <= value <= high")
        return self

    @property
    def base(self) -> int | float | None:
        """The value in base units, or None where it is unknown."""
        return None if self.value is None else self._in_base(self.value)

    @property
    def base_range(self) -> tuple[int | float, int | float] | None:
        """The range in base units, or None where the value is not assumed."""
        return None if self.range is None else (self._in_base(self.range[0]), self._in_base(self.range[1]))

    def _in_base(self, number: int | float) -> int | float:
        return Quantity(number, unit_of(self.unit, self.dimension)).base

    def text(self) -> str:
        """The value as a person reads it."""
        if self.value is None:
            return "unknown"
        unit = "" if self.dimension is Dimension.COUNT else f" {self.unit}"
        span = "" if self.range is None else f" ({self.range[0]:,} … {self.range[1]:,})"
        return f"{self.value:,}{unit}{span}"


class Size(Measure):
    """An amount of memory."""

    dimension = Dimension.BYTES


class Flops(Measure):
    """A rate of arithmetic: dense, without sparsity."""

    dimension = Dimension.FLOPS


class Power(Measure):
    """An electrical power."""

    dimension = Dimension.POWER


class Clock(Measure):
    """A frequency."""

    dimension = Dimension.FREQUENCY


class Latency(Measure):
    """A time that does not depend on the amount sent."""

    dimension = Dimension.TIME


class Length(Measure):
    """A length: the feature size that a process is named after."""

    dimension = Dimension.LENGTH


class Count(Measure):
    """How many: a whole number."""

    dimension = Dimension.COUNT

    @field_validator("value")
    @classmethod
    def _is_counted(cls, value: int | float | None) -> int | float | None:
        if isinstance(value, float):
            raise ValueError(f"{value!r} is not a whole number")
        return value


class MemoryRate(Measure):
    """Bandwidth of a memory, which reads and writes share; in bytes, as every data sheet has it."""

    dimension = Dimension.RATE

    @model_validator(mode="after")
    def _is_in_bytes(self) -> Self:
        if unit_of(self.unit, self.dimension).bits:
            raise ValueError(f"{self.unit} is in bits; a memory's bandwidth is written in bytes, such as GB/s")
        return self


class LinkRate(Measure):
    """Bandwidth of a full-duplex link. It must say whether its number is ``one-way`` or ``both-ways`` added up."""

    dimension = Dimension.RATE

    direction: Direction | None = None

    @model_validator(mode="after")
    def _says_its_direction(self) -> Self:
        if self.direction is None and self.value is not None:
            raise ValueError("does not say its direction; add direction = 'one-way', or 'both-ways' where both are added up")
        return self

    def _in_base(self, number: int | float) -> int | float:
        """Bytes a second in one direction."""
        base = super()._in_base(number)
        return base / 2 if self.direction == "both-ways" else base

    def text(self) -> str:
        """The value as a person reads it, with its direction."""
        if self.value is None or self.direction is None:
            return "unknown"
        return super().text().replace(self.unit, f"{self.unit} {self.direction.replace('-', ' ')}", 1)


class Name(Fact):
    """A word: a technology, a layout, the name of a part. Its unit is ``name``, its range a list of words."""

    unit: Literal["name"]
    value: Annotated[str, Field(min_length=1)] | None = None
    range: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        self._agree(self.value, self.range)
        if self.range is not None and self.value not in self.range:
            raise ValueError(f"{self.value!r} is not in its range {list(self.range)}")
        return self

    def text(self) -> str:
        """The value as a person reads it."""
        return self.value or "unknown"


class Layout(Name):
    """How the members of a group are wired."""

    value: Literal["switch", "fully-connected", "hybrid-cube-mesh", "cube"] | None = None


class Side(Name):
    """Where a network interface is plugged in."""

    value: Literal["accelerator", "socket"] | None = None


class Pairs(Fact):
    """Which accelerators are wired to each other: ``[a, b, links]`` a pair, each pair once, a < b."""

    unit: Literal["links"]
    value: tuple[tuple[int, int, int], ...] | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.kind == "assumed" or (self.value is None) != (self.kind == "unknown"):
            raise ValueError("pairs are spec, measured or derived with a value, or unknown without one")
        wrong = next(((a, b, n) for a, b, n in self.value or () if not (0 <= a < b and n > 0)), None)
        if wrong is not None:
            raise ValueError(f"{list(wrong)} is no pair [a, b, links] with 0 <= a < b and links > 0")
        twice = {(a, b) for a, b, _ in self.value or ()}
        if len(twice) != len(self.value or ()):
            raise ValueError("a pair is listed twice; add its links up")
        return self

    def text(self) -> str:
        """How many pairs there are, as a person reads it."""
        return "unknown" if self.value is None else f"{len(self.value)} pairs"

    def listed(self) -> str:
        """The pairs with their links: ``0-1, 0-2 x2``."""
        return ", ".join(f"{a}-{b}" + (f" x{n}" if n > 1 else "") for a, b, n in self.value or ())
