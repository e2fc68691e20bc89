import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracereplay.errors import UsageError
from tracereplay.hardware.memory.tables import Sharding
from tracereplay.synth.architecture import Architecture, parse_architecture
from tracereplay.synth.presets import architecture_of, preset_named
from tracereplay.synth.sharding import Plan, TablePlan, balanced, plan_on, row_wise
from tracereplay.synth.volumes import volumes

# Two ranks of 5 samples; D 4. t0 and t1 on rank 0, t2 on rank 1, t3 on both.
ARCH = parse_architecture("3-4/1/100:2,100:1,50:10,6:1")
PLAN = plan_on(ARCH, 2, (0, 0, 1, None))


def test_volumes_of_two_ranks_by_hand() -> None:
    first, second = volumes(ARCH, PLAN, 5)

    assert first.pooled_split == (5 * 8, 5 * 8)
    assert second.pooled_split == (5 * 4, 5 * 4)
    assert (first.pooled_received, second.pooled_received) == (60, 60)
    assert (first.splits_elements, first.lengths_elements) == (3, 15)
    assert first.index_split == second.index_split == (5 * 3, 5 * 10)
    dense = (3 * 4 + 4) + ((4 + 10) * 1 + 1)
    assert first.all_reduce_elements == dense + 6 * 4
    assert first.lookup_bytes == 10 * 3 * 16 + 5 * 1 * 16
    assert second.lookup_bytes == 10 * 10 * 16 + 5 * 1 * 16
    assert first.lookup_backward_bytes == 2 * first.lookup_bytes
    assert first.mlp_flops == 2 * (12 + 14) * 5
    assert first.mlp_training_flops == 6 * (12 + 14) * 5
    assert first.interaction_flops == 2 * 25 * 4 * 5


def test_row_wise_tables_send_indices_everywhere_and_sum_partial_results() -> None:
    arch = parse_architecture("3-4/1/100:3")

    first, second = volumes(arch, row_wise(arch, 2), 5)

    assert first.pooled_elements == 0
    assert first.index_split == second.index_split == (8, 7)
    assert first.row_wise_elements == 10 * 4
    assert first.lookup_bytes == 5 * 3 * 16
    assert (first.splits_elements, first.lengths_elements) == (2, 10)


def test_the_recorded_job_s_volumes_follow_from_its_architecture_string() -> None:
    preset = preset_named("param-v100x8")
    arch = architecture_of(preset)
    found = volumes(arch, plan_on(arch, 8, preset.ranks or ()), 16)

    assert {v.pooled_elements for v in found} == {6_144}
    assert {v.all_reduce_elements for v in found} == {621_313}
    assert {v.index_split for v in found} == {(96, 224, 288, 1664, 592, 96, 192, 240)}
    assert {(v.splits_elements, v.lengths_elements) for v in found} == {(24, 384)}


def test_a_plan_of_other_tables_and_an_empty_batch_are_refused() -> None:
    with pytest.raises(UsageError, match="other tables"):
        volumes(parse_architecture("3-4/1/100"), PLAN, 5)
    with pytest.raises(UsageError, match="at least one sample"):
        volumes(ARCH, PLAN, 0)


def test_the_table_that_is_read_most_is_dealt_first_and_small_ones_are_replicated() -> None:
    arch = parse_architecture("3-4/1/10:1,20:9,30:5,3:1,40:4")

    plan = balanced(arch, 2, replicate_rows=3)

    # 9 to rank 0; 5 and 4 to rank 1; the last one meets 9 and 9, and rank 0 has fewer rows.
    assert [p.rank for p in plan.tables] == [0, 0, 1, None, 1]
    assert plan.of(Sharding.DATA_PARALLEL) == (arch.tables[3],)


def test_rows_are_dealt_out_one_more_to_the_first() -> None:
    arch = parse_architecture("3-4/1/10")

    assert [(s.rank, s.rows) for s in row_wise(arch, 3).shards()] == [(0, 4), (1, 3), (2, 3)]


@pytest.mark.parametrize(("sharding", "rank"), [(Sharding.TABLE_WISE, None), (Sharding.ROW_WISE, 0), (Sharding.TABLE_WISE, 2)])
def test_a_table_on_no_or_a_wrong_rank_is_refused(sharding: Sharding, rank: int | None) -> None:
    with pytest.raises(UsageError):
        Plan(2, (TablePlan(ARCH.tables[0], sharding, rank),))


@st.composite
def _plans(draw: st.DrawFn) -> tuple[Architecture, Plan]:
    tables = draw(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 9)), min_size=1, max_size=8))
    arch = parse_architecture(f"3-{draw(st.integers(1, 9))}/1/" + ",".join(f"{rows}:{pooling}" for rows, pooling in tables))
    ranks = draw(st.integers(1, 5))
    chosen = draw(st.lists(st.integers(-2, ranks - 1), min_size=len(tables), max_size=len(tables)))
    kinds = {-1: Sharding.DATA_PARALLEL, -2: Sharding.ROW_WISE}
    plans = [
        TablePlan(t, kinds.get(c, Sharding.TABLE_WISE), c if c >= 0 else None) for t, c in zip(arch.tables, chosen, strict=True)
    ]
    return arch, Plan(ranks, tuple(plans))


@given(_plans(), st.integers(1, 20))
def test_what_is_sent_is_received_and_every_lookup_is_done_once(drawn: tuple[Architecture, Plan], batch: int) -> None:
    arch, plan = drawn
    found = volumes(arch, plan, batch)

    for peer in range(plan.ranks):
        assert sum(v.pooled_split[peer] for v in found) == found[peer].pooled_received
    lookups = sum(v.lookup_bytes for v in found)
    assert lookups == batch * plan.ranks * sum(t.pooling * t.row_bytes for t in arch.tables)


@given(_plans())
def test_shards_hold_every_row_once_and_replicated_ones_on_every_rank(drawn: tuple[Architecture, Plan]) -> None:
    _, plan = drawn

    for planned in plan.tables:
        rows = sum(s.rows for s in plan.shards() if s.table == planned.table)
        assert rows == planned.table.rows * (plan.ranks if planned.sharding is Sharding.DATA_PARALLEL else 1)
