"""A job on other hardware: in, a graph and where it ran and is to run; out, by what each task's time is multiplied.

- Device work is carried over by the calibrated roofline (``hardware/operators``), work of unknown shape by its class.
- Copies between host and device go by the bandwidth of the link between the two.
- Lookups in tables that stand, or stood, outside of an accelerator's own memory go by bytes (``table_moves``).
- Transfers are carried over by the model of collectives on both fabrics (``hardware/collectives``). A transfer whose size is
  not recorded has the size with which the model explains its time.
- Host time goes by the speed of the hosts, which no data sheet has: it is as recorded unless a setting says otherwise.
- A job that ran on CPUs alone and is to run on accelerators has its operators' times from the model, one after the other.

Waits are results. What nothing models keeps its time and is listed.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from tracereplay.errors import HardwareError, UsageError
from tracereplay.graph.model import DependencyGraph
from tracereplay.hardware.collectives.of_platform import fabric_of
from tracereplay.hardware.ends import HIGH, LOW, accelerator_at_end
from tracereplay.hardware.memory.rates import ranks_of_node
from tracereplay.hardware.operators.carry import analytic_times, carry_over_all, carry_over_class
from tracereplay.hardware.operators.work import CLASSES, OperatorClass, Works
from tracereplay.hardware.platform import Platform
from tracereplay.hardware.schema import Accelerator
from tracereplay.replay.busy_periods import carry_over_together
from tracereplay.replay.columns import Columns, Floats, Mask, Times
from tracereplay.replay.device_work import TaskWork, task_work
from tracereplay.replay.hosts import Launch, launch_on, move_copies, move_host, move_operators
from tracereplay.replay.places import places
from tracereplay.replay.sharing import Copies, Sharing, alone_of, sharing_of
from tracereplay.replay.site import Site, supplied
from tracereplay.replay.table_moves import TableMover, TablesMoved, Wish
from tracereplay.replay.transfers import Transfer, Wire, Wired, hosts_of, members_of, transfer_on
from tracereplay.trace.classify import WorkClass
from tracereplay.trace.times import Int64s

# How the bounds of all models are meant: nine of ten held-out predictions lie between them.
LEVEL = 0.9
_ONE_AFTER_THE_OTHER = (
    "operators of a CPU run take the model's time on the accelerator, one after the other: no launch beside the device"
)
# So many accelerators and fabrics are remembered by who moves a job to many targets.
_REMEMBERED = 16


@dataclass(frozen=True, slots=True)
class Move:
    """What moving does. A value a node: ``factor``; natural logarithms of the bounds beside the prediction, ``low`` and
    ``high``; the group whose error it shares, -1 where it has none. ``kept``: nodes that nothing models.

    ``others`` are the factors with other accelerators that may be in the slots; ``assumed`` what was assumed, in words;
    ``wires`` the collectives, one for each that took place; ``tables`` where embedding tables stand then, None for a job
    without accelerators; ``sharing``: the links that transfers share, None where no fabric is modelled. ``launch``: of a job of
    CPUs on accelerators, what the host takes to launch an operator; it is in no factor.
    """

    factor: Floats
    low: Floats
    high: Floats
    group: Int64s
    kept: Mask
    others: tuple[Floats, ...]
    assumed: tuple[str, ...]
    wires: tuple[Wire, ...]
    sharing: Sharing | None = None
    tables: TablesMoved | None = None
    launch: Launch | None = None

    @property
    def afresh(self) -> bool:
        """Whether operators and transfers take the models' times, to which the recorded ones are nothing."""
        return self.launch is not None


def move(graph: DependencyGraph, source: Site | None, target: Site) -> Move:
    """The job on ``target``; ``source`` is where it ran, None for a job of CPUs whose hardware is not described.

    Raises:
        UsageError: device work and no ``source``, accelerators that the target lacks, more ranks than endpoints.
        HardwareError: a figure that the job depends on is unknown; the message names the setting that supplies it.
    """
    return Mover.of(graph, source).to(target)


