"""Run by Python at the start of each process of a job that ``tracereplay collect run`` has started.

Its folder stands first in PYTHONPATH. It runs the ``sitecustomize`` that would have run without it, then has the job's
optimizers watched. Of tracereplay it makes that one package importable, not what is installed beside it: the job's own
libraries stay the job's.
"""

import importlib.machinery
import importlib.util
import os
import sys


class _Package:
    """Finds the package ``tracereplay`` in its folder, wherever the job's Python looks for modules."""

    folder = os.environ.get("TRACEREPLAY_PACKAGE", "")

    @classmethod
    def find_spec(cls, name: str, _path: object = None, _target: object = None) -> "importlib.machinery.ModuleSpec | None":
        if name != "tracereplay" or not cls.folder:
            return None
        file = os.path.join(cls.folder, "__init__.py")  # noqa: PTH118 - nothing is imported here that a job may not need
        return importlib.util.spec_from_file_location(name, file, submodule_search_locations=[cls.folder])


def _run_the_other() -> None:
    """Run the sitecustomize that this one hides."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as above
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]  # noqa: PTH100
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _watch() -> None:
    if not os.environ.get("TRACEREPLAY_JOB"):
        return
    sys.meta_path.insert(0, _Package)  # a class will do: it has no state
    try:
        from tracereplay.collectors.hook.install import install_from_environment  # noqa: PLC0415 - found by the line above

        install_from_environment()
    except Exception as error:  # noqa: BLE001 - the job goes on without a recording
        sys.stderr.write(f"tracereplay: this process is not recorded: {type(error).__name__}: {error}\n")


try:
    _run_the_other()
finally:
    _watch()
