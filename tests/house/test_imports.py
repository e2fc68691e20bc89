import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# What the command line's help must not load: seconds of import, or an extra that is not installed.
HELP_OF_EACH_VERB = """
import sys
from typer.main import get_command
from tracereplay.cli.main import app

def verbs(command, path=()):
    yield path
    for name, child in sorted(getattr(command, "commands", {}).items()):
        yield from verbs(child, (*path, name))

program = get_command(app)
for path in verbs(program):
    try:
        program.main([*path, "--help"], prog_name="tracereplay")
    except SystemExit as stop:
        assert not stop.code, (path, stop.code)
    loaded = {"torch", "hta", "pandas"} & set(sys.modules)
    if loaded:
        sys.exit(f"tracereplay {' '.join(path)} --help imports {loaded}")
"""

EACH_MODULE_ALONE = """
import importlib, pkgutil, sys
import tracereplay

optional = ("torch", "hta", "lightning", "transformers")
names = [module.name for module in pkgutil.walk_packages(tracereplay.__path__, "tracereplay.")]
for name in names:
    if name == "tracereplay.__main__":
        continue
    for loaded in [key for key in sys.modules if key.split(".")[0] == "tracereplay"]:
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in optional:
            raise
print(len(names))
"""


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_help_of_the_program_and_of_each_verb_loads_nothing_heavy() -> None:
    done = run_python(HELP_OF_EACH_VERB)

    assert done.returncode == 0, done.stderr


def test_package_itself_imports_nothing() -> None:
    done = run_python("import sys; before = set(sys.modules); import tracereplay; print(set(sys.modules) - before)")

    assert done.stdout.strip() == "{'tracereplay'}"


def test_networkx_loads_nothing_of_ours_for_knowing_of_our_backend() -> None:
    done = run_python(
        "import networkx, sys; assert 'tracereplay' in networkx.utils.backends.backend_info;"
        "print(sorted({'numpy', 'numba', 'pyarrow', 'tracereplay.graph.model'} & set(sys.modules)))"
    )

    assert done.stdout.strip() == "[]", done.stderr


def test_each_module_can_be_the_first_one_imported() -> None:
    done = run_python(EACH_MODULE_ALONE)

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


@pytest.mark.parametrize("stage", ["trace", "graph", "hardware", "replay", "analyzers", "report"])
def test_stage_loads_without_torch_and_hta(stage: str) -> None:
    block = "import sys; sys.modules['torch'] = None; sys.modules['hta'] = None\n"
    walk = f"""
import importlib, pkgutil
import tracereplay.{stage} as stage
for module in pkgutil.walk_packages(stage.__path__, stage.__name__ + "."):
    importlib.import_module(module.name)
"""

    done = run_python(block + walk)

    assert done.returncode == 0, done.stderr