@dataclass(frozen=True, slots=True)
class Mover:
    """Moves of one job from one place to many: what the job does is found out once, and what a target has in common with one
    before is not worked out again. ``works``, ``kinds``: the work of the tasks that have any, the classes of all; ``tables``:
    embedding tables on its accelerators.
    """

    graph: DependencyGraph
    source: Site | None
    work: TaskWork
    works: Works
    kinds: Int64s
    devices: list[tuple[Accelerator, Columns]] = field(default_factory=list)
    fabrics: list[Wired] = field(default_factory=list)
    copies: list[Copies] = field(default_factory=list)
    alone: list[Floats] = field(default_factory=list)
    tables: TableMover | None = None

    @staticmethod
    def of(graph: DependencyGraph, source: Site | None, wish: Wish = Wish()) -> "Mover":  # noqa: B008 - frozen
        """Moves of a graph from where it ran; None for a job of CPUs whose hardware is not described. ``wish``: what is said of
        its embedding tables.

        Raises:
            UsageError, NotComparableError: a placement file that does not fit the job.
        """
        work = task_work(graph)
        kinds = np.array([CLASSES.index(kind) for kind in work.kind], np.int64)
        tables = TableMover.of(graph, None if source is None else source.platform, work, wish)
        return Mover(graph, source, work, _columns(work, _shaped(work)), kinds, tables=tables)

    def to(self, target: Site) -> Move:
        """The move to a target; raises as ``move``."""
        try:
            return self._to(target)
        except HardwareError as error:
            raise supplied(error, self.source, target) from error

    def _to(self, target: Site) -> Move:
        made = Columns.of(len(self.graph))
        assumed = self._move_devices(target, made)
        tables = None if self.tables is None else self.tables.to(target.platform, made)
        assumed += [] if tables is None else tables.assumed
        sides = self._sides(target)
        wires, of_wires = self._move_wires(sides, target, made)
        assumed += [*of_wires, *move_host(self.graph, target, made)]
        return Move(
            made.factor, made.low, made.high, made.group, made.kept,
            others=self._others(target, made),
            assumed=tuple(dict.fromkeys(assumed)),
            wires=wires,
            sharing=None if sides is None else self._sharing(*sides, made.factor),
            tables=tables,
            launch=self._launch(target),
        )  # fmt: skip

    def _move_devices(self, target: Site, made: Columns) -> list[str]:
        work, source, there = self.work, self.source, target.platform.accelerator
        if not work.node.size:
            return []
        if self.graph.host_carries_classes and (there is None or self._has(there)):
            return move_operators(self.graph, self.kinds, work.node, source, target.platform, made)
        here = None if source is None else source.platform.accelerator
        if there is None or (here is None and not self.graph.host_carries_classes):
            missing = "--from" if here is None else "--hardware"
            raise UsageError(
                f"the job has device work and {missing} has no accelerators", hint="name a platform with accelerators"
            )
        made.take(work.node, self._worked(there))
        self._widen(there, made)
        assumed = [*_assumed_of(there), *_slots_assumed(target.platform)]
        if self.graph.host_carries_classes or source is None:
            return [_ONE_AFTER_THE_OTHER, *assumed]
        return [*assumed, *move_copies(self.graph, work.node[work.across], source.platform, target.platform, made)]

    def _widen(self, there: Accelerator, made: Columns) -> None:
        """Bounds that hold for all that the accelerator's file thinks possible of its assumed figures."""
        node = self.work.node
        for end, bound in ((HIGH, made.low), (LOW, made.high)):
            other = accelerator_at_end(there, end)
            if other is not there:
                shift = np.log(self._worked(other).factor / made.factor[node])
                bound[node] += np.minimum(shift, 0.0) if end == HIGH else np.maximum(shift, 0.0)

    def _worked(self, there: Accelerator) -> Columns:
        """The columns of tasks on an accelerator, a row a task with work."""
        found = next((columns for known, columns in self.devices if known == there), None)
        if found is None:
            made = Columns.of(len(self.graph))
            here = None if self.source is None else self.source.platform.accelerator
            if self.graph.host_carries_classes or here is None:
                self._place_on_accelerators(there, made)
            else:
                self._carry(here, there, made)
            found = made.rows(self.work.node)
            self.devices[_REMEMBERED - 1 :] = []
            self.devices.insert(0, (there, found))
        return found

    def _place_on_accelerators(self, there: Accelerator, made: Columns) -> None:
        """Operators of a job of CPUs run on accelerators; those without a formula stay on the host."""
        work, known = self.work, self.work.work >= 0
        times = analytic_times(Works.of(work.works), there)
        columns = [column[work.work[known]] * work.share[known] for column in (times.time_ns, times.low_ns, times.high_ns)]
        before_ns = self.graph.nodes.dur_ns[work.node[known]].astype(np.float64)
        made.put(work.node[known], self.kinds[known], Times(before_ns, *columns))
        classed = self.graph.nodes.work_class[work.node] != WorkClass.OTHER
        made.kept[work.node[~known & classed]] = True

    def _carry(self, here: Accelerator, there: Accelerator, made: Columns) -> None:
        work, known = self.work, _shaped(self.work)
        before_ns = self.graph.nodes.dur_ns[work.node].astype(np.float64)
        carried = carry_over_all(self.works, before_ns[known], here, there, in_fp32=work.in_fp32[known])
        times = Times(before_ns[known], carried.time_ns, carried.low_ns, carried.high_ns)
        made.put(work.node[known], self.kinds[known], times)
        for code in np.unique(self.kinds[~known & ~work.across]).tolist():
            mine = ~known & ~work.across & (self.kinds == code)
            if CLASSES[code] is OperatorClass.OTHER:
                made.kept[work.node[mine]] = True
            carried = carry_over_class(CLASSES[code], before_ns[mine], here, there)
            made.put(work.node[mine], code, Times(before_ns[mine], carried.time_ns, carried.low_ns, carried.high_ns))

    def _others(self, target: Site, made: Columns) -> tuple[Floats, ...]:
        """The factors with each other accelerator that may be in the target's slots."""
        found = []
        for accelerator in target.alternatives:
            other = made.copied()
            platform = replace(target.platform, accelerator=accelerator)
            self._move_devices(replace(target, platform=platform), other)
            if self.tables is not None:
                self.tables.to(platform, other, refuse=False)
            found.append(other.factor)
        return tuple(found)

    def _sides(self, target: Site) -> tuple[Wired | None, Wired] | None:
        """The fabrics that transfers leave and come to; None where they stay on that of a job of CPUs, or there are none."""
        if not self.graph.collectives:
            return None
        on_cpus = self.graph.host_carries_classes
        stays = target.platform.accelerator is None or self._has(target.platform.accelerator)
        if on_cpus and stays and self._is_at(target.platform):
            return None
        # What a CPU backend took says nothing of accelerators' links: there the model alone does.
        as_recorded = self.source is not None and (not on_cpus or stays)
        here = self._wired(self.source.platform) if self.source is not None and as_recorded else None
        return here, self._wired(target.platform)

    def _move_wires(
        self, sides: tuple[Wired | None, Wired] | None, target: Site, made: Columns
    ) -> tuple[tuple[Wire, ...], list[str]]:
        """The collectives in the model, and what they rest on that is assumed."""
        if sides is None:
            made.kept[[n for c in self.graph.collectives for n in c.transfers]] = self.source is None
            return (), []
        here, there = sides
        if not there.transfers:
            found = [transfer_on(self.graph, c, here, there) for c in self.graph.collectives]
            there.transfers.extend(found if here is None else carry_over_together(self.graph, found, self._alone(here, found)))
        for transfer in there.transfers:
            if transfer.wire is None:
                made.kept[transfer.nodes] = True
            else:
                made.put(transfer.nodes, transfer.group, transfer.times)
        wires = tuple(transfer.wire for transfer in there.transfers if transfer.wire is not None)
        assumed = dict.fromkeys(key for transfer in there.transfers for key in transfer.assumed)
        return wires, [target.platform.described(key) for key in assumed]

    def _sharing(self, here: Wired | None, there: Wired, factor: Floats) -> Sharing:
        """What shares links on the target; what did in the recording is found once."""
        shares = np.ones(len(self.graph)) if here is None else self._alone(here, there.transfers)
        return sharing_of(self.graph, shares, there, self._copies(), factor)

    def _copies(self) -> Copies:
        if not self.copies:
            self.copies.append(Copies.of(self.graph, self.work.node[self.work.across]))
        return self.copies[0]

    def _alone(self, here: Wired, transfers: list[Transfer]) -> Floats:
        """What of each task's recorded time it would have taken alone where it was recorded."""
        if not self.alone:
            self.alone.append(alone_of(self.graph, here, transfers, self._copies()))
        return self.alone[0]

    def _launch(self, target: Site) -> Launch | None:
        """What a launch takes where a job of CPUs moves to accelerators."""
        there = target.platform.accelerator
        if not self.graph.host_carries_classes or there is None or self._has(there):
            return None
        return launch_on(target.platform)

    def _has(self, accelerator: Accelerator) -> bool:
        """Whether the platform that a job of CPUs ran on has this accelerator: the job left it alone, and goes on doing so."""
        own = None if self.source is None else self.source.platform.accelerator
        return own is not None and own.name == accelerator.name

    def _is_at(self, target: Platform) -> bool:
        """Whether transfers of a job of CPUs stay as they are: on the fabric that it ran on, or where nobody described that."""
        if self.source is None:
            return True
        # Sockets of one node reach each other over what joins them, which is no part of the fabric.
        here, there = self.source.platform.description, target.description
        return (here.fabric, here.host.interconnect) == (there.fabric, there.host.interconnect)

    def _wired(self, platform: Platform) -> Wired:
        """The fabric of a platform, the same one for platforms that differ in nothing that transfers know of."""
        accelerator = platform.accelerator
        ports = None if accelerator is None else (accelerator.scale_up, accelerator.clock)
        for known in self.fabrics:
            if known.description == platform.description and known.ports == ports:
                return known
        ranks = [r for c in self.graph.collectives for r in members_of(self.graph, c)]
        standing = places(ranks, hosts_of(self.graph), ranks_of_node(platform))
        fabric = fabric_of(platform, standing.nodes, alike=[known.fabric for known in self.fabrics])
        found = Wired(platform.description, ports, fabric, standing)
        self.fabrics[_REMEMBERED - 1 :] = []  # the first is that of the source, and stays
        self.fabrics.append(found)
        return found


def _shaped(work: TaskWork) -> Mask:
    """Tasks that the model knows by more than their class."""
    return np.asarray((work.work >= 0) & ~work.across)


def _columns(work: TaskWork, chosen: Mask) -> Works:
    """The work of the chosen tasks, each the share of its operator's that it does."""
    works = Works.of(work.works).take(work.work[chosen])
    share = work.share[chosen]
    return replace(works, flops=works.flops * share, bytes_moved=works.bytes_moved * share, batch=works.batch * share)


def _assumed_of(accelerator: Accelerator) -> list[str]:
    used = {"hbm.bandwidth": accelerator.hbm.bandwidth} | {f"flops.{n}": f for n, f in accelerator.flops.items()}
    return [f"accelerator.{key} {fact.text()}: {fact.source}" for key, fact in used.items() if fact.kind == "assumed"]


def _slots_assumed(platform: Platform) -> list[str]:
    slots = platform.description.accelerator
    if slots is None or slots.model.kind != "assumed":
        return []
    return [f"accelerator.model {slots.model.text()} (of {', '.join(slots.model.range or ())}): {slots.model.source}"]
