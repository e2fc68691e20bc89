"""Volumes of the recorded DLRM job: from its execution traces and from its architecture string, exactly the same."""

from pathlib import Path

import pytest

from tracereplay.cli.main import main
from tracereplay.errors import NotComparableError
from tracereplay.hardware.memory.placement import Tier
from tracereplay.hardware.memory.tables import Sharding
from tracereplay.synth.presets import architecture_of, preset_named
from tracereplay.synth.recorded import recorded_tiers
from tracereplay.synth.sharding import Plan, balanced, plan_on
from tracereplay.synth.volumes import Volumes, volumes
from tracereplay.trace.collectives import RecordedCollective, recorded_collectives
from tracereplay.trace.embedding import recorded_lookups
from tracereplay.trace.execution import ExecutionTrace, attach, read_execution_trace
from tracereplay.trace.job import Job, read_job

RANKS = range(8)


@pytest.fixture(scope="module")
def executed(corpus: Path) -> list[ExecutionTrace]:
    return [read_execution_trace(corpus / "execution_traces" / "dlrm_v100x8" / f"rank{rank}.json.gz") for rank in RANKS]


@pytest.fixture(scope="module")
def job(corpus: Path) -> Job:
    return read_job([str(corpus / "traces" / "dlrm_v100x8")])


@pytest.fixture(scope="module")
def collectives(job: Job, executed: list[ExecutionTrace]) -> list[tuple[RecordedCollective, ...]]:
    tables, counts = attach([(trace.table, trace.rank) for trace in job.ranks], executed)
    assert counts == {"matched": 8, "unmatched": 0}
    return [recorded_collectives(table) for table in tables]


@pytest.fixture(scope="module")
def plan() -> Plan:
    preset = preset_named("param-v100x8")
    return plan_on(architecture_of(preset), 8, preset.ranks or ())


@pytest.fixture(scope="module")
def modelled(plan: Plan) -> tuple[Volumes, ...]:
    return volumes(architecture_of(preset_named("param-v100x8")), plan, 16)


def test_recorded_pooled_all_to_all_is_6144_floats_and_all_reduce_621313(
    collectives: list[tuple[RecordedCollective, ...]],
) -> None:
    for rank in RANKS:
        pooled = [c.elements for c in collectives[rank] if c.name == "all_to_all" and c.dtype == "float"]
        reduced = [c.elements for c in collectives[rank] if c.name == "all_reduce"]
        assert pooled == [6_144, 6_144]
        assert sum(n or 0 for n in reduced) == 621_313


def test_the_architecture_string_gives_every_recorded_volume(
    collectives: list[tuple[RecordedCollective, ...]], modelled: tuple[Volumes, ...]
) -> None:
    for rank, volume in zip(RANKS, modelled, strict=True):
        own = [c for c in collectives[rank] if c.name == "all_to_all"]
        pooled, indices = [c for c in own if c.dtype == "float"], [c for c in own if c.dtype != "float"]
        assert {c.in_split for c in pooled} == {volume.pooled_split}
        assert [c.elements for c in indices] == [volume.splits_elements, volume.lengths_elements, volume.index_elements]
        assert indices[-1].in_split == volume.index_split
        reduced = sum(c.elements or 0 for c in collectives[rank] if c.name == "all_reduce")
        assert reduced == volume.all_reduce_elements


def test_the_recorded_weights_of_every_rank_are_those_of_its_tables(
    executed: list[ExecutionTrace], plan: Plan, modelled: tuple[Volumes, ...]
) -> None:
    for rank, trace in zip(RANKS, executed, strict=True):
        own, replicated = trace.lookups
        tables = plan.of(Sharding.TABLE_WISE, rank)
        assert own.device_elements == sum(t.rows * t.dim for t in tables)
        assert (own.state_elements, own.optimizer) == (own.device_elements, "adagrad")
        assert (own.host_elements, own.cached_elements, own.total_dim) == (0, 0, 48)
        assert (own.tables, own.samples, own.indices) == (3, 128, 8 * modelled[rank].index_split[rank])
        assert (replicated.replicated, replicated.device_elements, replicated.samples) == (True, 112, 16)


def test_all_tables_of_the_recorded_job_stood_in_hbm(executed: list[ExecutionTrace], plan: Plan) -> None:
    tiers = recorded_tiers(plan, {rank: executed[rank].lookups for rank in RANKS})

    assert len(tiers) == 24
    assert set(tiers.values()) == {Tier.HBM}


def test_another_sharding_is_not_the_recorded_one(executed: list[ExecutionTrace], plan: Plan) -> None:
    other = balanced(architecture_of(preset_named("param-v100x8")), 8, replicate_rows=4)

    with pytest.raises(NotComparableError, match="rank 0 had 640,649,648 weights"):
        recorded_tiers(other, {rank: executed[rank].lookups for rank in RANKS})


def test_kineto_traces_give_the_same_lookups_without_names_of_arguments(job: Job, executed: list[ExecutionTrace]) -> None:
    for trace, other in zip(job.ranks, executed, strict=True):
        found = recorded_lookups(trace.table)
        shared = [(o.device_elements, o.host_elements, o.tables, o.indices, o.samples) for o in other.lookups]
        assert [(o.device_elements, o.host_elements, o.tables, o.indices, o.samples) for o in found] == shared


def test_a_production_trace_gives_its_tables_too(corpus: Path) -> None:
    (trace,) = read_job([str(corpus / "traces" / "recsys_a100_vs_v100" / "control.json.gz")]).ranks

    found = recorded_lookups(trace.table)

    assert found[0].optimizer == "rowwise_adagrad"
    assert {lookup.tier for lookup in found} == {"hbm"}


def test_synth_takes_the_recorded_placement_and_refuses_another_architecture_s(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traces = ["--execution-traces", str(corpus / "execution_traces" / "dlrm_v100x8")]
    words = ["synth", "dlrm", "--ranks", "8", "--batch", "128", "--hardware", "dgx1-v100", *traces]

    assert main([*words, "--preset", "param-v100x8"]) == 0
    assert "40 shards in hbm" in capsys.readouterr().out
    assert main([*words, "--preset", "mlperf-v1"]) == 4
    assert "rank 0 had 640,649,648 weights in its tables" in capsys.readouterr().err
