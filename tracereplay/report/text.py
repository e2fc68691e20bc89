"""Findings for people: in, frozen dataclasses; out, text. The answer stands first, tables with units after it."""

from collections.abc import Sequence
from typing import TypeVar

from tracereplay.analyzers.accuracy import Accuracy
from tracereplay.analyzers.attribution import Attribution
from tracereplay.analyzers.causes import Causes, Link
from tracereplay.analyzers.overview import Overview, RankOverview
from tracereplay.analyzers.prediction import Prediction
from tracereplay.graph.event_edges import EventEdges
from tracereplay.graph.model import Coverage
from tracereplay.replay.outcome import Interval
from tracereplay.report.moved import MovedPage, moved_lines, shared_line
from tracereplay.report.table import page as _page
from tracereplay.report.table import table as _table
from tracereplay.units import format_ns, format_share

T = TypeVar("T")

_SHOWN = 12
_SHOWN_LINKS = 40
_NAME = 28


def overview_text(overview: Overview) -> str:
    """``info`` as text."""
    present = f"{len(overview.ranks)} rank{'s' if len(overview.ranks) != 1 else ''}"
    steps = ", ".join(str(n) for n in overview.common_steps) or "none"
    lines = [f"{present}; whole steps on every rank: {steps}"]
    lines.append(
        _table(
            ("rank", "from", "events", "ops", "kernels", "collectives", "step", "device busy", "exposed comm"),
            [_overview_row(r) for r in overview.ranks],
        )
    )
    lines += [line for r in overview.ranks if (line := _quality_line(r))]
    clocks = [c for c in overview.clock[1:] if c.offset_ns is not None and c.anchors]
    if clocks:
        rows = [
            (
                _rank(c.rank),
                format_ns(c.offset_ns),
                f"{c.drift_ppm or 0:.1f} ppm",
                format_ns(c.residual_ns),
                str(c.anchors),
                "yes" if c.applied else "no",
            )
            for c in _first(clocks)
        ]
        lines.append(_table(("clock of rank", "offset", "drift", "residual", "anchors", "corrected"), rows, len(clocks)))
    return _page(lines)


def converted_text(folder: str, ranks: Sequence[tuple[int | None, int, int]]) -> str:
    """``convert`` as text; a rank is (number, events, bytes)."""
    rows = [(_rank(rank), f"{events:,}", f"{size:,}") for rank, events, size in _first(ranks)]
    return _page([f"wrote {folder}", _table(("rank", "events", "bytes"), rows, len(ranks))])


def _quality_line(r: RankOverview) -> str:
    """What was wrong with a rank's file; empty where nothing was."""
    q = r.quality
    counts = {
        "repaired strings": q.repaired_strings,
        "non-finite values": q.nonfinite_values,
        "quarantined events": q.quarantined_events,
        "invalid times": q.invalid_times,
        "impossible durations": q.impossible_durations,
        "starts before their launch": q.clock_violations,
    }
    found = [f"{n:,} {name}" for name, n in counts.items() if n] + ([q.damage] if q.damage else [])
    return f"rank {_rank(r.rank)}: {'; '.join(found)}" if found else ""


def accuracy_text(accuracy: Accuracy, coverage: Coverage) -> str:
    """``replay`` as text."""
    u = accuracy.unexplained
    lines = [
        f"step {format_ns(accuracy.measured_ns)} recorded, {format_ns(accuracy.replayed_ns)} replayed: "
        f"error {_percent(accuracy.error)} (worst step {_percent(accuracy.error_max)})",
        f"with typical lags only: {_percent(u.calibrated_error)};  unexplained waiting {format_ns(u.unexplained_wait_ns)} "
        f"({format_share(u.unexplained_wait_share)} of all steps);  residues {format_ns(u.residue_ns)} "
        f"({format_share(u.residue_share)})",
        _table(
            ("rank", "recorded", "replayed", "error", "start error p95"),
            [
                (
                    _rank(r.rank),
                    format_ns(r.measured_ns),
                    format_ns(r.replayed_ns),
                    _percent(r.error),
                    _percent(r.start_error_p95),
                )
                for r in _first(accuracy.ranks)
            ],
            len(accuracy.ranks),
        ),
        _table(("why tasks wait", "recorded", "inferred"), _by_kind(coverage.edges)),
        f"work without a launch {coverage.unlinked_work:,};  pairs that timing refuted {coverage.refuted:,};  "
        f"clock violations {coverage.clock_violations:,};  dropped edges {coverage.dropped_edges:,}",
    ]
    return _page(lines)


