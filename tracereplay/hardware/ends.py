"""Hardware at the ends of what its file assumes: in, a description and an end; out, the same with each assumed rate there."""

from typing import Final, TypeVar

from pydantic import BaseModel

from tracereplay.hardware.facts import LinkRate, Measure, MemoryRate
from tracereplay.hardware.schema import Accelerator, Host

# The ends of a fact's range.
LOW, HIGH = 0, 1
_RATES: Final = (LinkRate, MemoryRate)
_Model = TypeVar("_Model", bound=BaseModel)
_Fact = TypeVar("_Fact", bound=Measure)


def accelerator_at_end(accelerator: Accelerator, end: int) -> Accelerator:
    """The accelerator with each assumed rate at the low or the high end of its range; itself where none is assumed."""
    rates = {"flops": accelerator.flops, "vector_flops": accelerator.vector_flops}
    assumed = [fact for table in rates.values() for fact in table.values() if fact.range is not None]
    if not assumed and accelerator.hbm.bandwidth.range is None:
        return accelerator
    tables = {name: {key: _taken(fact, end) for key, fact in table.items()} for name, table in rates.items()}
    hbm = accelerator.hbm.model_copy(update={"bandwidth": _taken(accelerator.hbm.bandwidth, end)})
    return accelerator.model_copy(update={**tables, "hbm": hbm})


def host_at_end(host: Host, end: int) -> Host:
    """The host with the rates of its memories, links and disks there; itself where none of them is assumed."""
    return _section_at_end(host, end)


def _section_at_end(section: _Model, end: int) -> _Model:
    changed = {}
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, _RATES):
            other: object = _taken(value, end)
        elif isinstance(value, BaseModel) and not isinstance(value, Measure):
            other = _section_at_end(value, end)
        else:
            continue
        if other is not value:
            changed[name] = other
    return section.model_copy(update=changed) if changed else section


def _taken(fact: _Fact, end: int) -> _Fact:
    if fact.range is None:
        return fact
    return fact.model_copy(update={"value": fact.range[end], "kind": "derived", "range": None})
