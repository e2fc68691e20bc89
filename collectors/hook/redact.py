"""Words of a command line and of the environment without their secrets: in, what a user typed; out, what may be written down.

Rules, each on its own: a word that is named like a secret hides its value, whichever way it is joined to it; a word that
looks like a credential is hidden wherever it stands; the value of an environment variable that is named like a secret is
hidden wherever it turns up. Too much hidden is a nuisance, too little a leak: where in doubt a rule hides.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

HIDDEN = "***"

_SECRET_WORDS = (
    "token|passw|passwd|pwd|passphrase|secret|api[-_.]?key|apikey|access[-_.]?key|private[-_.]?key|account[-_.]?key|auth|"
    "bearer|credential|cookie|session[-_.]?id|signature|sas|jwt|ssh[-_.]?key|license[-_.]?key|webhook|dsn|connection[-_.]?string"
)
# A name is secret where one of these is a part of it, or where it ends in ``key``: ``wandb_key``, ``KEY``.
_SECRET_NAME = re.compile(rf"(?:{_SECRET_WORDS})|(?:^|[-_.])(?:key|pass|pw|sig)$", re.IGNORECASE)
# These hold numbers of tokens and names of tokenizers, not tokens.
_HARMLESS_NAME = re.compile(
    r"tokeniz|(?:num|max|min|new|n|per|vocab|seq|total|train|eval|batch)[-_]?[a-z]*[-_]?tokens|tokens[-_](?:per|in)|"
    r"(?:pad|eos|bos|unk|cls|sep|mask)[-_]token|author",
    re.IGNORECASE,
)

_QUOTED = r"""\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"""
_NAMED_VALUE = re.compile(
    rf"""(?P<name>[A-Za-z_][\w.\-]*)(?P<join>["']?\s*(?:=|:(?!//))\s*)(?P<value>{_QUOTED}|["']?[^"'&,;}}\s][^"'&;}}\s]*)"""
)
# The same words within one word, as in ``bash -c "train --token abc"``.
_NAMED_NEXT = re.compile(rf"""(?<!\S)(?P<name>--?[A-Za-z][\w.\-]*)(?P<join>\s+)(?P<value>{_QUOTED}|(?!--)\S+)""")
_SHORT_NEXT = re.compile(rf"""(?<!\S)-p(?:\s+)?(?:{_QUOTED}|(?!-)\S+)""")
_USER_INFO = re.compile(r"(?P<scheme>[A-Za-z][\w+.\-]*://)\S*@")
_SCHEMED = re.compile(r"\b(?P<scheme>bearer|basic|digest|token)\s+[^\s\"',]+", re.IGNORECASE)
_SHAPES = re.compile(
    r"-----BEGIN[\s\S]+"  # PEM
    r"|\beyJ[\w-]{5,}(?:\.[\w-]*){1,4}"  # JSON web token
    r"|\b(?:AKIA|ASIA|AGPA|AROA|AIDA)[A-Z0-9]{12,}"  # AWS
    r"|\b(?:gh[opsur]_|github_pat_|glpat-|hf_|sk-|pk-|rk-|xox[a-z]-|ya29\.|AIza|npm_|pypi-|dop_v1_|SG\.|whsec_|wandb_v1_)[\w.-]{8,}"
    r"|\b[0-9a-fA-F]{32,}\b"  # keys in hexadecimal digits
)
# A run of base64 with small and capital letters and digits; words of paths, names and versions are split by - . / or _.
_DENSE = re.compile(r"(?<![\w+/-])(?=[^\s]*[a-z])(?=[^\s]*[A-Z])(?=[^\s]*\d)[A-Za-z0-9+/]{32,}={0,2}(?![\w+-])")
_OPTION = re.compile(r"--?[A-Za-z][\w.\-]*")
_ASSIGNED = re.compile(r"[-+~]*(?P<name>[A-Za-z_][\w.\-]*)=(?P<value>.+)", re.DOTALL)
_SHORT_PASSWORD = re.compile(r"-p(?P<value>.*)", re.DOTALL)

_WORKING_FOLDERS = {"PWD", "OLDPWD"}  # no passwords
_SHORTEST_VALUE = 6  # an environment's secret shorter than this is too likely to be an ordinary word as well

# What a run's speed depends on; no other variable is written down.
_ENVIRONMENT = re.compile(
    r"(?:NCCL|RCCL|TORCH|PYTORCH|CUDA|HIP|ROCR|HSA|OMP|KMP|MKL|GOMP|GLOO|UCX|FI|DNNL|ONEDNN|OPENBLAS|TORCHINDUCTOR|XLA)_\w+"
    r"|(?:LOCAL_)?WORLD_SIZE|MALLOC_CONF"
)


def is_secret_name(name: str) -> bool:
    """Whether what goes by ``name`` is a secret."""
    return _SECRET_NAME.search(name) is not None and _HARMLESS_NAME.search(name) is None


def redacted_command(words: Sequence[str], environment: Mapping[str, str] | None = None) -> list[str]:
    """The words of a command line, as many as came in, secrets replaced by ``***``; the home folder is written ``~``."""
    known = _known_secrets(os.environ if environment is None else environment)
    shown: list[str] = []
    hide_next = False
    for word in words:
        is_option = _OPTION.fullmatch(word) is not None
        if hide_next and not (is_option and word.startswith("--")):
            shown.append(HIDDEN)
            hide_next = False
            continue
        short = _SHORT_PASSWORD.fullmatch(word)
        if short is not None:
            shown.append(f"-p{HIDDEN}" if short["value"] else "-p")
            hide_next = not short["value"]
            continue
        hide_next = is_option and is_secret_name(word)
        shown.append(redacted_text(word, known))
    return shown


def redacted_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Those variables that a run's speed depends on, without secrets and without those that name places."""
    known = _known_secrets(environment)
    kept = {name: value for name, value in environment.items() if _ENVIRONMENT.fullmatch(name) and not is_secret_name(name)}
    return {name: redacted_text(value, known) for name, value in sorted(kept.items()) if "/" not in value}


def redacted_text(text: str, known: Iterable[str] = ()) -> str:
    """One word without secrets; ``known`` are secrets that are hidden wherever they stand."""
    for value in known:
        text = text.replace(value, HIDDEN)
    text = _USER_INFO.sub(rf"\g<scheme>{HIDDEN}@", text)
    text = _SCHEMED.sub(rf"\g<scheme> {HIDDEN}", text)
    whole = _ASSIGNED.fullmatch(text)
    if whole is not None and is_secret_name(whole["name"]):
        return text[: whole.start("value")] + HIDDEN
    for rule in (_NAMED_NEXT, _NAMED_VALUE):
        text = rule.sub(_hide_named, text)
    if " " in text:
        text = _SHORT_NEXT.sub(f"-p {HIDDEN}", text)
    text = _DENSE.sub(HIDDEN, _SHAPES.sub(HIDDEN, text))
    home = str(Path.home())
    return re.sub(rf"{re.escape(home)}(?=/|$)", "~", text) if len(home) > 1 else text


def _hide_named(found: "re.Match[str]") -> str:
    return f"{found['name']}{found['join']}{HIDDEN}" if is_secret_name(found["name"]) else found[0]


def _known_secrets(environment: Mapping[str, str]) -> list[str]:
    """Values of variables named like secrets, the longest first."""
    named = {value for name, value in environment.items() if is_secret_name(name) and name not in _WORKING_FOLDERS}
    return sorted((value for value in named if len(value) >= _SHORTEST_VALUE), key=len, reverse=True)
