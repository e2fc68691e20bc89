"""Which rank this process is: in, torch.distributed and what launchers leave in the environment; out, a Place."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Rank and world as torchrun, Open MPI, MPICH and Intel MPI, MVAPICH2 and Slurm name them, the most specific first.
_VARIABLES = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
_LOCAL_RANK = "LOCAL_RANK"


@dataclass(frozen=True)
class Place:
    """A rank of a world; ``backend`` is that of the collectives, ``source`` what told the rank."""

    rank: int
    world: int
    backend: str
    source: str


def find_place(environment: Mapping[str, str] = os.environ) -> Place:
    """The place of this process. A process that nobody gave a rank is rank 0 of 1."""
    told = _from_distributed()
    if told is not None:
        return told
    for rank_name, world_name in _VARIABLES:
        rank, world = (environment.get(name, "") for name in (rank_name, world_name))
        if rank.isdigit():
            size = int(world) if world.isdigit() else int(rank) + 1
            return Place(int(rank), max(size, int(rank) + 1), "none", rank_name)
    local = environment.get(_LOCAL_RANK, "")
    if local.isdigit():
        return Place(int(local), int(local) + 1, "none", _LOCAL_RANK)
    return Place(0, 1, "none", "none")


def _from_distributed() -> Place | None:
    """What torch.distributed says, where the job has initialised it; it is not imported for that."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return Place(distributed.get_rank(), distributed.get_world_size(), str(distributed.get_backend()), "torch.distributed")
