"""How steps of a script that knows nothing of it are found: in, torch being imported; out, a recorder told of each step's end.

torch gives each class of optimizers the wrapper in which its global hooks run when the first one is made. This module puts
itself around that wrapper, because a hook runs inside the profiler's row of the optimizer: a step that ended in a hook would
cut that row in two.
"""

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from tracereplay.collectors.hook.order import VARIABLE, Order
from tracereplay.collectors.hook.steps import StepFinder

_OPTIMIZERS = "torch.optim.optimizer"


class StepWatch:
    """The calls of optimizers in this process. The recorder is made at the first one: a process that trains nothing has none.

    Only calls on the thread of the first one count, and a call within another's (an optimizer that wraps one) is that one's.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self._finder = StepFinder()
        self._recorder: Any = None  # a Recorder; its module imports torch, which is being imported when this is made
        self._thread: int | None = None
        self._depth = 0

    def around(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """An optimizer's ``step`` that tells when it is through."""

        @functools.wraps(step)
        def watched(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._counts():
                return step(optimizer, *args, **kwargs)
            self._depth += 1
            try:
                result = step(optimizer, *args, **kwargs)
            finally:
                self._depth -= 1
            if self._depth == 0:
                self._stepped(id(optimizer))
            return result

        return watched

    def _counts(self) -> bool:
        """Whether this is the thread that trains: the first Python thread that steps an optimizer. Optimizers that step
        within the backward pass do so on threads that autograd has made, which the threading module knows as dummies.
        """
        if self._thread is None and not isinstance(threading.current_thread(), threading._DummyThread):
            self._thread = threading.get_ident()
        return self._thread == threading.get_ident()

    def _stepped(self, optimizer: int) -> None:
        ended = self._finder.stepped(optimizer)
        if self._recorder is None:
            from tracereplay.collectors.hook.recorder import Recorder  # noqa: PLC0415 - see __init__

            self._recorder = Recorder(self._order)
            self._recorder.introduce()
        if ended:
            self._recorder.edge(self._finder.seen)


def install(order: Order) -> None:
    """Watch the optimizers of this process as soon as torch is imported."""
    module = sys.modules.get(_OPTIMIZERS)
    if module is not None:
        _wrap_optimizers(module, order)
    else:
        sys.meta_path.insert(0, _Finder(order))


def install_from_environment() -> None:
    """Install what the environment's order asks for; nothing where it holds none."""
    text = os.environ.get(VARIABLE)
    if text:
        install(Order.from_text(text))


def _wrap_optimizers(module: ModuleType, order: Order) -> None:
    watch, original = StepWatch(order), module.Optimizer.profile_hook_step

    @functools.wraps(original)
    def hooked(step: Callable[..., Any]) -> Callable[..., Any]:
        from tracereplay.collectors.hook import rivals  # noqa: PLC0415 - by now torch has been imported

        rivals.watch()
        return watch.around(original(step))

    module.Optimizer.profile_hook_step = staticmethod(hooked)


class _Finder(importlib.abc.MetaPathFinder):
    """Lets torch's module of optimizers be found as always, and wraps it when it has run."""

    def __init__(self, order: Order) -> None:
        self._order = order

    def find_spec(
        self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The real specification with our step after its last one; None for any other module."""
        if name != _OPTIMIZERS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_wrap(module: ModuleType) -> None:
            run(module)
            _wrap_optimizers(module, self._order)

        spec.loader.exec_module = run_and_wrap  # type: ignore[method-assign]
        return spec
