"""Tables of recorded jobs on accelerators with more or less memory. The platform: accelerators of 16 GB that read 800 GB/s, and
host memory behind uplinks of 31 GB/s for two each, so that one rank reads 15.5 GB/s: 15.5 / 800 = 0.019375.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.fakes.jobs import graph_of
from tests.fakes.lookups import BACKWARD, FORWARD, INSERT, Lookups
from tests.fakes.platforms import small_platform
from tracereplay.errors import HardwareError, NotComparableError, UsageError
from tracereplay.graph.kinds import NodeKind
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.knobs import parse_setting
from tracereplay.hardware.memory.placement_file import read_placement_file
from tracereplay.hardware.operators.fitted import shipped
from tracereplay.hardware.settings import adjusted
from tracereplay.replay.move import Move, Mover
from tracereplay.replay.site import Site
from tracereplay.replay.table_moves import TablesMoved, Wish

BILLION = 1_000_000_000
IN = 0.019375
TABLE = 'schema = "tracereplay/placement/1"\n'


def moved(tmp_path: Path, graph: DependencyGraph, *settings: str, wish: Wish | None = None) -> Move:
    source = small_platform(tmp_path)
    target = adjusted(source, [setting for text in settings for setting in parse_setting(text)])
    return Mover.of(graph, Site(source, 1.0), wish or Wish()).to(Site(target, 1.0))


def tables(move: Move) -> TablesMoved:
    assert move.tables is not None
    return move.tables


def factors(graph: DependencyGraph, found: Move) -> list[tuple[str, float]]:
    nodes = np.flatnonzero(graph.nodes.kind == NodeKind.DEVICE).tolist()
    return [(graph.name_of(n), round(float(found.factor[n]), 6)) for n in sorted(nodes, key=lambda n: graph.nodes.start_ns[n])]


def by_ratio(us: int, ratio: float) -> float:
    """All but what a kernel takes at least goes by the ratio."""
    floor = shipped().floor_ns / (us * 1_000)
    return round(floor + (1 - floor) * ratio, 6)


def placed(tmp_path: Path, text: str, *, leave: bool = False) -> Wish:
    path = tmp_path / "placement.toml"
    path.write_text(TABLE + text)
    return Wish(read_placement_file(path), leave)


def test_more_hbm_takes_tables_in_and_their_lookups_go_by_the_bytes_of_both_memories(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, Lookups().lookup(0, host=2_500_000_000).trace)

    found = moved(tmp_path, graph, "accelerator.hbm.capacity=2x")

    assert factors(graph, found) == [(FORWARD, by_ratio(100, IN)), (BACKWARD, by_ratio(100, IN))]
    (row,) = tables(found).tables
    assert (row.name, row.rank, row.before, row.after, row.bytes, row.lookups, row.missing_bytes) == (
        "lookup 0", 0, "host", "hbm", 10 * BILLION, 1_000, None,
    )  # fmt: skip
    (fit,) = tables(found).ranks
    # Nobody says what the job holds besides: at most all of the 16 GB that it had, where no table stood.
    assert (fit.tables_before_bytes, fit.tables_after_bytes) == (0, 10 * BILLION)
    assert (fit.besides_bytes, fit.estimated, fit.free_after_bytes) == (16 * BILLION, True, 6 * BILLION)
    assert any(
        text.startswith("besides its tables rank 0 holds at most 16,000,000,000 bytes, estimated") for text in found.assumed
    )


def test_the_bounds_of_a_lookup_that_moves_in_hold_that_rows_do_not_explain_its_time(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, Lookups().lookup(0, host=2_500_000_000, dim=None).trace)

    found = moved(tmp_path, graph, "accelerator.hbm.capacity=2x")

    node = int(np.flatnonzero(graph.nodes.kind == NodeKind.DEVICE)[0])
    assert found.low[node] == 0
    expected = by_ratio(100, IN / shipped().memory.embedding) / by_ratio(100, IN)
    assert np.exp(found.high[node]) == pytest.approx(expected, rel=1e-4)

    wide = graph_of(tmp_path, Lookups().lookup(0, host=2_500_000_000).trace)
    known = moved(tmp_path, wide, "accelerator.hbm.capacity=2x")
    # 1,000 rows of 256 bytes take 16.516 µs over 15.5 GB/s and 0.32 µs out of HBM: of 97.7 µs at most so much is saved.
    most = 1 - (256_000 / 15.5 - 256_000 / 800) / (100_000 - shipped().floor_ns)
    assert np.exp(known.high[node]) == pytest.approx(by_ratio(100, most) / by_ratio(100, IN), rel=1e-4)


def test_tables_that_do_not_fit_stay_and_the_reason_says_the_bytes(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, Lookups().lookup(0, host=2_500_000_000).trace)

    found = moved(tmp_path, graph, "accelerator.hbm.capacity=1.5x")

    assert (found.factor == 1).all()
    # 10 GB beside 16 GB of 24 GB.
    assert tables(found).tables[0].missing_bytes == 2 * BILLION
    assert "lookup 0 of rank 0 lacks 2,000,000,000 bytes" in (tables(found).why or "")


def test_the_tables_with_the_most_lookups_a_byte_move_first(tmp_path: Path) -> None:
    trace = Lookups().lookup(0, host=1_250_000_000, indices=500).lookup(0, host=1_250_000_001, indices=2_000).trace
    graph = graph_of(tmp_path, trace)

    found = tables(moved(tmp_path, graph, "accelerator.hbm.capacity=1.4x"))

    # 6.4 GB of room, 5 GB each.
    assert [(row.name, row.after) for row in found.tables] == [("lookup 0", "host"), ("lookup 1", "hbm")]
    assert found.tables[0].missing_bytes == 5 * BILLION - (round(22.4 * BILLION) - 16 * BILLION - 5_000_000_004)


def test_what_is_recorded_of_the_rest_makes_room(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, Lookups().lookup(0, host=2_500_000_000).trace)
    wish = placed(tmp_path, "[besides]\nactivations = 8_000_000_000\ndense_weights = 1_000_000_000")

    found = tables(moved(tmp_path, graph, "accelerator.hbm.capacity=20GB", wish=wish))

    assert found.tables[0].after == "hbm"
    assert (found.ranks[0].besides_bytes, found.ranks[0].estimated, found.ranks[0].free_after_bytes) == (
        9 * BILLION,
        False,
        BILLION,
    )
    assert found.assumed == ()
    other = tables(moved(tmp_path, graph, "accelerator.hbm.capacity=18.5GB", wish=wish))
    assert (other.tables[0].after, other.tables[0].missing_bytes) == ("host", BILLION // 2)


def test_what_fills_a_cache_has_nothing_left_to_do_where_the_tables_stand_in_hbm(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, Lookups().lookup(0, host=2_500_000_000, cache=500_000_000).trace)

    found = moved(tmp_path, graph, "accelerator.hbm.capacity=2x")

    # Lookups found their rows in the cache, in HBM before as after.
    assert factors(graph, found) == [(INSERT, by_ratio(50, 0)), (FORWARD, 1.0), (BACKWARD, 1.0)]
    row, fit = tables(found).tables[0], tables(found).ranks[0]
    assert (row.before, row.after) == ("cached", "hbm")
    assert (fit.tables_before_bytes, fit.tables_after_bytes, fit.besides_bytes) == (2 * BILLION, 10 * BILLION, 14 * BILLION)


def test_tables_that_stay_in_host_memory_go_by_the_way_to_it(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, Lookups().lookup(0, host=2_500_000_000).trace)

    found = moved(tmp_path, graph, "host.link.bandwidth=2x")

    # 31 GB/s instead of 15.5.
    assert factors(graph, found) == [(FORWARD, by_ratio(100, 0.5)), (BACKWARD, by_ratio(100, 0.5))]
    assert tables(found).tables[0].after == "host"
    assert factors(graph, moved(tmp_path, graph, "accelerator.hbm.bandwidth=2x")) == [(FORWARD, 1.0), (BACKWARD, 1.0)]


def test_ranks_of_a_node_share_the_host_s_memory(tmp_path: Path) -> None:
    ranks = [Lookups(rank, 4).lookup(0, host=25_000_000).trace for rank in range(4)]
    graph = graph_of(tmp_path, *ranks)

    found = moved(tmp_path, graph, "host.memory.bandwidth=0.25x")

    # 160 / 4 = 40 GB/s for each of four do not bind before, a quarter of that does: 10 instead of 15.5.
    assert factors(graph, found)[0] == (FORWARD, by_ratio(100, 1.55))


def test_where_all_tables_stand_in_hbm_more_of_it_moves_nothing(tmp_path: Path) -> None:
    found = moved(tmp_path, graph_of(tmp_path, Lookups().lookup(2_500_000_000).trace), "accelerator.hbm.capacity=2x")

    assert (found.factor == 1).all()
    assert tables(found).why == "all tables already stand in HBM"


@pytest.mark.parametrize(
    ("trace", "why"),
    [
        (
            Lookups(shapes=False).lookup(1),
            "lookup 0 of rank 0 stood is not known, the shapes of its arguments were not recorded",
        ),
        (Lookups().lookup(100, host=100), "its tables stood in several memories, and which stood where is not recorded"),
        (Lookups().other(), "the job has no lookups of FBGEMM"),
    ],
)
def test_where_nothing_is_known_of_the_placement_the_reason_says_what_to_give(tmp_path: Path, trace: Lookups, why: str) -> None:
    found = moved(tmp_path, graph_of(tmp_path, trace.trace), "accelerator.hbm.capacity=2x")

    assert (found.factor == 1).all()
    assert why in (tables(found).why or "")


def test_less_than_the_tables_need_is_refused_with_the_bytes_missing(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, Lookups().lookup(2_500_000_000).trace)

    with pytest.raises(HardwareError) as refused:
        moved(tmp_path, graph, "accelerator.hbm.capacity=0.5x")

    words = str(refused.value)
    assert (
        "rank 0 needs 10,000,000,000 bytes (10,000,000,000 of tables, 0 besides) of 8,000,000,000: 2,000,000,000 bytes are"
        in words
    )
    assert "--set accelerator.hbm.capacity=1.26x" in words
    assert "--placement auto moves the coldest tables to host memory" in words


def test_what_may_be_missing_by_an_estimate_is_said_and_not_refused(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, Lookups().lookup(2_500_000_000).trace)

    found = moved(tmp_path, graph, "accelerator.hbm.capacity=12GB")

    # 10 GB of tables fit; the 6 GB that the job may have held besides do not.
    assert any("if that is so, rank 0 lacks 4,000,000,000 bytes" in text for text in found.assumed)


def test_with_auto_the_coldest_tables_leave_and_add_what_their_rows_take_longer(tmp_path: Path) -> None:
    trace = Lookups().lookup(1_250_000_000, indices=500).lookup(1_250_000_001, indices=2_000).trace
    graph = graph_of(tmp_path, trace)
    wish = placed(tmp_path, "[besides]\nactivations = 1_000_000_000", leave=True)

    found = moved(tmp_path, graph, "accelerator.hbm.capacity=8GB", wish=wish)

    assert [row.after for row in tables(found).tables] == ["host", "hbm"]
    # 500 rows of 256 bytes over 15.5 instead of 800 GB/s, for the backward twice that.
    longer = 500 * 256 / 15.5 - 500 * 256 / 800
    own = 100_000 - shipped().floor_ns
    expected = [by_ratio(100, 1 + by * longer / own) for by in (1, 2)]
    assert factors(graph, found) == [(FORWARD, expected[0]), (BACKWARD, expected[1]), (FORWARD, 1.0), (BACKWARD, 1.0)]


def test_with_auto_what_does_not_fit_in_host_memory_either_is_refused(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, Lookups().lookup(3_000_000_000).trace)
    wish = Wish(leave=True)

    with pytest.raises(
        HardwareError, match="node 0 needs 12,000,000,000 bytes of host memory of 10,000,000,000: 2,000,000,000"
    ):
        moved(tmp_path, graph, "accelerator.hbm.capacity=0.5x", "host.memory.capacity=10GB", wish=wish)


def test_a_placement_file_says_where_each_table_of_a_lookup_stood(tmp_path: Path) -> None:
    text = """
    [[table]]
    name = "hot"
    rows = 10_000_000
    dim = 64
    pooling = 9
    tier = "host"
    [[table]]
    name = "cold"
    rows = 100_000_000
    dim = 64
    tier = "host"
    """
    graph = graph_of(tmp_path, Lookups(shapes=False).lookup(1).trace)

    found = moved(tmp_path, graph, "accelerator.hbm.capacity=1.5x", wish=placed(tmp_path, text))

    # 2.56 GB and 25.6 GB, of which 8 GB fit. Nine of ten rows are the hot one's.
    assert [(row.name, row.after) for row in tables(found).tables] == [("lookup 0: hot", "hbm"), ("lookup 0: cold", "host")]
    ratio = (9 / 800 + 1 / 15.5) / (10 / 15.5)
    assert factors(graph, found) == [(FORWARD, by_ratio(100, ratio)), (BACKWARD, by_ratio(100, ratio))]


ONE = '[[table]]\nname = "t"\nrows = 10\ndim = 8\ntier = "host"\n'


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (ONE, NotComparableError, "had 80 weights on the device and 0 in host memory, the placement file gives it 0 and 80"),
        (ONE + "lookup = 1", UsageError, "which lookup of rank 0 reads table 't' is not clear; give its lookup; they are 0"),
        (ONE + "rank = 3", UsageError, "table 't' is on rank 3"),
        ('[[table]]\nname = "t"', UsageError, "has no rows or no dim"),
        (ONE.replace("host", "ssd"), UsageError, "is on disks"),
        (ONE + 'sharding = "hybrid"', UsageError, "has no hybrid tables"),
    ],
)
def test_a_file_that_does_not_fit_the_job_is_refused(tmp_path: Path, text: str, error: type[Exception], words: str) -> None:
    graph = graph_of(tmp_path, Lookups().lookup(80).trace)

    with pytest.raises(error, match=words):
        moved(tmp_path, graph, "accelerator.hbm.capacity=2x", wish=placed(tmp_path, text))


def test_rows_dealt_out_are_on_every_rank_and_state_goes_with_them(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, *(Lookups(rank, 2, shapes=False).lookup(1).trace for rank in (0, 1)))
    text = '[[table]]\nname = "t"\nrows = 1_001\ndim = 8\ntier = "host"\nsharding = "row-wise"\noptimizer = "adagrad"'

    found = tables(moved(tmp_path, graph, "accelerator.hbm.capacity=2x", wish=placed(tmp_path, text)))

    # 501 and 500 rows of 32 bytes and as much state.
    assert [(row.rank, row.bytes, row.after) for row in found.tables] == [(0, 32_064, "hbm"), (1, 32_000, "hbm")]


def test_more_capacity_is_never_slower(tmp_path: Path) -> None:
    trace = Lookups().lookup(0, 900_000_000, indices=900, us=90).lookup(0, 2_000_000_000, indices=3_000, us=300)
    graph = graph_of(tmp_path, trace.lookup(0, 10_000_000, indices=1_000, us=100).trace)

    found = [moved(tmp_path, graph, f"accelerator.hbm.capacity={by}x").factor for by in (1, 1.01, 1.2, 1.3, 1.6, 2, 4)]

    took_ns = [round(float((graph.nodes.dur_ns * factor).sum())) for factor in found]
    assert all(a >= b for a, b in pairwise(took_ns))
    # None; the small one; beside it the first; instead of that the second, which is hotter and larger; all.
    assert len(set(took_ns)) == 5