def prediction_text(prediction: Prediction, question: str, page: MovedPage | None = None) -> str:
    """``whatif`` as text; ``page``: where a platform is asked about."""
    lines = [_answer(prediction, question)]
    lines += moved_lines(page) if page is not None else []
    lines += [shared_line(prediction.sharing)] if prediction.sharing is not None else []
    if prediction.steady_ns is not None:
        before, after = format_ns(prediction.baseline_steady_ns), format_ns(prediction.steady_ns)
        lines.append(f"from the end of a step to the end of the next: {before} → {after}")
    moved = [(n, f"{m.count:,}", format_ns(m.before_ns), format_ns(m.after_ns)) for n, m in prediction.moved.items()]
    header = ("moved, all ranks", "count", "before", "after")
    lines.append(_table(header, moved) if moved else "nothing moved")
    rows = [(_rank(r.rank), format_ns(r.baseline_ns), _predicted(r.predicted_ns, r.interval)) for r in _first(prediction.ranks)]
    lines.append(_table(("rank", "mean step now", "mean step then"), rows, len(prediction.ranks)))
    lines += ["\n".join(f"assumed: {text}" for text in prediction.assumed)] if prediction.assumed else []
    if prediction.unmodelled.work_ns:
        share = format_share(prediction.unmodelled.share)
        line = f"not modelled: {format_ns(prediction.unmodelled.work_ns)} of device work ({share})"
        lines.append(f"{line}: {', '.join(_shortened(name) for name in prediction.unmodelled.names[:3])}")
    return _page(lines)


def attribution_text(a: Attribution) -> str:
    """``attribute`` as text."""
    c = a.collectives
    lines = [
        f"step {a.step}: {format_ns(a.step_ns)} on rank {_rank(a.rank)}, the longest; its critical path over all ranks:",
        _table(
            ("part", "time", "share"),
            [(p.name, format_ns(p.ns), format_share(p.share)) for p in sorted(a.parts, key=lambda p: -p.ns)],
        ),
        f"{c.count} collectives on all ranks: {format_ns(c.recorded_ns)} recorded, of which transfer (one count each) "
        f"{format_ns(c.transfer_ns)} and waiting {format_share(c.wait_share)}",
    ]
    if a.waits:
        rows = [(_rank(w.rank), format_ns(w.ns), _rank(w.caused_by_rank), w.cause, w.op) for w in a.waits[:_SHOWN]]
        lines.append(_table(("rank", "waits", "for rank", "because of", "in"), rows, len(a.waits)))
    top = [s for s in a.sensitivity if s.saved_ns_2x][:_SHOWN]
    lines.append(_table(("twice as fast", "step saves"), [(s.knob, format_ns(s.saved_ns_2x)) for s in top]))
    return _page(lines)


def causes_text(causes: Causes) -> str:
    """``why`` as text. Neighbours on one thread that waited for nothing else share a row."""
    where = f"rank {_rank(causes.place.rank)}, event {causes.place.event}"
    lines = [f"{causes.place.name} ({where}) began {format_ns(causes.start_ns)} into step {causes.step}"]
    if causes.matches > 1:
        lines[0] += f"; it is the first of {causes.matches:,} events that fit"
    lines.append(
        f"{len(causes.chain) - 1:,} causes lead back to {causes.ends_with}; each task began after the next one and a lag:"
    )
    rows = _runs(causes.chain)
    head = ("task", "rank", "began", "own time", "after the next by", "lag", "slack")
    lines.append(_table(head, [_chain_row(run) for run in rows[:_SHOWN_LINKS]], len(rows)))
    return _page(lines)


