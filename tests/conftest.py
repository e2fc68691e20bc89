"""Fixtures that every folder of tests shares: where the corpus and the samples are, and whether golden files are rewritten."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files; give the reason in the commit")


@pytest.fixture(scope="session")
def samples() -> Path:
    """The traces that the project recorded itself."""
    return ROOT / "sample_traces"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of public traces; skipped where it is absent unless ``TRACEREPLAY_REQUIRE_CORPUS=1``."""
    folder = Path(os.environ.get("TRACEREPLAY_CORPUS", ROOT.parent / "shared" / "corpus"))
    if folder.is_dir():
        return folder
    if os.environ.get("TRACEREPLAY_REQUIRE_CORPUS") == "1":
        pytest.fail(f"TRACEREPLAY_REQUIRE_CORPUS=1, but there is no corpus at {folder}")
    pytest.skip(f"no corpus at {folder}")
