"""A step built from an architecture, for people and as JSON: in, findings; out, text and JSON results. Both say what it is."""

import dataclasses
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracereplay.analyzers.attribution import Attribution
from tracereplay.analyzers.synthesis import INTERVAL, LABEL, UNMODELLED, Synthesis
from tracereplay.hardware.memory.placement import RankMemory
from tracereplay.report.table import WIDTH, page, table
from tracereplay.synth.pricing import Efficiency
from tracereplay.synth.step import Job
from tracereplay.units import format_ns, format_share

_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """What ``synth dlrm`` found, with what it was asked."""

    hardware: str
    nodes: int
    job: Job
    efficiency: Efficiency
    synthesis: Synthesis
    attribution: Attribution


def synth_text(answer: Answer) -> str:
    """``synth dlrm`` as text."""
    job, found = answer.job, answer.synthesis
    where = f"{job.plan.ranks} ranks on {answer.nodes} {answer.hardware}"
    head = (
        f"{format_ns(found.step_ns)} a step{_interval(found)}, {found.samples_per_s:,.0f} samples/s: "
        f"{job.architecture.name} on {where}\n"
        f"{LABEL}: no trace was recorded; batch {job.batch:,} ({job.batch_per_rank:,} a rank), software {job.software.name}"
    )
    parts = [(p.name, format_ns(p.ns), format_share(p.share)) for p in answer.attribution.parts]
    knobs = [(s.knob, format_ns(s.saved_ns_2x)) for s in answer.attribution.sensitivity[:_SHOWN]]
    rows = [
        (r.name, r.op, f"{r.bytes:,}", format_ns(r.transfer_ns), r.algorithm, r.bottleneck or "none") for r in found.exchanges
    ]
    return page([
        head,
        _binds(answer),
        table(("critical path", "time", "share"), parts),
        table(("twice as fast", "saves"), knobs),
        table(("collective", "kind", "bytes a rank", "transfer", "algorithm", "waits for"), rows, left=(0, 1, 4, 5)),
        _volumes_text(answer),
        _memory_text(answer),
        "\n".join([*_limits(), *_assumed_lines(found)]),
    ])  # fmt: skip


def _interval(found: Synthesis) -> str:
    one = found.interval
    if one is None:
        return ""
    return f" ({format_share(one.level)} between {format_ns(one.low_ns)} and {format_ns(one.high_ns)})"


def synth_result(answer: Answer) -> dict[str, Any]:
    """``synth dlrm``'s result."""
    job, found, attribution = answer.job, answer.synthesis, answer.attribution
    return {
        "label": LABEL,
        "step_ns": found.step_ns,
        "interval": None if found.interval is None else dataclasses.asdict(found.interval),
        "samples_per_s": found.samples_per_s,
        "architecture": {
            "name": job.architecture.name,
            "bottom": list(job.architecture.bottom),
            "top": list(job.architecture.top),
            "interaction": job.architecture.interaction,
            "dense_parameters": job.architecture.dense_parameters,
            "tables": [_table(job, number) for number in range(len(job.plan.tables))],
        },
        "hardware": answer.hardware,
        "nodes": answer.nodes,
        "ranks": job.plan.ranks,
        "batch": job.batch,
        "batch_per_rank": job.batch_per_rank,
        "software": job.software.name,
        "efficiency": dataclasses.asdict(answer.efficiency),
        "parts": [dataclasses.asdict(part) for part in attribution.parts],
        "binds": _binding(answer),
        "sensitivity": [dataclasses.asdict(row) for row in attribution.sensitivity],
        "exchanges": [dataclasses.asdict(row) for row in found.exchanges],
        "volumes": [_volume(volume) for volume in found.volumes],
        "memory": {
            "optimizer": str(found.placement.optimizer),
            "ranks": [_rank_memory(memory) for memory in found.placement.ranks],
            "nodes": [dataclasses.asdict(node) | {"free": node.free} for node in found.placement.nodes],
        },
        "ways": [{"tier": tier, "bytes_per_s": rate.bytes_per_s, "binds": rate.binds} for tier, rate in found.ways.items()],
        "assumed": list(found.assumed),
        "unmodelled": list(UNMODELLED),
    }


def _binding(answer: Answer) -> dict[str, Any]:
    """The knob that saves most when doubled; of a collective also the link that it waits for."""
    first = next(iter(answer.attribution.sensitivity), None)
    if first is None:
        return {"knob": None, "saved_ns_2x": None, "link": None}
    of_kind = [row for row in answer.synthesis.exchanges if first.knob == f"collective:{row.op}"]
    longest = max(of_kind, key=lambda row: row.transfer_ns, default=None)
    return {"knob": first.knob, "saved_ns_2x": first.saved_ns_2x, "link": None if longest is None else longest.bottleneck}