def _runs(chain: Sequence[Link]) -> list[list[Link]]:
    """The chain in rows: a row holds one task, or neighbours on a host thread between which nothing was decided."""
    runs: list[list[Link]] = []
    joined = False
    for position, link in enumerate(chain):
        plain = link.because is not None and link.because.kind == "thread_order" and not link.because.others
        inner = 0 < position < len(chain) - 1 and plain
        if inner and joined:
            runs[-1].append(link)
        else:
            runs.append([link])
        joined = inner
    return runs


def _chain_row(run: Sequence[Link]) -> tuple[str, ...]:
    last = run[-1]
    name = last.place.name
    if len(run) > 1:
        longest = max(run, key=lambda link: link.dur_ns)
        name = f"{len(run):,} tasks, longest {longest.place.name}"
    task = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
    # A rendezvous is of no rank; neither is a task whose file names none.
    rank = "" if last.place.rank is None else str(last.place.rank)
    began = (task, rank, format_ns(last.start_ns), format_ns(sum(link.dur_ns for link in run)))
    if last.because is None:
        return (*began, "", "", "")
    slack = "" if last.because.slack_ns is None else format_ns(last.because.slack_ns)
    basis = "" if last.because.basis == "recorded" else f" ({last.because.basis})"
    return (*began, f"{last.because.kind}{basis}", format_ns(last.because.lag_ns), slack)


def edges_text(edges: EventEdges, file: str) -> str:
    """``graph`` as text."""
    lines = [f"wrote {len(edges.table):,} edges to {file}"]
    lines.append(_table(("why events wait", "recorded", "inferred"), _by_kind(edges.counts())))
    if edges.without_event:
        lines.append(f"edges of the graph with no event on one side, left out: {edges.without_event:,}")
    return _page(lines)


def _by_kind(counts: dict[str, dict[str, int]]) -> list[tuple[str, str, str]]:
    return [(kind, f"{n['recorded']:,}", f"{n['inferred']:,}") for kind, n in counts.items() if any(n.values())]


def _answer(p: Prediction, question: str) -> str:
    before = format_ns(p.baseline_ns)
    if p.interval is not None and p.predicted_ns is None:
        return f"step {before} → {_predicted(None, p.interval)}  with {question}"
    change = _percent(p.predicted_ns / p.baseline_ns - 1) if p.predicted_ns is not None and p.baseline_ns else "n/a"
    low_high = "" if p.interval is None else f" ({format_share(p.interval.level)} {_predicted(None, p.interval)})"
    return f"step {before} → {format_ns(p.predicted_ns)}{low_high}  {change}  with {question}"


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"


def _predicted(value_ns: int | None, interval: Interval | None) -> str:
    return (
        format_ns(value_ns) if interval is None else f"between {format_ns(interval.low_ns)} and {format_ns(interval.high_ns)}"
    )


def _overview_row(r: RankOverview) -> tuple[str, ...]:
    whole = [s.dur_ns for s in r.steps if s.dur_ns is not None]
    step = f"{format_ns(min(whole))} … {format_ns(max(whole))}" if len(whole) > 1 else format_ns(whole[0] if whole else None)
    busy = "not recorded" if r.gpu is None else f"{format_ns(r.gpu.busy_ns)} of {format_ns(r.gpu.window_ns)}"
    exposed = "not recorded" if r.gpu is None else format_ns(r.gpu.exposed_comm_ns)
    counts = r.counts
    return (
        _rank(r.rank), r.rank_source, f"{r.events:,}", f"{counts['cpu_op']:,}", f"{counts['kernel']:,}",
        f"{counts['collective']:,}", step, busy, exposed,
    )  # fmt: skip


def _rank(rank: int | None) -> str:
    return "?" if rank is None else str(rank)


def _percent(value: float) -> str:
    return f"{100 * value:+.2f} %"


def _first(rows: Sequence[T]) -> Sequence[T]:
    return rows[:_SHOWN]
