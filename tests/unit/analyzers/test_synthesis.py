"""How sure a built step is: bounds of its tasks from the models, what is assumed at its ends, all of it through the replay."""

from dataclasses import replace
from math import log
from pathlib import Path

import numpy as np
import pytest

from tests.fakes.platforms import small_platform
from tracereplay.analyzers.synthesis import errors_of, synthesise
from tracereplay.hardware.memory.placement import Tier
from tracereplay.hardware.operators.work import CLASSES
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.schema import Accelerator
from tracereplay.replay.columns import SCALE_OUT, SCALE_UP
from tracereplay.replay.outcome import interval_of
from tracereplay.synth.architecture import parse_architecture
from tracereplay.synth.assemble import Wish, assemble, spread_over
from tracereplay.synth.pricing import Efficiency, PlatformPricer
from tracereplay.synth.sharding import balanced
from tracereplay.synth.software import software_named
from tracereplay.synth.step import Job, build_step

ARCH = parse_architecture("13-64-16/64-1/4x1000:10")


def job_on(platform: Platform, nodes: int = 1, tier: Tier = Tier.HBM) -> tuple[Job, PlatformPricer]:
    spread = spread_over(4, nodes, platform)
    wish = Wish(ARCH, 1024, software_named("nvidia-fp32"), tier)
    return assemble(wish, balanced(ARCH, 4), spread, platform), PlatformPricer(platform, spread)


def faster(accelerator: Accelerator) -> Accelerator:
    bandwidth = accelerator.hbm.bandwidth.model_copy(update={"value": 8_000})
    flops = {name: fact.model_copy(update={"value": fact.value * 10}) for name, fact in accelerator.flops.items() if fact.value}
    hbm = accelerator.hbm.model_copy(update={"bandwidth": bandwidth})
    return accelerator.model_copy(update={"hbm": hbm, "flops": flops})


def test_the_interval_holds_nine_of_ten_sampled_answers_and_the_answer_itself() -> None:
    # Of 0 to 100 five in a hundred lie below 5, and as many above 95.
    assert interval_of(range(101), 50) == interval_of(list(range(101)), 60)
    assert (interval_of(range(101), 50).low_ns, interval_of(range(101), 50).high_ns) == (5, 95)
    assert (interval_of(range(101), 3).low_ns, interval_of(range(101), 98).high_ns) == (3, 98)
    assert interval_of(range(101), 50).level == 0.9


def test_each_task_has_the_bounds_of_its_model_and_shares_errors_with_its_class(tmp_path: Path) -> None:
    job, pricer = job_on(small_platform(tmp_path), nodes=2)
    step = build_step(job, pricer)

    errors = errors_of(step, pricer)

    assert (errors.factor == 1).all()
    for node, operation in step.operations.items():
        low_ns, high_ns = pricer.bounds_ns(operation)
        assert errors.group[node] == CLASSES.index(operation.work.kind)
        assert errors.low[node] == pytest.approx(log(low_ns / pricer.operation_ns(operation)))
        assert errors.high[node] == pytest.approx(log(high_ns / pricer.operation_ns(operation)))
    for exchange, collective in zip(step.exchanges, step.graph.collectives, strict=True):
        time = pricer.exchanged[exchange]
        nodes = [*collective.transfers]
        assert (errors.group[nodes] == SCALE_OUT).all()
        assert errors.low[nodes] == pytest.approx(log(time.low_ns / time.time_ns))
        assert errors.high[nodes] == pytest.approx(log(time.high_ns / time.time_ns))
    # Every task of a known time is one or the other.
    assert ((errors.group >= 0) == (step.graph.nodes.dur_ns > 0)).all()


def test_transfers_within_a_node_share_another_error_than_those_between_nodes(tmp_path: Path) -> None:
    job, pricer = job_on(small_platform(tmp_path))
    step = build_step(job, pricer)

    errors = errors_of(step, pricer)

    assert {int(errors.group[n]) for c in step.graph.collectives for n in c.transfers} == {SCALE_UP}


def test_errors_are_drawn_only_where_that_is_asked_for_and_are_the_same_each_time(tmp_path: Path) -> None:
    job, pricer = job_on(small_platform(tmp_path))

    none, some, again = synthesise(job, pricer), synthesise(job, pricer, 32), synthesise(job, pricer, 32)

    assert none.interval is None
    assert some.interval is not None
    assert some.interval == again.interval
    assert some.step_ns == none.step_ns
    assert some.interval.low_ns < some.step_ns < some.interval.high_ns


def test_an_error_of_all_that_the_step_waits_for_moves_it_by_as_much(tmp_path: Path) -> None:
    job, pricer = job_on(small_platform(tmp_path))
    step = build_step(job, pricer)
    errors = errors_of(step, pricer)
    widest = max(float(np.exp(errors.high.max())), float(np.exp(-errors.low.min())))

    found = synthesise(job, pricer, 64).interval

    # No step can move by more than all of its tasks do; a draw goes beyond its bounds in one of ten, by no more than
    # three of their half-widths in 64.
    assert found is not None
    step_ns = synthesise(job, pricer).step_ns
    assert step_ns / widest**3 < found.low_ns
    assert found.high_ns < step_ns * widest**3


def test_an_efficiency_scales_the_bounds_with_the_times(tmp_path: Path) -> None:
    job, pricer = job_on(small_platform(tmp_path))
    half = replace(pricer, efficiency=Efficiency(0.5, 0.5, 0.5, 0.5), exchanged={})

    one, other = synthesise(job, pricer, 32), synthesise(job, half, 32)

    assert one.interval is not None
    assert other.interval is not None
    assert other.interval.low_ns == pytest.approx(2 * one.interval.low_ns, rel=1e-3)
    assert other.interval.high_ns == pytest.approx(2 * one.interval.high_ns, rel=1e-3)


def test_what_else_may_stand_in_the_slots_is_drawn_too(tmp_path: Path) -> None:
    job, pricer = job_on(small_platform(tmp_path))
    assert pricer.platform.accelerator is not None
    other = faster(pricer.platform.accelerator)
    there = PlatformPricer(replace(pricer.platform, accelerator=other), pricer.spread)
    step, step_there = build_step(job, pricer), build_step(job, there)

    errors = errors_of(step, pricer, [other])

    # The same tasks with the other accelerator's times.
    assert np.rint(step.graph.nodes.dur_ns * errors.others[0]).tolist() == step_there.graph.nodes.dur_ns.tolist()
    alone, both = synthesise(job, pricer, 64), synthesise(job, pricer, 64, [other])
    assert alone.interval is not None
    assert both.interval is not None
    assert both.interval.low_ns < alone.interval.low_ns
