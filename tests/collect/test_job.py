import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tracereplay.collectors.host import share_cores
from tracereplay.collectors.job import DlrmConfig, DlrmJob, SlowPeer
from tracereplay.collectors.order import WorkerOrder, read_order, write_order
from tracereplay.errors import UsageError

CONFIG = DlrmConfig(bottom=(13, 8, 4), top=(16, 1), dim=4, table_rows=(9,) * 5, poolings=(2,) * 5)
JOB = DlrmJob(CONFIG, ranks=2, batch_per_rank=3, warmup_steps=1, steps=2, seed=1)


def test_tables_that_do_not_divide_go_to_the_first_ranks() -> None:
    assert JOB.plan == (0, 0, 0, 1, 1)
    assert replace(JOB, ranks=4).plan == (0, 0, 1, 2, 3)


def test_interaction_pairs_every_table_and_the_dense_vector_once() -> None:
    # 5 tables and the dense vector are 6 vectors: 15 pairs beside the 4 dense numbers.
    assert CONFIG.interaction_width == 19


def test_only_the_slow_rank_is_delayed() -> None:
    job = replace(JOB, slow_peer=SlowPeer(rank=1, delay_ms=30))

    assert (job.delay_of(0), job.delay_of(1)) == (0.0, 0.03)


def test_an_order_survives_its_file(tmp_path: Path) -> None:
    job = replace(JOB, slow_peer=SlowPeer(rank=0, delay_ms=1.5))
    order = WorkerOrder(job, "out", "out/.partial", "store", ("node0", "node1"), cores=((0, 1), (2, 3)), launcher_pid=17)

    write_order(order, tmp_path / "order.json")

    assert read_order(tmp_path / "order.json") == order
    assert order.threads == 2


def test_ranks_that_share_cores_run_one_thread_each() -> None:
    assert WorkerOrder(JOB, "out", "out/.partial", "store", ("node0", "node1"), cores=(), launcher_pid=17).threads == 1


def test_each_rank_has_equally_many_cores_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {7, 2, 3, 5, 4})

    assert share_cores(2) == ((2, 3), (4, 5))
    assert share_cores(5) == ((2,), (3,), (4,), (5,), (7,))
    assert share_cores(6) == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ranks": 0}, "ranks is 0"),
        ({"steps": 0}, "steps is 0"),
        ({"warmup_steps": 0}, "warmup steps is 0"),
        ({"batch_per_rank": -1}, "batch per rank is -1"),
        ({"ranks": 6}, "6 ranks for 5 tables"),
        ({"slow_peer": SlowPeer(2, 1.0)}, "the ranks are 0 to 1"),
        ({"slow_peer": SlowPeer(1, 0.0)}, "the delay is 0.0 ms"),
        ({"slow_peer": SlowPeer(1, float("nan"))}, "the delay is nan ms"),
    ],
)
def test_a_job_that_cannot_run_is_a_usage_error(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        replace(JOB, **change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bottom": (13, 8, 5)}, "bottom ends with 5, but the embedding dimension is 4"),
        ({"bottom": (4,)}, "bottom has 1 width"),
        ({"top": (16, 2)}, "top ends with 2"),
        ({"top": ()}, "top holds"),
        ({"table_rows": (9, 9, 0, 9, 9)}, "rows holds"),
        ({"poolings": (2,)}, "1 pooling factors for 5 tables"),
    ],
)
def test_an_architecture_that_does_not_fit_is_a_usage_error(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        replace(CONFIG, **change)
