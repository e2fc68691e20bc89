"""``docs/accuracy.md`` as text: in, measured rows; out, the page. Of figures it knows the limits alone."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.comparisons import Replayed, StragglerStep
from benchmarks.held_out import FEWEST_STEPS, Row, table
from benchmarks.hta_path import HtaAnswer
from benchmarks.recordings import LeftOut
from tests.truth.report import Row as TruthRow
from tests.truth.report import edge_table, error_table

# What is asked of a replay, as fractions: the worst step is Lumos's published mean error.
TYPICAL, WORST, START_P95 = 0.01, 0.033, 0.01
# What is asked of edges and predictions where the truth is known.
EDGES, CHANGED = 0.99, 0.02
# What is wanted of the rules.
UNEXPLAINED, CALIBRATED = 0.02, 0.05
# What is asked of held-out steps, and of whose: jobs with steps alike enough to be predicted from each other.
HELD_OUT = 0.05
HELD_OUT_OF = re.compile(r"recsys_a100_vs_v100/control|nccl_args_a100/nccl_data|old_schema_2021/.*|dlrm_2rank.*")
# What is asked of the run without the straggler: of its mean step and of single ones, but for the first of the recording.
STRAGGLER_MEAN, STRAGGLER_STEP, STRAGGLER_STEPS = 0.10, 0.15, (5, 6)

_INTRODUCTION = """\
# Accuracy

How close does a replay come to the recording, and a prediction to a run that really took place? `make accuracy` measures every
figure of this page, on public traces and on [our own](../sample_traces/README.md), and writes it.

{answer}

