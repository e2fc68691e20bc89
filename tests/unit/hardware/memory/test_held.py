"""Tables on memory of another size, by the laws of who moves first."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tracereplay.hardware.memory.held import HeldTables, rank_memories, tiers_on
from tracereplay.hardware.memory.placement import Besides, Tier
from tracereplay.hardware.memory.traffic import Traffic

NOTHING = Besides(0, 0, 0, 0)


def held(name: str, tier: Tier, size: int, lookups: int, **more: object) -> HeldTables:
    return HeldTables(name, 0, tier, size, lookups, 8.0, **more)  # type: ignore[arg-type] # of each case


HOT, COLD = held("hot", Tier.HOST, 60, 60), held("cold", Tier.HOST, 50, 5)


def test_more_memory_takes_the_hottest_in_as_long_as_they_fit() -> None:
    # A rank with 10 bytes of other things.
    rest = [Besides(4, 3, 2, 1)]

    assert tiers_on([COLD, HOT], rest, 10, 60) == (Tier.HBM, Tier.HOST)  # 50 bytes: no room for the hot one
    assert tiers_on([COLD, HOT], rest, 10, 70) == (Tier.HOST, Tier.HBM)
    assert tiers_on([COLD, HOT], rest, 10, 120) == (Tier.HBM, Tier.HBM)


def test_as_much_memory_or_less_leaves_tables_where_they_stand() -> None:
    tables = [HOT, held("in", Tier.HBM, 50, 1)]

    assert tiers_on(tables, [NOTHING], 200, 200) == (Tier.HOST, Tier.HBM)
    assert tiers_on(tables, [NOTHING], 200, 20) == (Tier.HOST, Tier.HBM)


def test_the_coldest_leave_first_and_what_stays_never_does() -> None:
    tables = [held("a", Tier.HBM, 50, 1, stays=True), held("b", Tier.HBM, 40, 9), held("c", Tier.HBM, 40, 2)]

    assert tiers_on(tables, [NOTHING], 130, 100, leave=True) == (Tier.HBM, Tier.HBM, Tier.HOST)
    assert tiers_on(tables, [NOTHING], 130, 10, leave=True) == (Tier.HBM, Tier.HOST, Tier.HOST)
    assert rank_memories(tables, (Tier.HBM, Tier.HOST, Tier.HOST), [NOTHING], 10)[0].free == -40


def test_a_cached_table_gives_its_cache_back() -> None:
    cached = held("c", Tier.CACHED, 100, 10, cached_bytes=20, missed=0.25)

    assert tiers_on([cached], [NOTHING], 50, 99) == (Tier.CACHED,)
    assert tiers_on([cached], [NOTHING], 50, 100) == (Tier.HBM,)
    assert cached.traffic(Tier.CACHED) == Traffic(local_bytes=80, host_bytes=20)
    assert cached.traffic(Tier.HBM) == Traffic(local_bytes=80)


def test_where_the_size_of_somebody_s_rows_is_not_known_lookups_alone_count() -> None:
    wide = HeldTables("wide", 0, Tier.HOST, 100, 10, 64.0)
    unknown = HeldTables("unknown", 0, Tier.HOST, 100, 20, None)

    assert tiers_on([wide, unknown], [NOTHING], 50, 100) == (Tier.HOST, Tier.HBM)


_TABLES = st.lists(st.tuples(st.integers(1, 100), st.integers(1, 100), st.booleans()), min_size=1, max_size=8)


@given(_TABLES, st.lists(st.integers(0, 900), min_size=2, max_size=8))
def test_more_capacity_never_leaves_more_traffic_outside(rows: list[tuple[int, int, bool]], sizes: list[int]) -> None:
    tables = [held(str(i), Tier.HBM if inside else Tier.HOST, size, n) for i, (size, n, inside) in enumerate(rows)]
    here = sum(one.bytes for one in tables if one.tier is Tier.HBM)

    outside = []
    for capacity in sorted(sizes):
        tiers = tiers_on(tables, [NOTHING], here, capacity, leave=True)
        outside.append(sum(one.traffic(tier).host_bytes for one, tier in zip(tables, tiers, strict=True)))
        # With all of them free to leave nothing is ever too large.
        assert rank_memories(tables, tiers, [NOTHING], capacity)[0].free >= 0

    assert all(a >= b for a, b in pairwise(outside))