def _binds(answer: Answer) -> str:
    binding = _binding(answer)
    if binding["knob"] is None:
        return "nothing binds"
    link = "" if binding["link"] is None else f", which waits for {binding['link']}"
    return f"what binds: {binding['knob']}{link}; twice as fast it would save {format_ns(binding['saved_ns_2x'])} a step"


def _limits() -> list[str]:
    """What no built step has."""
    return [_wrapped("in the interval: ", [INTERVAL]), _wrapped("not in the model: ", UNMODELLED)]


def _volumes_text(answer: Answer) -> str:
    found = answer.synthesis
    most = max(found.volumes, key=lambda v: v.lookup_bytes)
    rows = [
        ("pooled all-to-all, most of a rank", f"{max(v.pooled_elements for v in found.volumes):,} numbers"),
        ("index all-to-all, most of a rank", f"{_indices(answer):,} indices"),
        ("row-wise partial sums", f"{most.row_wise_elements:,} numbers"),
        ("all-reduce", f"{most.all_reduce_elements:,} numbers"),
        ("lookups forward, most of a rank", f"{most.lookup_bytes:,} bytes"),
        ("layers, training", f"{most.mlp_training_flops:,} FLOP"),
        ("interaction forward", f"{most.interaction_flops:,} FLOP"),
    ]
    return table(("a step moves", "a rank"), [row for row in rows if not row[1].startswith("0 ")])


def _indices(answer: Answer) -> int:
    """Indices in the largest all-to-all of them; none where every rank reads what it looks up."""
    return 0 if answer.job.software.inputs == "none" else max(v.index_elements for v in answer.synthesis.volumes)


def _memory_text(answer: Answer) -> str:
    placement = answer.synthesis.placement
    fullest = min(placement.ranks, key=lambda memory: memory.free)
    rest = fullest.besides
    rows = [
        ("tables and their optimizer state", _gb(fullest.tables)),
        ("dense weights, gradients and state", _gb(rest.dense_weights + rest.gradients + rest.dense_state)),
        ("activations (estimated)", _gb(rest.activations)),
        ("free", _gb(fullest.free)),
    ]
    tiers = Counter(placed.tier.value for placed in placement.shards)
    lines = [f"{count} shard{'s' if count > 1 else ''} in {tier}" for tier, count in sorted(tiers.items())]
    for node in placement.nodes:
        capacity = "?" if node.capacity is None else _gb(node.capacity)
        lines.append(f"node {node.node}: {_gb(node.used)} of {capacity} {node.tier} memory")
    for tier, rate in answer.synthesis.ways.items():
        lines.append(f"{tier} memory is read at {rate.bytes_per_s / 1e9:,.1f} GB/s a rank, bound by {rate.binds}")
    title = f"memory of the fullest rank ({fullest.rank}), {_gb(fullest.capacity)}"
    return "\n".join([table((title, ""), rows), *lines])


def _assumed_lines(found: Synthesis) -> list[str]:
    return [_wrapped("assumed, not measured or unknown: ", found.assumed)] if found.assumed else []


def _wrapped(mark: str, words: Sequence[str]) -> str:
    """Words after a mark, within the width of the page."""
    return textwrap.fill("; ".join(words), WIDTH, initial_indent=mark, subsequent_indent="  ", break_on_hyphens=False)


def _gb(size: int) -> str:
    return f"{size / 1e9:,.3f} GB"


def _table(job: Job, number: int) -> dict[str, Any]:
    plan = job.plan.tables[number]
    tiers = sorted({p.tier.value for p in job.placement.shards if p.shard.table.name == plan.table.name})
    return dataclasses.asdict(plan.table) | {"sharding": plan.sharding.value, "rank": plan.rank, "tiers": tiers}


def _volume(volume: Any) -> dict[str, Any]:
    return dataclasses.asdict(volume) | {
        "pooled_elements": volume.pooled_elements,
        "index_elements": volume.index_elements,
        "lookup_backward_bytes": volume.lookup_backward_bytes,
        "mlp_training_flops": volume.mlp_training_flops,
    }


def _rank_memory(memory: RankMemory) -> dict[str, Any]:
    return {
        "rank": memory.rank,
        "tables": memory.tables,
        **dataclasses.asdict(memory.besides),
        "activations_basis": "estimated",
        "capacity": memory.capacity,
        "free": memory.free,
    }
