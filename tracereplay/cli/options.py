"""Options that every verb shares, and what they make: in, words of the command line; out, a request to read."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tracereplay.errors import UsageError

Paths = Annotated[
    list[str], typer.Argument(help="Trace files, a folder, or a quoted glob: the ranks of one job.", show_default=False)
]
Ranks = Annotated[str | None, typer.Option("--ranks", help="Keep these ranks only, such as 0,3-5.")]
Steps = Annotated[str | None, typer.Option("--steps", help="Keep these steps only: 5, or 5:7 for 5 to 7 inclusive.")]
ManifestFile = Annotated[Path | None, typer.Option("--manifest", help="Manifest to use instead of the one beside the traces.")]
ExecutionTraces = Annotated[
    list[str] | None,
    typer.Option("--execution-traces", help="Execution traces of the same ranks, for sizes of collectives. May be repeated."),
]
Rules = Annotated[Path | None, typer.Option("--rules", help="TOML file of your own classes for kernels and operators.")]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse a trace that needs a repair (exit code 3).")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Read the files themselves and leave the cache alone.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Output = Annotated[Path | None, typer.Option("--output", help="Write there instead of to standard output.")]

_NUMBER = re.compile(r"[0-9]{1,18}")
_MOST_NUMBERS = 1_000_000


@dataclass(frozen=True, slots=True)
class Request:
    """What to read: paths as given, wanted ranks and steps (None: all), what to read beside them, whether repairs are
    refused, whether the cache may be used; and where the answer will be written, which must be none of all that.
    """

    paths: tuple[str, ...]
    ranks: frozenset[int] | None = None
    steps: frozenset[int] | None = None
    manifest: Path | None = None
    execution_traces: tuple[str, ...] = ()
    rules: Path | None = None
    strict: bool = False
    cache: bool = True
    output: Path | None = None


@dataclass(frozen=True, slots=True)
class Beside:
    """The words of a command line about what is read beside the traces and how."""

    manifest: Path | None
    execution_traces: list[str] | None
    rules: Path | None
    strict: bool
    no_cache: bool


def request(paths: list[str], ranks: str | None, steps: str | None, beside: Beside, *, output: Path | None = None) -> Request:
    """The request that a command line makes.

    Raises:
        UsageError: a list of ranks or a range of steps that cannot be read.
    """
    return Request(
        tuple(paths),
        _numbers("--ranks", ranks, "-"),
        _numbers("--steps", steps, ":"),
        beside.manifest,
        tuple(beside.execution_traces or ()),
        beside.rules,
        beside.strict,
        not beside.no_cache,
        output,
    )


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text.strip()) is not None


def _numbers(option: str, text: str | None, dash: str) -> frozenset[int] | None:
    if text is None:
        return None
    numbers: set[int] = set()
    for part in text.split(","):
        first, separator, last = part.partition(dash)
        if not _is_number(first) or (separator and not _is_number(last)):
            raise UsageError(f"{option} {text!r} is not a list of numbers", hint=f"write for example 0,3{dash}5")
        span = range(int(first), int(last if separator else first) + 1)
        if len(span) > _MOST_NUMBERS:
            raise UsageError(f"{option} {text!r} names more than {_MOST_NUMBERS:,} numbers", hint="give a smaller range")
        numbers.update(span)
    if not numbers:
        raise UsageError(f"{option} {text!r} names no number", hint=f"write the smaller number before {dash!r}")
    return frozenset(numbers)
