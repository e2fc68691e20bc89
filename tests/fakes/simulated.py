"""Small jobs whose true schedule is known: in, a random program; out, the traces that its execution would leave.

An event-driven model of host threads, streams and collectives. Ranks run the same collectives in the same order; between
them each does what its own program says. Times are whole microseconds.
"""

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from tests.fakes.kineto import TraceFile

COMPUTE, COMM = 7, 20
_LAUNCH_US = 5
_LATENCY_US = 9
_GAP_US = 2


@dataclass(frozen=True)
class Action:
    """One thing that a rank's host does: what, for how long, and how long the work takes that it enqueues."""

    what: str
    host_us: int
    work_us: int


@dataclass(frozen=True)
class Phase:
    """What each rank does, then one collective of all (None: no collective)."""

    actions: tuple[tuple[Action, ...], ...]
    collective: str | None
    transfer_us: int


@dataclass
class _Rank:
    trace: TraceFile
    now: int
    start: int
    free: dict[int, int] = field(default_factory=lambda: {COMPUTE: 0, COMM: 0})
    correlation: int = 0

    def launch(self, name: str, stream: int, work_us: int | None) -> int:
        """Record the launch and return when the work starts."""
        self.correlation += 1
        begin = max(self.now + _LATENCY_US, self.free[stream] + _GAP_US)
        self.trace.call("cudaLaunchKernel", self.now, _LAUNCH_US, self.correlation)
        self.now += _LAUNCH_US
        if work_us is not None:
            self.trace.kernel(name, begin, work_us, stream, self.correlation)
            self.free[stream] = begin + work_us
        return begin

    def act(self, action: Action) -> None:
        if action.what == "op":
            self.trace.op("aten::empty", self.now, action.host_us)
            self.now += action.host_us
        elif action.what == "gap":
            self.now += action.host_us
        elif action.what == "launch":
            self.launch("volta_sgemm_32x32", COMPUTE, action.work_us)
            self.now += action.host_us
        elif action.what == "sync":
            self.correlation += 1
            end = max(self.now + 3, max(self.free.values()) + 4)
            self.trace.call("cudaDeviceSynchronize", self.now, end - self.now, self.correlation)
            self.now = end + action.host_us


def simulate(phases: list[Phase], entries: list[int], base_us: int = 1_000_000) -> list[TraceFile]:
    """The traces of one step of all ranks; rank r enters the step ``entries[r]`` µs after ``base_us``."""
    world = len(entries)
    ranks = [_Rank(TraceFile(r, world), base_us + e, base_us + e) for r, e in enumerate(entries)]
    for phase in phases:
        for rank, actions in zip(ranks, phase.actions, strict=True):
            for action in actions:
                rank.act(action)
        if phase.collective is not None:
            _collect(ranks, phase.collective, phase.transfer_us)
    for rank in ranks:
        # Programs that end a step when the device has drained say so by a call: a wait that no call shows is host time.
        rank.act(Action("sync", 5, 0))
        rank.trace.step(1, rank.start, rank.now - rank.start)
    return [rank.trace for rank in ranks]


def _collect(ranks: list[_Rank], name: str, transfer_us: int) -> None:
    arrivals = []
    for rank in ranks:
        rank.trace.op(f"nccl:{name}", rank.now, _LAUNCH_US + 2)
        rank.now += 1
        arrivals.append(rank.launch(name, COMM, None))
        rank.now += 1
    end = max(arrivals) + transfer_us
    for rank, arrival in zip(ranks, arrivals, strict=True):
        rank.trace.kernel("ncclDevKernel_SendRecv", arrival, end - arrival, COMM, rank.correlation)
        rank.free[COMM] = end


def _phase(world: int) -> st.SearchStrategy[Phase]:
    action = st.builds(Action, st.sampled_from(["op", "gap", "launch", "sync"]), st.integers(1, 40), st.integers(1, 120))
    per_rank = st.lists(action, max_size=4).map(tuple)
    return st.builds(
        Phase,
        st.tuples(*[per_rank] * world),
        st.sampled_from([None, "all_to_all", "all_reduce"]),
        st.integers(1, 60),
    )


@dataclass(frozen=True)
class Program:
    """A job that can be run again with other durations: its phases and when each rank enters the step."""

    phases: tuple[Phase, ...]
    entries: tuple[int, ...]

    def run(self, *, kernels: int = 1, transfers: int = 1) -> list[TraceFile]:
        """The traces of the program with kernels and transfers that many times as long: what really would happen."""
        changed = [
            Phase(
                tuple(tuple(replace(a, work_us=a.work_us * kernels) for a in actions) for actions in phase.actions),
                phase.collective,
                phase.transfer_us * transfers,
            )
            for phase in self.phases
        ]
        return simulate(changed, list(self.entries))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Programs of one to three ranks with at least one launch each."""
    world = draw(st.integers(1, 3))
    first = Phase(tuple((Action("launch", 3, 20),) for _ in range(world)), None, 0)
    phases = [first, *draw(st.lists(_phase(world), min_size=1, max_size=4))]
    entries = draw(st.lists(st.integers(0, 200), min_size=world, max_size=world))
    return Program(tuple(phases), tuple(entries))


def jobs() -> st.SearchStrategy[list[TraceFile]]:
    """Traces of programs as they are."""
    return programs().map(Program.run)


@st.composite
def wild_jobs(draw: st.DrawFn) -> list[TraceFile]:
    """Traces that no machine left: any intervals, ids that match nothing or twice, streams that overlap."""
    world = draw(st.integers(1, 3))
    traces = []
    times = st.integers(0, 300)
    lengths = st.integers(0, 120)
    for rank in range(world):
        trace = (
            TraceFile(rank, draw(st.sampled_from([None, world, world + 1])))
            .step(1, 0, draw(st.integers(50, 400)))
            .op("aten::mm", 1, 4)
        )
        for _ in range(draw(st.integers(1, 8))):
            ts, dur, tid = draw(times), draw(lengths), draw(st.integers(1, 2))
            what = draw(st.sampled_from(["op", "call", "sync", "wait", "kernel", "nccl", "gloo", "engine", "c10d"]))
            stream, correlation = draw(st.integers(0, 2)), draw(st.integers(0, 4))
            if what == "kernel":
                trace.kernel("elementwise_kernel", ts, dur, stream, correlation)
            elif what == "nccl":
                trace.kernel("ncclDevKernel_AllReduce_Sum", ts, dur, stream, correlation)
            elif what == "gloo":
                trace.gloo("gloo:all_reduce", ts, dur, tid + 10)
            else:
                name = {
                    "op": "aten::mm",
                    "call": "cudaLaunchKernel",
                    "sync": "cudaStreamSynchronize",
                    "wait": "cudaStreamWaitEvent",
                    "engine": "autograd::engine::evaluate_function: MmBackward0",
                    "c10d": "c10d::allreduce_",
                }[what]
                calls = ("call", "sync", "wait")
                if what in calls:
                    trace.call(name, ts, dur, correlation, tid)
                else:
                    trace.op(name, ts, dur, tid)
        traces.append(trace)
    return traces
