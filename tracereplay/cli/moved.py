"""What ``--hardware``, ``--from`` and ``--set`` ask: in, words of the command line and a graph; out, changes, and the page."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tracereplay.analyzers.attribution import bottleneck
from tracereplay.analyzers.overlap import overlap
from tracereplay.errors import HardwareError, UsageError
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.knobs import Setting, parse_setting
from tracereplay.hardware.memory.placement_file import read_placement_file
from tracereplay.replay.engine import Timing, recorded_timing, replay
from tracereplay.replay.move import Move, Mover
from tracereplay.replay.site import Journey, journey, source_of
from tracereplay.replay.steps import step_times, summarise
from tracereplay.replay.table_moves import CAPACITY, Wish
from tracereplay.replay.whatif import Change, hardware_change, setting_change
from tracereplay.report.moved import MovedPage


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
    source = source_of(graph, source_name, chosen if hardware is None else ())
    way = journey(source, hardware, chosen)
    mover = Mover.of(graph, source, wish)
    moved = mover.to(way.target)
    label = way.target.name if hardware is not None else ", ".join(settings)
    words = [*([f"{way.target.name}"] if hardware is not None else []), *settings]
    unmoved = [one.text for one in chosen if not _matters(mover, hardware, [o for o in chosen if o is not one], moved)]
    changes = [hardware_change(label, moved.factor)] if hardware is not None or chosen else []
    about = "the job ran on CPUs: it has no tables in HBM" if moved.tables is None else moved.tables.why
    why = {one.text: about for one in chosen if one.name == CAPACITY and about is not None}
    return HardwareQuestion(changes, words, tuple(unmoved), way, moved, why)


def _matters(mover: Mover, hardware: str | None, rest: list[Setting], together: Move) -> bool:
    """Whether the answer differs without one setting, from the rest of them; it does where it cannot be given without."""
    try:
        without = mover.to(journey(mover.source, hardware, rest).target)
        return any((getattr(without, name) != getattr(together, name)).any() for name in ("factor", "low", "high"))
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
