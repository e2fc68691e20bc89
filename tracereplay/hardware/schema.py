"""What a hardware file may hold: in, its TOML as a dictionary; out, a frozen description of an accelerator or a platform.

Keys follow the knobs of the contract: ``accelerator.hbm.bandwidth`` is ``hbm.bandwidth`` of the accelerator in a platform's
slots, ``fabric.scale_up.latency`` and ``host.link.bandwidth`` stand in the platform's own file. Peak and achievable values
are two fields. A field that must be there and that nobody published is there as ``unknown``.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from tracereplay.hardware.facts import (
    Clock,
    Count,
    Fact,
    Flops,
    Latency,
    Layout,
    Length,
    LinkRate,
    MemoryRate,
    Name,
    Pairs,
    Power,
    Side,
    Size,
)

SCHEMA: Final = "tracereplay/hardware/1"

Format = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8"]
PartName = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]


class Section(BaseModel):
    """A table of a hardware file: nothing but the keys that it knows."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Memory(Section):
    """A memory. A platform's is that of all its sockets together."""

    capacity: Size
    bandwidth: MemoryRate
    achievable: MemoryRate


class Cache(Section):
    """A cache on the chip."""

    capacity: Size
    achievable: MemoryRate | None = None


class Port(Section):
    """The links of one accelerator to its peers: how many, what one of them carries, and what all of them carry together.
    ``achievable`` is the bus bandwidth that collectives reached, ``switched`` the same with reductions in the switch.
    """

    technology: Name
    links: Count
    link_bandwidth: LinkRate
    bandwidth: LinkRate
    achievable: LinkRate
    switched: LinkRate | None = None


class HostPort(Section):
    """The link of one accelerator towards its host."""

    technology: Name
    bandwidth: LinkRate
    achievable: LinkRate


class Description(Section):
    """What every file begins with."""

    schema_: Annotated[Literal["tracereplay/hardware/1"], Field(alias="schema")]
    name: PartName
    title: str
    aliases: tuple[PartName, ...] = ()


class Accelerator(Description):
    """One accelerator. A format of numbers that ``flops`` leaves out is one for which the data sheet has no figure;
    ``vector_flops`` has those formats that matrix units run faster than the vector units do, where that does not show by
    itself. ``architecture``: accelerators of one architecture run the same kernels. ``compute_units``: SMs, CUs.
    """

    type: Literal["accelerator"]
    architecture: Name | None = None
    compute_units: Count | None = None
    process: Length | None = None
    flops: dict[Format, Flops]
    vector_flops: dict[Format, Flops] = {}
    achievable_flops: dict[Format, Flops] = {}
    hbm: Memory
    l2: Cache
    llc: Cache | None = None
    scale_up: Port | None = None
    host_link: HostPort | None = None
    power: Power | None = None
    clock: Clock | None = None


class Slots(Section):
    """The accelerators of a platform: which one stands in its slots (a catalogue name or a file), and how many there are."""

    model: Name
    count: Count


class Interconnect(Section):
    """Links between sockets: how many a socket has, how sockets are wired, what one link carries."""

    technology: Name
    layout: Layout
    links: Count
    bandwidth: LinkRate
    latency: Latency


class HostLink(HostPort):
    """The links between accelerators and sockets, for one accelerator; ``switches``: PCIe switches between the two, over which
    accelerators are spread in blocks; ``uplink``: what one switch has towards its socket.
    """

    latency: Latency
    switches: Count
    uplink: LinkRate


class Storage(Section):
    """Solid state disks."""

    count: Count
    capacity: Size
    bandwidth: MemoryRate


class Host(Section):
    """The host: sockets with their memories. ``cores`` are those of one socket. ``flops`` are those of all sockets together, as
    is ``lookup``, the bytes a second of pooled embedding lookups at random rows of tables that no cache holds; ``overhead`` is
    the host's time for one operator that has nothing to compute.
    """

    processor: Name
    sockets: Count
    cores: Count
    memory: Memory
    interconnect: Interconnect | None = None
    link: HostLink | None = None
    ssd: Storage | None = None
    flops: dict[Format, Flops] = {}
    achievable_flops: dict[Format, Flops] = {}
    lookup: MemoryRate | None = None
    overhead: Latency | None = None


class ScaleUp(Port):
    """The fabric between the accelerators of one node, or with technology ``loopback`` between the ranks on a host without any;
    ``pairs`` says which are wired where the layout does not, ``domain`` how many accelerators it joins where it reaches beyond
    the node.
    """

    layout: Layout
    latency: Latency
    pairs: Pairs | None = None
    domain: Count | None = None


class ScaleOut(Section):
    """The network between nodes: interfaces of one node, what one of them carries, where they are plugged in."""

    technology: Name
    nics: Count
    attached_to: Side
    bandwidth: LinkRate
    achievable: LinkRate
    latency: Latency


class FrontEnd(Section):
    """Interfaces for storage and input, which collectives do not use."""

    technology: Name
    nics: Count
    bandwidth: LinkRate


class Fabric(Section):
    """The networks of a platform."""

    scale_up: ScaleUp | None = None
    scale_out: ScaleOut
    front_end: FrontEnd | None = None


class PlatformFile(Description):
    """One node of a platform, as its file describes it."""

    type: Literal["platform"]
    accelerator: Slots | None = None
    host: Host
    fabric: Fabric


def fields_of(section: object, key: str = "") -> Iterator[tuple[str, Fact]]:
    """Each field of a description with its key, such as ``fabric.scale_up.latency``, in the order of the schema."""
    if isinstance(section, Fact):
        yield key, section
    elif isinstance(section, Section | dict):
        for name, value in dict(section).items():
            yield from fields_of(value, f"{key}.{name}" if key else name)


def model_in(annotation: Any) -> type[BaseModel] | None:  # what typing gives for an annotation has no common type
    """The one model in a key's annotation, such as ``Port | None`` or ``dict[Format, Flops]``; None where it holds none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := model_in(part)) is not None), None)
