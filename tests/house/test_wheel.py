import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINKED = ("analyzers", "collectors")


@pytest.fixture(scope="module")
def wheel_files(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The files of the wheel that is built from the sdist, as a user's installer would build it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    build = subprocess.run(command, capture_output=True, text=True, check=False)
    assert build.returncode == 0, build.stdout + build.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def source_files() -> set[str]:
    """The package's files where the wheel has to have them: linked folders stand inside ``tracereplay``."""
    own = {path.relative_to(ROOT) for path in (ROOT / "tracereplay").rglob("*")}
    linked = {Path("tracereplay") / path.relative_to(ROOT) for folder in LINKED for path in (ROOT / folder).rglob("*")}
    return {path.as_posix() for path in own | linked if path.suffix in {".py", ".toml", ".typed"}}


def test_wheel_owns_one_import_name(wheel_files: set[str]) -> None:
    tops = {name.split("/")[0] for name in wheel_files}

    assert {top for top in tops if not top.endswith(".dist-info")} == {"tracereplay"}


def test_wheel_holds_each_module_and_data_file_and_no_other(wheel_files: set[str]) -> None:
    shipped = {name for name in wheel_files if name.startswith("tracereplay/")}

    assert shipped == source_files()


def test_wheel_holds_the_licence(wheel_files: set[str]) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel_files)


@pytest.mark.parametrize("folder", LINKED)
def test_top_level_folder_is_linked_into_the_package(folder: str) -> None:
    link = ROOT / "tracereplay" / folder

    assert link.is_symlink()
    assert link.readlink() == Path("..") / folder
