"""What ``--hardware``, ``--from`` and ``--set`` ask: in, words of the command line and a graph; out, changes, and the page."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tracereplay.analyzers.attribution import bottleneck
from tracereplay.analyzers.overlap import overlap
from tracereplay.errors import HardwareError, UsageError
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.knobs import Setting, parse_setting
from tracereplay.hardware.memory.placement_file import read_placement_file
from tracereplay.replay.engine import Timing, recorded_timing, replay
from tracereplay.replay.move import Move, Mover
from tracereplay.replay.site import Journey, Site, journey, source_of
from tracereplay.replay.steps import step_times, summarise
from tracereplay.replay.table_moves import CAPACITY, Wish
from tracereplay.replay.whatif import Change, hardware_change, setting_change
from tracereplay.report.moved import MovedPage
from tracereplay.trace.job import Job


@dataclass(frozen=True, slots=True)
class HardwareQuestion:
    """The changes that the words make, and the words; where a platform is known the journey and the move behind them. ``why``:
    the reasons why settings moved nothing, as far as they are known.
    """

    changes: list[Change]
    words: list[str]
    unmoved: tuple[str, ...] = ()
    way: Journey | None = None
    move: Move | None = None
    why: dict[str, str] = field(default_factory=dict)


def table_wish(placement: Sequence[str], *, platform: bool) -> Wish:
    """What ``--placement`` says of a job's tables: a file of where they stood, ``auto`` lets them leave. ``platform``: whether
    one is known.

    Raises:
        UsageError: another word, two files, a file that cannot be read, no platform.
    """
    files = [word for word in placement if word.endswith(".toml") or "/" in word]
    others = [word for word in placement if word not in {*files, "auto"}]
    if others or len(files) > 1:
        said = others[0] if others else files[1]
        raise UsageError(f"--placement {said!r}: no such placement", hint="give auto, the path of one TOML file, or both")
    if placement and not platform:
        raise UsageError("--placement: no platform whose memory would hold tables", hint="name it with --from or --hardware")
    return Wish(read_placement_file(Path(files[0])) if files else None, "auto" in placement)


def hardware_question(
    graph: DependencyGraph,
    hardware: str | None,
    source_name: str | None,
    settings: list[str],
    placement: Sequence[str] = (),
) -> HardwareQuestion:
    """What is asked. Without a platform knobs are plain ratios.

    Raises:
        UsageError: words that cannot be read or do not fit the hardware.
        HardwareError: hardware that is unknown, or a figure of it that the job depends on.
    """
    chosen = [setting for text in settings for setting in parse_setting(text)]
    wish = table_wish(placement, platform=hardware is not None or source_name is not None)
    if hardware is None and source_name is None:
        why = {CAPACITY: "name the platform that the job ran on with --from"}
        return HardwareQuestion([setting_change(setting) for setting in chosen], list(settings), why=why)
    source = source_of(graph, source_name, chosen, is_target=hardware is None)
    facts, chosen = [one for one in chosen if one.of_source], [one for one in chosen if not one.of_source]
    way = journey(source, hardware, chosen)
    mover = Mover.of(graph, source, wish)
    moved = mover.to(way.target)
    label = way.target.name if hardware is not None else ", ".join(settings)
    words = [*([f"{way.target.name}"] if hardware is not None else []), *settings]
    unmoved = [
        one.text for one in facts if not _is_needed(mover, source_of(graph, source_name, _without(facts, one)), way, moved)
    ]
    unmoved += [one.text for one in chosen if not _matters(mover, hardware, _without(chosen, one), moved)]
    changes = [hardware_change(label, moved.factor, afresh=moved.afresh)] if hardware is not None or chosen or facts else []
    about = "the job ran on CPUs: it has no tables in HBM" if moved.tables is None else moved.tables.why
    why = {one.text: about for one in chosen if one.name == CAPACITY and about is not None}
    return HardwareQuestion(changes, words, tuple(unmoved), way, moved, why)


def _without(settings: list[Setting], one: Setting) -> list[Setting]:
    return [other for other in settings if other is not one]


def _is_needed(mover: Mover, without: Site | None, way: Journey, together: Move) -> bool:
    """Whether the answer differs where the job ran on ``without``; it does where it cannot be given then."""
    try:
        elsewhere = replace(mover, source=without, devices=[], fabrics=[], alone=[])
        return _differ(mover.graph, elsewhere.to(way.target), together)
    except HardwareError:
        return True


def _differ(graph: DependencyGraph, one: Move, other: Move) -> bool:
    """Whether two moves answer otherwise: by what they multiply, how sure they are, or how transfers share links."""
    if one.launch != other.launch:
        return True
    if any((getattr(one, name) != getattr(other, name)).any() for name in ("factor", "low", "high")):
        return True
    if one.sharing is None or other.sharing is None:
        return one.sharing is not other.sharing
    recorded = recorded_timing(graph)
    timing = replace(recorded, dur_ns=np.rint(recorded.dur_ns * one.factor).astype(np.int64))
    sides = [move.sharing.applied(graph, timing).dur_ns for move in (one, other) if move.sharing is not None]
    return bool((sides[0] != sides[1]).any())


def recorded_on(job: Job, from_: str | None) -> str | None:
    """The platform that the job ran on: as ``--from`` says, else as the recording's manifest does; None where neither does."""
    return from_ if from_ is not None or job.manifest is None else job.manifest.platform


def _matters(mover: Mover, hardware: str | None, rest: list[Setting], together: Move) -> bool:
    """Whether the answer differs without one setting, from the rest of them; it does where it cannot be given without."""
    try:
        without = mover.to(journey(mover.source, hardware, rest).target)
        return _differ(mover.graph, without, together)
    except HardwareError:
        return True


def moved_page(graph: DependencyGraph, question: HardwareQuestion, timing: Timing) -> MovedPage | None:
    """What binds before and after, for the step that is the longest before; None where no platform is asked about."""
    if question.way is None or question.move is None:
        return None
    steps = summarise(graph, step_times(graph, replay(graph)))
    number = steps.numbers[max(range(len(steps.numbers)), key=lambda i: steps.longest_ns[i])]
    return MovedPage(
        source=None if question.way.source is None else question.way.source.name,
        target=question.way.target.name,
        before=bottleneck(graph, recorded_timing(graph), number),
        after=bottleneck(graph, timing, number),
        wires=question.move.wires,
        overlap=overlap(graph),
        memory=question.move.tables,
    )
