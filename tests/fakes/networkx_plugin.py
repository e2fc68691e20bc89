"""A pytest plugin under which networkx's own tests run against our backend: in, the session; out, a JSON report a test.

networkx's switch for this (``NETWORKX_TEST_BACKEND``) needs scipy, which this project does without. So the tests take the
road of every user: the backend is given priority, networkx converts each graph for it, and what the backend cannot do falls
through to networkx. Which calls were answered on the arrays is counted, because falling through would otherwise look like
passing. Functions that are not on the arrays are answered by conversion for graphs of ours alone; here they are for any
graph that can become one of ours, so that the way there and back is tested too, and counted apart. No answer may hold a
numpy scalar, which is what networkx's switch checks as well.
"""

import functools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from tracereplay.graph import networkx_backend
from tracereplay.graph.networkx_info import ON_ARRAYS

REPORT = "NETWORKX_PLUGIN_REPORT"
CANNOT_APPLY = {
    "test_topological_sort6": "changes its graph while the sort runs; the arrays were made before",
}

_on_arrays: Counter[str] = Counter()
_converted: Counter[str] = Counter()
_tests: dict[str, dict[str, Any]] = {}


def _plain(value: Any) -> Any:
    """The value, unless it holds a numpy scalar."""
    assert not isinstance(value, np.generic), f"a numpy scalar: {value!r}"
    for inner in value if isinstance(value, list | tuple | set) else ():
        _plain(inner)
    return value


def _each_plain(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        yield _plain(value)


def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _on_arrays[name] += 1
        result = function(*args, **kwargs)
        return _each_plain(result) if isinstance(result, Iterator) else _plain(result)

    return call


def _by_conversion(name: str, *args: Any, **kwargs: Any) -> Any:
    _converted[name] += 1
    return _CONVERT(name, *args, **kwargs)


def _can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    apt = args and isinstance(args[0], nx.DiGraph) and not args[0].is_multigraph()
    return True if apt and name not in ON_ARRAYS else _CAN_RUN(name, args, kwargs)


_CONVERT, _CAN_RUN = networkx_backend._by_conversion, networkx_backend.can_run


def pytest_configure() -> None:
    for name in ON_ARRAYS:
        setattr(networkx_backend, name, _counted(name, getattr(networkx_backend, name)))
    networkx_backend._by_conversion = _by_conversion
    networkx_backend.Backend.can_run = staticmethod(_can_run)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name in CANNOT_APPLY:
            item.add_marker(pytest.mark.skip(reason=CANNOT_APPLY[item.name]))


def pytest_runtest_setup() -> None:
    _on_arrays.clear()
    _converted.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    with nx.config.backend_priority(algos=["tracereplay"]):
        return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        name = report.nodeid.split("::", 1)[1]
        _tests[name] = {
            "outcome": report.outcome,
            "on_arrays": sum(_on_arrays.values()),
            "converted": sorted(_converted),
            "detail": report.longreprtext,
        }


def pytest_sessionfinish() -> None:
    Path(os.environ[REPORT]).write_text(json.dumps(_tests))
