"""Each command line that the documentation tells a reader to type is run, or for make, looked up."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ("sample_traces", "docs", "tests")  # what a documented command may name, relative to the repository

BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXIT = re.compile(r"\s+# exit (\d+)\s*$")


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A line after a prompt, and the exit code that it should give (``# exit 3`` at its end, else 0)."""

    page: str
    text: str
    exit_code: int


def commands_in(markdown: str, page: str) -> list[CommandLine]:
    """The command lines in a page's console blocks; a backslash joins the next line."""
    blocks = [block.replace("\\\n", " ") for block in BLOCK.findall(markdown)]
    prompts = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [command_line(prompt, page) for prompt in prompts]


def command_line(prompt: str, page: str) -> CommandLine:
    marked = EXIT.search(prompt)
    return CommandLine(page, " ".join(EXIT.sub("", prompt).split()), int(marked[1]) if marked else 0)


def documented_commands(program: str) -> list[CommandLine]:
    """Each different documented call of a program."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [line for page in pages for line in commands_in(page.read_text(), page.relative_to(ROOT).as_posix())]
    return [line for line in dict.fromkeys(found) if shlex.split(line.text)[0] == program]


def title(line: CommandLine) -> str:
    return f"{line.page}: {line.text}"


@pytest.fixture
def reader_folder(tmp_path: Path) -> Path:
    """A folder that looks like the repository to a command, and takes what it writes."""
    for name in DATA:
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.mark.parametrize("line", documented_commands("tracereplay"), ids=title)
def test_documented_call_gives_the_exit_code_that_it_says(line: CommandLine, reader_folder: Path) -> None:
    words = shlex.split(line.text)
    if words[1] == "collect" and importlib.util.find_spec("torch") is None:
        pytest.skip("recording needs torch (extra `collect`)")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(reader_folder / "cache")}
    command = [sys.executable, "-P", "-m", *words]

    done = subprocess.run(command, cwd=reader_folder, env=environment, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == line.exit_code, done.stdout + done.stderr


@pytest.mark.parametrize("line", documented_commands("make"), ids=title)
def test_documented_make_target_exists(line: CommandLine) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert shlex.split(line.text)[1] in targets


def test_readme_shows_calls() -> None:
    assert {line.page for line in documented_commands("tracereplay")} >= {"README.md"}


def test_exit_mark_and_joined_lines_are_read() -> None:
    page = "text\n```console\n$ tracereplay gate a \\\n    b  # exit 1\nregression\n$ make test\n```\n"

    lines = commands_in(page, "page.md")

    assert lines == [CommandLine("page.md", "tracereplay gate a b", 1), CommandLine("page.md", "make test", 0)]
