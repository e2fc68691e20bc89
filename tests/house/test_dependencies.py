"""What pyproject.toml declares, what the code imports, what is pinned and what the documentation says agree."""

import ast
import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]

IMPORT_NAME = {"holistictraceanalysis": "hta"}  # where it is not the distribution's


def names_of(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(text).name) for text in requirements}


def pins_of(*files: str) -> dict[str, str]:
    text = "\n".join((ROOT / file).read_text() for file in files)
    return {canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==(\S+)$", text, re.MULTILINE)}


def imported_names() -> set[str]:
    """The top-level names that the product imports, the standard library and itself left out."""
    files = [path for folder in ("tracereplay", "collectors", "analyzers") for path in (ROOT / folder).rglob("*.py")]
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text()))]
    direct = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    source = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {name.split(".")[0] for name in direct | source} - set(sys.stdlib_module_names) - {"tracereplay"}


def requirements_of(name: str) -> set[str]:
    """What an installed distribution requires here without extras; nothing where it is not installed."""
    try:
        lines = importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        return set()
    wanted = [Requirement(line) for line in lines]
    return {canonicalize_name(r.name) for r in wanted if r.marker is None or r.marker.evaluate({"extra": ""})}


def closure(roots: set[str]) -> set[str]:
    """The roots and all that they need."""
    found: set[str] = set()
    new = roots
    while new:
        found |= new
        new = {need for name in new for need in requirements_of(name)} - found
    return found


def test_each_import_is_declared_and_each_declared_library_is_imported() -> None:
    extras = [line for name in ("collect", "hta", "lightning", "transformers") for line in EXTRAS[name]]
    declared = names_of(PROJECT["dependencies"] + extras) - {"accelerate"}  # transformers' Trainer imports it

    assert imported_names() == {IMPORT_NAME.get(name, name) for name in declared}


def test_each_dependency_has_its_line_in_the_documentation() -> None:
    page = (ROOT / "docs" / "design" / "dependencies.md").read_text()
    documented = {canonicalize_name(name) for name in re.findall(r"^\| \*\*([\w.-]+)\*\*", page, re.MULTILINE)}

    assert documented == names_of(PROJECT["dependencies"] + [line for extra in EXTRAS.values() for line in extra])


def test_each_needed_package_is_pinned() -> None:
    roots = names_of(PROJECT["dependencies"] + EXTRAS["test"] + EXTRAS["lint"] + EXTRAS["hta"])
    pinned = set(pins_of("constraints.txt", "constraints-hta.txt", "constraints-lowest.txt"))

    assert closure(roots) <= pinned


@pytest.mark.parametrize("part", ["core", "test"])
def test_lowest_versions_are_those_that_the_project_allows(part: str) -> None:
    wanted = PROJECT["dependencies"] if part == "core" else EXTRAS[part]
    bounds = {canonicalize_name(r.name): str(r.specifier) for r in map(Requirement, wanted)}
    lowest = pins_of("constraints-lowest.txt")

    assert bounds == {name: f">={lowest[name]}" for name in bounds}
