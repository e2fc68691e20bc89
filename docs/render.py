"""Write what the pages show of the program: in, README.md and the pages here; out, the same with today's tables and outputs.

``python docs/render.py`` rewrites the pages, ``python docs/render.py --check`` only names those that are behind. What is
written: the table between ``<!-- reasons -->`` marks, and below each ``$ tracereplay`` prompt that has output its output.
"""

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

from tracereplay.cli.main import main
from tracereplay.graph.kinds import REASONS

DOCS = Path(__file__).parent
TABLE = re.compile(r"(?<=<!-- reasons -->\n).*?(?=<!-- /reasons -->)", re.DOTALL)
SHOWN = re.compile(
    r"(?P<prompt>^```console\n\$ tracereplay (?P<words>(?:[^\n]*\\\n)*[^\n]*)\n)(?P<output>(?!```|\$ ).*?)(?=^```$)",
    re.MULTILINE | re.DOTALL,
)
EXIT = re.compile(r"\s+# exit \d+\s*$")


def reasons_table() -> str:
    """The table of reasons as Markdown."""
    rows = [f"| `{r.kind.name.lower()}` | {r.reason} | {r.evidence} | `{r.rule}` |" for r in REASONS]
    return "\n".join(["| edge | why | what in the file shows it | rule |", "|---|---|---|---|", *rows]) + "\n"


def output_of(words: str) -> str:
    """What ``tracereplay`` prints for the words of a command line, errors included."""
    screen = io.StringIO()
    with contextlib.chdir(DOCS.parent), contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
        main(shlex.split(EXIT.sub("", words.replace("\\\n", " "))))
    return screen.getvalue()


def rendered(page: str) -> str:
    """A page with today's table and outputs."""
    with_table = TABLE.sub(lambda _: reasons_table(), page)
    return SHOWN.sub(lambda found: found["prompt"] + output_of(found["words"]), with_table)


def run(arguments: list[str]) -> int:
    """Rewrite the pages, or with ``--check`` say which are behind; the exit code is 1 if any was."""
    pages = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
    behind = [path for path in pages if rendered(path.read_text()) != path.read_text()]
    for path in behind:
        sys.stderr.write(f"{path.relative_to(DOCS.parent)} is behind\n")
        if "--check" not in arguments:
            path.write_text(rendered(path.read_text()))
    return 1 if behind else 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
