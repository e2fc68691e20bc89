"""A platform ready for use: in, its description and the accelerator in its slots; out, its topology."""

from dataclasses import dataclass, replace

import networkx as nx

from tracereplay.errors import HardwareError, UsageError
from tracereplay.hardware.cluster import Cluster, join
from tracereplay.hardware.facts import Count, Fact, Name
from tracereplay.hardware.schema import Accelerator, PlatformFile, fields_of
from tracereplay.hardware.topology import Link, Node, Rate, bisection_of, graph_of, parts_of


@dataclass(frozen=True, slots=True)
class Platform:
    """One node of a platform: what its file says, and the accelerator in its slots (None where it has no slots)."""

    description: PlatformFile
    accelerator: Accelerator | None

    def with_accelerator(self, accelerator: Accelerator, why: str) -> "Platform":
        """The same platform with another accelerator in its slots; everything else stays, its fabric too.

        Raises:
            UsageError: the platform has no slots.
        """
        slots = self.description.accelerator
        if slots is None:
            raise UsageError(f"{self.description.name} has no slots for accelerators", hint="choose another platform")
        model = Name(unit="name", kind="spec", value=accelerator.name, source=why)
        filled = slots.model_copy(update={"model": model})
        return replace(self, description=self.description.model_copy(update={"accelerator": filled}), accelerator=accelerator)

    def fields(self) -> list[tuple[str, Fact]]:
        """Each field with its key: the platform's own, then those of the accelerator in its slots under ``accelerator``."""
        return [*fields_of(self.description), *fields_of(self.accelerator, "accelerator")]

    def described(self, key: str) -> str:
        """A field as a person reads it, with its source; the key alone where there is no such field."""
        fact = dict(self.fields()).get(key)
        return key if fact is None else f"{key} {fact.text()}: {fact.source}"

    def parts(self) -> tuple[list[Node], list[Link]]:
        """Nodes and links.

        Raises:
            HardwareError: how many parts there are, or how they are wired, is unknown.
        """
        return parts_of(self.description, self.accelerator)

    def topology(self, nodes: int = 1, *, nodes_per_rack: int | None = None, oversubscription: float = 1.0) -> nx.Graph:
        """Nodes and links as a networkx graph: of one node, or of several that a network joins (``hardware.cluster``).

        ``nodes_per_rack``: how many nodes share a rack, by default all; ``oversubscription``: how many times more a rack's rail
        switches could take than the rack has towards the other racks.

        Raises:
            HardwareError: how many parts there are, or how they are wired, is unknown.
            UsageError: the numbers do not fit together, or nodes without network interfaces are to be joined.
        """
        cluster = Cluster(nodes, nodes_per_rack, oversubscription, 1 if nodes == 1 else self.nodes_per_switch())
        if cluster.nodes > cluster.nodes_per_switch:
            self._known("fabric.scale_out.nics", self.description.fabric.scale_out.nics)
        return graph_of(*(self.parts() if nodes == 1 else join(*self.parts(), cluster)))

    def nodes_per_switch(self) -> int:
        """Over how many nodes one scale-up switch reaches.

        Raises:
            HardwareError: how many accelerators the switch reaches, or a node has, is unknown.
        """
        slots, up = self.description.accelerator, self.description.fabric.scale_up
        if slots is None or up is None or up.domain is None or up.layout.value != "switch":
            return 1
        reached = self._known("fabric.scale_up.domain", up.domain)
        return max(1, reached // self._known("accelerator.count", slots.count))

    def bisection(self) -> Rate:
        """Bytes a second, one way, between halves of the accelerators for the worst halves; None where it is unknown."""
        slots = self.description.accelerator
        return None if slots is None else bisection_of(self.parts()[1], self._known("accelerator.count", slots.count))

    def _known(self, key: str, count: Count) -> int:
        """A number of parts that a topology cannot do without."""
        if count.value is None:
            hint = f"a topology needs it: give it with --set {key}=..., or in a file that inherits this one"
            raise HardwareError(f"{key} is unknown", where=self.description.name, hint=hint)
        return int(count.value)
