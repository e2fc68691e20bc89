"""The order that a calibration leaves for its workers: in, how thorough and how long; out, a file that each of them reads."""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path


class Phase(StrEnum):
    """ALONE: one process with all cores measures each device. TOGETHER: one process a rank, for collectives."""

    ALONE = "alone"
    TOGETHER = "together"


@dataclass(frozen=True, slots=True)
class CalibrationOrder:
    """What all ranks of a phase are told. ``budget_s``: how long they may measure; ``result``: the file that rank 0 writes;
    ``rendezvous``: a file that does not exist yet; ``cores``: those that each rank binds itself to, empty: none is bound.
    """

    phase: Phase
    ranks: int
    quick: bool
    budget_s: float
    result: str
    rendezvous: str
    cores: tuple[tuple[int, ...], ...]
    launcher_pid: int


def write_order(order: CalibrationOrder, path: Path) -> None:
    """Write ``order`` to ``path``."""
    path.write_text(json.dumps(asdict(order)))


def read_order(path: Path) -> CalibrationOrder:
    """The order that ``write_order`` wrote."""
    raw = json.loads(path.read_text())
    cores = tuple(tuple(of_rank) for of_rank in raw["cores"])
    return CalibrationOrder(**raw | {"phase": Phase(raw["phase"]), "cores": cores})
