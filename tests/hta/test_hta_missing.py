import sys

import pytest

from tracereplay.analyzers.hta_check import hta_temporal_breakdown
from tracereplay.errors import UsageError


def test_without_hta_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hta.analyzers.breakdown_analysis", None)

    with pytest.raises(UsageError, match=r"install tracereplay\[hta\]"):
        hta_temporal_breakdown({})
