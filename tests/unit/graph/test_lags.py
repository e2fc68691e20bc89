import numpy as np
import numpy.typing as npt

from tracereplay.graph.edges import Edges, concat_edges, make_edges
from tracereplay.graph.kinds import Basis, Why
from tracereplay.graph.lags import residues, typical_lags

Int64s = npt.NDArray[np.int64]


def ints(*values: int) -> Int64s:
    return np.array(values, np.int64)


def launches(*pairs: tuple[int, int]) -> Edges:
    return make_edges(Why.LAUNCH, Basis.RECORDED, [s for s, _ in pairs], [d for _, d in pairs], from_start=True)


def test_a_lag_is_the_median_of_its_population() -> None:
    # Calls 0 to 2 begin at 0, 100, 200; work 3 to 5 begins 10, 12 and 20 later.
    start, end = ints(0, 100, 200, 10, 112, 220), ints(5, 105, 205, 15, 117, 225)

    lags = typical_lags(launches((0, 3), (1, 4), (2, 5)), start, end, ints(0, 0, 0, 1, 1, 1))

    assert lags.tolist() == [12, 12, 12]


def test_a_residue_is_what_edges_and_typical_lags_leave() -> None:
    start, end = ints(0, 100, 200, 10, 112, 220), ints(5, 105, 205, 15, 117, 225)

    residue = residues(launches((0, 3), (1, 4), (2, 5)), ints(12, 12, 12), start, end)

    assert residue.tolist() == [0, 0, 0, -2, 0, 8]


def test_a_launch_into_a_busy_queue_says_nothing_of_the_launch() -> None:
    # Work 4 waits for work 3, which ends at 118 after the call at 100: only the launches of 3 and 5 (10 and 20) count.
    start, end = ints(0, 100, 200, 10, 120, 220), ints(5, 105, 205, 118, 125, 225)
    order = make_edges(Why.STREAM_ORDER, Basis.RECORDED, [3], [4])

    lags = typical_lags(concat_edges([launches((0, 3), (1, 4), (2, 5)), order]), start, end, ints(0, 0, 0, 1, 1, 1))

    assert lags.tolist() == [15, 15, 15, 2]


def test_a_queues_order_that_decided_nothing_has_no_lag() -> None:
    # Work 3 ends at 100, the launch of work 4 with its typical lag (20) comes at 120.
    start, end = ints(0, 100, 200, 10, 120, 220), ints(5, 105, 205, 100, 125, 225)
    order = make_edges(Why.STREAM_ORDER, Basis.RECORDED, [3], [4])

    lags = typical_lags(concat_edges([launches((0, 3), (1, 4), (2, 5)), order]), start, end, ints(0, 0, 0, 1, 1, 1))

    assert lags.tolist() == [20, 20, 20, 0]


def test_a_population_of_few_takes_the_median_of_all() -> None:
    # Population 1 has gaps 10, 12, 20; population 2 one of 100: all together 16.
    start, end = ints(0, 0, 0, 0, 10, 12, 20, 100), ints(1, 1, 1, 1, 11, 13, 21, 101)

    lags = typical_lags(launches((0, 4), (1, 5), (2, 6), (3, 7)), start, end, ints(0, 0, 0, 0, 1, 1, 1, 2))

    assert lags.tolist() == [12, 12, 12, 16]


def test_a_lag_that_its_rule_fixes_stays() -> None:
    edges = make_edges(Why.STREAM_ORDER, Basis.RECORDED, [0], [1], lag_ns=7)

    assert typical_lags(edges, ints(0, 50), ints(10, 60), ints(1, 1)).tolist() == [7]


def test_work_that_starts_before_its_cause_has_no_negative_lag() -> None:
    start, end = ints(0, 5), ints(10, 8)
    edges = make_edges(Why.SYNC, Basis.INFERRED, [0], [1])

    lags = typical_lags(edges, start, end, ints(1, 0))
    residue = residues(edges, lags, start, end)

    assert (lags.tolist(), residue.tolist()) == ([0], [0, -5])


def test_the_latest_of_several_causes_gives_the_residue() -> None:
    start, end = ints(0, 0, 50), ints(20, 40, 60)
    edges = make_edges(Why.EVENT_WAIT, Basis.INFERRED, [0, 1], [2, 2], lag_ns=3)

    residue = residues(edges, ints(3, 3), start, end)

    assert residue.tolist() == [0, 0, 7]
