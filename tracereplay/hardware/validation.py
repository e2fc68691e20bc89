"""Whether a hardware file is in order: in, a file; out, how far it is known, or all that is wrong with it."""

from dataclasses import dataclass

from tracereplay.hardware.checks import Fault, unchecked
from tracereplay.hardware.load import faults_of, load
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.summary import Known, known


@dataclass(frozen=True, slots=True)
class Verdict:
    """A file with its faults; without any, its name, type and how far it is known. ``unchecked``: link bandwidths whose
    technology has no known nominal rate, so that a slip in their unit would not show.
    """

    file: str
    valid: bool
    name: str | None
    type: str | None
    known: Known | None
    unchecked: tuple[str, ...]
    faults: tuple[Fault, ...]


def validate(name_or_file: str) -> Verdict:
    """The verdict on a file, or on an entry of the catalogue.

    Raises:
        UsageError: no such name in the catalogue.
    """
    faults = faults_of(name_or_file)
    if faults:
        return Verdict(name_or_file, False, None, None, None, (), tuple(faults))
    entry = load(name_or_file)
    description = entry.description if isinstance(entry, Platform) else entry
    return Verdict(name_or_file, True, description.name, description.type, known(entry), tuple(unchecked(description)), ())
