"""The product against the machine's truth. ``TRACEREPLAY_TRUTH_SEEDS`` sets how many jobs of each variant are tried."""

import os

import pytest

from tests.truth.report import UNNAMED_GROUPS, VARIANTS, summed, try_seed

SEEDS = int(os.environ.get("TRACEREPLAY_TRUTH_SEEDS", "3"))
ENOUGH = 0.99
WITHIN = 0.02
ENOUGH_UNNAMED = 0.85


@pytest.mark.parametrize("variant", VARIANTS)
def test_edges_are_found_and_right_and_changes_have_their_true_effect(variant: str) -> None:
    row = summed(variant, [try_seed(seed, variant) for seed in range(SEEDS)])

    recalls = {kind: one.recall for kind, one in row.scores.items()}
    precisions = {kind: one.precision for kind, one in row.scores.items()}
    assert min(recalls.values()) >= ENOUGH, recalls
    if variant == UNNAMED_GROUPS:
        assert precisions.pop("collective") >= ENOUGH_UNNAMED
    assert min(precisions.values()) >= ENOUGH, precisions
    assert max(abs(error) for error in row.worst_errors.values()) <= WITHIN, row.worst_errors
    assert all(row.scores[kind].asked > 0 for kind in ("launch", "stream_order", "event_wait", "sync", "collective"))
