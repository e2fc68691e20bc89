"""Profilers of the script's own: in, torch's autograd profiler starting and ending; out, word of those that are not ours.

torch has room for one profiler in a process. A second one silently ends the first, so ours gives way.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch.autograd import profiler
from torch.autograd.profiler import profile as AutogradProfile  # noqa: N812 - torch names two classes ``profile``

_STARTS = ("_prepare_trace", "_start_trace")
_theirs: set[int] = set()
_own: set[int] = set()
_opening = False
_on_start: list[Callable[[], None]] = []


def watch() -> None:
    """Watch profilers from now on."""
    if hasattr(AutogradProfile, "_tracereplay"):
        return
    AutogradProfile._tracereplay = True  # type: ignore[attr-defined]
    for name in _STARTS:
        if hasattr(AutogradProfile, name):
            setattr(AutogradProfile, name, _announced(getattr(AutogradProfile, name)))
    AutogradProfile.__exit__ = _forgotten(AutogradProfile.__exit__)  # type: ignore[method-assign]


def before_theirs(give_way: Callable[[], None]) -> None:
    """Have ``give_way`` called before a profiler that is not ours starts."""
    watch()
    _on_start.append(give_way)


def is_active() -> bool:
    """Whether the script records itself now. torch's own flag tells of a profiler that began before ``watch``."""
    return bool(_theirs) or bool(getattr(profiler, "_is_profiler_enabled", False))


@contextmanager
def ours() -> Iterator[None]:
    """Profilers that are made ready in this block are ours."""
    global _opening  # noqa: PLW0603 - torch's profiler is one of a process, and so is this
    _opening = True
    try:
        yield
    finally:
        _opening = False


def _announced(start: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(start)
    def starting(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _opening:
            _own.add(id(self))
        elif id(self) not in _own:
            if id(self) not in _theirs:
                for give_way in _on_start:
                    give_way()
            _theirs.add(id(self))
        return start(self, *args, **kwargs)

    return starting


def _forgotten(leave: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(leave)
    def leaving(self: Any, *args: Any, **kwargs: Any) -> Any:
        _theirs.discard(id(self))
        _own.discard(id(self))
        return leave(self, *args, **kwargs)

    return leaving
