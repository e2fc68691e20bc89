"""Write what the pages show of the program: in, README.md and the pages here; out, the same with today's tables and outputs.

``python docs/render.py`` rewrites the pages, ``python docs/render.py --check`` only names those that are behind. What is
written: the tables between marks such as ``<!-- reasons -->`` and ``<!-- /reasons -->``, and below each ``$ tracereplay``
prompt that has output its output.
"""

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_origin

from pydantic import BaseModel

from tracereplay.cli.main import main
from tracereplay.graph.kinds import REASONS
from tracereplay.hardware.facts import Fact
from tracereplay.hardware.quantity import UNITS, Dimension
from tracereplay.hardware.schema import Accelerator, PlatformFile, model_in
from tracereplay.hardware.technology import NAMED, rate_of_link, rate_of_port

DOCS = Path(__file__).parent
TABLE = re.compile(r"(?P<mark><!-- (?P<name>[a-z]+) -->\n)(?P<table>.*?)(?=<!-- /(?P=name) -->)", re.DOTALL)
SHOWN = re.compile(
    r"(?P<prompt>^```console\n\$ tracereplay (?P<words>(?:[^\n]*\\\n)*[^\n]*)\n)(?P<output>(?!```|\$ ).*?)(?=^```$)",
    re.MULTILINE | re.DOTALL,
)
EXIT = re.compile(r"\s+# exit \d+\s*$")


def reasons_table() -> str:
    """The table of reasons as Markdown."""
    rows = [f"| `{r.kind.name.lower()}` | {r.reason} | {r.evidence} | `{r.rule}` |" for r in REASONS]
    return "\n".join(["| edge | why | what in the file shows it | rule |", "|---|---|---|---|", *rows]) + "\n"


def accelerator_fields() -> str:
    """What a file of an accelerator may hold, as Markdown."""
    return _fields(Accelerator)


def platform_fields() -> str:
    """What a file of a platform may hold, as Markdown."""
    return _fields(PlatformFile)


def _fields(model: type[BaseModel]) -> str:
    rows = [f"| `{key}` | {words} | {'required' if needed else 'optional'} |" for key, words, needed in _keys(model, "")]
    return "\n".join(["| key | holds | |", "|---|---|---|", *rows]) + "\n"


def _keys(model: type[BaseModel], above: str) -> Iterator[tuple[str, str, bool]]:
    """Keys of a section with what they hold; a section's own row says what it describes."""
    for name, field in model.model_fields.items():
        inner, key = model_in(field.annotation), f"{above}{field.alias or name}"
        if inner is None:
            continue  # a word that the file says of itself: the page's text has them
        if issubclass(inner, Fact):
            by_format = f"{key}.FORMAT" if get_origin(field.annotation) is dict else key
            yield by_format, re.sub(r"(?<=[a-z])(?=[A-Z])", " ", inner.__name__).lower(), field.is_required()
        else:
            yield key, " ".join((inner.__doc__ or "").replace("``", "`").split()), field.is_required()
            yield from _keys(inner, f"{key}.")


def units_table() -> str:
    """The units of hardware files as Markdown."""
    signs = {d: [f"`{unit.sign}`" for unit in UNITS.values() if unit.dimension is d] for d in Dimension}
    rows = [f"| {dimension} | {', '.join(found)} |" for dimension, found in signs.items()]
    return "\n".join(["| measures | units |", "|---|---|", *rows]) + "\n"


def technologies_table() -> str:
    """The link technologies whose rates are known as Markdown."""
    examples = ("pcie3-x16", "pcie4-x16", "pcie5-x16", "ethernet-100g", "infiniband-200g", "network-400g")
    rates = [(name, rate_of_link(name), rate_of_port(name)) for name in (*NAMED, *examples)]
    rows = [f"| `{name}` | {link.text() if link else ''} | {port.text() if port else ''} |" for name, link, port in rates]
    return "\n".join(["| technology | one link | all links of an accelerator |", "|---|---|---|", *rows]) + "\n"


TABLES = {
    "reasons": reasons_table,
    "accelerator": accelerator_fields,
    "platform": platform_fields,
    "units": units_table,
    "technologies": technologies_table,
}


def output_of(words: str) -> str:
    """What ``tracereplay`` prints for the words of a command line, errors included."""
    screen = io.StringIO()
    with contextlib.chdir(DOCS.parent), contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
        main(shlex.split(EXIT.sub("", words.replace("\\\n", " "))))
    return screen.getvalue()


def rendered(page: str) -> str:
    """A page with today's tables and outputs."""
    with_tables = TABLE.sub(lambda found: found["mark"] + TABLES[found["name"]](), page)
    return SHOWN.sub(lambda found: found["prompt"] + output_of(found["words"]), with_tables)


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
