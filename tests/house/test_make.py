import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def phony_targets() -> set[str]:
    (line,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return set(line.split())


def test_help_lists_each_target() -> None:
    command = ["make", "--no-print-directory", "help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    listed = {line.split()[0] for line in done.stdout.splitlines()}

    assert listed == phony_targets()


def test_ci_script_runs_as_it_is_and_stops_at_the_first_failure() -> None:
    script = ROOT / ".ci" / "run"
    text = script.read_text()

    assert os.access(script, os.X_OK)
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in text
    assert "make test" in text
