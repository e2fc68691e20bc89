"""Repair the text of one event that no JSON library accepts: in, bytes; out, valid JSON text and what was repaired.

The faults are those that exporters have made: raw control characters and invalid UTF-8 in names, backslashes and quotes
that nobody escaped, numbers that are not finite. Strings are never guessed at more than needed: each repair is tried only
where the text does not decode without it, and each is counted.
"""

import re
from dataclasses import dataclass

import msgspec

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.S)
_NOT_FINITE = re.compile(r"(?<![\w.])[-+]?(?:inf(?:inity)?|nan)(?![\w.])", re.I)
_CONTROL = re.compile(r"[\x00-\x1f]")
_LEGAL_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
# Finding the end of a value with bare quotes takes time that grows with the square of the text; names are far shorter.
_LONGEST_REQUOTED = 16 << 10
_KEYS = r"(?:ph|cat|name|pid|tid|ts|dur|args|id|s|bp|cname)"
# A value whose own quotes were not escaped ends at the last quote before the next key of an event or the closing brace.
_BARE_VALUE = re.compile(rf'("(?:name|cat)"\s*:\s*)"(.*?)"(?=\s*(?:,\s*"{_KEYS}"\s*:|\}}\s*$))', re.S)
_BARE_ARGUMENT = re.compile(r'("(?:[^"\\]|\\.)*"\s*:\s*)"(.*?)"(?=\s*(?:,\s*"(?:[^"\\]|\\.)*"\s*:|\}))', re.S)


@dataclass(frozen=True, slots=True)
class Repaired:
    """Valid JSON text of an event, and how many strings and numbers were repaired."""

    text: bytes
    strings: int
    nonfinite: int


def repair_event(raw: bytes) -> Repaired | None:
    """The repaired event, or None where it cannot be read at all."""
    text = raw.decode("utf-8", "replace")
    bad_strings = sum("\ufffd" in token for token in _STRING.findall(text)) if "\ufffd" in text else 0
    bad_strings -= sum(token.count("\ufffd") > 0 for token in _STRING.findall(raw.decode("utf-8", "ignore")))
    patterns = (None, _BARE_VALUE, _BARE_ARGUMENT) if len(text) <= _LONGEST_REQUOTED else (None,)
    for requote in patterns:
        candidate, quotes = (text, 0) if requote is None else _requote(requote, text)
        fixed, strings, nonfinite = _fix_tokens(candidate)
        encoded = fixed.encode("utf-8", "surrogatepass")
        if _is_object(encoded):
            return Repaired(encoded, max(bad_strings, 0) + max(strings, quotes), nonfinite)
    return None


def _fix_tokens(text: str) -> tuple[str, int, int]:
    """Escape inside strings, null for numbers outside of them that are not finite."""
    parts, strings, nonfinite, position = [], 0, 0, 0
    for match in _STRING.finditer(text):
        outside, found = _NOT_FINITE.subn("null", text[position : match.start()])
        token = _fix_string(match.group())
        strings += token != match.group()
        nonfinite += found
        parts += [outside, token]
        position = match.end()
    outside, found = _NOT_FINITE.subn("null", text[position:])
    return "".join([*parts, outside]), strings, nonfinite + found


def _fix_string(token: str) -> str:
    """One string token: a backslash that begins no legal escape makes the whole token literal; controls are escaped."""
    inside = token[1:-1]
    if "\\" in inside and "\\" in _LEGAL_ESCAPE.sub("", inside):
        inside = inside.replace('\\"', "\0").replace("\\", "\\\\").replace("\0", '\\"')
    return '"' + _CONTROL.sub(lambda m: f"\\u{ord(m.group()):04x}", inside) + '"'


def _requote(pattern: re.Pattern[str], text: str) -> tuple[str, int]:
    """Escape the bare quotes inside the values that a pattern finds."""
    count = 0

    def escape(match: re.Match[str]) -> str:
        nonlocal count
        inside = re.sub(r'(?<!\\)"', r"\\" + '"', match.group(2))
        count += inside != match.group(2)
        return f'{match.group(1)}"{inside}"'

    return pattern.sub(escape, text), count


def _is_object(encoded: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(encoded), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