The first three rows say whether the graph contradicts a recording. They say little more: a replay carries the
[residues](concepts/dependency-graph.md#lags-and-residues) of its own recording, and one that carried every start would show no
error at all. What a recording cannot give away stands in the rows below them: typical lags in place of the residues, steps
predicted from other steps, a run predicted from another run.
"""

_REPLAY = """
## Replay on the recorded hardware

Each job is replayed as recorded; several ranks are replayed together. Beside it stands what
[HTA](https://github.com/facebookresearch/HolisticTraceAnalysis) (Holistic Trace Analysis) makes of the same steps. HTA does not
replay; what of it can be held against a step is the longest path of its graph, and the time that this graph covers. It takes
one rank at a time, so a job has a figure for each: least to most.

{table}
- **recorded**, **replayed**: the mean [step](reference/contract.md#steps), each the longest rank's; **error** compares the two,
  **worst step** is the largest error of a single one. A trace without step marks is one step from its first event to its last.
- **start p95**: 95 % of all tasks start within this share of a step of their recorded start; the worst rank's.
- **HTA path**: milliseconds a step, of the milliseconds that HTA's graph covers. Device work that ends after its step's mark is
  in both; **HTA error** compares them.
{notes}"""

_RULES = """
## How much the rules explain

{table}
- **unexplained**: waiting that no rule accounts for, as a share of all ranks' steps; wanted is at most {unexplained}.
- **typical lags**: the error of the step with every residue replaced by the median of
  [its population](concepts/dependency-graph.md#lags-and-residues); wanted is at most {calibrated}. What misses is **bold**.
"""

_LEFT_OUT = """
## Files left out

Every file that holds host rows and work is replayed. These were not:

{table}"""

_HELD_OUT = """
## Steps predicted from the other steps

A step keeps its structure; every duration and lag in it becomes the median of [the same work](concepts/same-work.md) in the
other steps of the job. **Only here** is the share of the step's work that no other step has and that keeps its own time. The
**spread** of the recorded steps, (longest - shortest) / median, says how alike they are: steps that differ by themselves cannot
be predicted from each other. {few}

{table}"""

_STRAGGLER = """
## A run predicted from another run

The same job was recorded twice, once with a rank that is silent for about a second in each step. From that run alone
`whatif --ideal stragglers` says what the steps would take without it; the other run is read afterwards, to compare.

{table}"""

_TRUTH = """
## Edges and changes whose truth is known

A simulated machine of hosts, devices and collectives (`tests/truth/`) runs random training jobs and writes the traces that a
profiler would. It knows what waited for what, and runs every job again under each change. {seeds} jobs of each variant;
"no rows" are recordings without `cuda_sync` rows. In "process groups, 2021" nothing names the groups; two that
always end at the same time are taken for one.

Recall / precision in per cent, and how many true edges were asked for:

{edges}
The error of the predicted step that lies farthest from 0:

{errors}"""

_VERSIONS = """
## Measured with

{versions}.
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """One line of the answer: what was asked, what was found, which of how many things miss it."""

    what: str
    asked: str
    found: str
    missed: tuple[str, ...]
    of: int


def page(
    rows: Sequence[Replayed],
    left_out: Sequence[LeftOut],
    straggler: Sequence[StragglerStep],
    truth: list[TruthRow],
    versions: Sequence[str],
) -> str:
    """The whole page as Markdown."""
    replay_rows, notes = _replay_table(rows)
    sections = [
        _INTRODUCTION.format(answer=_answer(rows, straggler, truth)),
        _REPLAY.format(table=replay_rows, notes=notes),
        _RULES.format(table=_rules_table(rows), unexplained=_limit(UNEXPLAINED), calibrated=_limit(CALIBRATED)),
        _left_out(left_out),
        _held_out(rows),
        _STRAGGLER.format(table=_straggler_table(straggler)) if straggler else "",
        _TRUTH.format(seeds=truth[0].seeds, edges=edge_table(truth), errors=error_table(truth)) if truth else "",
        _VERSIONS.format(versions=", ".join(versions)),
    ]
    return "".join(sections)


def claims(rows: Sequence[Replayed], straggler: Sequence[StragglerStep], truth: Sequence[TruthRow] = ()) -> tuple[Claim, ...]:
    """The answer: each limit, what was found, and the jobs that miss it."""
    return (
        *_replay_claims(rows),
        *_rule_claims(rows),
        *_held_out_claims(rows),
        *_straggler_claims(straggler),
        *_truth_claims(truth),
    )


def _replay_claims(rows: Sequence[Replayed]) -> list[Claim]:
    typical = median(abs(row.accuracy.error) for row in rows)
    worst = max(rows, key=lambda row: row.accuracy.error_max)
    late = max(rows, key=lambda row: row.start_error_p95)
    return [
        Claim(
            "replay: error of the step, median over jobs",
            f"≤ {_limit(TYPICAL)}",
            _share(typical),
            ("the median",) if typical > TYPICAL else (),
            1,
        ),
        Claim(
            "replay: worst step of all",
            f"≤ {_limit(WORST)}",
            f"{_share(worst.accuracy.error_max)} (`{worst.recording.name}`)",
            _names(rows, lambda row: row.accuracy.error_max > WORST),
            len(rows),
        ),
        Claim(
            "replay: start error, 95th percentile, worst rank of all",
            f"≤ {_limit(START_P95)} of the step",
            f"{_share(late.start_error_p95)} (`{late.recording.name}`)",
            _names(rows, lambda row: row.start_error_p95 > START_P95),
            len(rows),
        ),
    ]


def _rule_claims(rows: Sequence[Replayed]) -> list[Claim]:
    unexplained = [row.accuracy.unexplained.unexplained_wait_share for row in rows]
    calibrated = [abs(row.accuracy.unexplained.calibrated_error) for row in rows]
    return [
        Claim(
            "unexplained waiting, each job (wanted)",
            f"≤ {_limit(UNEXPLAINED)} of all steps",
            _range(unexplained),
            _names(rows, lambda row: row.accuracy.unexplained.unexplained_wait_share > UNEXPLAINED),
            len(rows),
        ),
        Claim(
            "error with typical lags alone, each job (wanted)",
            f"≤ {_limit(CALIBRATED)}",
            _range(calibrated),
            _names(rows, lambda row: abs(row.accuracy.unexplained.calibrated_error) > CALIBRATED),
            len(rows),
        ),
    ]


def _held_out_claims(rows: Sequence[Replayed]) -> list[Claim]:
    asked = [
        (r.recording.name, r.held_out.median_error) for r in rows if r.held_out and HELD_OUT_OF.fullmatch(r.recording.name)
    ]
    if not asked:
        return []
    missed = tuple(name for name, error in asked if error > HELD_OUT)
    return [
        Claim(
            "steps held out: median error of each job that it is asked of",
            f"≤ {_limit(HELD_OUT)}",
            _range([error for _, error in asked]),
            missed,
            len(asked),
        )
    ]


def _straggler_claims(straggler: Sequence[StragglerStep]) -> list[Claim]:
    made = []
    for step in straggler:
        if step.number is not None and step.number not in STRAGGLER_STEPS:
            continue
        limit = STRAGGLER_MEAN if step.number is None else STRAGGLER_STEP
        what = "mean step" if step.number is None else f"step {step.number}"
        missed = (what,) if abs(step.error) > limit else ()
        made.append(Claim(f"run without its straggler, {what}", f"≤ {_limit(limit)}", _signed(step.error, 1), missed, 1))
    return made


def _truth_claims(truth: Sequence[TruthRow]) -> list[Claim]:
    if not truth:
        return []
    recalls = {f"{row.variant}: {kind}": one.recall for row in truth for kind, one in row.scores.items()}
    precisions = {f"{row.variant}: {kind}": one.precision for row in truth for kind, one in row.scores.items()}
    errors = {f"{row.variant}: {name}": error for row in truth for name, error in row.worst_errors.items()}
    worst = max(errors, key=lambda name: abs(errors[name]))
    return [
        *(
            Claim(
                f"simulated jobs: {what} of each kind of edge",
                f"≥ {_limit(EDGES)}",
                f"{_share(min(found.values()))} to {_share(max(found.values()))}",
                tuple(name for name, value in found.items() if value < EDGES),
                len(found),
            )
            for what, found in (("recall", recalls), ("precision", precisions))
        ),
        Claim(
            "simulated jobs: step after a change, worst job",
            f"≤ {_limit(CHANGED)}",
            f"{_signed(errors[worst], 2)} ({worst})",
            tuple(name for name, error in errors.items() if abs(error) > CHANGED),
            len(errors),
        ),
    ]


def _answer(rows: Sequence[Replayed], straggler: Sequence[StragglerStep], truth: Sequence[TruthRow]) -> str:
    """The table of limits, what misses them by name, and HTA's figure."""
    found = claims(rows, straggler, truth)
    lines = [(c.what, c.asked, c.found, _met(c)) for c in found]
    missed = [f"- {c.what}: {', '.join(f'`{name}`' for name in c.missed)}\n" for c in found if c.missed and c.of > 1]
    text = _markdown(("what", "asked", "found", "met"), lines, words=4)
    text += "\nWhat misses:\n\n" + "".join(missed) if missed else ""
    return (text + _hta_answer(rows)).rstrip("\n")


def _met(claim: Claim) -> str:
    if not claim.missed:
        return "yes"
    return "**no**" if claim.of == 1 else f"**no**, {len(claim.missed)} of {claim.of}"


def _hta_answer(rows: Sequence[Replayed]) -> str:
    errors = [abs(rank.error) for row in rows if row.hta is not None for rank in row.hta.ranks]
    if not errors:
        return ""
    without = sum(row.hta is not None and not row.hta.ranks for row in rows)
    return (
        f"\nOn the same steps the longest path of HTA's graph misses the time that this graph covers by "
        f"{_share(median(errors), 1)} (median of {len(errors)} ranks; worst {_share(max(errors), 1)}); for {without} of the "
        f"{len(rows)} jobs HTA has no answer."
    )


def _replay_table(rows: Sequence[Replayed]) -> tuple[str, str]:
    """The table, and the notes that it refers to: why HTA gives no figure."""
    reasons: dict[str, tuple[int, str]] = {}
    lines = []
    for row in rows:
        a = row.accuracy
        lines.append(
            (
                _ms(a.measured_ns),
                _ms(a.replayed_ns),
                _signed(a.error),
                _share(a.error_max),
                _share(row.start_error_p95),
                *_hta_cells(row.hta, reasons),
            )
        )
    head = ("job", "recorded ms", "replayed ms", "error", "worst step", "start p95", "HTA path, ms", "HTA error")
    notes = [f"- ({number}) HTA stops with `{text}`.\n" for number, text in reasons.values()]
    return _markdown(head, _by_set(rows, lines)), "".join(notes)


def _hta_cells(answer: HtaAnswer | None, reasons: dict[str, tuple[int, str]]) -> tuple[str, str]:
    if answer is None:
        return "not run", ""
    marks = {_reason(text, reasons) for text in answer.failures}
    note = "".join(f" ({number})" for number in sorted(marks))
    if not answer.ranks:
        return f"n/a{note}", "n/a"
    paths = [rank.path_ns / rank.steps for rank in answer.ranks]
    windows = [rank.window_ns / rank.steps for rank in answer.ranks]
    errors = [rank.error for rank in answer.ranks]
    return f"{_between(paths, _ms)} of {_between(windows, _ms)}{note}", _between(errors, lambda e: _signed(e, 1))


def _reason(text: str, reasons: dict[str, tuple[int, str]]) -> int:
    """The number of a reason; those that differ in numbers alone are one, the first is shown."""
    return reasons.setdefault(re.sub(r"\d+", "#", text), (len(reasons) + 1, text))[0]


def _rules_table(rows: Sequence[Replayed]) -> str:
    lines = []
    for row in rows:
        found = row.accuracy.unexplained
        unexplained, calibrated = _share(found.unexplained_wait_share), _signed(found.calibrated_error)
        lines.append(
            (
                str(row.ranks),
                str(row.steps),
                f"{row.tasks:,}",
                f"**{unexplained}**" if found.unexplained_wait_share > UNEXPLAINED else unexplained,
                f"**{calibrated}**" if abs(found.calibrated_error) > CALIBRATED else calibrated,
            )
        )
    return _markdown(("job", "ranks", "steps", "tasks", "unexplained", "typical lags"), _by_set(rows, lines))


def _left_out(left_out: Sequence[LeftOut]) -> str:
    if not left_out:
        return ""
    return _LEFT_OUT.format(table=_markdown(("file", "why"), [(f"`{one.name}`", one.reason) for one in left_out], words=2))


def _held_out(rows: Sequence[Replayed]) -> str:
    having = [row for row in rows if row.held_out is not None]
    few = f"{len(rows) - len(having)} jobs have fewer than {FEWEST_STEPS} whole steps."
    return _HELD_OUT.format(few=few, table=table([Row(f"`{row.recording.name}`", row.held_out) for row in having]))


def _straggler_table(steps: Sequence[StragglerStep]) -> str:
    head = ("step", "recorded with it, ms", "predicted without it, ms", "recorded without it, ms", "error of the prediction")
    lines = [
        (
            "mean" if step.number is None else str(step.number),
            _ms(step.with_ns),
            _ms(step.predicted_ns),
            _ms(step.without_ns),
            _signed(step.error, 1),
        )
        for step in steps
    ]
    return _markdown(head, lines)


def _names(rows: Sequence[Replayed], misses: Callable[[Replayed], bool]) -> tuple[str, ...]:
    return tuple(row.recording.name for row in rows if misses(row))


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]], words: int = 1) -> str:
    """A table; all columns but the first ``words`` are aligned to the right."""
    rule = "|" + "---|" * words + "---:|" * (len(head) - words)
    return "\n".join([_line(head), rule, *map(_line, lines)]) + "\n"


def _by_set(rows: Sequence[Replayed], cells: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Lines of a table over jobs: a set that is one job is one line; the jobs of another stand under a line with its name."""
    lines: list[Sequence[str]] = []
    above = ""
    for row, own in zip(rows, cells, strict=True):
        group, _, name = row.recording.name.rpartition("/")
        if group and group != above:
            lines.append((f"*{group}*", *[""] * len(own)))
        above = group
        lines.append((f"`{name}`" if group else f"*{name}*", *own))
    return lines


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _between(values: Sequence[float], text: Callable[[float], str]) -> str:
    low, high = text(min(values)), text(max(values))
    return low if low == high else f"{low} to {high}"


def _range(values: Sequence[float]) -> str:
    return _between(values, _share)


def _ms(value_ns: float) -> str:
    """Milliseconds, to a thousandth of a step of a second or less."""
    value = value_ns / 1e6
    return f"{value:,.3f}" if value < 100 else f"{value:,.1f}"


def _share(value: float, digits: int = 2) -> str:
    return f"{100 * value:.{digits}f} %"


def _limit(value: float) -> str:
    return f"{100 * value:g} %"


def _signed(value: float, digits: int = 2) -> str:
    text = f"{100 * value:+.{digits}f} %"
    return text[1:] if re.fullmatch(r"[-+]0\.?0* %", text) else text
