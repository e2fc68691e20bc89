"""Recordings of a job on demand: in, somebody who asks from outside; out, steps at which all ranks begin and end together.

Each recording has a numbered folder in the job's. Whoever asks makes it. Ranks look for it at each step's end. The first one
to see it proposes a step somewhat later, by making a file that can be made only once; the others read that file in time.
"""

import json
import math
import os
from pathlib import Path

from tracereplay.collectors.hook.publish import write_json

_ASKED = ".asked.json"
_START = ".start"
_STOP = ".stop"
_STOP_AT = ".stop-at"

# Between a proposal and its step each rank has to have seen it: at least two steps, and time for a file to get around.
_LEAST_STEPS = 2
_TIME_NS = 10**9


def ask(folder: Path, steps: int) -> Path:
    """Ask the job that records into ``folder`` for the next ``steps`` steps; the folder that they will be in.

    Raises:
        OSError: the folder cannot be written.
    """
    number = 1
    while True:
        window = folder / str(number)
        try:
            window.mkdir()
            break
        except FileExistsError:
            number += 1
    write_json({"steps": steps}, window / _ASKED)
    return window


def ask_to_stop(window: Path) -> None:
    """Ask for the end of a recording before it is full."""
    (window / _STOP).touch()


def asked_steps(window: Path) -> int | None:
    """How many steps are asked for in ``window``; None where nobody asks yet."""
    if not os.path.exists(window / _ASKED):  # noqa: PTH110 - looked for in each step; half the time of Path.exists
        return None
    return int(json.loads((window / _ASKED).read_bytes())["steps"])


def agreed_start(window: Path, number: int, step_ns: int) -> int:
    """The first step of the recording, the same on all ranks that see it in time; ``step_ns`` is what a step takes here."""
    return _agreed(window / _START, number + _margin(step_ns))


def agreed_stop(window: Path, number: int, step_ns: int) -> int | None:
    """The step before which the recording ends; None where nobody has asked for that."""
    if not os.path.exists(window / _STOP):  # noqa: PTH110 - as above
        return None
    return _agreed(window / _STOP_AT, number + _margin(step_ns))


def clear(window: Path) -> None:
    """Remove what was said about a recording, when it is over."""
    for name in (_ASKED, _START, _STOP, _STOP_AT):
        (window / name).unlink(missing_ok=True)


def _margin(step_ns: int) -> int:
    return _LEAST_STEPS + math.ceil(_TIME_NS / max(step_ns, 1))


def _agreed(file: Path, proposal: int) -> int:
    """What is in ``file``, which holds the first proposal that was made."""
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    draft.write_text(str(proposal))
    try:
        os.link(draft, file)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return int(file.read_text())
