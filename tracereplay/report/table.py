"""Tables and pages of text: in, titles and rows of words; out, text of a fixed width."""

import io
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

WIDTH = 110


def table(head: Sequence[str], rows: Iterable[Sequence[str]], total: int | None = None, left: Sequence[int] = (0,)) -> str:
    """Rows under their titles; ``total``: how many there are where not all are given.

    The first column is aligned to the left, the others to the right, except those in ``left``.
    """
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for position, title in enumerate(head):
        drawn.add_column(title, justify="left" if position in left else "right", no_wrap=True)
    shown = 0
    for row in rows:
        drawn.add_row(*row)
        shown += 1
    out = io.StringIO()
    Console(file=out, width=WIDTH, color_system=None, legacy_windows=False).print(drawn)
    hidden = (total or shown) - shown
    more = f"\n… and {hidden} more: see --json" if hidden > 0 else ""
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().split("\n")) + more


def page(blocks: Sequence[str]) -> str:
    """Blocks with an empty line between them."""
    return "\n\n".join(blocks) + "\n"
