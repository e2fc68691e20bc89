"""Steps built from architectures, with times that a table gives: what waits for what, and in which order collectives run."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.platforms import small_platform
from tracereplay.errors import HardwareError, UsageError
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.load import load_platform
from tracereplay.hardware.memory.placement import Besides, Policy, Tier, place
from tracereplay.replay.engine import replay
from tracereplay.replay.settle import settled
from tracereplay.synth.architecture import Architecture, parse_architecture
from tracereplay.synth.assemble import Spread, Wish, assemble, batch_of_rank, spread_over
from tracereplay.synth.operation import Exchange, LayerWork, Operation
from tracereplay.synth.presets import architecture_of, preset_named
from tracereplay.synth.sharding import Plan, balanced, hybrid, plan_on, row_wise
from tracereplay.synth.software import Software, software_named
from tracereplay.synth.step import Job, Step, build_step, dense_buckets

NOTHING = Besides(0, 0, 0, 0)


class Flat:
    """Every operation takes 10 ns, every collective 100; the rest waits."""

    def operation_ns(self, operation: Operation) -> int:
        return 10

    def exchange_ns(self, exchange: Exchange) -> Sequence[int]:
        return [100, 100]


def job_of(arch: Architecture, plan: Plan, software: Software, batch: int = 4) -> Job:
    platform = load_platform("dgx-a100-80")
    placement = place(plan.shards(), platform, [NOTHING] * plan.ranks, Policy(software.optimizer, Tier.HBM))
    return Job(arch, plan, batch, software, placement, 8)


SMALL = parse_architecture("3-4/2-1/100:2,50:1")
FUSED = Software("fused", fused=True, inputs="none", buckets=(1, 1))


def starts(step: Step) -> dict[str, tuple[int, int]]:
    """When each piece of work of rank 0 starts and ends."""
    graph = step.graph
    schedule = replay(graph)
    found: dict[str, tuple[int, int]] = {}
    for node in range(len(graph)):
        if graph.nodes.rank[node] == 0 and graph.nodes.kind[node] != NodeKind.ARRIVAL:
            name = graph.tables[0].name_of(int(graph.nodes.row[node]))
            while name in found:
                name += "'"
            found[name] = (int(schedule.start_ns[node]), int(schedule.end_ns[node]))
    return found


def test_a_step_by_hand() -> None:
    step = build_step(job_of(SMALL, balanced(SMALL, 2), FUSED), Flat())

    assert starts(step) == {
        "lookup": (0, 10),
        "pooled vectors": (10, 110),
        "bottom 0 forward": (0, 10),
        "interaction": (110, 120),
        "top 0 forward": (120, 130),
        "top 1 forward": (130, 140),
        "loss": (140, 150),
        "loss backward": (150, 160),
        "top 1 input gradient": (160, 170),
        "top 1 weight gradient": (170, 180),
        "dense gradients": (180, 280),
        "top 0 input gradient": (180, 190),
        "top 0 weight gradient": (190, 200),
        "dense gradients'": (280, 380),
        "interaction backward": (200, 210),
        "gradients of pooled vectors": (380, 480),
        "lookup backward and update": (480, 490),
        "bottom 0 weight gradient": (210, 220),
        "dense gradients''": (480, 580),
        "optimizer": (580, 590),
    }


def test_all_reduces_apart_do_not_hold_up_the_other_collectives() -> None:
    apart = Software("apart", fused=True, inputs="none", buckets=(1, 1), apart=True)

    found = starts(build_step(job_of(SMALL, balanced(SMALL, 2), apart), Flat()))

    assert found["gradients of pooled vectors"] == (210, 310)
    assert found["dense gradients''"] == (380, 480)
    assert found["optimizer"] == (480, 490)


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ("first", ["index splits", "index lengths", "indices", "pooled vectors"]),
        ("prefetched", ["pooled vectors", "index splits", "index lengths", "indices"]),
        ("none", ["pooled vectors"]),
    ],
)
def test_indices_travel_before_the_lookup_or_behind_it_or_not_at_all(inputs: str, expected: list[str]) -> None:
    software = Software("x", fused=True, inputs=inputs)  # type: ignore[arg-type]

    step = build_step(job_of(SMALL, balanced(SMALL, 2), software), Flat())

    assert [e.name for e in step.exchanges][: len(expected)] == expected
    waits_for_indices = starts(step)["lookup"] == (300, 310)
    assert waits_for_indices == (inputs == "first")


def test_row_wise_tables_come_back_as_sums() -> None:
    step = build_step(job_of(SMALL, row_wise(SMALL, 2), FUSED), Flat())

    assert [(e.name, e.kind, e.bytes) for e in step.exchanges if "partial" in e.name] == [
        ("partial sums", "reduce_scatter", 8 * 8 * 4),
        ("gradients of partial sums", "all_gather", 8 * 8 * 4),
    ]


def test_one_rank_has_no_collectives() -> None:
    step = build_step(job_of(SMALL, balanced(SMALL, 1), FUSED), Flat())

    assert step.exchanges == ()
    assert step.graph.collectives == ()


def test_over_nodes_a_grouped_stack_sends_all_gradients_at_once() -> None:
    arch = parse_architecture("3-4/2-1/100:2,50:1")
    grouped = software_named("hugectr-3")
    plan = hybrid(arch, 16)
    job = job_of(arch, plan, grouped)

    class Sixteen(Flat):
        def exchange_ns(self, exchange: Exchange) -> Sequence[int]:
            return [100] * 16

    reduced = [e for e in build_step(job, Sixteen()).exchanges if e.kind == "all_reduce"]

    assert len(reduced) == 1
    assert {e.hierarchical for e in build_step(job, Sixteen()).exchanges if e.kind == "all_to_all"} == {True}


def test_gradients_fill_a_first_bucket_of_one_mebibyte_and_then_larger_ones() -> None:
    arch = architecture_of(preset_named("param-v100x8"))

    assert dense_buckets(arch, software_named("torchrec")) == [(394_241, 4), (226_960, 0)]


def test_a_layer_without_fusion_moves_its_results_again() -> None:
    work = LayerWork("top 0", parse_architecture("3-4/2-1/100").top_layers[0], 8, "fp32", fused=False)

    forward, backward = work.forward(), work.backward(to_inputs=True)

    assert [o.name for o in forward] == ["top 0 forward", "top 0 activation"]
    assert forward[0].work.flops == 2 * 8 * 5 * 2
    assert forward[1].work.bytes_moved == 2 * 8 * 2 * 4
    assert [o.name.removeprefix("top 0 ") for o in backward] == [
        "activation backward", "bias gradient", "input gradient", "weight gradient",
    ]  # fmt: skip
    assert sum(o.work.flops for o in backward if "gradient" in o.name and "bias" not in o.name) == 2 * forward[0].work.flops


def test_ranks_are_spread_evenly_over_the_fewest_nodes(tmp_path: Path) -> None:
    small = small_platform(tmp_path)  # four accelerators

    assert spread_over(8, None, small) == Spread(2, 4)
    assert spread_over(6, 3, small).endpoints(small) == (0, 1, 4, 5, 8, 9)
    with pytest.raises(UsageError, match="6 ranks on 4 nodes"):
        spread_over(6, 4, small)
    with pytest.raises(UsageError, match="8 ranks on 1 nodes"):
        spread_over(8, 1, small)
    with pytest.raises(UsageError, match="a batch of 10 over 4 ranks"):
        batch_of_rank(10, 4)


def test_tables_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    arch = architecture_of(preset_named("mlperf-v1"))
    small = small_platform(tmp_path)

    with pytest.raises(HardwareError, match="bytes are missing"):
        assemble(Wish(arch, 4096, software_named("torchrec")), balanced(arch, 4), Spread(1, 4), small)


@st.composite
def _jobs(draw: st.DrawFn) -> Job:
    tables = draw(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 9)), min_size=2, max_size=6))
    kind = draw(st.sampled_from(["", "/cat", "/dcn:2:3"]))
    arch = parse_architecture("3-5-4/6-1/" + ",".join(f"{rows}:{pooling}" for rows, pooling in tables) + kind)
    plan = draw(st.sampled_from([balanced(arch, 2), row_wise(arch, 2), hybrid(arch, 2), balanced(arch, 2, 10)]))
    return job_of(arch, plan, software_named(draw(st.sampled_from(["torchrec", "nvidia-amp", "hugectr-3"]))))


@settings(deadline=None)  # the first example compiles the loops
@given(_jobs())
def test_every_rank_ends_with_its_optimizer_or_its_lookup_and_collectives_are_joined(job: Job) -> None:
    graph: DependencyGraph = settled(build_step(job, Flat()).graph)

    assert all(len(c.ranks) == 2 and c.transfer_ns == 100 for c in graph.collectives)
    assert {span.end_ns for span in graph.steps} == {int(replay(graph).end_ns.max())}


def test_the_collectives_of_the_recorded_job_come_in_its_order_and_size() -> None:
    preset = preset_named("param-v100x8")
    arch = architecture_of(preset)

    class Eight(Flat):
        def exchange_ns(self, exchange: Exchange) -> Sequence[int]:
            return [100] * 8

    step = build_step(job_of(arch, plan_on(arch, 8, preset.ranks or ()), software_named("torchrec"), 16), Eight())

    assert [(e.kind, e.bytes) for e in step.exchanges] == [
        ("all_to_all", 6_144 * 4), ("all_to_all", 24 * 8), ("all_to_all", 384 * 4), ("all_to_all", 3_392 * 4),
        ("all_reduce", 394_241 * 4), ("all_to_all", 6_144 * 4), ("all_reduce", 112 * 4), ("all_reduce", 226_960 * 4),
    ]  # fmt: skip
