"""networkx's own tests of directed acyclic graphs, from the installed package, against our backend (see the plugin)."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from tests.fakes.networkx_plugin import CANNOT_APPLY, REPORT

ROOT = Path(__file__).parents[2]
NETWORKX = Path(nx.__file__).parent

# Counted with networkx 3.4.2 (69 tests) and 3.6.1 (67 tests).
AT_LEAST_ON_ARRAYS = 26
AT_LEAST_BY_CONVERSION = 22
# What a test is about that never comes to the backend; whatever else does not come is looked at before it is added here.
NOT_OURS = (
    r"undirected|_raise$|topological_sort4$",  # undirected graphs: refused before they are dispatched, or networkx's alone
    r"multi(di)?graph",  # parallel edges: our graph has none to show
)


@pytest.fixture(scope="module")
def tests(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What became of each of networkx's tests."""
    folder = tmp_path_factory.mktemp("networkx")
    settings, report = folder / "empty.ini", folder / "report.json"
    settings.write_text("[pytest]\n")
    plugins = [
        word for name in ("no:cacheprovider", "no:randomly", "no:xdist", "tests.fakes.networkx_plugin") for word in ("-p", name)
    ]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        str(settings),
        *plugins,
        str(NETWORKX / "algorithms/tests/test_dag.py"),
    ]
    # An empty text is networkx's word for "do not keep converted graphs".
    outside = {"PYTHONPATH": str(ROOT), REPORT: str(report), "NETWORKX_CACHE_CONVERTED_GRAPHS": ""}
    done = subprocess.run(command, cwd=folder, env=os.environ | outside, capture_output=True, text=True, check=False)
    assert report.exists(), done.stdout + done.stderr
    found: dict[str, dict[str, Any]] = json.loads(report.read_text())
    return found


def test_none_of_networkx_s_tests_fails(tests: dict[str, dict[str, Any]]) -> None:
    assert {name: t["detail"] for name, t in tests.items() if t["outcome"] == "failed"} == {}


def test_only_what_cannot_apply_is_left_out(tests: dict[str, dict[str, Any]]) -> None:
    skipped = {name.split("::")[-1] for name, t in tests.items() if t["outcome"] == "skipped"}

    assert skipped == set(CANNOT_APPLY)


def test_so_many_ran_on_the_arrays_and_by_conversion(tests: dict[str, dict[str, Any]]) -> None:
    passed = [t for t in tests.values() if t["outcome"] == "passed"]

    assert sum(t["on_arrays"] > 0 for t in passed) >= AT_LEAST_ON_ARRAYS
    assert sum(t["on_arrays"] == 0 and bool(t["converted"]) for t in passed) >= AT_LEAST_BY_CONVERSION


def test_what_never_came_to_the_backend_is_not_for_it(tests: dict[str, dict[str, Any]]) -> None:
    elsewhere = [n for n, t in tests.items() if t["outcome"] == "passed" and not t["on_arrays"] and not t["converted"]]

    assert [name for name in elsewhere if not any(re.search(pattern, name) for pattern in NOT_OURS)] == []
