import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of public traces, which are not part of the repository; skips where it is absent."""
    folder = Path(os.environ.get("TRACEREPLAY_CORPUS", ROOT.parent / "shared" / "corpus"))
    if not folder.is_dir():
        absent = f"no corpus of public traces at {folder}; set TRACEREPLAY_CORPUS"
        if os.environ.get("TRACEREPLAY_REQUIRE_CORPUS") == "1":
            pytest.fail(absent)
        pytest.skip(absent)
    return folder
