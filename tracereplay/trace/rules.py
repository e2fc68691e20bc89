"""Rules of a user's own for the classifier: in, a TOML file; out, patterns that are asked before the built-in ones.

# rules.toml
[[kernel]]
class = "collective"
pattern = "^my_allreduce"          # a regular expression, searched in the name
collective = "all_reduce"          # for class collective: what it is

[[operator]]
class = "embedding"
pattern = "^mylib::lookup"
"""

import re
import tomllib
from pathlib import Path
from typing import Any

from tracereplay.errors import UsageError
from tracereplay.trace.classify import CLASS_NAMES, COLLECTIVE_NAMES, UserRules, WorkClass

_KINDS = ("kernel", "operator")
_KEYS = {"class", "pattern", "collective"}


def read_rules(path: Path) -> UserRules:
    """The rules of a file.

    Raises:
        UsageError: unreadable, not TOML, an unknown key, class or collective, or a pattern that is no regular expression;
            the message names the rule.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the rules ({error.strerror})", where=str(path), hint="check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"rules are not TOML ({error})", where=str(path), hint="see docs/how-to/read-any-trace.md") from error
    unknown = sorted(set(document) - set(_KINDS))
    if unknown:
        raise UsageError(f"no rules of kind {unknown[0]!r}", where=str(path), hint=f"kinds are {', '.join(_KINDS)}")
    parts = {kind: _rules(document.get(kind, []), kind, path) for kind in _KINDS}
    collectives = tuple((name, pattern) for rules in parts.values() for _, pattern, name in rules if name)
    return UserRules(
        kernels=tuple((work, pattern) for work, pattern, _ in parts["kernel"]),
        operators=tuple((work, pattern) for work, pattern, _ in parts["operator"]),
        collectives=collectives,
    )


def _rules(rows: Any, kind: str, path: Path) -> list[tuple[WorkClass, re.Pattern[str], str | None]]:
    if not isinstance(rows, list):
        raise UsageError(f"[{kind}] is no list of rules", where=str(path), hint=f"write [[{kind}]]")
    return [_rule(row, f"[[{kind}]] number {number}", path) for number, row in enumerate(rows, 1)]


def _rule(row: Any, place: str, path: Path) -> tuple[WorkClass, re.Pattern[str], str | None]:
    where = f"{path}, {place}"
    if not isinstance(row, dict) or not set(row) <= _KEYS or not {"class", "pattern"} <= set(row):
        raise UsageError(
            "a rule has class, pattern and perhaps collective", where=where, hint="see docs/how-to/read-any-trace.md"
        )
    if row["class"] not in CLASS_NAMES:
        raise UsageError(f"no class {row['class']!r}", where=where, hint=f"classes are {', '.join(CLASS_NAMES)}")
    name = row.get("collective")
    if name is not None and name not in COLLECTIVE_NAMES:
        raise UsageError(f"no collective {name!r}", where=where, hint=f"collectives are {', '.join(COLLECTIVE_NAMES)}")
    try:
        pattern = re.compile(str(row["pattern"]))
    except re.error as error:
        raise UsageError(
            f"pattern {row['pattern']!r} is no regular expression ({error})", where=where, hint="escape it"
        ) from error
    return CLASS_NAMES[row["class"]], pattern, name
