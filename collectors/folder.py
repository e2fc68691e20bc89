"""The folder of a recording: in, its path; out, the folder for this collector alone, and nothing in it that is another's."""

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tracereplay.collectors.hook.asking import clear as clear_asked
from tracereplay.collectors.hook.parts import PARTS
from tracereplay.collectors.lab_platform import FILE_NAME as PLATFORM
from tracereplay.errors import CollectError
from tracereplay.manifest import FILE_NAME

_OWN_TRACE = re.compile(r"rank\d+\.json\.gz")
_ANY_TRACE = re.compile(r".*\.json(\.gz|\.zst|\.zip)?")
# What a collector that was killed may have left: parts of a manifest, half-written files.
_LEFT_OVER = re.compile(r"\.partial-.*")
# Folders within: recordings on demand, and of processes without a rank.
_WITHIN = re.compile(r"\d+|pid\d+")


@contextmanager
def taken(folder: Path, *, force: bool) -> Iterator[None]:
    """Make ``folder`` ready and keep other collectors out of it; with ``force`` an earlier recording in it goes.

    The lock is the operating system's and ends with this process, however that ends.

    Raises:
        CollectError: another collector records there now, an earlier recording is there, or it cannot be written.
    """
    with _named(folder):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with _named(folder):
            _lock(descriptor, folder)
            _refuse_or_remove(folder, force=force)
        yield
    finally:
        os.close(descriptor)


def clear_left_over(folder: Path) -> None:
    """Remove what is neither trace nor manifest and only served to make them."""
    for entry in list(folder.iterdir()):
        if _LEFT_OVER.fullmatch(entry.name) or entry.name == PARTS:
            shutil.rmtree(entry, ignore_errors=True)
    clear_asked(folder)


def recordings_in(folder: Path) -> list[Path]:
    """``folder`` and the folders of further recordings in it."""
    within = sorted((entry for entry in folder.iterdir() if entry.is_dir() and _WITHIN.fullmatch(entry.name)), key=_number)
    return [folder, *within, *(deeper for entry in within for deeper in recordings_in(entry)[1:])]


def _number(folder: Path) -> tuple[int, str]:
    return int(folder.name) if folder.name.isdigit() else 0, folder.name


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
            raise CollectError(
                "another collector records into this folder", where=str(folder), hint="choose another --out"
            ) from error
        # A file system without locks: traces still never replace one another.


def _refuse_or_remove(folder: Path, *, force: bool) -> None:
    """Nothing of an earlier recording stays, with ``force`` only; what is not a collector's stays in any case."""
    names = sorted(path.name for path in folder.iterdir() if _ANY_TRACE.fullmatch(path.name))
    further = recordings_in(folder)[1:]
    names += [(place / name).relative_to(folder).as_posix() for place in further for name in _own_names(place)]
    if names and not force:
        raise CollectError(
            f"the folder already holds {names[0]}", where=str(folder), hint="choose another --out or pass --force"
        )
    for place in [folder, *reversed(further)]:
        for name in _own_names(place):
            (place / name).unlink()
        clear_left_over(place)
        with suppress(OSError):  # it holds what is not ours; of ``folder`` only the contents go
            if place != folder:
                place.rmdir()


def _own_names(place: Path) -> list[str]:
    mine = {FILE_NAME, PLATFORM}
    return sorted(path.name for path in place.iterdir() if path.name in mine or _OWN_TRACE.fullmatch(path.name))


@contextmanager
def _named(folder: Path) -> Iterator[None]:
    """Say of what the operating system refuses that it was about this folder."""
    try:
        yield
    except OSError as error:
        raise CollectError(f"cannot write there ({error.strerror})", where=str(folder), hint="choose another --out") from error
