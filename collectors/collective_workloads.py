"""Collectives over torch.distributed: in, a group of ranks and a size; out, pieces of work with their code.

Sizes and bus bandwidth are those of nccl-tests (doc/PERFORMANCE.md): the size is that of the largest buffer of a rank, and the
bus bandwidth is size / time times 2(n-1)/n for an all-reduce, (n-1)/n for all-gather, reduce-scatter and all-to-all, 1 else.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist

from tracereplay.collectors.device import Device, Run
from tracereplay.collectors.measurement import Parameters, Work

# What a platform needs comes first.
NAMES = ("send_recv", "all_reduce", "all_to_all", "all_gather", "reduce_scatter", "broadcast")
_QUICK_SIZES = (2**10, 2**16, 2**20, 2**24)
_SIZES = tuple(2**power for power in range(10, 27, 2))

# Newer torch calls them so and warns of the older names.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


@dataclass(frozen=True, slots=True)
class Group:
    """Ranks 0 to ``ranks`` - 1 of the run; ``handle`` is torch's; ``me`` this process's rank, a member."""

    handle: dist.ProcessGroup
    ranks: int
    me: int
    backend: str


def group_sizes(ranks: int) -> tuple[int, ...]:
    """How many ranks take part: the powers of two, and all."""
    return tuple(sorted({2**power for power in range(1, ranks.bit_length()) if 2**power <= ranks} | {ranks}))


def sizes(*, quick: bool) -> tuple[int, ...]:
    """Bytes of the largest buffer."""
    return _QUICK_SIZES if quick else _SIZES


def bus_factor(name: str, ranks: int) -> float:
    """Bus bandwidth of a collective over its size divided by its time."""
    if name == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if name in {"all_to_all", "all_gather", "reduce_scatter"} else 1.0


def work_of(name: str, size: int, group: Group) -> Work:
    """The work of a collective of about ``size`` bytes: a whole number of float32 numbers for each rank."""
    whole = _numbers(size, group.ranks) * 4
    parameters: Parameters = {"bytes": whole, "ranks": group.ranks, "backend": group.backend}
    return Work("collective", name, "fabric", "fp32", parameters, "B/s", whole * bus_factor(name, group.ranks))


def _numbers(size: int, ranks: int) -> int:
    return max(size // 4 // ranks, 1) * ranks


def prepare(name: str, size: int, group: Group, device: Device) -> Run:
    """The code that every member of the group runs."""
    numbers = _numbers(size, group.ranks)
    # Zeros stay zeros, however often they are summed.
    whole, part = (torch.zeros(n, device=device.where) for n in (numbers, numbers // group.ranks))
    other = torch.zeros_like(whole)
    handle = group.handle
    code: dict[str, Callable[[], object]] = {
        "all_reduce": lambda: dist.all_reduce(whole, group=handle),
        "all_to_all": lambda: dist.all_to_all_single(other, whole, group=handle),
        "all_gather": lambda: _all_gather(whole, part, group=handle),
        "reduce_scatter": lambda: _reduce_scatter(part, whole, group=handle),
        "broadcast": lambda: dist.broadcast(whole, src=0, group=handle),
        "send_recv": lambda: _there_and_back(whole, group),
    }
    return code[name]


def _there_and_back(message: torch.Tensor, group: Group) -> None:
    """From rank 0 to rank 1 and back; others have no part in it."""
    if group.me == 0:
        dist.send(message, dst=1, group=group.handle)
        dist.recv(message, src=1, group=group.handle)
    elif group.me == 1:
        dist.recv(message, src=0, group=group.handle)
        dist.send(message, dst=0, group=group.handle)
